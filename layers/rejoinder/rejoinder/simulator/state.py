"""A situation of an exploration, and the budgets of faults that are left in it."""

from typing import NamedTuple

from rejoinder.simulator.bound import FAULTS

(
    CRASHES,
    EXPIRIES,
    DOUBLES,
    REDELIVERIES,
    LOST,
    REPEATS,
    THROTTLES,
    BOT_FAILURES,
    SLOW,
    REFUSALS,
    UNKNOWNS,
    EARLY,
    LATE,
    STALLS,
    JOINS,
    RESTARTS,
    HANDOFFS,
    PAUSES,
    UNPAUSES,
    OPERATORS,
    UNREAD,
    EDITS,
    OPTOUTS,
    OPTINS,
) = range(len(FAULTS))
AT_A_CALL = (CRASHES, LOST, REPEATS, THROTTLES)


class State(NamedTuple):
    """A situation. Every number names a value of `Moves`, or (in `failed`, `edited`, `spoken`) an event of `desk`."""

    row: int
    items: int
    running: tuple[int, ...]
    armed: tuple[int, ...]
    delayed: tuple[int, ...]
    arrived: int
    failed: tuple[int, ...]
    left: tuple[int, ...]
    ledger: int
    put_off: int = 0
    edited: tuple[int, ...] = ()
    spoken: tuple[int, ...] = ()


def spent(state: State, fault: int) -> State:
    """The state with one fault less to come."""
    left = state.left
    return state._replace(left=(*left[:fault], left[fault] - 1, *left[fault + 1 :]))


def with_running(state: State, number: int) -> State:
    """The state with another invocation in mid-air."""
    return state._replace(running=tuple(sorted((*state.running, number))))
