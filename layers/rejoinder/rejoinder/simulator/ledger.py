"""What really happened to one conversation, kept by the world itself: the row is what is checked against it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rejoinder.protocol.conversation import Lease, Message, Outbox, Row
from rejoinder.protocol.identity import reply_id
from rejoinder.simulator.stepping import Call
from rejoinder.simulator.words import worded

CLAIMS = ("claim", "resume")
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
        handled: a person's answer, or nobody's: nothing is to go out.
        calls: 1 where it calls a person, else 0.
        words: the messages by name, each with the words that it had.
    """

    reply_id: str
    messages: tuple[bytes, ...]
    parts: int
    sends: tuple[int, ...] = ()
    handled: bool = False
    calls: int = 0
    words: tuple[str, ...] = ()

    @property
    def went_out(self) -> bool:
        """Whether every part went out."""
        return bool(self.sends) and set(self.sends) >= set(range(self.parts))


@dataclass(frozen=True, slots=True)
class Moment:
    """The right to ask for patience, once it was taken.

    Attributes:
        reply_id: of the line.
        answered: the watermark at which it was taken: it tells bursts apart.
        sends: the index of each part that went out.
    """

    reply_id: str
    answered: int
    sends: tuple[int, ...] = ()


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
        moments: the rights to ask for patience that were taken.
        heard: what people said whose webhook was answered with 2xx.
        pauses: how often a person has taken the conversation, or the bot has called one.
        called: how often a person was called.
        amended: the edits that replaced a message's words, came in its place, or are messages of their own: under whose
            id, and of when.
        theirs: up to which value of `received` a person has answered by words that were kept alone, and the fencing
            token as of then: whoever claims later leaves those messages to them.
        words: of consent, in the order in which they counted: by which message, and whether it withdraws.
    """

    recorded: tuple[bytes, ...] = ()
    accepted: frozenset[bytes] = frozenset()
    said: tuple[Said, ...] = ()
    overflowed: int = 0
    told: int = 0
    buried: int = 0
    doubts: int = 0
    moments: tuple[Moment, ...] = ()
    heard: tuple[str, ...] = ()
    pauses: int = 0
    called: int = 0
    amended: frozenset[tuple[str, int]] = frozenset()
    theirs: tuple[int, int] = (0, 0)
    words: tuple[tuple[bytes, bool], ...] = ()

    def after(self, step: Step) -> "Ledger":
        """Enter what a step did to the row, or to the world outside where it was a send that went out."""
        if step.call.port == "channel":
            return self._sent(step.call) if step.call.method == "send" else self
        if step.call.port == "wake_ups":
            return replace(self, buried=self.buried + 1) if step.call.method == "bury" else self
        if step.call.port == "notifier":
            return replace(self, called=self.called + 1)
        if step.call.method == "put_turn":
            turn, row = step.call.args[1], step.before
            kept_alone = turn.delivery == "handled" and not turn.messages
            return replace(self, theirs=(turn.answered, row.lease_token)) if kept_alone else self
        return self if step.before is step.after else self._written(step)

    def _sent(self, call: Call) -> "Ledger":
        _, sent_id, index = call.args

        def with_send[T: (Said, Moment)](one: T) -> T:
            return replace(one, sends=tuple(sorted((*one.sends, index)))) if one.reply_id == sent_id else one

        return replace(self, said=tuple(map(with_send, self.said)), moments=tuple(map(with_send, self.moments)))

    def _written(self, step: Step) -> "Ledger":
        before, after, method = step.before, step.after, step.call.method
        if method == "record" and after.received > before.received:
            message = step.call.args[1]
            taken = {(message.provider_id, message.edited_at_ms)} if message.edited_at_ms else frozenset()
            recorded = replace(self, recorded=(*self.recorded, message.id), amended=self.amended | taken)
            return recorded.heeding(message)
        if method == "overflow":
            return replace(self, overflowed=self.overflowed + 1).heeding(step.call.args[1])
        if method == "amend":
            edit = step.call.args[2]
            return replace(self, amended=self.amended | {(edit.provider_id, edit.edited_at_ms)})
        outbox = covering(step)
        if outbox is not None:
            said = Said(
                outbox.reply_id,
                tuple(m.id for m in outbox.messages),
                len(outbox.parts),
                handled=outbox.handled,
                calls=1 if outbox.handoff else 0,
                words=tuple(map(worded, outbox.messages)),
            )
            told = step.call.args[2].overflowed if method in COMMITS else 0
            pauses = 0 if outbox.pause_until_ms is None else 1
            return replace(self, said=(*self.said, said), told=self.told + told, pauses=self.pauses + pauses)
        if method == "pause":
            return replace(self, pauses=self.pauses + 1)
        if method == "promise":
            moment = Moment(moment_id(*step.call.args[:2]), before.answered)
            return replace(self, moments=(*self.moments, moment))
        return self

    def heeding(self, message: Message) -> "Ledger":
        """Enter what a message says of consent; a word that was the last one already changes nothing."""
        word = (message.id, message.consent == "withdrawn")
        if not message.consent or self.words[-1:] == (word,):
            return self
        return replace(self, words=(*self.words, word))

    def moment(self, sent_id: str) -> Moment | None:
        """The right by which a line was sent that asks for patience; None where it was something else."""
        return next((moment for moment in self.moments if moment.reply_id == sent_id), None)

    def without_names(self, known: Callable[[str], bool]) -> "Ledger":
        """Forget the ids of replies that nobody knows any more, and the lines for bursts that are over."""
        at = len(self.covered())
        return replace(
            self,
            theirs=self.theirs if self.theirs[0] > at else (0, 0),
            said=tuple(
                said if known(said.reply_id) else replace(said, reply_id=f"#{place}")
                for place, said in enumerate(self.said)
            ),
            moments=tuple(
                moment if known(moment.reply_id) else replace(moment, reply_id=f"moment #{place}")
                for place, moment in enumerate(self.moments)
                if moment.answered == at or known(moment.reply_id)
            ),
        )

    def covered(self) -> tuple[bytes, ...]:
        """The messages that a committed reply covers, in the order of the commits."""
        return tuple(message for said in self.said for message in said.messages)


def moment_id(conversation_id: str, lease: Lease) -> str:
    """The id of the line by which a holder asks for patience."""
    return reply_id(conversation_id, f"a moment, {lease.owner}")


def granted(step: Step) -> bool:
    """Whether the step gave somebody a lease."""
    return step.call.method in CLAIMS and step.after.lease_token > step.before.lease_token


def committed(step: Step) -> bool:
    """Whether the step committed a reply."""
    return step.call.method in COMMITS and step.before is not step.after


def covering(step: Step) -> Outbox | None:
    """What the step has put into the outbox: a reply, or a person's answer; None where it did nothing of the kind."""
    if step.before is step.after or step.call.method not in (*COMMITS, "settle"):
        return None
    outbox: Outbox = step.call.args[2 if step.call.method == "settle" else 3]
    return outbox


def sent(step: Step) -> bool:
    """Whether the step brought a part of a reply to somebody."""
    return step.call.port == "channel" and step.call.method == "send"


def words_said_at_ms(step: Step) -> int | None:
    """When a person said what has settled messages; None where a flood did, a `resume`, or nobody."""
    outbox = covering(step)
    if outbox is None or not outbox.handled:
        return None
    said_at_ms, now_ms = outbox.committed_at_ms, step.call.args[-1]
    return None if step.call.method == "settle" and said_at_ms == now_ms else said_at_ms
