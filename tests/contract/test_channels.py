"""The contract of `ports.Channel`: one suite, and each channel one line in `SUBJECTS`."""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.channel_suite import NOW_MS, SECRET, Refusal, Subject, slack, telegram, webhook
from contract.meta_subjects import instagram, messenger, whatsapp, whatsapp_aws
from contract.sms_subjects import sms_aws, twilio
from loopback import closed_port, serving
from rejoinder.channels import NAMES, channel_module, open_channel
from rejoinder.ports import (
    Buttons,
    ByPerson,
    Channel,
    Edited,
    Event,
    File,
    Ignored,
    Image,
    Inbound,
    Malformed,
    Permanent,
    Raw,
    Reply,
    Reported,
    Request,
    Text,
    Transient,
    Unverified,
)
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import ConversationId, message_id
from rejoinder.run import run

SUBJECTS = {
    "webhook": webhook(),
    "telegram": telegram(),
    "whatsapp": whatsapp(),
    "whatsapp_aws": whatsapp_aws(),
    "messenger": messenger(),
    "instagram": instagram(),
    "slack": slack(),
    "twilio": twilio(),
    "sms_aws": sms_aws(),
}

each_channel = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS.keys())
each_signing_channel = pytest.mark.parametrize(
    "subject", [pytest.param(subject, id=name) for name, subject in SUBJECTS.items() if subject.signs]
)
each_aging_channel = pytest.mark.parametrize(
    "subject", [pytest.param(subject, id=name) for name, subject in SUBJECTS.items() if subject.ages]
)
each_event = pytest.mark.parametrize(
    ("subject", "case"),
    [
        pytest.param(subject, case, id=f"{name}-{case}")
        for name, subject in SUBJECTS.items()
        for case in subject.event_names()
    ],
)
each_refusal = pytest.mark.parametrize(
    ("subject", "refusal"),
    [
        pytest.param(subject, refusal, id=f"{name}-{number}-{refusal.say.status}")
        for name, subject in SUBJECTS.items()
        for number, refusal in enumerate(subject.refusals)
    ],
)


@pytest.fixture(scope="module", autouse=True)
def credentials() -> Iterator[None]:
    """What a call of AWS's API is signed with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "synthetic")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "synthetic")
        yield


def opened(subject: Subject, url: str = "http://127.0.0.1:9") -> Channel:
    return open_channel(subject.name, "default", {**subject.fields, subject.api_field: url})


def written(subject: Subject, text: str = "hello", provider_id: str = "1") -> bytes:
    return subject.encoded(subject.body(provider_id, text))


def parsed_one(subject: Subject, body: bytes) -> Event:
    (event,) = opened(subject).parse(subject.request(body), NOW_MS)
    return event


def message_to(subject: Subject) -> Message:
    """The message that a reply goes to, as ingest makes it of the channel's own words."""
    event = parsed_one(subject, written(subject))
    assert isinstance(event, Inbound)
    return Message(message_id("1"), "1", event.author, NOW_MS, NOW_MS, text=event.text, address=event.address)


# --- the account ------------------------------------------------------------------------------------------------------


def test_every_channel_is_under_the_suite() -> None:
    assert set(SUBJECTS) == set(NAMES)


@each_channel
def test_missing_fields_are_all_named_and_their_values_never(subject: Subject) -> None:
    needed = channel_module(subject.name).FIELDS
    with pytest.raises(Permanent) as refusal:
        open_channel(subject.name, "shop", dict.fromkeys(needed, " "))
    assert all(name in str(refusal.value) for name in needed)
    assert "shop" in str(refusal.value)


@each_channel
@pytest.mark.parametrize("url", ["ftp://example.org", "example.org", "//example.org/x"])
def test_an_address_that_is_not_http_is_refused_at_once(subject: Subject, url: str) -> None:
    with pytest.raises(Permanent, match=subject.api_field):
        opened(subject, url)


def test_an_unknown_channel_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Permanent, match="webhook, telegram"):
        open_channel("carrier-pigeon", "default", {})


# --- verify -----------------------------------------------------------------------------------------------------------


@each_channel
def test_a_right_proof_is_taken(subject: Subject) -> None:
    body = written(subject, "¿qué tal? 👋")
    opened(subject).verify(subject.request(body), NOW_MS)


@each_channel
def test_the_proof_is_over_the_raw_bytes(subject: Subject) -> None:
    """Bytes that no parser would give back as they were: odd spacing, escapes, a repeated key."""
    body = b'{ "a" : 1,"a":\t"\\u00e9",\r\n "b": 1.0e2 }\n'
    opened(subject).verify(subject.request(body), NOW_MS)


@each_channel
@pytest.mark.parametrize(
    "given", ["", "wrong", SECRET + "x", SECRET[:-1], "v1=", "v1=" + "0" * 64, "ключ", "\udcff\ud83d", "v1=é"]
)
def test_a_wrong_proof_is_refused_and_never_shown(subject: Subject, given: str) -> None:
    request = subject.request(written(subject))
    request = subject.bearing(request, given)
    with pytest.raises(Unverified) as refusal:
        opened(subject).verify(request, NOW_MS)
    assert refusal.value.status == 401
    assert SECRET not in str(refusal.value)


@each_channel
def test_an_absent_proof_is_refused(subject: Subject) -> None:
    request = subject.bearing(subject.request(written(subject)), "")
    with pytest.raises(Unverified):
        opened(subject).verify(request, NOW_MS)


@each_signing_channel
def test_a_changed_body_is_refused_where_the_body_is_signed(subject: Subject) -> None:
    request = subject.request(written(subject))
    changed = replace(request, body=request.body.replace(b"hello", b"hullo"))
    assert changed.body != request.body
    with pytest.raises(Unverified):
        opened(subject).verify(changed, NOW_MS)


@each_aging_channel
@pytest.mark.parametrize("off_ms", [-301_000, 301_000, -86_400_000, 10**12])
def test_a_replayed_request_is_refused_where_the_time_is_signed(subject: Subject, off_ms: int) -> None:
    request = subject.request(written(subject))
    with pytest.raises(Unverified, match="time-stamp"):
        opened(subject).verify(request, NOW_MS + off_ms)


@each_channel
@pytest.mark.parametrize("off_ms", [-299_000, 299_000])
def test_a_clock_that_is_minutes_off_is_tolerated(subject: Subject, off_ms: int) -> None:
    opened(subject).verify(subject.request(written(subject)), NOW_MS + off_ms)


# --- parse ------------------------------------------------------------------------------------------------------------


@each_channel
def test_a_redelivery_is_the_same_message_of_the_same_conversation(subject: Subject) -> None:
    first, again = (parsed_one(subject, written(subject)) for _ in range(2))
    assert isinstance(first, Inbound)
    assert first == again


@each_channel
def test_two_messages_differ_in_their_ids_alone(subject: Subject) -> None:
    one, two = (parsed_one(subject, written(subject, provider_id=provider_id)) for provider_id in ("1", "2"))
    assert isinstance(one, Inbound)
    assert isinstance(two, Inbound)
    assert (one.provider_id, two.provider_id) == ("1", "2")
    assert one.conversation_id == two.conversation_id


@each_channel
def test_the_conversation_id_makes_the_round_trip(subject: Subject) -> None:
    event = parsed_one(subject, written(subject))
    assert isinstance(event, Inbound)
    decoded = ConversationId.parse(event.conversation_id)
    assert decoded.channel == subject.name
    assert str(decoded) == event.conversation_id


@each_channel
def test_what_our_own_side_wrote_is_nobodys_message(subject: Subject) -> None:
    """A bot's is ignored; a colleague's takes the conversation. Neither is ever answered."""
    assert isinstance(parsed_one(subject, subject.encoded(subject.own)), Ignored | ByPerson)


@each_channel
def test_an_unknown_kind_is_ignored(subject: Subject) -> None:
    assert isinstance(parsed_one(subject, subject.encoded(subject.unknown)), Ignored)


@each_channel
@pytest.mark.parametrize("text", ["", " ", "\n\u200b", "\0"])
def test_an_empty_text_is_no_fault(subject: Subject, text: str) -> None:
    """Ingest ignores a message without text and attachments; a channel may do so before."""
    event = parsed_one(subject, written(subject, text))
    assert isinstance(event, Ignored) or (isinstance(event, Inbound) and event.text == text)


@each_channel
@pytest.mark.parametrize(
    "text", ["x" * 100_000, "👩‍👩‍👧‍👦" * 10_000, "שלום \u202eabc\u202c", "ok\ud83d half", "a\0b", '["\\{' * 100]
)
def test_a_huge_or_odd_text_is_taken_as_it_is(subject: Subject, text: str) -> None:
    event = parsed_one(subject, written(subject, text))
    assert isinstance(event, Inbound)
    assert event.text == text


@each_channel
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b"\xff\xfe{}",
        b"[" * 1_000_000,
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
        b"[" * 65 + b'"' + b'\\"' * 500_000,  # would take an hour by whoever looks for the string's end at each quote
        b"[" * 65 + b'"' + b'\\"' * 500_000 + b"\\",
        b'{"a": NaN}',
        b'{"a": ' + b"9" * 10_000 + b"}",
    ],
    ids=lambda body: body[:12].decode("latin-1"),
)
def test_a_malformed_body_is_refused(subject: Subject, body: bytes) -> None:
    with pytest.raises(Malformed) as refusal:
        opened(subject).parse(subject.request(body), NOW_MS)
    assert refusal.value.status == 400


@each_event
def test_each_stored_event_is_verified_and_read(subject: Subject, case: str) -> None:
    """Nothing that the channel really sends is malformed; what each is read as stands in the unit tests."""
    channel = opened(subject)
    request = subject.event_request(case)
    channel.verify(request, NOW_MS)
    assert channel.handshake(request) is None
    assert channel.parse(request, NOW_MS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
ODD = JSON | st.sampled_from([10**400, -(10**20), 1e300, "\ud800", "x" * 5_000, [[]], {"": ""}])


@st.composite
def mutated(draw: st.DrawFn, subject: Subject) -> bytes:
    """A real event with up to three of its values replaced or removed."""
    content = subject.content(draw(st.sampled_from(subject.json_event_names())))
    for _ in range(draw(st.integers(1, 3))):
        node = content
        while isinstance(node, dict | list) and node:
            key: Any = draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
            if not isinstance(node[key], dict | list) or not node[key] or draw(st.booleans()):
                if draw(st.booleans()):
                    node[key] = deepcopy(draw(ODD))  # the next round may change it
                else:
                    del node[key]
                break
            node = node[key]
    return subject.encoded(content)


def reads_or_refuses(subject: Subject, body: bytes) -> None:
    """Only the declared exceptions leave, and only well-formed events come back."""
    channel = opened(subject)
    request = subject.request(body)
    channel.verify(request, NOW_MS)
    try:
        events = channel.parse(request, NOW_MS)
    except Malformed:
        return
    for event in events:
        assert isinstance(event, Event)
        if isinstance(event, Edited):
            assert type(event.edited_at_ms) is int
            event = event.now  # noqa: PLW2901  # what holds of a message holds of an edited one
        if isinstance(event, Inbound | Reported):
            assert ConversationId.parse(event.conversation_id).channel == subject.name
        if isinstance(event, Inbound):
            assert event.provider_id
            assert event.author
            assert event.address
            assert all(not isinstance(value, float) for value in (event.sent_at_ms, event.sequence))


@each_channel
@given(sample=st.data())
def test_no_mutation_of_a_real_event_raises_anything_else(subject: Subject, sample: st.DataObject) -> None:
    reads_or_refuses(subject, sample.draw(mutated(subject)))


@each_channel
@given(content=JSON)
def test_no_json_raises_anything_else(subject: Subject, content: object) -> None:
    reads_or_refuses(subject, json.dumps(content).encode())


@each_channel
@given(body=st.binary(max_size=200))
def test_no_bytes_raise_anything_else(subject: Subject, body: bytes) -> None:
    reads_or_refuses(subject, body)


TIMES = ("x-rejoinder-timestamp", "x-slack-request-timestamp")
"""Where the channels that sign a time have it."""


@each_channel
@given(headers=st.dictionaries(st.text(max_size=30), st.text(max_size=80), max_size=3), value=st.text(max_size=90))
def test_no_headers_raise_anything_else(subject: Subject, headers: dict[str, str], value: str) -> None:
    request = Request("POST", "/", {**headers, subject.proof_header: value, **dict.fromkeys(TIMES, value)}, b"{}")
    with pytest.raises(Unverified):
        opened(subject).verify(request, NOW_MS)


# --- render -----------------------------------------------------------------------------------------------------------


@each_channel
@given(
    text=st.text(alphabet=st.sampled_from("ab. \n👩\u200d🚀é\u0301🇩🇪"), min_size=1, max_size=300),
    factor=st.integers(1, 200),
)
def test_a_split_text_is_complete_and_within_the_limit(subject: Subject, text: str, factor: int) -> None:
    text = f"x{text * factor}"
    pieces = [
        subject.text_of(part.encode()) for part in opened(subject).render(Reply((Text(text),)), message_to(subject))
    ]
    assert all(piece.strip() for piece in pieces)
    assert all(sum(map(subject.width, piece)) <= subject.text_limit for piece in pieces)
    said, wanted = "".join("".join(pieces).split()), "".join(text.split())
    if said != wanted:  # more than may be sent: the rest is cut, and the last piece says so
        assert len(pieces) == subject.most_parts
        assert pieces[-1].endswith(subject.cut)
        assert wanted.startswith(said.removesuffix(subject.cut.strip()))


@each_channel
def test_every_kind_of_part_is_shown_and_says_what_it_says(subject: Subject) -> None:
    """Shown as itself or as text, whatever a part says must be in what is sent."""
    reply = Reply(
        (
            Text("a text"),
            Image("https://example.org/i.png", "an image"),
            File("https://example.org/f.pdf", "f.pdf", "a document"),
            File("https://example.org/f.odt", "f.odt", "another"),
            Buttons("which?", ("red", "blue")),
            Raw({"method": "sendDice", "emoji": "🎯"}),
        )
    )
    parts = [json.loads(part) for part in opened(subject).render(reply, message_to(subject))]
    shown = json.dumps(parts, ensure_ascii=False)
    assert len(parts) >= 6  # a caption may be a message of its own
    for said in (
        "a text",
        "i.png",
        "an image",
        "f.pdf",
        "a document",
        "f.odt",
        "another",
        "which?",
        "red",
        "blue",
        "🎯",
    ):
        assert said in shown


@each_channel
@pytest.mark.parametrize(
    "reply", [Reply((Text(" \n"),)), Reply((Text(""), Buttons("", ()))), Reply((Raw({"method": "x", "a": {1, 2}}),))]
)
def test_what_cannot_be_shown_is_refused_before_the_commit(subject: Subject, reply: Reply) -> None:
    with pytest.raises(Permanent):
        opened(subject).render(reply, message_to(subject))


@each_channel
def test_rendering_is_the_same_each_time(subject: Subject) -> None:
    reply = Reply((Text("x " * 9_000), Buttons("which?", ("red", "blue"))))
    first, again = (opened(subject).render(reply, message_to(subject)) for _ in range(2))
    assert first == again


# --- send -------------------------------------------------------------------------------------------------------------


def send(subject: Subject, url: str, index: int = 0) -> None:
    channel = opened(subject, url)
    (part,) = channel.render(Reply((Text("the answer"),)), message_to(subject))
    run(channel.send(part, "r" * 32, index))


@each_channel
def test_an_accepted_part_was_received_once_and_whole(subject: Subject) -> None:
    with serving(subject.accepted) as api:
        send(subject, api.url)
    (request,) = api.received
    assert request.headers["content-type"] == subject.sent_as
    assert subject.text_of(request.body) == "the answer"


@each_refusal
def test_each_answer_of_the_api_is_what_the_table_says(subject: Subject, refusal: Refusal) -> None:
    with serving(refusal.say) as api, pytest.raises(refusal.fault) as raised:
        send(subject, api.url)
    assert len(api.received) == 1  # nothing is repeated here: the outbox does that
    fault = raised.value
    assert "ABC-def_ghi" not in str(fault)
    assert SECRET not in str(fault)
    if isinstance(fault, Transient):
        assert (fault.retry_after_ms, fault.ours) == (refusal.retry_after_ms, refusal.ours)


@each_channel
def test_a_refused_connection_means_certainly_not_sent(subject: Subject) -> None:
    with pytest.raises(Transient) as raised:
        send(subject, closed_port())
    assert not raised.value.ours
    assert "ABC-def_ghi" not in str(raised.value)


@each_channel
def test_typing_never_raises(subject: Subject) -> None:
    """Not for a refused connection, nor for an answer that is none."""
    run(opened(subject, closed_port()).typing(message_to(subject)))
    for say in (subject.accepted, *(refusal.say for refusal in subject.refusals)):
        with serving(say) as api:
            run(opened(subject, api.url).typing(message_to(subject)))


@each_channel
def test_a_channel_that_shows_typing_says_for_how_long(subject: Subject) -> None:
    """Else nobody renews it; and one that says so in vain would be asked again and again."""
    with serving(subject.accepted) as api:
        channel = opened(subject, api.url)
        run(channel.typing(message_to(subject)))
    assert not api.received or channel.typing_ms is not None
    assert channel.typing_ms is None or channel.typing_ms >= 1_000


@each_channel
def test_whether_a_part_was_sent_is_unknown_where_nobody_can_be_asked(subject: Subject) -> None:
    """Some channels never can be; the others are out of reach here."""
    channel = opened(subject, closed_port())
    (part,) = channel.render(Reply((Text("the answer"),)), message_to(subject))
    assert run(channel.was_sent(part, "r" * 32, 0)) is None
