"""What really happened to one conversation, kept by the world itself: the row is what is checked against it."""

from dataclasses import dataclass, replace
from typing import Any

from rejoinder.protocol.conversation import Row
from rejoinder.simulator.stepping import Call

COMMITS = ("commit", "commit_partial")


@dataclass(frozen=True, slots=True)
class Step:
    """One call that was performed, with everything it did.

    Attributes:
        actor: who made it, for histories.
        call: the call.
        answer: what it answered, whether or not its caller ever heard it.
        before: the row before it.
        after: the row after it.
        item_before: what was in the item that it writes, if it writes one.
        item_after: what is in it now.
    """

    actor: str
    call: Call
    answer: Any
    before: Row
    after: Row
    item_before: Any = None
    item_after: Any = None


@dataclass(frozen=True, slots=True)
class Said:
    """A reply that was committed.

    Attributes:
        reply_id: its idempotency key.
        messages: what it covers.
        parts: how many the outbox holds; 0 where it is long, and stored beside the row.
        sends: the index of each part that went out, sorted; one that went out twice is there twice.
    """

    reply_id: str
    messages: tuple[bytes, ...]
    parts: int
    sends: tuple[int, ...] = ()

    @property
    def went_out(self) -> bool:
        """Whether every part went out."""
        return bool(self.sends) and set(self.sends) >= set(range(self.parts))


@dataclass(frozen=True, slots=True)
class Ledger:
    """The truth about one conversation.

    Attributes:
        recorded: messages in the order in which they were counted.
        accepted: messages whose webhook was answered with 2xx.
        said: committed replies, in order.
        overflowed: messages that were counted as refused.
        told: refused messages that a committed turn was told of.
        buried: wake-ups in the dead-letter queue.
        doubts: events after which nobody can know whether a reply went out: a crash, an expired lease, an outcome
            that the channel left open, a store that failed in mid-delivery.
    """

    recorded: tuple[bytes, ...] = ()
    accepted: frozenset[bytes] = frozenset()
    said: tuple[Said, ...] = ()
    overflowed: int = 0
    told: int = 0
    buried: int = 0
    doubts: int = 0

    def after(self, step: Step) -> "Ledger":
        """Enter what a step did to the row, or to the world outside where it was a send that went out."""
        if step.call.port == "channel":
            return self._sent(step.call) if step.call.method == "send" else self
        if step.call.port == "wake_ups":
            return replace(self, buried=self.buried + 1) if step.call.method == "bury" else self
        return self if step.before is step.after else self._written(step)

    def _sent(self, call: Call) -> "Ledger":
        _, reply_id, index = call.args
        return replace(
            self,
            said=tuple(
                replace(said, sends=tuple(sorted((*said.sends, index)))) if said.reply_id == reply_id else said
                for said in self.said
            ),
        )

    def _written(self, step: Step) -> "Ledger":
        before, after, method = step.before, step.after, step.call.method
        if method == "record" and after.received > before.received:
            return replace(self, recorded=(*self.recorded, step.call.args[1].id))
        if method == "overflow":
            return replace(self, overflowed=self.overflowed + 1)
        if method in COMMITS:
            _, _, claimed, outbox, _ = step.call.args
            said = Said(outbox.reply_id, tuple(m.id for m in outbox.messages), len(outbox.parts))
            return replace(self, said=(*self.said, said), told=self.told + claimed.overflowed)
        return self

    def covered(self) -> tuple[bytes, ...]:
        """The messages that a committed reply covers, in the order of the commits."""
        return tuple(message for said in self.said for message in said.messages)
