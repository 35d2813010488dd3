"""Which wake-up follows: rules 2, 3 and 6 of docs/protocol.md, one test each, and what may skip them."""

from dataclasses import replace

import pytest

from fakes import CONVERSATION, START_MS, message
from rejoinder.protocol import transitions, wakeups
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import DeadLetter, ForMessage, ForReceived, WakeUp, following

TIMING = Timing()


def recorded(*names: str, gap_ms: int = 1_000) -> Row:
    row = Row()
    for number, name in enumerate(names):
        at_ms = START_MS + number * gap_ms
        row = transitions.record(row, CONVERSATION, message(name, at_ms), at_ms, TIMING).row
    return row


def armed(name: str, at_ms: int = START_MS) -> WakeUp:
    return wakeups.for_message(CONVERSATION, message_id(name), at_ms, TIMING)


def test_too_early_because_of_a_later_message_needs_no_successor() -> None:
    assert following(armed("a"), recorded("a", "b"), START_MS + 2_000, TIMING, not_due=True) is None


def test_too_early_for_its_own_message_is_armed_again_at_the_due_time() -> None:
    """A clock that runs behind, or a delay that was rounded down."""
    again = following(armed("b"), recorded("a", "b"), START_MS + 2_000, TIMING, not_due=True)
    assert isinstance(again, WakeUp)
    assert (again.due_at_ms, again.armed_for) == (START_MS + 3_000, ForReceived(2))


def test_too_early_at_the_cap_is_armed_again() -> None:
    row = recorded("a", "b", gap_ms=9_000)
    again = following(armed("a"), row, START_MS + 9_500, TIMING, not_due=True)
    assert isinstance(again, WakeUp)
    assert again.due_at_ms == START_MS + TIMING.max_wait_ms


def test_too_early_because_of_retry_at_is_armed_again() -> None:
    row = replace(recorded("a", "b"), retry_at_ms=START_MS + 50_000)
    again = following(armed("a"), row, START_MS + 4_000, TIMING, not_due=True)
    assert isinstance(again, WakeUp)
    assert again.due_at_ms == START_MS + 50_000


def test_only_not_due_may_skip() -> None:
    """A lost or superseded holder arms another although a later message has its own."""
    again = following(armed("a"), recorded("a", "b"), START_MS + 2_000, TIMING)
    assert isinstance(again, WakeUp)
    assert again.due_at_ms == START_MS + 3_000


def test_nothing_owed_ends_silently() -> None:
    row = replace(recorded("a"), answered=1, pending=(), answered_ids=(message_id("a"),), window_opened_at_ms=None)
    assert following(armed("a"), row, START_MS + 2_000, TIMING) is None


@pytest.mark.parametrize("elapsed_ms", [2_000, 10_999])
def test_a_message_not_there_yet_is_looked_for_again_when_its_ingest_must_be_over(elapsed_ms: int) -> None:
    again = following(armed("a"), Row(), START_MS + elapsed_ms, TIMING)
    assert isinstance(again, WakeUp)
    assert (again.armed_for, again.armed_at_ms) == (ForMessage(message_id("a")), START_MS)
    assert again.due_at_ms == START_MS + 11_000


def test_a_message_that_never_came_is_let_go() -> None:
    assert following(armed("a"), Row(), START_MS + 11_000, TIMING) is None


def test_a_message_answered_long_ago_is_not_looked_for() -> None:
    row = Row(received=1, answered=1, answered_ids=(message_id("a"),))
    assert following(armed("a"), row, START_MS + 2_000, TIMING) is None


def test_a_held_lease_is_looked_at_just_after_its_expiry() -> None:
    held = transitions.claim(recorded("a"), "other", START_MS + 2_000, TIMING).row
    again = following(armed("a"), held, START_MS + 2_100, TIMING)
    assert isinstance(again, WakeUp)
    assert again.due_at_ms == START_MS + 2_000 + TIMING.lease_ms + 1_000


def test_rounds_count_only_while_nothing_moves() -> None:
    row = recorded("a")
    stuck = WakeUp(CONVERSATION, ForReceived(1), START_MS, START_MS, attempt=5, seen=(0, 0))
    again = following(stuck, row, START_MS + 60_000, TIMING)
    assert isinstance(again, WakeUp)
    assert (again.attempt, again.due_at_ms) == (6, START_MS + 60_000 + 16_000)
    moved = following(stuck, replace(row, lease_token=3), START_MS + 60_000, TIMING)
    assert isinstance(moved, WakeUp)
    assert (moved.attempt, moved.seen) == (0, (0, 3))


def test_what_runs_out_of_rounds_is_for_an_operator() -> None:
    spent = WakeUp(CONVERSATION, ForReceived(1), START_MS, START_MS, attempt=TIMING.max_rounds, seen=(0, 0))
    assert isinstance(following(spent, recorded("a"), START_MS + 60_000, TIMING), DeadLetter)
    assert isinstance(wakeups.after_fault(spent, START_MS, TIMING), DeadLetter)


def test_after_a_fault_the_same_wake_up_comes_again_a_pause_later() -> None:
    again = wakeups.after_fault(armed("a"), START_MS + 2_000, TIMING)
    assert isinstance(again, WakeUp)
    assert (again.armed_for, again.armed_at_ms, again.due_at_ms) == (
        ForMessage(message_id("a")),
        START_MS,
        START_MS + 3_000,
    )


def test_the_guarantee_is_made_by_who_opened_the_window() -> None:
    row = recorded("a", "b")
    assert wakeups.at_cap(CONVERSATION, row, START_MS + 1_000, TIMING) is None
    cap = wakeups.at_cap(CONVERSATION, recorded("a"), START_MS, TIMING)
    assert cap is not None
    assert cap.due_at_ms == START_MS + TIMING.max_wait_ms


@pytest.mark.parametrize("owes", [False, True])
def test_a_pauses_own_wake_up_that_came_too_early_comes_again_at_its_end(owes: bool) -> None:
    """Before the pause is set, or in a pause with nothing owed yet: what comes in it later has nobody else."""
    row = recorded("a") if owes else Row()
    end = WakeUp(CONVERSATION, ForReceived(0), START_MS, START_MS + 60_000)
    for paused in (row, replace(row, paused_until_ms=end.due_at_ms)):
        again = following(end, paused, START_MS + 1_000, Timing())
        assert isinstance(again, WakeUp)
        assert (again.armed_for, again.due_at_ms) == (end.armed_for, end.due_at_ms)
    assert following(end, Row(), end.due_at_ms, Timing()) is None
