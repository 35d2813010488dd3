"""The generic channel: what each stored event is read as, and what a reply looks like on the wire."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loopback import Say, serving
from rejoinder import gateway
from rejoinder.channels import webhook
from rejoinder.ports import (
    Buttons,
    ByPerson,
    Ignored,
    Image,
    Inbound,
    Malformed,
    PauseAsked,
    Permanent,
    Raw,
    Rejected,
    Reply,
    Request,
    ResumeAsked,
    Text,
    Unverified,
)
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import MAX_CONVERSATION_ID_BYTES, ConversationId, message_id
from rejoinder.run import run

EVENTS = Path(__file__).parents[2] / "events" / "webhook"
NOW_MS = 1_790_000_000_000


class Clock:
    def now_ms(self) -> int:
        return NOW_MS


def channel(url: str = "http://127.0.0.1:9", account: str = "shop") -> webhook.WebhookChannel:
    return webhook.WebhookChannel(account, "secret", url, Clock())


def read(case: str) -> Any:
    _, request = gateway.read(json.loads((EVENTS / f"{case}.json").read_text()))
    events = channel().parse(request, NOW_MS)
    return events[0] if len(events) == 1 else events


def parse(content: object, content_type: str = "application/json") -> Any:
    (event,) = channel().parse(
        Request("POST", "/", {"content-type": content_type}, json.dumps(content).encode()), NOW_MS
    )
    return event


def valid(**changes: object) -> dict[str, object]:
    return {"id": "m-1", "conversation_id": "c-1", "user_id": "ana", "text": "hello", **changes}


def test_a_message_is_read_whole() -> None:
    assert read("text") == Inbound(
        "webhook:shop:c-1",
        "m-1",
        "ana",
        "my phone is 202-555-0111",
        sent_at_ms=NOW_MS,
        author_name="Ana",
        address="c-1",
    )


def test_ids_may_be_numbers_and_times_may_have_fractions() -> None:
    assert read("numbers") == Inbound(
        "webhook:shop:42", "4711", "7", "ids as numbers", sent_at_ms=NOW_MS + 250, address="42"
    )


def test_a_message_without_a_time_has_none() -> None:
    assert read("minimal").sent_at_ms is None


def test_attachments_are_read_with_a_kind_even_where_none_is_said() -> None:
    assert read("attachments").attachments == (
        Attachment("image", "https://files.example.org/part.jpg", "part.jpg", "image/jpeg", 90_000),
        Attachment("file", "https://files.example.org/order.pdf", "order.pdf", "application/pdf"),
    )
    assert read("attachment-alone").text == ""


def test_a_batch_rejects_the_bad_one_alone() -> None:
    first, second, bad, fourth = read("batch")
    assert [event.provider_id for event in (first, second, fourth)] == ["m-1", "m-2", "m-4"]
    assert second.author == "bo"
    assert isinstance(bad, Rejected)
    assert "id is missing" in bad.reason
    assert fourth.conversation_id == "webhook:shop:c-2"


def test_odd_characters_come_through() -> None:
    assert read("unicode").text == "שלום 👩‍👩‍👧‍👦 zero\u200bwidth \u202eright to left\u202c नमस्ते e\u0301"
    assert read("surrogate").text == "ok\ud83d half \0 nul"
    assert read("base64").text == "sent as base64: ¿qué tal?"
    odd = read("conversation-with-colon")
    assert odd.conversation_id == "webhook:shop:shop%3A42%2Fa%25b%23%C3%B1"
    assert odd.address == "shop:42/a%b#ñ"


def test_what_is_not_a_message_of_a_person_is_ignored() -> None:
    assert isinstance(read("from-bot"), Ignored)
    assert isinstance(read("other-type"), Ignored)


@pytest.mark.parametrize(
    ("sent_at", "at_ms"),
    [
        ("2026-09-21T14:13:20Z", NOW_MS),
        ("2026-09-21T16:13:20+02:00", NOW_MS),
        ("2026-09-21T14:13:20.5Z", NOW_MS + 500),
        (1_790_000_000, NOW_MS),
        (1_790_000_000.25, NOW_MS + 250),
        (1_790_000_000_123, NOW_MS + 123),
        (None, None),
    ],
)
def test_a_time_is_read_in_each_of_its_forms(sent_at: object, at_ms: int | None) -> None:
    assert parse(valid(sent_at=sent_at)).sent_at_ms == at_ms


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"id": None}, "id is missing"),
        ({"id": ""}, "id is missing"),
        ({"id": True}, "id"),
        ({"id": 1.5}, "id"),
        ({"id": 2**60}, "id"),
        ({"id": "x" * 513}, "513 bytes; at most 512"),
        ({"user_id": "x" * 257}, "257 bytes; at most 256"),
        ({"id": "a\0b"}, "NUL"),
        ({"conversation_id": None}, "conversation_id is missing"),
        ({"conversation_id": "\ud800"}, "Unicode"),
        ({"conversation_id": "ñ" * 200}, "at most 512"),
        ({"user_id": []}, "user_id is a list"),
        ({"text": 5}, "text is a number"),
        ({"type": 5}, "type"),
        ({"user_name": {}}, "user_name"),
        ({"sent_at": "yesterday"}, "sent_at"),
        ({"sent_at": "2026-09-21T14:13:20"}, "offset"),
        ({"sent_at": -1}, "sent_at"),
        ({"sent_at": 10**400}, "sent_at"),
        ({"sent_at": True}, "sent_at"),
        ({"attachments": {}}, "attachments"),
        ({"attachments": [{"url": "https://x"}] * 21}, "at most 20"),
        ({"attachments": ["https://x"]}, "attachment"),
        ({"attachments": [{"kind": "image"}]}, "url"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, object], names: str) -> None:
    with pytest.raises(Malformed, match=names):
        parse(valid(**changes))


@pytest.mark.parametrize("messages", [[], {}, None, [valid()] * 101])
def test_a_batch_has_one_to_a_hundred(messages: object) -> None:
    with pytest.raises(Malformed, match="1 to 100"):
        parse({"messages": messages})


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
def test_another_content_type_is_a_415(content_type: str) -> None:
    with pytest.raises(Malformed) as refusal:
        parse(valid(), content_type)
    assert refusal.value.status == 415


def test_the_content_type_may_have_parameters_and_any_case() -> None:
    assert parse(valid(), "Application/JSON; charset=utf-8").text == "hello"


def test_numbers_that_json_does_not_know_are_refused() -> None:
    """Python writes and reads NaN; no other reader of the stored message would."""
    with pytest.raises(Malformed, match="NaN"):
        parse(valid(extra=float("nan")))


@pytest.mark.parametrize("timestamp", ["²", "-1", "1e9", " 1790000000", "soon", "9" * 5_000, "1790000000.0"])
def test_a_timestamp_that_is_no_number_of_seconds_is_refused_as_such(timestamp: str) -> None:
    headers = {"x-rejoinder-timestamp": timestamp, "x-rejoinder-signature": "v1=00"}
    with pytest.raises(Unverified, match="not a number of seconds"):
        channel().verify(Request("POST", "/", headers, b"{}"), NOW_MS)


def to() -> Message:
    return Message(message_id("m-1"), "m-1", "ana", NOW_MS, NOW_MS, text="hi", address="c-1")


def test_a_reply_is_posted_in_parts_each_signed_and_named() -> None:
    reply = Reply(
        (Text("a" * 20_001), Image("https://x/i.png", "look"), Buttons("which?", ("red", "blue")), Raw({"x": 1}, "raw"))
    )
    with serving(Say(200)) as receiver:
        one = channel(receiver.url + "/in?x=1")
        parts = one.render(reply, to())
        for index, part in enumerate(parts):
            run(one.send(part, "0123abcd", index))
    bodies = [json.loads(request.body) for request in receiver.received]
    common = {"reply_id": "0123abcd", "parts": 5, "conversation_id": "c-1", "account": "shop"}
    assert bodies == [
        {**common, "part": 1, "kind": "text", "text": "a" * 20_000},
        {**common, "part": 2, "kind": "text", "text": "a"},
        {
            **common,
            "part": 3,
            "kind": "image",
            "text": "look\nhttps://x/i.png",
            "url": "https://x/i.png",
            "caption": "look",
        },
        {
            **common,
            "part": 4,
            "kind": "buttons",
            "text": "which?\n• red\n• blue",
            "question": "which?",
            "options": ["red", "blue"],
        },
        {**common, "part": 5, "kind": "raw", "text": "raw", "payload": {"x": 1}},
    ]
    assert [request.headers["idempotency-key"] for request in receiver.received] == [f"0123abcd-{n}" for n in range(5)]
    for request in receiver.received:
        assert request.path == "/in?x=1"
        assert request.headers["x-rejoinder-timestamp"] == "1790000000"
        signed = hmac.new(b"secret", b"v1:1790000000:" + request.body, hashlib.sha256).hexdigest()
        assert request.headers["x-rejoinder-signature"] == f"v1={signed}"


def test_each_try_sends_the_same_bytes_under_the_same_key() -> None:
    with serving(Say(500), Say(200)) as receiver:
        one = channel(receiver.url)
        (part,) = one.render(Reply((Text("¿qué tal?"),)), to())
        with pytest.raises(Exception, match="answered 500"):
            run(one.send(part, "r1", 0))
        run(one.send(part, "r1", 0))
    first, second = receiver.received
    assert first.body == second.body
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


def test_the_account_is_the_field_or_the_label() -> None:
    fields = {"secret": "s", "reply_url": "https://x.example"}
    request = Request("POST", "/", {"content-type": "application/json"}, json.dumps(valid()).encode())
    for extra, account in (({}, "label"), ({"account": "acme"}, "acme")):
        (event,) = webhook.from_fields("label", fields | extra).parse(request, NOW_MS)
        assert isinstance(event, Inbound)
        assert event.conversation_id == f"webhook:{account}:c-1"


def opened_of_people(**fields: str) -> webhook.WebhookChannel:
    return webhook.from_fields("default", {"secret": "s", "reply_url": "http://127.0.0.1/", **fields})


def read_of_people(opened: webhook.WebhookChannel, **body: object) -> object:
    request = Request("POST", "/", {"content-type": "application/json"}, json.dumps(body).encode())
    return opened.parse(request, 0)[0]


def test_people_take_a_conversation_answer_in_it_and_give_it_back() -> None:
    ours = opened_of_people()
    said = read_of_people(ours, type="operator", conversation_id="c-1", text="Hello", sent_at="2026-09-21T14:13:20Z")
    assert said == ByPerson("webhook:default:c-1", "Hello", 1_790_000_000_000)
    paused = read_of_people(ours, type="pause", conversation_id="c-1", until=1_790_000_600)
    assert paused == PauseAsked("webhook:default:c-1", 1_790_000_600_000)
    assert read_of_people(ours, type="resume", conversation_id="c-1") == ResumeAsked("webhook:default:c-1")


@pytest.mark.parametrize(
    ("body", "missing"),
    [({"type": "pause", "conversation_id": "c"}, "until"), ({"type": "operator", "conversation_id": "c"}, "sent_at")],
)
def test_a_pause_has_an_end_and_an_answer_a_time(body: dict[str, str], missing: str) -> None:
    with pytest.raises(Malformed, match=f"{missing} is missing"):
        read_of_people(opened_of_people(), **body)


OF_PEOPLE: list[dict[str, object]] = [
    {"type": "pause", "until": 1_790_000_600},
    {"type": "resume"},
    {"type": "operator", "text": "Hello", "sent_at": 1_790_000_000},
]


@pytest.mark.parametrize("body", OF_PEOPLE, ids=lambda body: body["type"])
@pytest.mark.parametrize("name", ["telegram:7:42", "slack:T1:C1:1790000000.000100", "webhook:other:c-1"])
def test_an_account_that_does_not_control_all_is_told_so(body: dict[str, object], name: str) -> None:
    """It would be answered with "paused" for a chat of its own that nobody is in, and the bot would go on."""
    with pytest.raises(Malformed, match=f"{name}.*controls=all"):
        read_of_people(opened_of_people(), conversation_id=name, **body)
    found = read_of_people(opened_of_people(controls="all"), conversation_id=name, **body)
    assert isinstance(found, PauseAsked | ResumeAsked | ByPerson)
    assert found.conversation_id == name


@pytest.mark.parametrize("controls", ["", "all"])
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("c-1", "webhook:default:c-1"),
        ("webhook:default:c-1", "webhook:default:c-1"),
        ("webhook:default:shop%3A42", "webhook:default:shop%3A42"),
        ("shop:42:7", "webhook:default:shop%3A42%3A7"),
        ("telegram:42", "webhook:default:telegram%3A42"),
        ("telegram:1:2:3:4", "webhook:default:telegram%3A1%3A2%3A3%3A4"),
    ],
)
def test_a_chat_of_its_own_may_have_any_name_and_may_be_named_whole(name: str, meant: str, controls: str) -> None:
    opened = opened_of_people(controls=controls)
    assert read_of_people(opened, type="resume", conversation_id=name) == ResumeAsked(meant)


@pytest.mark.parametrize("name", ["telegram::42", "telegram:7:%ED%A0%80"])
def test_a_whole_id_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(Malformed):
        read_of_people(opened_of_people(controls="all"), type="resume", conversation_id=name)


@given(
    name=st.one_of(
        st.text(st.characters(codec=None), max_size=200),
        st.builds("{}:{}:{}".format, st.sampled_from(["webhook", "telegram", "x"]), st.text(), st.text(max_size=200)),
    ),
    body=st.sampled_from(OF_PEOPLE),
    controls=st.sampled_from(["", "all"]),
)
@example("webhook:default:" + "é" * 90, OF_PEOPLE[0], "")
@example("telegram:7:" + "é" * 90, OF_PEOPLE[1], "all")
@example("webhook:default:\ud800", OF_PEOPLE[2], "")
@example("webhook:default:%ff", OF_PEOPLE[0], "")
def test_whatever_conversation_people_name_the_rest_of_their_batch_is_read(
    name: str, body: dict[str, object], controls: str
) -> None:
    """It is one that can be, or it is rejected alone."""
    rest = {"id": "1", "conversation_id": "c-1", "user_id": "u", "text": "lost?"}
    batch = json.dumps({"messages": [body | {"conversation_id": name}, rest]}).encode()
    request = Request("POST", "/", {"content-type": "application/json"}, batch)
    found, inbound = opened_of_people(controls=controls).parse(request, 0)
    assert isinstance(inbound, Inbound)
    if isinstance(found, Rejected):
        assert found.reason
    else:
        assert isinstance(found, PauseAsked | ResumeAsked | ByPerson)
        assert str(ConversationId.parse(found.conversation_id)) == found.conversation_id
        assert len(found.conversation_id) <= MAX_CONVERSATION_ID_BYTES


def test_a_field_that_cannot_be_right_is_named() -> None:
    with pytest.raises(Permanent, match="controls is 'some'"):
        opened_of_people(controls="some")
