"""The contract of `ports.Channel`, inwards: accounts, proofs, and whatever a request may hold."""

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.channel_subjects import SUBJECTS, each_channel, opened, parsed_one, written
from contract.channel_suite import NOW_MS, SECRET, Subject
from rejoinder.channels import NAMES, channel_module, open_channel
from rejoinder.ports import (
    ByPerson,
    Edited,
    Event,
    Ignored,
    Inbound,
    Malformed,
    Permanent,
    Reported,
    Request,
    Unverified,
)
from rejoinder.protocol.identity import ConversationId

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
