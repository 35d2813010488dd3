"""The contract of `ports.Store`, effects that happen once. Whatever is expected here follows from docs/effects.md."""

import pytest

from rejoinder.ports import Store
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
    effect_key,
)
from rejoinder.run import run
from store_suite import ANA, DAY, EXPIRES_S, NOW, ONE, TIMING, TWO, Given

KEY = effect_key(ONE.id, "book", {"at": 7})
OPEN = Effect("book", "x", NOW)
HAPPENED = Effect("book", "x", NOW, '{"number": 1}')
LAST_MS = EXPIRES_S * 1_000 - 1
LATE = NOW + TIMING.lease_ms


def test_one_begins_and_ends_and_everybody_else_is_told_the_result(store: Store) -> None:
    assert run(store.begin_effect(ANA, KEY, "book", "x", NOW)) == Begun(OPEN)
    assert run(store.begin_effect(ANA, KEY, "book", "y", NOW + 5)) == UnderWay(OPEN, LATE)
    assert run(store.end_effect(ANA, KEY, "x", '{"number": 1}', NOW + 9)) == Ended(HAPPENED)
    for over in (None, "x"):
        assert run(store.begin_effect(ANA, KEY, "book", "y", LATE, over)) == Happened(HAPPENED)


def test_each_call_recognises_its_own_repeat(store: Store) -> None:
    """The answer to the first try was lost."""
    run(store.begin_effect(ANA, KEY, "book", "x", NOW))
    assert run(store.begin_effect(ANA, KEY, "book", "x", NOW)) == Begun(OPEN, repeated=True)
    run(store.withdraw_effect(ANA, KEY, "x", Effect()))
    assert run(store.withdraw_effect(ANA, KEY, "x", Effect())) == Withdrawn(Effect("book"), repeated=True)
    run(store.begin_effect(ANA, KEY, "book", "x", NOW))
    run(store.end_effect(ANA, KEY, "x", "1", NOW))
    assert run(store.end_effect(ANA, KEY, "x", "1", NOW)) == Ended(Effect("book", "x", NOW, "1"), repeated=True)


def test_of_two_who_begin_anew_what_is_in_doubt_one_does(store: Store) -> None:
    run(store.begin_effect(ANA, KEY, "book", "x", NOW))
    assert run(store.begin_effect(ANA, KEY, "book", "y", LATE)) == Doubtful(OPEN)
    anew = Effect("book", "y", LATE)
    assert run(store.begin_effect(ANA, KEY, "book", "y", LATE, over="x")) == Begun(anew)
    assert run(store.begin_effect(ANA, KEY, "book", "z", LATE, over="x")) == UnderWay(anew, LATE + TIMING.lease_ms)
    assert run(store.end_effect(ANA, KEY, "x", "1", LATE)) == TakenOver(anew)
    assert run(store.withdraw_effect(ANA, KEY, "x", Effect())) == TakenOver(anew)


def test_what_was_looked_up_is_ended_in_the_name_of_who_began_it(store: Store) -> None:
    run(store.begin_effect(ANA, KEY, "book", "x", NOW))
    assert run(store.end_effect(ANA, KEY, "x", "1", LATE)) == Ended(Effect("book", "x", NOW, "1"))


def test_what_was_withdrawn_is_free(store: Store) -> None:
    run(store.begin_effect(ANA, KEY, "book", "x", NOW))
    assert run(store.withdraw_effect(ANA, KEY, "x", Effect())) == Withdrawn(Effect("book"))
    assert run(store.begin_effect(ANA, KEY, "book", "y", NOW)) == Begun(Effect("book", "y", NOW))


def test_what_was_begun_over_a_doubt_and_withdrawn_is_in_doubt_again(store: Store) -> None:
    run(store.begin_effect(ANA, KEY, "book", "x", NOW))
    run(store.begin_effect(ANA, KEY, "book", "y", LATE, over="x"))
    for repeated in (False, True):
        assert run(store.withdraw_effect(ANA, KEY, "y", OPEN)) == Withdrawn(OPEN, repeated=repeated)
    assert run(store.begin_effect(ANA, KEY, "book", "z", LATE)) == Doubtful(OPEN)


def test_what_nobody_has_begun_has_no_end(store: Store) -> None:
    assert run(store.end_effect(ANA, KEY, "x", "1", NOW)) == TakenOver(Effect())
    assert run(store.withdraw_effect(ANA, KEY, "x", Effect())) == Withdrawn(Effect(), repeated=True)
    assert run(store.clear(ANA)) == 0, "asking makes no item"


def test_effects_do_not_touch_one_another_nor_the_row(store: Store, given: Given) -> None:
    row = given.claimed(ONE)
    other = effect_key(TWO.id, "book", {"at": 7})
    run(store.begin_effect(ANA, KEY, "book", "x", NOW))
    assert run(store.begin_effect(ANA, other, "book", "y", NOW)) == Begun(Effect("book", "y", NOW))
    assert run(store.begin_effect("webhook:shop:bob", KEY, "book", "z", NOW)) == Begun(Effect("book", "z", NOW))
    assert run(store.read(ANA)) == row


@pytest.mark.parametrize("ended", [False, True])
def test_past_its_retention_it_counts_as_absent(store: Store, ended: bool) -> None:
    """TTL deletes days late."""
    run(store.begin_effect(ANA, KEY, "book", "x", NOW))
    if ended:
        run(store.end_effect(ANA, KEY, "x", "1", NOW))
    before = run(store.begin_effect(ANA, KEY, "book", "y", LAST_MS))
    assert isinstance(before, Happened if ended else Doubtful)
    assert run(store.begin_effect(ANA, KEY, "book", "y", LAST_MS + 1)) == Begun(Effect("book", "y", LAST_MS + 1))


def test_an_end_keeps_it_for_longer(store: Store) -> None:
    run(store.begin_effect(ANA, KEY, "book", "x", NOW))
    run(store.end_effect(ANA, KEY, "x", "1", NOW + DAY))
    assert isinstance(run(store.begin_effect(ANA, KEY, "book", "y", LAST_MS + DAY)), Happened)


def test_open_effects_are_those_that_nobody_knows_the_end_of(store: Store) -> None:
    keys = [effect_key(ONE.id, "book", number) for number in range(4)]
    for number, key in enumerate(keys):
        run(store.begin_effect(ANA, key, f"book {number}", "x", NOW - number))
    run(store.end_effect(ANA, keys[0], "x", "1", NOW))
    run(store.withdraw_effect(ANA, keys[1], "x", Effect()))
    assert run(store.open_effects(ANA, NOW)) == (Effect("book 3", "x", NOW - 3), Effect("book 2", "x", NOW - 2))
    assert run(store.open_effects(ANA, LAST_MS + 1)) == ()
    assert run(store.open_effects("webhook:shop:bob", NOW)) == ()


def test_clear_deletes_effects_too(store: Store) -> None:
    run(store.begin_effect(ANA, KEY, "book", "x", NOW))
    assert run(store.clear(ANA)) == 1
    assert run(store.end_effect(ANA, KEY, "x", "1", NOW)) == TakenOver(Effect())


def test_the_longest_result_fits(store: Store) -> None:
    run(store.begin_effect(ANA, KEY, "book", "x", NOW))
    run(store.end_effect(ANA, KEY, "x", "1" * MAX_RESULT_BYTES, NOW))
    happened = run(store.begin_effect(ANA, KEY, "book", "y", NOW))
    assert happened.effect.result == "1" * MAX_RESULT_BYTES
