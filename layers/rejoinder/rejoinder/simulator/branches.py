"""Everything that can happen next in a state of an exploration."""

from collections.abc import Iterator

from rejoinder.simulator import answers, desk
from rejoinder.simulator.afterwards import Afterwards, BrokenAt, doubted
from rejoinder.simulator.checkers import (
    answered_in_time,
    at_rest,
)
from rejoinder.simulator.shifting import NOW_MS
from rejoinder.simulator.state import (
    AT_A_CALL,
    BOT_FAILURES,
    CRASHES,
    DOUBLES,
    EARLY,
    EDITS,
    EXPIRIES,
    HANDOFFS,
    JOINS,
    LATE,
    LOST,
    OPERATORS,
    OPTINS,
    OPTOUTS,
    PAUSES,
    REDELIVERIES,
    REFUSALS,
    REPEATS,
    RESTARTS,
    SLOW,
    STALLS,
    THROTTLES,
    UNKNOWNS,
    UNPAUSES,
    UNREAD,
    State,
    spent,
    with_running,
)
from rejoinder.simulator.tables import READS
from rejoinder.simulator.words import wake_up_in_words


class Branches(Afterwards):
    """What can happen, under a bound."""

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
        """The next message comes; a person asks for something; a webhook that failed, or that did not, comes again."""
        yield from self.written(state)
        moves = self.moves
        for index, name in enumerate(state.failed):
            if name < 0 or (desk.by_person(name) and moves.under_way(state, name)):
                continue  # who was asked to come again does so later; of a person's words see `desk.by_person`
            rest = state._replace(failed=state.failed[:index] + state.failed[index + 1 :])
            yield self.said("{} comes again after a failure", desk.named(name)), self.ingested(rest, name)
        for fault, name in ((PAUSES, desk.PAUSE), (UNPAUSES, desk.RESUME)):
            if state.left[fault]:
                yield self.said("{} comes", desk.named(name)), self.ingested(spent(state, fault), name)
        yield from self.spoken(state)
        if state.left[REDELIVERIES]:
            alone = [event for event in state.spoken if not moves.under_way(state, event)]
            for name in (*range(state.arrived), *self.words_of_consent(state), *state.edited, *alone):
                again = self.ingested(spent(state, REDELIVERIES), name)
                yield self.said("{} is redelivered", desk.named(name)), again

    def written(self, state: State) -> Iterator[tuple[str, State]]:
        """The next message comes, or one that withdraws consent or gives it again, or an edit of any."""
        if state.arrived < self.bound.messages:
            name = state.arrived
            yield self.said("m{} comes", name + 1), self.ingested(state._replace(arrived=name + 1), name)
        for fault, name in ((OPTOUTS, desk.STOP), (OPTINS, desk.START)):
            if state.left[fault]:
                event = name + self.bound.faults[fault] - state.left[fault]
                yield self.said("{} comes", desk.named(event)), self.ingested(spent(state, fault), event)
        if state.left[EDITS]:
            count = self.bound.edits - state.left[EDITS] + 1
            for message in range(min(state.arrived + 1, self.bound.messages)):
                event = desk.edit_of(message, count)
                came = spent(state, EDITS)._replace(edited=(*state.edited, event))
                yield self.said("{} comes", desk.named(event)), self.ingested(came, event)

    def spoken(self, state: State) -> Iterator[tuple[str, State]]:
        """A person answers, who has read everything that has come, or only the first of it."""
        for read in range(state.arrived + 1):
            fault = OPERATORS if read == state.arrived else UNREAD
            if state.left[fault]:
                event = desk.words_of(len(state.spoken) + 1, read)
                came = spent(state, fault)._replace(spoken=(*state.spoken, event))
                yield self.said("{} comes, who has read {}", desk.named(event), read), self.ingested(came, event)

    def words_of_consent(self, state: State) -> list[int]:
        """Those that have come."""
        stops, starts = (self.bound.faults[fault] - state.left[fault] for fault in (OPTOUTS, OPTINS))
        return [*range(desk.STOP, desk.STOP + stops), *range(desk.START, desk.START + starts)]

    def more_may_come(self, state: State) -> bool:
        """Whether a message may come that moves the window."""
        return state.arrived < self.bound.messages or bool(state.left[OPTOUTS]) or bool(state.left[OPTINS])

    def ingested(self, state: State, event: int) -> State:
        """The state with another ingest in mid-air."""
        return with_running(state, self.moves.ingest(event))

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
            case "notifier":
                yield from self.notifier(state, rest, number)
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
        for said, fault, made, row in (
            ("answers", None, answers.bot_answer, None),
            ("answers newer messages too", JOINS, answers.joined, state.row),
            ("stops for newer messages", RESTARTS, answers.restarted, state.row),
            ("calls a person", HANDOFFS, answers.calling, None),
        ):
            answer = moves.from_bot(made, call.about, row) if fault is None or state.left[fault] else None
            if answer is not None:
                after = rest if fault is None else spent(rest, fault)
                yield f"{owner}'s bot {said}", self.answered(after, number, answer)
        if state.left[BOT_FAILURES]:
            yield f"{owner}'s bot fails", self.answered(spent(rest, BOT_FAILURES), number, moves.bot_failed)
        if state.left[SLOW] and call.args[0] <= NOW_MS:
            yield f"{owner}'s bot is slow", self.answered(spent(rest, SLOW), number, moves.nothing)

    def channel(self, state: State, rest: State, number: int) -> Iterator[tuple[str, State]]:
        """The reply goes out, is refused for now or for good, or nobody knows."""
        moves = self.moves
        owner = moves.programs[number].beginning.owner
        self.check_wanted(number)
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

    def notifier(self, state: State, rest: State, number: int) -> Iterator[tuple[str, State]]:
        """Somebody is called, or cannot be reached."""
        moves = self.moves
        said, told = self.performed(rest, moves.call_of[number], moves.programs[number].beginning.owner)
        yield said, self.answered(told, number, moves.nothing)
        if state.left[THROTTLES]:
            yield self.said("nobody can be called"), self.answered(spent(rest, THROTTLES), number, moves.throttled)

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
            if self.more_may_come(state) and target > half and moves.burst_is_young(state):
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
            failed=tuple(sorted([max(event, ~event) for event in state.failed])),
        )
