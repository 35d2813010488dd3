"""What a random run keeps of each conversation, and of each invocation in mid-air."""

from dataclasses import dataclass, field
from typing import Any

from rejoinder.ports import BotFailed
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.outcomes import Answered
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.simulator.answers import Seen
from rejoinder.simulator.checkers import Broken
from rejoinder.simulator.ledger import Ledger
from rejoinder.simulator.plan import Delivery, Plan
from rejoinder.simulator.stepping import Actor, Call


class BrokenRun(AssertionError):  # noqa: N818  # it is what a test fails with
    """A promise was broken in a conversation of a random run."""

    def __init__(self, plan: Plan, conversation: int, broken: Broken) -> None:
        super().__init__(f"conversation {conversation}: {broken}\nagain: python -m rejoinder.simulator.replay {plan}")
        self.plan = plan
        self.conversation = conversation
        self.broken = broken


@dataclass(slots=True, eq=False)
class Running:
    """One invocation in mid-air.

    Attributes:
        number: of the invocations of its conversation; choices about it are drawn by that.
        woken_by: what a generator was begun on; None for an ingest.
        message: the number of the message that an ingest handles.
        skew_ms: how far its clock is off.
        until_ms: its function's time-out.
        steps: how many calls it has made.
        done_at_ms: when its bot will have answered; None: never.
        seen: what its bot makes its answer from.
        way: which of the bot's ways it goes, drawn from 100.
        told: the row that it was given since it last sent anything.
    """

    actor: Actor
    conversation: int
    number: int
    skew_ms: int
    until_ms: int
    woken_by: WakeUp | None = None
    message: int = 0
    delivery: Delivery | None = None
    steps: int = 0
    done_at_ms: int | None = 0
    thought: BotFailed | None = None
    over: bool = False
    seen: Seen | None = None
    way: int = 0
    told: Row | None = None

    def hears(self, call: Call, answer: Any) -> None:
        """Give its call an answer, and keep in mind what that tells of the row."""
        if call.method == "send":
            self.told = None
        elif isinstance(answer, Answered):
            self.told = answer.row
        self.actor.answer(answer)


@dataclass(slots=True)
class Talk:
    """One conversation, and the truth about it; `latest_due_ms` is that of its wake-ups, of all that were armed."""

    conversation_id: str
    can_tell: bool
    ledger: Ledger = field(default_factory=Ledger)
    invocations: int = 0
    faults: int = 0
    latest_due_ms: int = 0
    fired: list[tuple[int, int, int]] = field(default_factory=list)
