"""A use case in mid-air as a value, so that the explorer can leave it, go another way, and come back.

A coroutine cannot be copied. But it is a function of what it was begun with and of the answers that it was given, so
any of its states can be built again by giving it the same answers. Two use cases are in the same state where their
frames are (`rejoinder.simulator.frames`). That merges the many logs that lead to one state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rejoinder.ports import Fault
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.outcomes import Answered
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.simulator.desk import event_fields
from rejoinder.simulator.frames import frozen, state_of
from rejoinder.simulator.shifting import shifted
from rejoinder.simulator.stage import Stage, webhook
from rejoinder.simulator.stepping import Call


@dataclass(frozen=True, slots=True)
class Beginning:
    """What an invocation is begun with: the names of a webhook's events, or a wake-up and what it draws as owner."""

    argument: tuple[str, ...] | WakeUp
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One answer that a use case was given: a value, or a fault in its place, and the time by its clock then.

    `to` is the method that was answered; empty at the start.
    """

    now_ms: int
    value: Any = None
    fault: Fault | None = None
    to: str = ""


@dataclass(slots=True)
class Program:
    """An invocation in one state.

    Attributes:
        beginning: what it was begun with.
        log: the answers that led here; the first entry is its start.
        call: what it waits for; None once it has ended.
        result: what it returned.
        failure: what it raised.
        key: equal for equal states.
    """

    beginning: Beginning
    log: tuple[Entry, ...]
    call: Call | None = None
    result: Any = None
    failure: Exception | None = None
    key: Any = None

    @property
    def started_at_ms(self) -> int:
        """When it began."""
        return self.log[0].now_ms

    def moved(self, by_ms: int) -> tuple[Beginning, tuple[Entry, ...]]:
        """What to build to have the same invocation at another time."""
        entries = tuple(Entry(e.now_ms + by_ms, shifted(e.value, by_ms), e.fault, e.to) for e in self.log)
        return Beginning(shifted(self.beginning.argument, by_ms), self.beginning.owner), entries


def build(
    stage: Stage, beginning: Beginning, log: tuple[Entry, ...], local: Callable[[Call], Entry | None], deadline_ms: int
) -> Program:
    """Run an invocation through a log, and on through the calls that touch nothing that others see.

    Args:
        stage: where it runs.
        beginning: what it is begun with.
        log: the answers to give; the first entry is the start.
        local: answers a call that is no step of its own (its entry's time is ignored); None for any other.
        deadline_ms: how long after its start a bot must have answered.
    """
    stage.clock.now, stage.ids.next = log[0].now_ms, beginning.owner
    if isinstance(beginning.argument, WakeUp):
        use_case = stage.generate(beginning.argument, log[0].now_ms + deadline_ms)
    else:
        until_ms = log[0].now_ms + stage.policy.pause_ms
        use_case = stage.ingest(webhook([event_fields(name, until_ms) for name in beginning.argument]))
    program = Program(beginning, log)
    entries = list(log)
    position = 0
    try:
        while True:
            entry = entries[position]
            position += 1
            stage.clock.now = entry.now_ms
            program.call = use_case.send(entry.value) if entry.fault is None else use_case.throw(entry.fault)
            if position == len(entries):
                at_once = local(program.call)
                if at_once is None:
                    break
                entries.append(Entry(entry.now_ms, at_once.value, at_once.fault, program.call.method))
        program.key = (
            frozen(beginning.argument),  # it comes again if this crashes
            beginning.owner,
            state_of(use_case),
            frozen(program.call),
            entries[-1].to,
            wanted(entries) if beginning.owner else None,
        )
    except StopIteration as end:
        program.call, program.result = None, end.value
        program.key = ("ended", frozen(beginning.argument), beginning.owner, end.value)
    except Exception as failure:  # noqa: BLE001  # whatever it raised is the invocation's failure
        program.call, program.failure = None, failure
        program.key = ("failed", frozen(beginning.argument), beginning.owner, repr(failure))
    finally:
        use_case.close()
    program.log = tuple(entries)
    return program


def told(log: Sequence[Entry]) -> Row | None:
    """The row that a use case was given last, since it last sent anything; None where it was given none."""
    for entry in reversed(log):
        if isinstance(entry.value, Answered):
            return entry.value.row
        if entry.to == "send":
            return None
    return None


def wanted(log: Sequence[Entry]) -> bool | None:
    """Whether that row says that its reader wants to be written to: it tells apart who should know from who cannot."""
    row = told(log)
    return None if row is None else row.opted_out_at_ms is None


def goes_first(call: Call, answered: str, *, may_stall: bool) -> bool:
    """Whether nothing is lost when a call is performed before anybody else acts: they come to the same after it.

    Args:
        call: the call.
        answered: the call that its caller was answered just before.
        may_stall: an invocation may pause between two calls.
    """
    match call.port, call.method:
        case "wake_ups", _:  # nobody sees it before it is due; a slow arming is a late wake-up, which has a budget
            return True
        case "store", "claim":  # who has just begun could as well have begun later
            return True
        case (
            "store",
            "state" | "put_state" | "put_held",
        ):  # a state gives way to newer ones alone; nobody reads HELD#
            return True
        case "store", "commit":  # nobody sees a bot's answer: what comes between could as well come before it
            return answered == "wait"
        case "store", "resume" | "put_turn":  # one goes on at once from the call before, if nobody may stall
            return not may_stall
    return False
