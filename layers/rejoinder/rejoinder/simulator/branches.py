"""Everything that can happen next in a state of an exploration."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rejoinder.protocol.identity import message_id
from rejoinder.simulator.bound import Bound
from rejoinder.simulator.checkers import (
    Broken,
    accepted_means_recorded,
    answered_in_time,
    at_rest,
    ends_well,
    longest_wait_ms,
)
from rejoinder.simulator.moves import Moves
from rejoinder.simulator.shifting import NOW_MS
from rejoinder.simulator.stage import Stage
from rejoinder.simulator.state import (
    AT_A_CALL,
    BOT_FAILURES,
    CRASHES,
    DOUBLES,
    EARLY,
    EXPIRIES,
    JOINS,
    LATE,
    LOST,
    REDELIVERIES,
    REFUSALS,
    REPEATS,
    SLOW,
    STALLS,
    THROTTLES,
    UNKNOWNS,
    State,
    spent,
    with_running,
)
from rejoinder.simulator.tables import READS
from rejoinder.simulator.words import answer_in_words, wake_up_in_words


class BrokenAt(Exception):  # noqa: N818  # it names where, and is no error of the explorer's
    """A promise was broken on the way to the next state."""

    def __init__(self, broken: Broken) -> None:
        super().__init__(str(broken))
        self.broken = broken


@dataclass(slots=True)
class Branches:
    """What can happen, under a bound.

    Attributes:
        wait_ms: no message may wait for longer.
        describe: put everything that happens into words.
    """

    bound: Bound
    stage: Stage
    moves: Moves = field(init=False)
    wait_ms: int = field(init=False)
    describe: bool = False

    def __post_init__(self) -> None:
        self.wait_ms = longest_wait_ms(self.bound.timing, sum(self.bound.faults))
        self.moves = Moves(self.bound, self.stage, self.wait_ms + 1)

    def beginning(self) -> State:
        """Nothing has happened yet."""
        return State(self.moves.no_row, self.moves.no_items, (), (), (), 0, (), self.bound.faults, self.moves.no_ledger)

    def following(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield each thing that can happen in a state, and the state after it.

        Raises:
            BrokenAt: one of them breaks a promise.
        """
        if not state.running and not state.armed and not state.delayed:
            self.check_rest(state)
        for said, after in self.choices(state):
            yield self.until_a_choice(said, after)

    def until_a_choice(self, said: str, state: State) -> tuple[str, State]:
        """Go on while there is but one thing that can happen: such states are passed through, and not kept."""
        while (first := self.moves.first(state.running)) is not None and not any(state.left[f] for f in AT_A_CALL):
            ((more, state),) = self.acts(state, first)
            said = f"{said}; {more}" if self.describe else said
        return said, state

    def choices(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield each single thing that can happen."""
        first = self.moves.first(state.running)
        if first is not None:
            yield from self.acts(state, first)
            return
        yield from self.arrivals(state)
        for place, number in enumerate(state.running):
            if not place or state.running[place - 1] != number:
                yield from self.acts(state, place)
        for index, copy in enumerate(state.delayed):
            rest = state._replace(delayed=state.delayed[:index] + state.delayed[index + 1 :])
            yield self.performed(rest, copy, "a delayed copy")
        yield from self.wake_ups(state)
        yield from self.later(state)

    def acts(self, state: State, place: int) -> Iterator[tuple[str, State]]:
        """One invocation's next call is performed, or the invocation dies before it."""
        number = state.running[place]
        rest = state._replace(running=state.running[:place] + state.running[place + 1 :])
        yield from self.steps(state, rest, number)
        if (
            state.left[CRASHES] and len(self.moves.programs[number].log) > 1
        ):  # who did nothing yet may as well come later
            yield self.crashed(spent(rest, CRASHES), number)

    def check_rest(self, state: State) -> None:
        """At rest, everything that was promised is done."""
        moves = self.moves
        self.moves.last_said = "at rest"
        key = (state.row, state.items, state.ledger)
        if key not in moves.rested:
            moves.rested.add(key)
            row, items, ledger = moves.rows[state.row], moves.items[state.items], moves.ledgers[state.ledger]
            may_bury = bool(self.bound.throttles)
            broken = at_rest(row, dict(items), moves.conversation_id, ledger, may_bury=may_bury)
            if broken is not None:
                raise BrokenAt(broken)

    def arrivals(self, state: State) -> Iterator[tuple[str, State]]:
        """The next message comes; a webhook that failed, or one that did not, comes again."""
        if state.arrived < self.bound.messages:
            name = state.arrived
            yield self.said("m{} comes", name + 1), self.ingested(state._replace(arrived=name + 1), name)
        for index, name in enumerate(state.failed):
            rest = state._replace(failed=state.failed[:index] + state.failed[index + 1 :])
            yield self.said("m{} comes again after a failure", name + 1), self.ingested(rest, name)
        if state.left[REDELIVERIES]:
            for name in range(state.arrived):
                yield self.said("m{} is redelivered", name + 1), self.ingested(spent(state, REDELIVERIES), name)

    def ingested(self, state: State, name: int) -> State:
        """The state with another ingest in mid-air."""
        return with_running(state, self.moves.ingest(name))

    def steps(self, state: State, rest: State, number: int) -> Iterator[tuple[str, State]]:
        """Everything that the next call of one invocation can lead to."""
        moves = self.moves
        program = moves.programs[number]
        call = program.call
        assert call is not None
        match call.port:
            case "store":
                said, after = self.performed(rest, moves.call_of[number], program.beginning.owner or "ingest")
                answer = moves.last_answer
                yield said, self.answered(after, number, answer)
                if call.method not in READS:
                    if state.left[LOST]:
                        self.check_repeat(after, moves.call_of[number], said)
                        yield said + " (answer lost)", with_running(spent(after, LOST), moves.unheard(number))
                    if state.left[REPEATS]:
                        copied = spent(after, REPEATS)
                        delayed = tuple(sorted((*copied.delayed, moves.call_of[number])))
                        yield (
                            said + " (a copy is under way)",
                            self.answered(copied._replace(delayed=delayed), number, answer),
                        )
                    if state.left[THROTTLES]:
                        yield said + " (given up)", self.answered(spent(after, THROTTLES), number, moves.throttled)
                if state.left[THROTTLES]:
                    yield (
                        self.said("{} throttled", call.method),
                        self.answered(spent(rest, THROTTLES), number, moves.throttled),
                    )
            case "wake_ups":
                after = self.armed(rest, number)
                yield (
                    self.said("{} {}s", program.beginning.owner or "ingest", call.method),
                    self.answered(after, number, moves.nothing),
                )
                if state.left[THROTTLES]:
                    yield (
                        self.said("{} throttled", call.method),
                        self.answered(spent(rest, THROTTLES), number, moves.throttled),
                    )
            case "work":
                yield from self.bot(state, rest, number)
            case "channel":
                yield from self.channel(state, rest, number)
            case other:
                raise AssertionError(f"no rule for a call on {other}")

    def check_repeat(self, state: State, call: int, said: str) -> None:
        """A write whose answer was lost is recognised when it comes again."""
        broken = self.moves.recognised(state.row, state.items, state.ledger, call)
        if broken is not None:
            self.moves.last_said = said + " (answer lost), and again"
            raise BrokenAt(broken)

    def bot(self, state: State, rest: State, number: int) -> Iterator[tuple[str, State]]:
        """The bot answers, fails, or is still running at the time until which its caller waits."""
        moves = self.moves
        owner = moves.programs[number].beginning.owner
        call = moves.programs[number].call
        assert call is not None
        yield f"{owner}'s bot answers", self.answered(rest, number, moves.reply_to(call))
        joined = moves.reply_with_newer(call, state.row) if state.left[JOINS] else None
        if joined is not None:
            yield f"{owner}'s bot answers newer messages too", self.answered(spent(rest, JOINS), number, joined)
        if state.left[BOT_FAILURES]:
            yield f"{owner}'s bot fails", self.answered(spent(rest, BOT_FAILURES), number, moves.bot_failed)
        if state.left[SLOW] and call.args[0] <= NOW_MS:
            yield f"{owner}'s bot is slow", self.answered(spent(rest, SLOW), number, moves.nothing)

    def channel(self, state: State, rest: State, number: int) -> Iterator[tuple[str, State]]:
        """The reply goes out, is refused for now or for good, or nobody knows."""
        moves = self.moves
        owner = moves.programs[number].beginning.owner
        said, out = self.performed(rest, moves.call_of[number], owner)
        yield said, self.answered(out, number, moves.nothing)
        if state.left[REFUSALS]:
            refused = spent(rest, REFUSALS)
            yield f"{owner} sends: not now", self.answered(refused, number, moves.not_now)
            yield f"{owner} sends: never", self.answered(refused, number, moves.never)
        if state.left[UNKNOWNS]:
            for doubtful, what in ((out, "sent"), (rest, "not sent")):
                after = spent(doubted(self.moves, doubtful), UNKNOWNS)
                yield f"{owner} sends: time-out ({what})", self.answered(after, number, moves.unknown)

    def performed(self, state: State, call: int, who: str) -> tuple[str, State]:
        """The state after a store call or a send was performed and checked; its answer is in `moves.last_answer`."""
        moves = self.moves
        if self.describe:
            made = moves.calls[call]
            moves.last_said = f"{who} {made.method}" + (
                f" {made.args[1].provider_id}" if made.method == "record" else ""
            )
        row, items, ledger, broken = moves.perform(state.row, state.items, state.ledger, call)
        if broken is not None:
            raise BrokenAt(broken)
        said = f"{moves.last_said} -> {answer_in_words(moves.answers[moves.last_answer])}" if self.describe else ""
        armed = state.armed
        if row != state.row:
            armed = tuple(sorted([moves.as_seen(number, row) for number in armed]))
        return said, state._replace(row=row, items=items, ledger=ledger, armed=armed)

    def answered(self, state: State, number: int, answer: int) -> State:
        """The state with an invocation that was given an answer: it runs on, or has ended."""
        moves = self.moves
        following = moves.answer(number, answer)
        program = moves.programs[following]
        if program.call is not None:
            return with_running(state, following)
        broken = ends_well(program.failure)
        if broken is not None:
            moves.last_said += f"; {program.beginning.owner or 'ingest'} fails"
            raise BrokenAt(broken)
        if isinstance(program.beginning.argument, tuple):
            return self.webhook_ended(state, following)
        state = state._replace(ledger=moves.settled_ledger(state))
        if program.failure is not None:
            return self.with_armed(state, moves.returned(following))
        return state

    def webhook_ended(self, state: State, number: int) -> State:
        """Keep the webhook's promise in mind, or let the provider try again."""
        moves = self.moves
        program = moves.programs[number]
        name = int(program.beginning.argument[0][1:]) - 1  # type: ignore[index]
        if program.failure is not None or program.result.status >= 500:
            return state._replace(failed=tuple(sorted((*state.failed, name))))
        broken = accepted_means_recorded(
            message_id(f"m{name + 1}"), moves.ledgers[state.ledger], refused="rejected" in program.result.body
        )
        if broken is not None:
            moves.last_said = f"m{name + 1}'s webhook is answered with {program.result.status}"
            raise BrokenAt(broken)
        return state

    def armed(self, state: State, number: int) -> State:
        """The state after a wake-up was armed or buried."""
        moves = self.moves
        call = moves.programs[number].call
        assert call is not None
        if call.method == "bury":
            return self.performed(state, moves.call_of[number], "generator")[1]
        return self.with_armed(state, moves.wake_up(call.args[0]))

    def with_armed(self, state: State, number: int) -> State:
        """The state with another wake-up armed."""
        return state._replace(armed=tuple(sorted((*state.armed, self.moves.as_seen(number, state.row)))))

    def crashed(self, state: State, number: int) -> tuple[str, State]:
        """An invocation is gone: the queue brings its wake-up again, or the provider may bring its webhook again."""
        moves = self.moves
        program = moves.programs[number]
        state = doubted(self.moves, state)
        if isinstance(program.beginning.argument, tuple):
            name = int(program.beginning.argument[0][1:]) - 1
            return self.said("m{}'s ingest crashes", name + 1), state._replace(
                failed=tuple(sorted((*state.failed, name)))
            )
        return self.said("{} crashes", program.beginning.owner), self.with_armed(
            state._replace(ledger=moves.settled_ledger(state)), moves.returned(number)
        )

    def wake_ups(self, state: State) -> Iterator[tuple[str, State]]:
        """A wake-up comes: when it is due, or early; once, or twice."""
        moves = self.moves
        for index, number in enumerate(state.armed):
            if index and state.armed[index - 1] == number:
                continue
            wake_up = moves.woken[number]
            ready = state
            if wake_up.due_at_ms > NOW_MS:
                if not state.left[EARLY]:
                    continue
                ready = spent(state, EARLY)
            owner = moves.fresh_owner(ready, wake_up)
            generator = moves.generate(number, owner)
            said = self.said("{} begins on {}", owner, wake_up_in_words(moves.woken[number])) if self.describe else ""
            yield said, with_running(ready._replace(armed=state.armed[:index] + state.armed[index + 1 :]), generator)
            if state.left[DOUBLES]:
                yield said + " (which will come again)", with_running(spent(ready, DOUBLES), generator)

    # --- time ---

    def later(self, state: State) -> Iterator[tuple[str, State]]:
        """Time passes to the next instant at which anything differs."""
        moves = self.moves
        dues = [due for due in (moves.woken[number].due_at_ms for number in state.armed) if due > NOW_MS]
        waits = [until for until in map(moves.waits_until, state.running) if until > NOW_MS] if state.left[SLOW] else []
        overdue = len(dues) < len(state.armed)
        target = min((*dues, *waits), default=None)
        ends_at_ms = min((moves.ends_at_ms(number, state.row) for number in state.running), default=None)
        stalls = moves.stalls(state)
        if target is not None and (not overdue or state.left[LATE]) and (not stalls or state.left[STALLS]):
            onward = spent(state, LATE) if overdue else state
            onward = spent(onward, STALLS) if stalls else onward
            half = NOW_MS + self.stage.timing.debounce_ms // 2
            if state.arrived < self.bound.messages and target > half and moves.burst_is_young(state):
                yield self.moved(onward, half)
            if ends_at_ms is None or target < ends_at_ms:
                yield self.moved(onward, target)
        if state.left[EXPIRIES]:
            expires_at_ms = moves.expires_at_ms(state)
            if expires_at_ms is not None:
                yield self.moved(doubted(self.moves, spent(state, EXPIRIES)), expires_at_ms)

    def moved(self, state: State, to_ms: int) -> tuple[str, State]:
        """The state at a later time, with nobody's message waiting for too long."""
        moves = self.moves
        by_ms = NOW_MS - to_ms
        row = moves.moved_row(state.row, by_ms)
        broken = answered_in_time(moves.rows[row], NOW_MS, self.wait_ms)
        if broken is not None:
            moves.last_said = f"{-by_ms} ms pass"
            raise BrokenAt(broken)
        return self.said("{} ms pass", -by_ms), state._replace(
            row=row,
            running=tuple(sorted([moves.moved_program(number, by_ms) for number in state.running])),
            armed=tuple(sorted([moves.moved_wake_up(number, by_ms) for number in state.armed])),
            delayed=tuple(sorted([moves.moved_call(number, by_ms) for number in state.delayed])),
        )

    def said(self, form: str, *words: Any) -> str:
        """Put something into words, where words are wanted."""
        if not self.describe:
            return ""
        self.moves.last_said = form.format(*words)
        return self.moves.last_said


def doubted(moves: Moves, state: State) -> State:
    """The state after something that leaves a send in doubt."""
    return state._replace(ledger=moves.doubted(state.ledger))
