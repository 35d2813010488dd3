"""Everything that can happen to one conversation whose bot books once a turn, and to the other side that it books at.

From each state: somebody's next call is performed, somebody dies, a wake-up or a message comes, time passes. What is
taken for granted, and is a fault of its own here (`late`): who has set to work on a booking is done, or cut off, within
a lease of its begin.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from rejoinder.ports import Fault, Transient, UnknownOutcome
from rejoinder.protocol.conversation import Message, Row
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.timing import CLOCK_MARGIN_MS
from rejoinder.protocol.transitions import mine
from rejoinder.protocol.wakeups import ForReceived, WakeUp, for_message
from rejoinder.run import run
from rejoinder.simulator.booking import (
    CONVERSATION,
    Acting,
    Answer,
    Booker,
    Cast,
    Generator,
    Rules,
)
from rejoinder.simulator.stepping import Call
from rejoinder.stores.memory import Item

START_MS = 1_000_000_000_000
PAUSE_MS = 20_000
EFFECT_WRITES = frozenset({"begin_effect", "end_effect", "withdraw_effect"})


@dataclass(frozen=True, slots=True)
class Faults:
    """How often each may happen, at any step.

    Attributes:
        messages: more of them, beside the first.
        crashes: an invocation ends between two calls, and its bot with it.
        expiries: time passes beyond the lease of somebody who is still running.
        slow: a bot is not done at its deadline, and goes on unheard.
        unknown: the other side does not answer: it has booked, or it has not.
        refusals: the other side says for certain that it did not book, and that it may later.
        lost: a write about an effect is applied, its answer lost, and the SDK repeats it.
        copies: a write about an effect is applied, and a delayed copy of it arrives at any later time.
        throttles: a write about an effect is refused, or applied and not answered.
        late: a booking is under way for longer than a lease.
        pauses: a person takes the conversation for a while. (No fault, nor is the next.)
        joins: the bot takes what has come since into its turn, before it books.
    """

    messages: int = 0
    crashes: int = 0
    expiries: int = 0
    slow: int = 0
    unknown: int = 0
    refusals: int = 0
    lost: int = 0
    copies: int = 0
    throttles: int = 0
    late: int = 0
    pauses: int = 0
    joins: int = 0

    @property
    def harmful(self) -> int:
        """How many there are of those that do harm."""
        total: int = sum(getattr(self, each.name) for each in fields(self))
        return total - self.messages - self.pauses - self.joins

    def less(self, fault: str) -> "Faults":
        """The faults that are left when one has happened."""
        return replace(self, **{fault: getattr(self, fault) - 1})


class Deed(NamedTuple):
    """A booking that was really made: for which turn, by its first message; and by whom."""

    first: bytes
    by: str


class State(NamedTuple):
    """A situation.

    Attributes:
        acting: generators, and the bots that they have begun.
        ended: what a bot has ended with, until its generator has taken it.
        copies: delayed copies of writes.
        doomed: the bots that began to look after their reply could not be committed any more.
    """

    now_ms: int
    row: Row
    items: tuple[tuple[tuple[str, str], Item], ...]
    acting: tuple[Acting, ...]
    ended: tuple[tuple[str, Any], ...]
    armed: tuple[WakeUp, ...]
    copies: tuple[Call, ...]
    deeds: tuple[Deed, ...]
    said: tuple[str, ...]
    doomed: tuple[str, ...]
    begun: int
    left: Faults


@dataclass(slots=True)
class World:
    """Everything that can happen, under some rules and with some faults."""

    rules: Rules
    faults: Faults
    cast: Cast = field(init=False)

    def __post_init__(self) -> None:
        self.cast = Cast(self.rules)

    def beginning(self) -> State:
        """The first message has been recorded, and its wake-up armed."""
        return self.message(State(START_MS, Row(), (), (), (), (), (), (), (), (), 0, self.faults))

    def message(self, state: State) -> State:
        """Another message comes."""
        name = f"m{state.row.received + 1}"
        store = self.rules.store(self.rules.timing, {CONVERSATION: state.row})
        message = Message(message_id(name), name, "ana", state.now_ms, state.now_ms, text=name)
        run(store.record(CONVERSATION, message, state.now_ms))
        wake_up = for_message(CONVERSATION, message.id, state.now_ms, self.rules.timing)
        return state._replace(row=store.rows[CONVERSATION], armed=in_order(*state.armed, wake_up))

    def paused(self, state: State) -> State:
        """A person takes the conversation; the wake-up for the pause's end was armed before."""
        until_ms = state.now_ms + PAUSE_MS
        store = self.rules.store(self.rules.timing, {CONVERSATION: state.row})
        run(store.pause(CONVERSATION, until_ms, state.now_ms))
        wake_up = WakeUp(CONVERSATION, ForReceived(0), state.now_ms, until_ms)
        return state._replace(row=store.rows[CONVERSATION], armed=in_order(*state.armed, wake_up))

    def following(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield each thing that can happen next, and the state after it."""
        for acting in state.acting:
            rest = state._replace(acting=tuple(other for other in state.acting if other is not acting))
            yield from self.steps(rest, acting)
        generators = [acting for acting in state.acting if isinstance(acting, Generator)]
        if state.left.crashes:
            for name in sorted({acting.name for acting in state.acting if len(acting.log) > 1}):
                yield f"{name} crashes", self.crashed(state, name)
        for copy in state.copies:
            after, _ = self.stored(state._replace(copies=tuple(c for c in state.copies if c is not copy)), copy)
            yield f"a copy of {copy.method} arrives", after
        if not state.row.owes and not generators:
            return  # at rest: nobody but a bot that nobody hears can do anything more
        if state.left.messages:
            yield "a message comes", self.message(state._replace(left=state.left.less("messages")))
        if state.left.pauses:
            yield "a person pauses", self.paused(state._replace(left=state.left.less("pauses")))
        yield from self.wake_ups(state)
        yield from self.later(state, running=bool(generators))

    def crashed(self, state: State, name: str) -> State:
        """An invocation is gone, and its bot. The queue brings its wake-up again, if its lease's expiry does not."""
        dead = [acting for acting in state.acting if acting.name == name]
        again = [
            replace(acting.wake_up, due_at_ms=state.now_ms + self.rules.timing.visibility_ms)
            for acting in dead
            if isinstance(acting, Generator) and state.row.lease_owner != name
        ]
        return state._replace(
            acting=tuple(acting for acting in state.acting if acting.name != name),
            armed=in_order(*state.armed, *again),
            left=state.left.less("crashes"),
        )

    def wake_ups(self, state: State) -> Iterator[tuple[str, State]]:
        """A wake-up comes once it is due."""
        for index, wake_up in enumerate(state.armed):
            if wake_up.due_at_ms <= state.now_ms:
                name = f"g{state.begun + 1}"
                came = state._replace(armed=state.armed[:index] + state.armed[index + 1 :], begun=state.begun + 1)
                yield f"{name} begins", self.moved_on(came, Generator(name, wake_up, (Answer(state.now_ms),)))
                return  # of several, the order is no matter: the row decides

    def later(self, state: State, *, running: bool) -> Iterator[tuple[str, State]]:
        """Time passes: to the next wake-up while nobody runs, or beyond the lease of somebody who does."""
        dues = [wake_up.due_at_ms for wake_up in state.armed if wake_up.due_at_ms > state.now_ms]
        if not running and dues and min(dues) == min(wake_up.due_at_ms for wake_up in state.armed):
            yield from self.passed(state, min(dues))
        expires_at_ms = state.row.lease_expires_at_ms
        if running and state.left.expiries and expires_at_ms is not None and expires_at_ms > state.now_ms:
            yield from self.passed(state._replace(left=state.left.less("expiries")), expires_at_ms + CLOCK_MARGIN_MS)

    def passed(self, state: State, now_ms: int) -> Iterator[tuple[str, State]]:
        """The same at a later time; a booking that is under way for longer than a lease is a fault."""
        late = any(
            isinstance(acting, Booker)
            and (call := self.cast.build(acting).call) is not None
            and call.method == "book"
            and acting.log[-1].now_ms + self.rules.timing.lease_ms <= now_ms
            for acting in state.acting
        )
        if late and not state.left.late:
            return
        left = state.left.less("late") if late else state.left
        yield f"{now_ms - state.now_ms} ms pass", state._replace(now_ms=now_ms, left=left)

    # --- one step of somebody ---

    def steps(self, rest: State, acting: Acting) -> Iterator[tuple[str, State]]:
        """Everything that the call somebody waits for can lead to; `rest` is the state without them."""
        call = self.cast.build(acting).call
        assert call is not None  # who has ended acts no more
        said = f"{acting.name} {call.method}"
        match call.port:
            case "store":
                yield from self.store_steps(rest, acting, call, said)
            case "work":
                yield from self.waiting(rest, acting, call.args[0], said)
            case "channel":
                yield said, self.answered(rest._replace(said=(*rest.said, call.args[0])), acting, None)
            case _:
                yield from self.other_side(rest, acting, call, said)

    def store_steps(self, rest: State, acting: Acting, call: Call, said: str) -> Iterator[tuple[str, State]]:
        """A call of the store, and what can befall a write about an effect."""
        after, answer = self.stored(rest, call)
        yield f"{said}: {type(answer).__name__}", self.answered(after, acting, answer)
        if call.method not in EFFECT_WRITES:
            return
        if rest.left.lost:
            again, answer_again = self.stored(after._replace(left=rest.left.less("lost")), call)
            yield f"{said} twice: {type(answer_again).__name__}", self.answered(again, acting, answer_again)
        if rest.left.copies:
            copied = after._replace(copies=(*after.copies, call), left=rest.left.less("copies"))
            yield f"{said}, and a copy is under way", self.answered(copied, acting, answer)
        if rest.left.throttles:
            for applied, how in ((rest, "throttled"), (after, "unanswered")):
                tried = applied._replace(left=rest.left.less("throttles"))
                yield f"{said}: {how}", self.answered(tried, acting, Transient("throttled"))

    def stored(self, state: State, call: Call) -> tuple[State, Any]:
        """The state after a call of the store, and its answer."""
        store = self.rules.store(self.rules.timing, {CONVERSATION: state.row}, dict(state.items))
        answer = run(call.perform(store))
        items = tuple(sorted(store.items.items(), key=lambda item: item[0]))
        return state._replace(row=store.rows[CONVERSATION], items=items), answer

    def waiting(self, rest: State, acting: Acting, until_ms: int, said: str) -> Iterator[tuple[str, State]]:
        """A generator waits for its bot: until it has ended, or its deadline is over."""
        results = [result for name, result in rest.ended if name == acting.name]
        if results:
            taken = rest._replace(ended=tuple(other for other in rest.ended if other[0] != acting.name))
            yield f"{said}: {type(results[0]).__name__}", self.answered(taken, acting, results[0])
        elif until_ms <= rest.now_ms:
            yield f"{said}: its time is over", self.answered(rest, acting, None)
        elif rest.left.slow:
            for _, late in self.passed(rest._replace(left=rest.left.less("slow")), until_ms):
                yield f"{said}: its time is over", self.answered(late, acting, None)

    def other_side(self, rest: State, acting: Acting, call: Call, said: str) -> Iterator[tuple[str, State]]:
        """The bot thinks, books, or asks whether it was booked."""
        assert isinstance(acting, Booker)
        first = acting.messages[0].id
        numbers = [number for number, deed in enumerate(rest.deeds, 1) if deed.first == first]
        match call.method:
            case "think":
                doomed = (*rest.doomed, acting.name) if self.is_doomed(rest, acting) else rest.doomed
                yield said, self.answered(rest._replace(doomed=doomed), acting, ())
                newer = rest.row.pending[len(acting.messages) :]
                if newer and rest.left.joins and self.is_mine(rest.row, acting):
                    both = rest._replace(left=rest.left.less("joins"))
                    if rest.row.paused_until_ms is not None:
                        both = both._replace(doomed=(*rest.doomed, acting.name))
                    yield f"{said} of {len(newer)} newer messages too", self.answered(both, acting, newer)
            case "check":
                yield said, self.answered(rest, acting, numbers[0] if numbers else None)
            case "book":
                booked = rest._replace(deeds=(*rest.deeds, Deed(first, acting.name)))
                yield said, self.answered(booked, acting, len(booked.deeds))
                if rest.left.unknown:
                    for after, how in ((booked, "booked"), (rest, "not booked")):
                        unknown = after._replace(left=rest.left.less("unknown"))
                        yield f"{said}: no answer ({how})", self.answered(unknown, acting, UnknownOutcome("no answer"))
                if rest.left.refusals:
                    refused = rest._replace(left=rest.left.less("refusals"))
                    yield f"{said}: refused", self.answered(refused, acting, Transient("busy"))

    def is_doomed(self, state: State, booker: Booker) -> bool:
        """Whether a bot's reply cannot be committed any more."""
        row, grant = state.row, booker.grant
        outdated = grant.received is not None and row.received > grant.received
        return not self.is_mine(row, booker) or outdated or row.paused_until_ms is not None

    def is_mine(self, row: Row, booker: Booker) -> bool:
        """Whether a bot's generator holds the row."""
        return mine(row, booker.grant.lease)

    def answered(self, state: State, acting: Acting, answer: Any) -> State:
        """The state once somebody was given an answer, or a fault in its place, and has gone on to the next call."""
        fault = answer if isinstance(answer, Fault) else None
        stopped = isinstance(acting, Booker) and (acting.cancelled or state.now_ms >= acting.deadline_ms)
        entry = Answer(state.now_ms, None if fault else answer, fault, stopped)
        return self.moved_on(state, acting._replace(log=(*acting.log, entry)))

    def moved_on(self, state: State, acting: Acting) -> State:
        """The state with somebody in it where its last answer leads."""
        built = self.cast.build(acting)
        others = state.acting
        if built.cancelled:
            others = tuple(
                other._replace(cancelled=True) if isinstance(other, Booker) and other.name == acting.name else other
                for other in others
            )
        if built.begun is not None:
            others = (*others, built.begun)
        ended = state.ended
        if built.call is not None:
            others = (*others, acting)
        elif isinstance(acting, Booker) and any(other.name == acting.name for other in others):
            ended = (*ended, (acting.name, built.result))
        return state._replace(
            acting=tuple(sorted(others, key=lambda other: (other.name, type(other).__name__))),
            ended=ended,
            armed=in_order(*state.armed, *built.armed),
        )


def in_order(*wake_ups: WakeUp) -> tuple[WakeUp, ...]:
    """Wake-ups by when they are due."""
    return tuple(sorted(wake_ups, key=lambda wake_up: (wake_up.due_at_ms, wake_up.attempt, str(wake_up.armed_for))))
