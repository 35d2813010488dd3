"""Messenger and Instagram: what each stored event is read as."""

import json
from pathlib import Path
from typing import Any

import pytest

from rejoinder import gateway
from rejoinder.channels import instagram
from rejoinder.channels.meta_messaging_contents import MAX_ATTACHMENTS, UNSUPPORTED
from rejoinder.ports import ByPerson, Edited, Event, Ignored, Inbound, Rejected, Reported, Request
from rejoinder.protocol.conversation import Attachment
from unit.meta_page import ANA, NOW_MS, PAGE, REPLY_ID, channel, each_channel, echo, parse

EVENTS = Path(__file__).parents[2] / "events"
OTHER_APP = "700000000000002"


def read_all(name: str, case: str, **fields: str) -> list[Event]:
    _, request = gateway.read(json.loads((EVENTS / name / f"{case}.json").read_text()))
    return list(channel(name, **fields).parse(request, NOW_MS))


def read(name: str, case: str, **fields: str) -> Any:
    (event,) = read_all(name, case, **fields)
    return event


def event(**what: object) -> dict[str, object]:
    return {"sender": {"id": ANA}, "recipient": {"id": PAGE}, "timestamp": NOW_MS, **what}


# --- what comes in ----------------------------------------------------------------------------------------------------


def test_a_text_is_read_whole() -> None:
    """The account is the page and the chat the person; identity is the mid and never the entry or the request."""
    assert read("messenger", "text") == Inbound(
        "messenger:300000000000001:400000000000001",
        "m_SYN1",
        "400000000000001",
        "my phone is 202-555-0111",
        sent_at_ms=NOW_MS,
        address="400000000000001",
    )
    assert read("instagram", "text").conversation_id == "instagram:500000000000001:600000000000001"


CDN = "https://cdn.example.org"


@pytest.mark.parametrize(
    ("name", "case", "text", "attachments"),
    [
        ("messenger", "image", "", (Attachment("image", f"{CDN}/i.jpg", "image"),)),
        ("messenger", "audio", "", (Attachment("audio", f"{CDN}/a.mp4", "voice message"),)),
        ("messenger", "video", "", (Attachment("video", f"{CDN}/v.mp4", "video"),)),
        ("messenger", "file", "", (Attachment("file", f"{CDN}/form.pdf", "file"),)),
        ("messenger", "sticker", "", (Attachment("sticker", f"{CDN}/thumb.png", "sticker"),)),
        ("messenger", "reel", "", (Attachment("share", f"{CDN}/r.mp4", "Our street"),)),
        (
            "messenger",
            "link",
            "https://example.org/flat",
            (Attachment("link", "https://example.org/flat", "A flat"),),
        ),
        (
            "messenger",
            "link-without-payload",
            "",
            (Attachment("unsupported", "", "an attachment (fallback) that Meta does not pass on"),),
        ),
        (
            "messenger",
            "location",
            "",
            (Attachment("location", "geo:52.520008,13.404954", "Ana's location"),),
        ),
        ("instagram", "story-mention", "", (Attachment("story", f"{CDN}/story?id=1", "mentioned us in a story"),)),
        ("instagram", "story-reply", "lovely!", (Attachment("story", f"{CDN}/story?id=2", "replied to our story"),)),
        ("instagram", "share", "", (Attachment("share", f"{CDN}/p/1", "shared post"),)),
        (
            "instagram",
            "attachment-unsupported",
            "",
            (Attachment("unsupported", "", "an attachment (ephemeral) that Meta does not pass on"),),
        ),
        ("instagram", "unsupported", "", (UNSUPPORTED,)),
        ("instagram", "reply", "this one", ()),
    ],
)
def test_what_is_attached_has_a_readable_name(
    name: str, case: str, text: str, attachments: tuple[Attachment, ...]
) -> None:
    found = read(name, case)
    assert (found.text, found.attachments) == (text, attachments)


@each_channel
def test_several_images_of_one_message_are_one_message(name: str) -> None:
    assert [attachment.ref for attachment in read(name, "images").attachments] == [
        f"{CDN}/i1.jpg",
        f"{CDN}/i2.jpg",
        f"{CDN}/i3.jpg",
    ]


def test_a_message_of_very_many_attachments_keeps_the_first() -> None:
    many = [{"type": "image", "payload": {"url": f"{CDN}/{number}"}} for number in range(MAX_ATTACHMENTS + 5)]
    (found,) = parse(event(message={"mid": "m", "attachments": many}))
    assert isinstance(found, Inbound)
    assert len(found.attachments) == MAX_ATTACHMENTS


@each_channel
def test_a_button_says_its_title_and_keeps_what_it_means(name: str) -> None:
    postback = read(name, "postback")
    assert (postback.text, postback.attachments) == ("Opening hours", (Attachment("payload", "HOURS", "button"),))
    quick = read(name, "quick-reply")
    assert (quick.text, quick.attachments) == ("Red", (Attachment("payload", "color:red", "button"),))
    assert read(name, "quick-reply-of-ours").attachments == ()


def test_a_postback_without_an_id_is_known_by_its_instant() -> None:
    """Older versions give none; a redelivery must still be the same message, and another press another."""
    first, again = (read("messenger", "get-started") for _ in range(2))
    assert first == again
    later = parse({**event(postback={"title": "Get Started", "payload": "GET_STARTED"}), "timestamp": NOW_MS + 1})
    other = parse(event(postback={"title": "Get Started", "payload": "MENU"}))
    ids = {first.provider_id, *(one.provider_id for one in (*later, *other) if isinstance(one, Inbound))}
    assert len(ids) == 3


@each_channel
def test_each_message_of_each_entry_is_read(name: str) -> None:
    """Field case FC-044: one request is not one message."""
    found = read_all(name, "batch")
    assert [one.text for one in found if isinstance(one, Inbound)] == ["one", "two", "three"]
    assert len({one.conversation_id for one in found if isinstance(one, Inbound)}) == 2


@each_channel
def test_one_that_cannot_be_read_loses_no_other(name: str) -> None:
    found = read_all(name, "batch-with-a-bad-one")
    assert [type(one) for one in found] == [Inbound, Rejected, Inbound]
    assert found[1] == Rejected("mid is missing; every message needs one")


@pytest.mark.parametrize(
    ("name", "case", "reason"),
    [
        ("messenger", "echo", "our own side: an echo"),
        ("instagram", "echo", "our own side: an echo"),
        ("messenger", "read", "an event: read"),
        ("messenger", "delivery", "an event: delivery"),
        ("messenger", "reaction", "an event: reaction"),
        ("messenger", "optin", "an event: optin"),
        ("messenger", "standby", "another app has the conversation"),
        ("messenger", "feed", "not about messages"),
        ("instagram", "deleted", "a message was taken back"),
        ("instagram", "deleted-as-text", "a message was taken back"),
        ("instagram", "to-itself", "our own side: the account wrote to itself"),
        ("instagram", "comment", "not about messages"),
    ],
)
def test_what_is_not_for_the_bot_is_ignored_and_says_why(name: str, case: str, reason: str) -> None:
    assert read(name, case) == Ignored(reason)


def test_an_echo_of_another_app_is_somebody_of_our_own_side() -> None:
    """Field case FC-082: sender and recipient are swapped, and no conversation with the page itself appears."""
    assert read("messenger", "echo", app_id="700000000000001") == Ignored("our own side: an echo")
    assert read("messenger", "echo", app_id=OTHER_APP) == ByPerson(f"messenger:{PAGE}:{ANA}", "How can I help?", NOW_MS)


def test_an_echo_of_no_app_is_nobody_known() -> None:
    """A page that sends by itself, such as the post that somebody answers to (ker0x/messenger#69)."""
    assert read("messenger", "echo-of-the-page", app_id="700000000000001") == Ignored("our own side: an echo")


@pytest.mark.parametrize("app_id", ["", "700000000000001", OTHER_APP])
def test_an_echo_of_our_own_send_reports_its_part(app_id: str) -> None:
    """Under the person's conversation, although the page is the sender; whatever app it is said to be of."""
    found = read("messenger", "echo-of-our-send", **({"app_id": app_id} if app_id else {}))
    assert found == Reported(f"messenger:{PAGE}:{ANA}", REPLY_ID, 1)


def test_an_echo_that_carries_our_reply_is_ours_without_an_app() -> None:
    message = {"mid": "m", "text": "hi", "is_echo": True, "metadata": f"{REPLY_ID}-0"}
    assert parse(echo(message), app_id=OTHER_APP) == [Reported(f"messenger:{PAGE}:{ANA}", REPLY_ID, 0)]


@pytest.mark.parametrize("message", [{}, {"app_id": 700000000000001}, {"app_id": 5}])
def test_on_instagram_no_echo_is_taken_for_a_person(message: dict[str, object]) -> None:
    """Its webhooks tell no app that can be relied on: the bot's own reply would silence the bot."""
    written = {"mid": "m", "text": "hi", "is_echo": True, **message}
    assert parse(echo(written), name="instagram", app_id="700000000000001") == [Ignored("our own side: an echo")]
    assert "app_id" not in instagram.OPTIONAL_FIELDS


def test_an_account_may_answer_one_page_alone() -> None:
    assert isinstance(read("messenger", "text", account_id=PAGE), Inbound)
    assert read("messenger", "text", account_id="300000000000002") == Ignored("of another account")


@pytest.mark.parametrize("case", ["echo", "echo-of-our-send"])
def test_an_echo_of_another_page_concerns_nobody_here(case: str) -> None:
    fields = {"app_id": OTHER_APP, "account_id": "300000000000002"}
    assert read("messenger", case, **fields) == Ignored("of another account")
    assert read("messenger", case, app_id=OTHER_APP, account_id=PAGE) != Ignored("of another account")


def test_an_edit_is_the_message_as_it_is_now() -> None:
    found = read("messenger", "edited")
    assert isinstance(found, Edited)
    assert (found.now.provider_id, found.now.text) == ("m_SYN1", "my phone is 202-555-0122")
    assert found.edited_at_ms == NOW_MS + 1_000
    assert found.now.conversation_id == read("messenger", "text").conversation_id


@pytest.mark.parametrize(
    "odd",
    [
        {"message": 5},
        {"message": {"mid": "m", "text": 5}},
        {"message": {"mid": "m", "attachments": {}}},
        {"message": {"mid": "m", "attachments": [{"type": "location", "payload": {}}]}},
        {"message": {"mid": "m", "text": "t"}, "sender": None},
        {"message": {"mid": "m", "text": "t"}, "recipient": {}},
        {"message": {"mid": "m", "text": "t"}, "timestamp": 1.5},
        {"postback": {"payload": 5}},
        {"message_edit": {"mid": "m", "text": "t"}, "timestamp": None},
    ],
)
def test_what_cannot_be_read_is_rejected_so_that_meta_goes_on(odd: dict[str, object]) -> None:
    """A 4xx would be repeated, and in the end switch the webhook off."""
    found = parse(event(message={"mid": "before", "text": "hi"}), {**event(), **odd})
    assert [type(one) for one in found] == [Inbound, Rejected]


def test_an_entry_that_is_none_loses_no_other() -> None:
    body = {"object": "page", "entry": [5, {"messaging": 5}, {"messaging": [event(message={"mid": "m", "text": "t"})]}]}
    found = channel().parse(Request("POST", "/", {}, json.dumps(body).encode()), NOW_MS)
    assert [type(one) for one in found] == [Rejected, Rejected, Inbound]
