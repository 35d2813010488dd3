"""What befalls the calls of a random run: which fault, if any, and how long each call takes."""

from dataclasses import dataclass
from enum import StrEnum

from rejoinder.simulator.ledger import Step
from rejoinder.simulator.plan import Plan
from rejoinder.simulator.stepping import Call
from rejoinder.simulator.tables import READS


class Fault(StrEnum):
    """What can go wrong at a call."""

    CRASH = "crashes before it"
    CRASH_AFTER = "crashes after it"
    STALL = "stalls before it"
    THROTTLED = "is throttled"
    GIVEN_UP = "is applied, and given up"
    LOST = "is applied, its answer lost, and repeated"
    REPEATED = "is repeated by a delayed copy"
    DOUBLED = "is armed twice"
    NOT_NOW = "is refused for now"
    NEVER = "is refused for good"
    UNKNOWN_SENT = "times out after sending"
    UNKNOWN_UNSENT = "times out before sending"
    BOT_FAILS = "fails"
    BOT_SLOW = "is slow"
    BOT_HANGS = "hangs"


_ANYWHERE = (Fault.CRASH, Fault.CRASH_AFTER, Fault.STALL)
_OF_A_WRITE = (*_ANYWHERE, Fault.THROTTLED, Fault.GIVEN_UP, Fault.LOST, Fault.REPEATED)
_OF_A_READ = (*_ANYWHERE, Fault.THROTTLED)
_OF_A_LANE = (*_ANYWHERE, Fault.THROTTLED, Fault.DOUBLED)
_OF_A_SEND = (*_ANYWHERE, Fault.NOT_NOW, Fault.NEVER, Fault.UNKNOWN_SENT, Fault.UNKNOWN_UNSENT)
_OF_A_BOT = (*_ANYWHERE, Fault.BOT_FAILS, Fault.BOT_SLOW, Fault.BOT_HANGS)


@dataclass(frozen=True, slots=True)
class Luck:
    """What befalls one call.

    Attributes:
        takes_ms: how long until it is performed.
        fault: what goes wrong; None for nothing.
        drawn: random bits for the fault's own measures.
    """

    takes_ms: int
    fault: Fault | None
    drawn: int


def luck(plan: Plan, conversation: int, invocation: int, step: int, call: Call) -> Luck:
    """Draw what befalls a call: nothing, mostly, and a few milliseconds."""
    drawn = plan.draw(conversation, 4, invocation, step)
    takes_ms, drawn = drawn % 40, drawn // 40
    happens, drawn = drawn % 10_000 < plan.faults_in_10k, drawn // 10_000
    if not happens or (conversation, invocation, step) in plan.spared:
        return Luck(takes_ms, None, drawn)
    faults = faults_of(call)
    return Luck(takes_ms, faults[drawn % len(faults)], drawn // len(faults))


def faults_of(call: Call) -> tuple[Fault, ...]:
    """What can go wrong at a call."""
    match call.port, call.method:
        case "store", method:
            return _OF_A_READ if method in READS else _OF_A_WRITE
        case "wake_ups", _:
            return _OF_A_LANE
        case "channel", "send":
            return _OF_A_SEND
        case "notifier", _:
            return (*_ANYWHERE, Fault.THROTTLED)
        case "bot", _:
            return _OF_A_BOT
    return _ANYWHERE


LEAVES_A_DOUBT = frozenset(
    {Fault.CRASH, Fault.CRASH_AFTER, Fault.STALL, Fault.UNKNOWN_SENT, Fault.GIVEN_UP, Fault.THROTTLED}
)
"""After these nobody may know any more whether a reply went out."""


def in_words(at_ms: int, step: Step, fault: Fault | None, answer: str, row: str) -> str:
    """One line of a history: when, who, what, what went wrong, what came of it, and the row after it."""
    wrong = f" {fault.value}" if fault is not None else ""
    what = f"{step.actor:<10} {step.call.port}.{step.call.method}{wrong}"
    return f"{at_ms / 1000:9.3f} s  {what:<58} {answer:<24} {row}"
