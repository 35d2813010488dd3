"""What DynamoDB refuses and emulators accept, checked on the requests themselves."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pynamodb.expressions.update import Action

from rejoinder.protocol.conversation import Attachment, Lease, Message, Outbox, Row
from rejoinder.protocol.effects import Effect
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.timing import Timing
from rejoinder.stores.dynamodb import effects, erasing, expressions, pausing
from rejoinder.stores.dynamodb.expressions import Write
from rejoinder.stores.dynamodb.schema import MessageMap, OutboxMap, RowItem, WholeNumber
from rejoinder.stores.dynamodb.table import Table, connect

TIMING = Timing()
LEASE = Lease("ida", 7)
FULL = tuple(
    Message(message_id(f"m{number}"), f"m{number}", "ana", 1, 2, text="t" * 256) for number in range(TIMING.max_pending)
)
CLAIMED = Row(received=100, pending=FULL, overflowed=3, answered_ids=tuple(bytes([n] * 8) for n in range(128)))
REPLY = Outbox("reply", ("part",), FULL, state="{}", token=7, refused_token=3, handoff="x" * 500, pause_until_ms=9)
WRITES = [
    expressions.record("webhook:shop:ana", FULL[0], 1, TIMING),
    expressions.amend(99, Message(FULL[99].id, "m99", "ana", 1, 2, text="", edited_at_ms=3)),
    expressions.overflow(replace(FULL[0], consent="given"), TIMING),
    expressions.claim("ida", 1, TIMING),
    expressions.resume("ida", 1, TIMING),
    expressions.renew(LEASE, 1, TIMING),
    expressions.commit(LEASE, CLAIMED, REPLY, 1, TIMING),
    expressions.commit_partial(LEASE, CLAIMED, REPLY, 1, TIMING),
    expressions.progress(LEASE, 1, 1, TIMING),
    expressions.finish(LEASE),
    expressions.finish_owing(LEASE, 1),
    expressions.release_superseded(LEASE),
    expressions.release_failed(LEASE, 1),
    expressions.release_refused(LEASE, 1),
    effects.begin_effect("n" * 128, "x", 1, TIMING, over="y"),
    effects.end_effect("x", "1" * 65_536, 1, TIMING),
    effects.withdraw_effect("x", Effect("n", "y", 1)),
    expressions.promise(LEASE),
    pausing.pause(2, 1, TIMING),
    pausing.unpause(),
    pausing.settle(CLAIMED, REPLY, 1, TIMING),
    erasing.seize("ida", 1, TIMING),
]
"""Every transition, with as much to write as its bounds allow."""

FUNCTIONS = {"if_not_exists", "list_append", "contains", "size", "attribute_exists", "attribute_not_exists"}
WORDS = {"SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT"} | FUNCTIONS
"""All that may stand in an expression without a placeholder (Amazon DynamoDB, Reserved words: 573 others may not)."""

MAX_EXPRESSION_BYTES = 4_096
MAX_OPERATORS = 300
"""Amazon DynamoDB, Quotas: expression parameters."""


def request(write: Write) -> dict[str, Any]:
    table = Table("t", connect("eu-central-1"))
    answer: dict[str, Any] = table.connection.get_operation_kwargs(
        "t", "webhook:shop:ana", "ROW", actions=write.actions, condition=write.condition
    )
    return answer


def paths(actions: Sequence[Action]) -> list[tuple[str, ...]]:
    """Every document path that is written, each name and each index one segment."""
    targets = [action.values[0] for action in actions]
    return [tuple(re.findall(r"[^.\[\]]+", str(target))) for target in targets]


def overlapping(actions: Sequence[Action]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(a, b) for a, b in combinations(paths(actions), 2) if a[: len(b)] == b[: len(a)]]


def empty_sets(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (kind for kind in ("SS", "NS", "BS") if kind in value and not value[kind])
        for inner in value.values():
            yield from empty_sets(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from empty_sets(inner)


def test_every_transition_is_checked() -> None:
    functions = {
        name
        for module in (expressions, effects, pausing, erasing)
        for name, each in vars(module).items()
        if getattr(each, "__annotations__", {}).get("return") is Write
    }
    assert {write.name.lower() for write in WRITES} == functions


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
def test_no_two_paths_of_an_update_overlap(write: Write) -> None:
    assert overlapping(write.actions) == []


def test_an_overlap_would_be_found() -> None:
    append_and_trim: list[Action] = [RowItem.pending.set([FULL[0]]), RowItem.pending[0].remove()]
    assert overlapping(append_and_trim) == [(("pending",), ("pending", "0"))]
    assert len(overlapping([RowItem.outbox.remove(), RowItem.outbox["n"].set(1)])) == 1


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
def test_no_set_is_empty(write: Write) -> None:
    assert list(empty_sets(request(write).get("ExpressionAttributeValues", {}))) == []


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
def test_every_name_is_escaped_and_every_placeholder_used(write: Write) -> None:
    made = request(write)
    text = f"{made['UpdateExpression']} {made['ConditionExpression']}"
    assert set(re.findall(r"(?<![#:\w])[A-Za-z_]\w*", text)) <= WORDS
    assert set(re.findall(r"#\d+", text)) == set(made["ExpressionAttributeNames"])
    assert set(re.findall(r":\d+", text)) == set(made.get("ExpressionAttributeValues", {}))


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
def test_expressions_stay_within_the_limits(write: Write) -> None:
    made = request(write)
    for text in (made["UpdateExpression"], made["ConditionExpression"]):
        assert len(text.encode()) <= MAX_EXPRESSION_BYTES
        assert len(re.findall(r"[<>=]+|[+-]|\bAND\b|\bOR\b|\bNOT\b|\w+ \(", text)) <= MAX_OPERATORS


@pytest.mark.parametrize("name", ["COMMIT", "COMMIT_PARTIAL"])
def test_entries_are_removed_from_the_last_to_the_first(name: str) -> None:
    """An emulator removes in the order given; in ascending order every second entry would stay."""
    (write,) = [write for write in WRITES if write.name == name]
    removed = [int(path[1]) for path in paths(write.actions) if path[0] == "pending"]
    assert removed == list(range(99, -1, -1))


@pytest.mark.parametrize("value", [1.0, True, "1", None])
def test_only_whole_numbers_reach_the_table(value: object) -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        WholeNumber().serialize(value)


def test_a_number_of_too_many_digits_is_refused_by_name() -> None:
    assert WholeNumber().serialize(-(10**38) + 1) == "-" + "9" * 38
    with pytest.raises(ValueError, match="38"):
        WholeNumber().serialize(10**38)


NUMBERS = st.integers(-(10**38) + 1, 10**38 - 1)
TEXTS = st.text(st.characters(codec="utf-8"))
ATTACHMENTS = st.builds(Attachment, TEXTS, TEXTS, TEXTS, TEXTS, NUMBERS)
MESSAGES = st.builds(
    Message,
    st.binary(min_size=8, max_size=8),
    TEXTS,
    TEXTS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    TEXTS,
    TEXTS,
    st.lists(ATTACHMENTS, max_size=3).map(tuple),
    TEXTS,
    TEXTS,
    st.booleans(),
)


@given(MESSAGES)
def test_any_message_survives_the_map(message: Message) -> None:
    assert MessageMap().deserialize(MessageMap().serialize(message)) == message


@given(
    st.builds(
        Outbox,
        TEXTS,
        st.lists(TEXTS, max_size=3).map(tuple),
        st.lists(MESSAGES, max_size=2).map(tuple),
        TEXTS,
        st.none() | TEXTS,
        NUMBERS,
        NUMBERS,
        NUMBERS,
        st.none() | NUMBERS,
        st.booleans(),
        st.booleans(),
    )
)
def test_any_reply_survives_the_map(outbox: Outbox) -> None:
    assert OutboxMap().deserialize(OutboxMap().serialize(outbox)) == outbox
