"""`turn.once` over the memory store, one attempt after another; who may set to work; a store that fails."""

from dataclasses import replace
from typing import Any

import pytest

from fakes import CONVERSATION
from rejoinder.ports import (
    EffectInDoubt,
    Permanent,
    Transient,
    UnknownOutcome,
    Unwanted,
)
from rejoinder.protocol.conversation import Lease
from rejoinder.protocol.effects import (
    Effect,
    Ended,
    TakenOver,
    Withdrawn,
)
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore
from unit.bookings import RESULT, Attempts, attempts_at_one, crash

TIMING = Timing()


@pytest.fixture
def attempts() -> Attempts:
    return attempts_at_one()


def test_a_second_attempt_gets_the_recorded_result(attempts: Attempts) -> None:
    assert attempts.claim().once("book", {"at": 7}, attempts.bookings.book) == RESULT
    assert attempts.claim().once("book", {"at": 7}, attempts.bookings.book) == RESULT
    assert attempts.bookings.made == ["table"]


def test_another_key_or_name_is_another_effect(attempts: Attempts) -> None:
    turn = attempts.claim()
    numbers = [
        turn.once(name, key, attempts.bookings.book)["number"] for name, key in (("book", 7), ("book", 8), ("pay", 7))
    ]
    assert numbers == [1, 2, 3]


def test_twice_in_one_attempt_is_once(attempts: Attempts) -> None:
    turn = attempts.claim()
    assert turn.once("book", 7, attempts.bookings.book) == turn.once("book", 7, attempts.bookings.book)
    assert attempts.bookings.made == ["table"]


@pytest.mark.parametrize("after", [False, True])
def test_on_hold_what_a_crash_left_in_doubt_is_left_alone(attempts: Attempts, after: bool) -> None:
    crash(attempts, after=after)
    with pytest.raises(EffectInDoubt) as doubt:
        attempts.claim().once("book", 7, attempts.bookings.book)
    assert doubt.value.retry_after_ms is None
    assert len(attempts.bookings.made) == after
    assert attempts.happened("effect_in_doubt") == 1
    (left,) = run(attempts.world.store.open_effects(CONVERSATION, attempts.world.clock.ms))
    assert left.name == "book"


@pytest.mark.parametrize(("after", "made"), [(False, 1), (True, 2)])
def test_by_retry_it_is_made_again(attempts: Attempts, after: bool, made: int) -> None:
    crash(attempts, after=after)
    for _ in range(2):
        result = attempts.claim().once("book", 7, attempts.bookings.book, in_doubt="retry")
        assert result["number"] == made
    assert len(attempts.bookings.made) == made
    assert attempts.happened("effect_repeated") == 1


def test_a_retry_that_is_refused_leaves_the_doubt_as_it_was(attempts: Attempts) -> None:
    """The first may have happened all the same: nobody is to forget it."""
    crash(attempts, after=True)
    attempts.bookings.meets = [Permanent("no table left")]
    with pytest.raises(Permanent):
        attempts.claim().once("book", 7, attempts.bookings.book, in_doubt="retry")
    assert len(run(attempts.world.store.open_effects(CONVERSATION, attempts.world.clock.ms))) == 1
    with pytest.raises(EffectInDoubt):
        attempts.claim().once("book", 7, attempts.bookings.book)


@pytest.mark.parametrize("after", [False, True])
def test_by_a_check_it_is_made_once(attempts: Attempts, after: bool) -> None:
    crash(attempts, after=after)

    def check() -> dict[str, Any] | None:
        return {"number": 1, "seats": [2, 3]} if attempts.bookings.made else None

    for _ in range(2):
        assert attempts.claim().once("book", 7, attempts.bookings.book, check=check) == RESULT
    assert attempts.bookings.made == ["table"]
    assert attempts.happened("effect_repeated") == (not after)


@pytest.mark.parametrize("fault", [ConnectionError("down"), TypeError("day"), UnknownOutcome("cut off"), SystemError()])
def test_a_check_that_fails_leaves_it_in_doubt_for_the_next_attempt(attempts: Attempts, fault: Exception) -> None:
    """An operator is told, and no model: to that it would be the effect that has failed."""
    crash(attempts, after=True)
    meets = [fault]

    def check() -> dict[str, Any]:
        if meets:
            raise meets.pop()
        return {"number": 1}

    with pytest.raises(EffectInDoubt, match=f"book .* its check failed .{type(fault).__name__}") as doubt:
        attempts.claim().once("book", 7, attempts.bookings.book, check=check)
    assert doubt.value.retry_after_ms == 0
    assert attempts.happened("effect_in_doubt") == 1
    assert attempts.claim().once("book", 7, attempts.bookings.book, check=check) == {"number": 1}
    assert attempts.bookings.made == ["table"]


@pytest.mark.parametrize("fault", [Transient("busy"), Permanent("no such account")])
def test_a_check_may_say_what_its_fault_means(attempts: Attempts, fault: Exception) -> None:
    crash(attempts, after=True)

    def check() -> None:
        raise fault

    with pytest.raises(type(fault)) as raised:
        attempts.claim().once("book", 7, attempts.bookings.book, check=check)
    assert raised.value is fault
    assert len(run(attempts.world.store.open_effects(CONVERSATION, attempts.world.clock.ms))) == 1


def test_what_a_check_has_settled_is_in_doubt_no_more_where_the_next_try_is_refused(attempts: Attempts) -> None:
    """It did not happen, says the check, and not this time either: there is nothing to look up."""
    crash(attempts, after=False)
    attempts.bookings.meets = [Permanent("no table left")]
    with pytest.raises(Permanent):
        attempts.claim().once("book", 7, attempts.bookings.book, check=lambda: None)
    assert run(attempts.world.store.open_effects(CONVERSATION, attempts.world.clock.ms)) == ()
    assert attempts.claim().once("book", 7, attempts.bookings.book) == RESULT


def test_a_check_is_not_asked_while_it_may_be_under_way(attempts: Attempts) -> None:
    """The attempt before gave its lease back in the midst of it, as at its deadline."""
    world, began_at_ms = attempts.world, attempts.world.clock.ms + 1
    crash(attempts, after=False)
    run(world.store.release_failed(CONVERSATION, Lease("holder-1", 1), 0))

    def check() -> None:
        raise AssertionError("asked too early")

    with pytest.raises(EffectInDoubt) as doubt:
        attempts.claim().once("book", 7, attempts.bookings.book, check=check)
    assert doubt.value.retry_after_ms == began_at_ms + TIMING.lease_ms - world.clock.ms


class SlotTaken(Exception):  # noqa: N818  # as a bot's author would name it
    pass


@pytest.mark.parametrize("refusal", [Transient("busy"), Permanent("no such table"), SlotTaken("7 pm")])
def test_what_certainly_did_not_happen_may_be_tried_again(attempts: Attempts, refusal: Exception) -> None:
    attempts.bookings.meets = [refusal]
    turn = attempts.claim()
    with pytest.raises(type(refusal)):
        turn.once("book", 7, attempts.bookings.book, refused=(SlotTaken,))
    assert turn.once("book", 7, attempts.bookings.book, refused=(SlotTaken,)) == RESULT


@pytest.mark.parametrize("unknown", [UnknownOutcome("cut off"), TimeoutError(), ValueError("odd answer")])
def test_whatever_else_it_raises_leaves_it_in_doubt(attempts: Attempts, unknown: Exception) -> None:
    attempts.bookings.meets = [unknown]
    with pytest.raises(EffectInDoubt) as doubt:
        attempts.claim().once("book", 7, attempts.bookings.book)
    assert doubt.value.retry_after_ms is None
    with pytest.raises(EffectInDoubt):
        attempts.claim().once("book", 7, attempts.bookings.book)
    assert attempts.bookings.made == []


def test_with_a_check_the_doubt_is_settled_by_the_next_attempt(attempts: Attempts) -> None:
    attempts.bookings.meets = [UnknownOutcome("cut off")]
    turn = attempts.claim()
    with pytest.raises(EffectInDoubt) as doubt:
        turn.once("book", 7, attempts.bookings.book, check=lambda: None)
    assert doubt.value.retry_after_ms == TIMING.lease_ms
    assert attempts.claim().once("book", 7, attempts.bookings.book, check=lambda: None) == RESULT


def test_a_result_that_cannot_be_kept_leaves_it_in_doubt(attempts: Attempts) -> None:
    with pytest.raises(EffectInDoubt, match="it happened, but effect book: its result is not JSON"):
        attempts.claim().once("book", 7, object)


def test_an_async_effect_is_refused_and_did_not_run(attempts: Attempts) -> None:
    async def book() -> None:
        attempts.bookings.book()

    turn = attempts.claim()
    with pytest.raises(Permanent, match="takes a plain one"):
        turn.once("book", 7, book)
    assert turn.once("book", 7, attempts.bookings.book) == RESULT


def test_a_key_that_is_no_json_is_a_fault_of_the_bot(attempts: Attempts) -> None:
    with pytest.raises(Permanent, match="effect book: its key is not JSON"):
        attempts.claim().once("book", object(), attempts.bookings.book)


# --- who may set to work ----------------------------------------------------------------------------------------------


def test_nobody_sets_to_work_whose_reply_is_outdated(attempts: Attempts) -> None:
    turn = attempts.claim()
    attempts.world.write("b")
    with pytest.raises(Unwanted) as end:
        turn.once("book", 7, attempts.bookings.book)
    assert end.value.outdated
    assert attempts.bookings.made == []


def test_at_the_bound_on_superseding_it_is_made_all_the_same(attempts: Attempts) -> None:
    turn = attempts.claim()
    assert turn.grant is not None
    turn.grant = replace(turn.grant, received=None)
    turn.once = attempts.effects.once_in(turn)
    attempts.world.write("b")
    assert turn.once("book", 7, attempts.bookings.book) == RESULT


def test_nobody_sets_to_work_who_was_fenced_out(attempts: Attempts) -> None:
    first = attempts.claim()
    attempts.claim()
    with pytest.raises(Unwanted) as end:
        first.once("book", 7, attempts.bookings.book)
    assert not end.value.outdated
    assert attempts.bookings.made == []


def test_nobody_sets_to_work_while_a_person_has_the_conversation(attempts: Attempts) -> None:
    turn, store = attempts.claim(), attempts.world.store
    store.rows[CONVERSATION] = replace(store.rows[CONVERSATION], paused_until_ms=attempts.world.clock.ms + 60_000)
    with pytest.raises(Unwanted) as end:
        turn.once("book", 7, attempts.bookings.book)
    assert end.value.outdated


def test_nobody_sets_to_work_whose_time_is_over(attempts: Attempts) -> None:
    turn = attempts.claim()
    turn.stopped = lambda: True
    with pytest.raises(Unwanted):
        turn.once("book", 7, attempts.bookings.book)
    assert attempts.bookings.made == []


def test_the_lease_is_full_when_the_work_begins(attempts: Attempts) -> None:
    """So whoever takes over after a crash comes when the effect is in doubt, and no sooner."""
    turn = attempts.claim()
    attempts.world.clock.ms += 20_000
    turn.once("book", 7, attempts.bookings.book)
    assert attempts.world.row.lease_expires_at_ms == attempts.world.clock.ms + TIMING.lease_ms


# --- with a store that fails ------------------------------------------------------------------------------------------


class Throttled(MemoryStore):
    """Takes no more writes once an effect is begun."""

    async def end_effect(self, conversation_id: str, key: str, by: str, result: str, now_ms: int) -> Ended | TakenOver:
        raise Transient("throttled")

    async def withdraw_effect(self, conversation_id: str, key: str, by: str, before: Effect) -> Withdrawn | TakenOver:
        raise Transient("throttled")


@pytest.fixture
def throttled(attempts: Attempts) -> Attempts:
    store = attempts.world.store
    return replace(attempts, effects=replace(attempts.effects, store=Throttled(store.timing, store.rows, store.items)))


def test_a_result_that_cannot_be_recorded_is_used_all_the_same(attempts: Attempts, throttled: Attempts) -> None:
    """The commit may come through; if it does not, the effect is in doubt."""
    assert throttled.claim().once("book", 7, attempts.bookings.book) == RESULT
    assert attempts.happened("effect_unrecorded") == 1
    with pytest.raises(EffectInDoubt):
        attempts.claim().once("book", 7, attempts.bookings.book)


def test_a_refusal_that_cannot_be_recorded_is_in_doubt_later(attempts: Attempts, throttled: Attempts) -> None:
    """What the other side said is what the bot hears, all the same."""
    attempts.bookings.meets = [Permanent("no such table")]
    with pytest.raises(Permanent, match="no such table"):
        throttled.claim().once("book", 7, attempts.bookings.book)
    with pytest.raises(EffectInDoubt):
        attempts.claim().once("book", 7, attempts.bookings.book)
