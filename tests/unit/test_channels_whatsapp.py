"""WhatsApp: what each stored webhook is read as, statuses among them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rejoinder import gateway
from rejoinder.ports import ByPerson, Edited, Event, Ignored, Inbound, Malformed, Rejected, Reported, Request, Text
from rejoinder.protocol.conversation import Attachment
from unit.whatsapp_number import ANA, NOW_MS, NUMBER, REPLY_ID, channel, sends

EVENTS = Path(__file__).parents[2] / "events" / "whatsapp"
EDITED_MS = NOW_MS + 4_000
CLEO = "US.13491208655302741918"


def read_all(case: str) -> list[Event]:
    _, request = gateway.read(json.loads((EVENTS / f"{case}.json").read_text()))
    return list(channel().parse(request, NOW_MS))


def read(case: str) -> Any:
    (event,) = read_all(case)
    return event


def parse(*entries: object) -> list[Event]:
    body = json.dumps({"object": "whatsapp_business_account", "entry": entries}).encode()
    return list(channel().parse(Request("POST", "/", {}, body), NOW_MS))


def change(**value: object) -> dict[str, object]:
    return {"field": "messages", "value": {"metadata": {"phone_number_id": NUMBER}, **value}}


def text(provider_id: str = "wamid.1", **changes: object) -> dict[str, object]:
    whole = {"from": ANA, "id": provider_id, "timestamp": "1790000000", "type": "text", "text": {"body": "hi"}}
    return {**whole, **changes}


# --- in ---------------------------------------------------------------------------------------------------------------


def test_a_text_is_read_whole() -> None:
    """The account is the number that was written to; the conversation is that and the sender."""
    assert read("text") == Inbound(
        f"whatsapp:{NUMBER}:{ANA}",
        "wamid.SYN001",
        ANA,
        "my phone is 202-555-0111",
        sent_at_ms=NOW_MS,
        author_name="Ana",
        address=f"{NUMBER}|number|{ANA}",
    )


IMAGE = Attachment("image", "300000000000001", "image", "image/jpeg")
ORDER = Attachment("order", "400000000000001", "order: 2 x SKU-1, 1 x SKU-2")


@pytest.mark.parametrize(
    ("case", "said", "attachments"),
    [
        ("image", "is this the right size?", [IMAGE]),
        ("audio", "", [Attachment("audio", "300000000000002", "audio", "audio/mpeg")]),
        ("voice", "", [Attachment("audio", "300000000000003", "voice message", "audio/ogg; codecs=opus")]),
        ("video", "", [Attachment("video", "300000000000004", "video", "video/mp4")]),
        ("document", "the bill", [Attachment("file", "300000000000005", "bill.pdf", "application/pdf")]),
        ("sticker", "", [Attachment("sticker", "300000000000006", "sticker", "image/webp")]),
        ("location", "", [Attachment("location", "geo:52.520008,13.404954", "The shop, 1 High Street")]),
        ("location-bare", "", [Attachment("location", "geo:-33.5,151", "location -33.5,151")]),
        (
            "contacts",
            "",
            [
                Attachment("contact", "tel:+1 202-555-0122", "Bo Li +1 202-555-0122"),
                Attachment("contact", "tel:", "The shop"),
            ],
        ),
        ("order", "by Friday, please", [ORDER]),
        ("button", "Yes, please", []),
        ("button-reply", "Red", []),
        ("list-reply", "Blue", []),
        ("form", '{"date":"2026-09-25","flow_token":"t1"}', []),
        ("unsupported", "", [Attachment("unsupported", "", "a message that WhatsApp does not pass on")]),
        ("reply", "yes, that one", []),
        ("unicode", "¿qué tal? 👩‍👩‍👧‍👦 שלום\u200b", []),
        ("base64", "hello", []),
    ],
)
def test_each_type_of_message_says_what_it_says(case: str, said: str, attachments: list[Attachment]) -> None:
    event = read(case)
    assert (event.text, list(event.attachments)) == (said, attachments)


@pytest.mark.parametrize(
    "case",
    [
        "reaction", "reaction-removed", "system", "unknown-type", "request-welcome", "errors",
        "template-status", "status-of-another-sender",
    ],
)  # fmt: skip
def test_what_nobody_wrote_to_be_answered_is_ignored(case: str) -> None:
    assert isinstance(read(case), Ignored)


def test_what_a_colleague_writes_in_the_app_is_our_own_side_past_the_bot() -> None:
    """Field case FC-083: from the business's number to the customer, whose conversation it is."""
    assert read("echo") == ByPerson(f"whatsapp:{NUMBER}:12025550111", "Card or cash is fine", 1_790_000_002_000)


def test_an_edit_is_the_message_as_it_is_now_under_the_id_that_it_had() -> None:
    """The event has an id of its own, and the new words stand one deeper; the time is the edit's."""
    assert read("edit") == Edited(
        replace(read("text"), text="my phone is 202-555-0122", sent_at_ms=EDITED_MS), EDITED_MS
    )


def test_an_edited_caption_keeps_its_medium() -> None:
    found = read("edit-of-a-caption")
    assert (found.now.provider_id, found.now.text) == ("wamid.SYN006", "the kitchen, and not the bath")
    assert [(one.kind, one.ref) for one in found.now.attachments] == [("image", "300000000000001")]


def test_an_edit_of_who_hides_the_number_and_in_a_group_stays_in_its_conversation() -> None:
    """What surrounds the new words says whose they are, and never they themselves."""
    elsewhere = {"from": "12025550199", "id": "wamid.X", "timestamp": "1", "type": "text", "text": {"body": "hi"}}
    edit = {"type": "edit", "edit": {"original_message_id": "wamid.1", "message": elsewhere}}
    hidden = text("wamid.E", **{"from": "", "from_user_id": CLEO, "group_id": "g-1"}, **edit)
    (found,) = parse({"changes": [change(messages=[hidden])]})
    assert isinstance(found, Edited)
    assert (found.now.conversation_id, found.now.author) == (f"whatsapp:{NUMBER}:g-1", CLEO)
    assert (found.now.provider_id, found.edited_at_ms) == ("wamid.1", NOW_MS)


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        (None, Rejected),
        ({"message": {"type": "text", "text": {"body": "x"}}}, Rejected),
        ({"original_message_id": "wamid.1"}, Rejected),
        ({"original_message_id": "wamid.1", "message": {"type": "text"}}, Rejected),
        ({"original_message_id": "wamid.1", "message": {"type": "hologram"}}, Ignored),
        ({"original_message_id": "wamid.1", "message": {"type": "edit", "edit": {}}}, Ignored),
        ({"original_message_id": "wamid.1", "message": {}}, Ignored),
    ],
)
def test_an_edit_that_cannot_be_read_loses_no_message(edit: object, kind: type[Event]) -> None:
    odd = text("wamid.E", type="edit", edit=edit)
    assert [type(event) for event in parse({"changes": [change(messages=[odd, text("2")])]})] == [kind, Inbound]


def test_what_was_taken_back_is_ignored_and_says_so() -> None:
    assert read("revoke") == Ignored("a message was taken back")


@pytest.mark.parametrize("case", ["echo-of-an-edit", "echo-of-a-revoke"])
def test_a_colleague_who_changes_a_message_says_nothing_new(case: str) -> None:
    assert isinstance(read(case), Ignored)


@pytest.mark.parametrize("case", ["username", "username-empty"])
def test_who_hides_the_number_is_known_by_the_user_id(case: str) -> None:
    """The number is absent or empty (vercel/chat#925); in `to` a user id is dropped without a word (chatwoot#15150)."""
    event = read(case)
    assert event.conversation_id == f"whatsapp:{NUMBER}:{CLEO}"
    assert (event.author, event.author_name) == (CLEO, "Cleo")
    (send,) = sends(Text("x"), address=event.address)
    assert send["recipient"] == CLEO
    assert "to" not in send


def test_who_shows_the_number_is_known_by_it_whatever_else_is_there() -> None:
    event = read("number-and-username")
    assert event.conversation_id == f"whatsapp:{NUMBER}:{ANA}"
    (send,) = sends(Text("x"), address=event.address)
    assert send["to"] == ANA


def test_a_group_is_one_conversation_that_keeps_its_authors() -> None:
    ana, bo = read_all("group")
    assert isinstance(ana, Inbound)
    assert isinstance(bo, Inbound)
    assert ana.conversation_id == bo.conversation_id == f"whatsapp:{NUMBER}:500000000000001"
    assert [(one.author, one.author_name) for one in (ana, bo)] == [(ANA, "Ana"), ("12025550122", "Bo")]
    (send,) = sends(Text("x"), address=ana.address)
    assert (send["recipient_type"], send["to"]) == ("group", "500000000000001")


def test_every_message_of_every_change_of_every_entry_is_read() -> None:
    """Field case FC-065. The reply goes out from the number that was written to (FC-109)."""
    events = [event for event in read_all("batch") if isinstance(event, Inbound)]
    assert [(event.conversation_id.removeprefix("whatsapp:"), event.text) for event in events] == [
        (f"{NUMBER}:{ANA}", "a"),
        (f"{NUMBER}:{ANA}", "b"),
        (f"{NUMBER}:12025550122", "from somebody else"),
        (f"{NUMBER}:{ANA}", "c"),
        (f"200000000000002:{ANA}", "to the other number"),
    ]
    (send,) = sends(Text("x"), address=events[-1].address)
    assert send["from"] == "200000000000002"


def test_a_message_that_cannot_be_read_is_rejected_alone() -> None:
    """Field case FC-066."""
    good, bad, also_good = read_all("batch-with-a-bad-one")
    assert isinstance(good, Inbound)
    assert isinstance(bad, Rejected)
    assert isinstance(also_good, Inbound)


@pytest.mark.parametrize(
    "broken",
    [
        text("2", **{"from": None}),
        text("2", timestamp="soon"),
        text("2", timestamp="²"),
        text("2", text="hi"),
        text("2", id=""),
        text("2", type="location", location={"latitude": "north"}),
        text("2", type="image", image={}),
        text("2", type="contacts", contacts={}),
        text("2", type="interactive", interactive={"type": "hologram"}),
        text("2", **{"from": "x" * 500}),
        "a string",
        None,
    ],
)
def test_nothing_in_one_message_loses_another(broken: object) -> None:
    first, rejected, last = parse({"changes": [change(messages=[text("1"), broken, text("3")])]})
    assert isinstance(first, Inbound)
    assert isinstance(rejected, Rejected)
    assert isinstance(last, Inbound)


@pytest.mark.parametrize(
    "broken", [None, 1, {"field": 7}, change(messages={}), {"field": "messages"}, change(metadata={})]
)
def test_nothing_in_one_change_loses_another(broken: object) -> None:
    rejected, kept = parse({"changes": [broken, change(messages=[text()])]})
    assert isinstance(rejected, Rejected | Ignored)
    assert isinstance(kept, Inbound)


@pytest.mark.parametrize("broken", [None, 1, {}, {"changes": {}}])
def test_nothing_in_one_entry_loses_another(broken: object) -> None:
    events = parse(broken, {"changes": [change(messages=[text()])]})
    assert isinstance(events[-1], Inbound)


@pytest.mark.parametrize("contacts", [None, {}, [None], [{"profile": None, "wa_id": ANA}], [{"profile": {"name": 7}}]])
def test_a_name_that_cannot_be_read_loses_no_message(contacts: object) -> None:
    (event,) = parse({"changes": [change(contacts=contacts, messages=[text()])]})
    assert isinstance(event, Inbound)
    assert event.author_name == ""


@pytest.mark.parametrize(
    "body", [b"[]", b"{}", b'{"object": "page", "entry": []}', b'{"object": "whatsapp_business_account"}']
)
def test_what_is_no_envelope_of_whatsapp_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        channel().parse(Request("POST", "/", {}, body), NOW_MS)


# --- statuses ---------------------------------------------------------------------------------------------------------


def test_the_status_of_a_send_says_that_it_was_sent() -> None:
    """In the conversation that the reply belongs to, by what the send itself carried."""
    assert read("status-sent") == Reported(f"whatsapp:{NUMBER}:{ANA}", REPLY_ID, 0)
    assert read("status-username") == Reported(f"whatsapp:{NUMBER}:{CLEO}", REPLY_ID, 0)


@pytest.mark.parametrize("case", ["status-delivered", "status-read", "status-played"])
def test_what_was_delivered_or_read_was_sent(case: str) -> None:
    """The one that says "sent" may be lost; and what is read at once is never said to be delivered."""
    assert read(case) == read("status-sent")


def test_the_status_of_a_send_that_failed_says_with_what() -> None:
    assert read("status-failed") == Reported(f"whatsapp:{NUMBER}:{ANA}", REPLY_ID, 0, "WhatsApp error 131026")


def test_odd_statuses_stop_neither_messages_nor_reports() -> None:
    """Field case FC-067; that messages are recorded first is ingest's rule."""
    kinds = [type(event) for event in read_all("message-with-statuses")]
    assert sorted(kinds, key=str) == sorted([Inbound, Ignored, Reported, Reported], key=str)


@pytest.mark.parametrize(
    "status",
    [
        None,
        {"status": "sent"},
        {"status": "sent", "biz_opaque_callback_data": f"{REPLY_ID}-x", "recipient_id": ANA},
        {"status": "sent", "biz_opaque_callback_data": 7, "recipient_id": ANA},
        {"status": "sent", "biz_opaque_callback_data": f"{REPLY_ID}-0"},
        {"status": "sent", "biz_opaque_callback_data": f"{REPLY_ID}-0", "recipient_id": "x" * 600},
    ],
)
def test_a_status_that_is_not_of_ours_is_ignored(status: object) -> None:
    (event,) = parse({"changes": [change(statuses=[status])]})
    assert isinstance(event, Ignored)
