"""Effects that happen once: the pure functions.

`turn.once` over them is in `test_effects_once.py`, and behind a bot in `test_effects_bots.py`. Crashes and races at
every step are the simulator's (`tests/simulation/test_effects.py`).
"""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.protocol.effects import (
    MAX_RESULT_BYTES,
    Begun,
    Doubtful,
    Effect,
    Ended,
    Happened,
    TakenOver,
    UnderWay,
    Withdrawn,
    begin,
    effect_key,
    end,
    idempotency_key,
    result_text,
    withdraw,
)
from rejoinder.protocol.timing import Timing

NOW = 1_790_000_000_000
TIMING = Timing()
OPEN = Effect("book", "x", NOW)


def test_nobody_s_effect_is_begun() -> None:
    assert begin(Effect(), "book", "x", NOW, TIMING) == Begun(OPEN)


def test_a_begin_recognises_its_own_repeat() -> None:
    assert begin(OPEN, "book", "x", NOW + 5, TIMING) == Begun(OPEN, repeated=True)


@pytest.mark.parametrize(
    ("after_ms", "expected"),
    [
        (-3_000, UnderWay(OPEN, NOW + TIMING.lease_ms)),
        (TIMING.lease_ms - 1, UnderWay(OPEN, NOW + TIMING.lease_ms)),
        (TIMING.lease_ms, Doubtful(OPEN)),
    ],
)
def test_another_s_is_under_way_for_a_lease_and_then_in_doubt(after_ms: int, expected: UnderWay | Doubtful) -> None:
    assert begin(OPEN, "book", "y", NOW + after_ms, TIMING) == expected


def test_one_in_doubt_is_begun_anew_over_that_begin_alone() -> None:
    late = NOW + TIMING.lease_ms
    assert begin(OPEN, "book", "y", late, TIMING, over="x") == Begun(Effect("book", "y", late))
    assert begin(Effect("book", "z", NOW), "book", "y", late, TIMING, over="x") == Doubtful(Effect("book", "z", NOW))


def test_what_has_happened_is_never_begun_again() -> None:
    happened = replace(OPEN, result="1")
    for by, over in (("x", None), ("y", None), ("y", "x")):
        assert begin(happened, "book", by, NOW + 10**9, TIMING, over) == Happened(happened)


def test_an_end_is_recorded_once_and_by_that_begin_alone() -> None:
    happened = replace(OPEN, result="1")
    assert end(OPEN, "x", "1") == Ended(happened)
    assert end(happened, "x", "2") == Ended(happened, repeated=True)
    assert end(OPEN, "y", "1") == TakenOver(OPEN)
    assert end(Effect(), "x", "1") == TakenOver(Effect())


def test_what_certainly_did_not_happen_may_be_begun_by_the_next() -> None:
    withdrawn = Effect("book")
    assert withdraw(OPEN, "x", Effect()) == Withdrawn(withdrawn)
    assert withdraw(withdrawn, "x", Effect()) == Withdrawn(withdrawn, repeated=True)
    assert begin(withdrawn, "book", "y", NOW, TIMING) == Begun(Effect("book", "y", NOW))
    assert withdraw(OPEN, "y", Effect()) == TakenOver(OPEN)
    assert withdraw(replace(OPEN, result="1"), "x", Effect()) == TakenOver(replace(OPEN, result="1"))


def test_what_was_begun_over_a_doubt_and_withdrawn_is_in_doubt_as_before() -> None:
    anew = Effect("book", "y", NOW + TIMING.lease_ms)
    assert withdraw(anew, "y", OPEN) == Withdrawn(OPEN)
    assert withdraw(OPEN, "y", OPEN) == Withdrawn(OPEN, repeated=True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, min_size=2, max_size=4), st.randoms())
def test_the_order_of_a_key_s_names_does_not_matter(key: dict[str, Any], chance: Any) -> None:
    names = list(key)
    chance.shuffle(names)
    assert effect_key(b"12345678", "book", {name: key[name] for name in names}) == effect_key(b"12345678", "book", key)


def test_message_name_and_key_each_tell_effects_apart() -> None:
    """Also where one could be read as a part of the other."""
    keys = [
        effect_key(b"12345678", "book", "a"),
        effect_key(b"12345679", "book", "a"),
        effect_key(b"12345678", "boo", "ka"),
        effect_key(b"12345678", "book", ["a"]),
        effect_key(b"12345678", "book", None),
    ]
    assert len(set(keys)) == len(keys)
    assert all(key.startswith((b"12345678".hex(), b"12345679".hex())) for key in keys)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("", 1),
        ("n" * 129, 1),
        ("book", {1, 2}),
        ("book", float("nan")),
        ("book", {"a": b"b"}),
        ("book", {1: 1, "a": 2}),
    ],
)
def test_a_name_or_key_that_cannot_be_used_is_named(name: str, key: object) -> None:
    with pytest.raises(ValueError, match=r"effect .*(characters|not JSON)"):
        effect_key(b"12345678", name, key)


def test_a_lone_surrogate_in_a_key_is_no_matter() -> None:
    """A model's arguments may hold one."""
    assert effect_key(b"12345678", "book", "\ud800") != effect_key(b"12345678", "book", "\ud801")


def test_the_other_side_s_key_differs_from_conversation_to_conversation() -> None:
    key = effect_key(b"12345678", "book", 1)
    assert len(idempotency_key("webhook:shop:ana", key)) == 32
    assert idempotency_key("webhook:shop:ana", key) != idempotency_key("webhook:shop:bob", key)


@given(JSON)
def test_any_json_is_a_result(result: Any) -> None:
    assert json.loads(result_text("book", result)) == result


@pytest.mark.parametrize("result", [{1, 2}, object(), float("inf"), "x" * MAX_RESULT_BYTES])
def test_a_result_that_cannot_be_kept_is_named(result: object) -> None:
    with pytest.raises(ValueError, match="effect book: its result"):
        result_text("book", result)
