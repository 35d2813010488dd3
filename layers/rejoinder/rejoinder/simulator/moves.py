"""The tables behind an exploration: every value that occurs has a number, and everything is worked out once.

A store call on a row, an answer to an invocation, a value at another time: each is a function of its arguments, so the
real code runs for the first of each and a dictionary answers the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from rejoinder.ports import BotFailed, Fault, Permanent, Replied, Transient, UnknownOutcome
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.outcomes import Answered
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.run import run
from rejoinder.simulator import shifting
from rejoinder.simulator.answers import Seen, turn_seen
from rejoinder.simulator.bound import Bound
from rejoinder.simulator.checkers import Broken, check_step, own_writes_are_recognised
from rejoinder.simulator.desk import CONVERSATION, by_person, named
from rejoinder.simulator.ledger import Ledger, Step
from rejoinder.simulator.owners import OWNERS, owners_in
from rejoinder.simulator.program import Beginning, Entry, Program, build, goes_first
from rejoinder.simulator.shifting import NOW_MS
from rejoinder.simulator.stage import Stage, StageChannel
from rejoinder.simulator.state import State
from rejoinder.simulator.stepping import Call, SteppedPort
from rejoinder.simulator.tables import ITEM_WRITES, Items, Table, item_key
from rejoinder.stores.memory import MemoryStore

OUTDATED = (-1, -1)
"""What an outdated wake-up has seen: nothing that any row shows."""


@dataclass(slots=True)
class Moves:
    """What can be done in one exploration, worked out once each.

    Attributes:
        oldest_ms: messages that wait for longer look alike.
        twins: of each invocation, the last other log that came to the same; kept where the run is `audited`.
        last_answer: the number of the answer that the last performed call gave.
        last_said: the last thing that happened, in words.
    """

    bound: Bound
    stage: Stage
    oldest_ms: int
    rows: Table[Row] = field(default_factory=Table)
    items: Table[Items] = field(default_factory=Table)
    ledgers: Table[Ledger] = field(default_factory=Table)
    calls: Table[Call] = field(default_factory=Table)
    woken: Table[WakeUp] = field(default_factory=Table)
    answers: Table[Any] = field(default_factory=Table)
    programs: list[Program] = field(default_factory=list)
    call_of: list[int] = field(default_factory=list)
    mentioned: list[frozenset[str]] = field(default_factory=list)
    unheard_of: set[int] = field(default_factory=set)
    goes_first: list[bool] = field(default_factory=list)
    numbers: dict[Any, int] = field(default_factory=dict)
    rested: set[tuple[int, int, int]] = field(default_factory=set)
    memo: dict[Any, Any] = field(default_factory=dict)
    performed: dict[Any, Any] = field(default_factory=dict)
    twins: dict[int, tuple[Beginning, tuple[Entry, ...]]] = field(default_factory=dict)
    audited: bool = False
    last_answer: int = 0
    last_said: str = ""
    conversation_id: str = CONVERSATION

    no_row: int = field(init=False)
    no_items: int = field(init=False)
    no_ledger: int = field(init=False)
    nothing: int = field(init=False)
    throttled: int = field(init=False)
    bot_failed: int = field(init=False)
    not_now: int = field(init=False)
    never: int = field(init=False)
    unknown: int = field(init=False)

    def __post_init__(self) -> None:
        self.no_row = self.rows.number(Row())
        self.no_items = self.items.number(())
        self.no_ledger = self.ledgers.number(Ledger())
        self.nothing = self.answers.number(None)
        self.throttled = self.answers.number(Transient("throttled"))
        self.bot_failed = self.answers.number(BotFailed("the bot raised"))
        self.not_now = self.answers.number(Transient("not now"))
        self.never = self.answers.number(Permanent("never"))
        self.unknown = self.answers.number(UnknownOutcome("timed out"))

    # --- invocations ---

    def ingest(self, event: int) -> int:
        """An invocation that has just been begun for an event."""
        return self._begun(("ingest", event), Beginning((named(event),)))

    def generate(self, wake_up: int, owner: str) -> int:
        """An invocation that has just been begun on a wake-up."""
        return self._begun((wake_up, owner), Beginning(self.woken[wake_up], owner))

    def _begun(self, key: Any, beginning: Beginning) -> int:
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._built(beginning, (Entry(NOW_MS),))
        return int(found)

    def under_way(self, state: State, event: int) -> bool:
        """Whether an invocation handles the event just now."""
        return any(self.programs[number].beginning.argument == (named(event),) for number in state.running)

    def answer(self, number: int, answer: int) -> int:
        """The invocation after its call was given an answer, a fault included."""
        key = (number, answer)
        found = self.performed.get(key)
        if found is None:
            program, value = self.programs[number], self.answers[answer]
            to = "" if program.call is None else program.call.method
            if isinstance(value, Replied) and value.absorbed:
                to = "joined"
            fault = value if isinstance(value, Fault) else None
            entry = Entry(NOW_MS, None if fault else value, fault, to)
            found = self.performed[key] = self._built(program.beginning, (*program.log, entry))
            if number in self.twins:
                self.audit(*self.twins[number], entry, int(found))
        return int(found)

    def audit(self, beginning: Beginning, log: tuple[Entry, ...], entry: Entry, number: int) -> None:
        """Give the same answer to an invocation that was taken for another one: it must go on alike.

        Raises:
            AssertionError: it does not; `frames` merges what it must not.
        """
        twin = build(self.stage, beginning, (*log, entry), self._local, self.bound.deadline_ms)
        assert self.numbers.get(twin.key) == number, f"{twin.key} was taken for {self.programs[number].key}"

    def unheard(self, number: int) -> int:
        """The invocation that has not heard of its call's answer, and whose SDK will make the call again in a while."""
        key = ("unheard", self.programs[number].key)
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.programs)
            self.unheard_of.add(found)
            self.programs.append(self.programs[number])
            self.call_of.append(self.call_of[number])
            self.goes_first.append(False)
            self.mentioned.append(self.mentioned[number])
        return found

    def moved_program(self, number: int, by_ms: int) -> int:
        """The invocation as it looks when time has passed."""
        key = ("program", number, by_ms)
        found = self.memo.get(key)
        if found is None:
            found = self._built(*self.programs[number].moved(by_ms))
            found = self.memo[key] = self.unheard(found) if number in self.unheard_of else found
        return int(found)

    def _built(self, beginning: Beginning, log: tuple[Entry, ...]) -> int:
        program = build(self.stage, beginning, log, self._local, self.bound.deadline_ms)
        number = self.numbers.get(program.key)
        if number is None:
            number = self.numbers[program.key] = len(self.programs)
            self.programs.append(program)
            self.call_of.append(-1 if program.call is None else self.calls.number(program.call))
            may_stall = bool(self.bound.stalls)
            first = program.call is not None and goes_first(program.call, program.log[-1].to, may_stall=may_stall)
            self.goes_first.append(first)
            self.mentioned.append(owners_in(program.log) | {beginning.owner})
        elif self.audited and log != self.programs[number].log:
            self.twins[number] = beginning, program.log
        return number

    def _local(self, call: Call) -> Entry | None:
        """Answer the calls that nobody else can see or change: whoever goes next, they come to the same."""
        match call.port, call.method:
            case "channels", "channel":
                return Entry(0, StageChannel(split=self.bound.parts))
            case ("channel", "typing" | "was_sent") | ("work", "cancel"):
                return Entry(0)
            case "store", "history" if (
                call.args[1] == 1 and not self.bound.operators + self.bound.unread
            ):  # nobody's words are in it
                return Entry(0, ())
            case "store", "texts":  # all of the stage is short, and its channel reports nothing
                return Entry(0, {})
            case "wake_ups", "guarantee" if self.bound.lanes == 1:
                return Entry(0)
            case "bot", "start":
                return Entry(0, SteppedPort("work", about=turn_seen(call.args[0])))
        return None

    def first(self, running: tuple[int, ...]) -> int | None:
        """The place of an invocation that may go first without loss; None where everybody's turn counts."""
        for place, number in enumerate(running):
            if self.goes_first[number]:
                return place
        return None

    def stalls(self, state: State) -> bool:
        """Whether somebody would stall if time passed now: an ingest, or a holder who does not wait for its bot.

        Whose lease has run out has stalled already.
        """
        return any(
            self.calls[self.call_of[number]].port != "work"
            and (isinstance(self.programs[number].beginning.argument, tuple) or self._holds(number, state.row))
            for number in state.running
        )

    def _holds(self, number: int, row: int) -> bool:
        held = self.rows[row]
        return held.lease_owner == self.programs[number].beginning.owner and held.held_at(NOW_MS)

    def waits_until(self, number: int) -> int:
        """Until when an invocation waits for its bot; 0 where it does not."""
        call = self.programs[number].call
        return int(call.args[0]) if call is not None and call.port == "work" else 0

    def ends_at_ms(self, number: int, row: int) -> int:
        """When an invocation is killed by its function's time-out, or its lease expires: without a fault, not later."""
        program = self.programs[number]
        if isinstance(program.beginning.argument, tuple):
            return program.started_at_ms + self.stage.timing.ingest_timeout_ms
        if self._holds(number, row):
            return self.rows[row].lease_expires_at_ms or 0
        return (
            NOW_MS + shifting.FAR_MS
        )  # for who is outdated, the function's time-out; from now on, which only adds cases

    def burst_is_young(self, state: State) -> bool:
        """Whether a message came at this instant: the next may come now, or halfway to the end of its debounce."""
        row = self.rows[state.row]
        if row.window_opened_at_ms is not None and row.last_message_at_ms == NOW_MS:
            return True
        return any(
            program.started_at_ms == NOW_MS and isinstance(program.beginning.argument, tuple)
            for program in (self.programs[number] for number in state.running)
        )

    def expires_at_ms(self, state: State) -> int | None:
        """When the lease of somebody who is still running ends, if nothing else kills an invocation before."""
        row = self.rows[state.row]
        if row.lease_expires_at_ms is None or row.lease_expires_at_ms <= NOW_MS:
            return None
        if all(self.programs[number].beginning.owner != row.lease_owner for number in state.running):
            return None
        for number in state.running:
            if self.ends_at_ms(number, self.no_row) <= row.lease_expires_at_ms:
                return None
        return row.lease_expires_at_ms

    # --- calls ---

    def perform(self, row: int, items: int, ledger: int, call: int) -> tuple[int, int, int, Broken | None]:
        """Perform a call, enter it in the ledger and check it; answers with the numbers of what is after it."""
        key = (row, items, ledger, call)
        found = self.performed.get(key)
        if found is None:
            found = self.performed[key] = self._performed(row, items, ledger, self.calls[call])
        after, self.last_answer = found
        return after  # type: ignore[no-any-return]

    def _performed(self, row: int, items: int, ledger: int, call: Call) -> Any:
        before, had, entered = self.rows[row], self.items[items], self.ledgers[ledger]
        now, has, answer = before, had, None
        if call.port == "store":
            now, has, answer = self._stored(before, had, call)
        key = item_key(call)
        item_before, item_after = (None, None) if key is None else (dict(had).get(key), dict(has).get(key))
        step = Step("", call, answer, before, now, item_before, item_after)
        broken = check_step(step, entered, self.bound.timing)
        after = (
            self.rows.number(now),
            self.items.number(has),
            self.ledgers.number(entered.after(step)),
            broken,
        )
        return after, self.answers.number(answer)

    def recognised(self, row: int, items: int, ledger: int, call: int) -> Broken | None:
        """Whether a write that was just applied is recognised when it is repeated at once."""
        first = self.answers[self.last_answer]
        *_, broken = self.perform(row, items, ledger, call)
        return broken or own_writes_are_recognised(self.calls[call].method, first, self.answers[self.last_answer])

    def _stored(self, row: Row, items: Items, call: Call) -> tuple[Row, Items, Any]:
        store = MemoryStore(self.stage.timing, {CONVERSATION: row}, dict(items))
        answer = run(call.perform(store))
        after, kept = store.rows[CONVERSATION], items
        if after is not row:
            after = shifting.settled_row(after, self.stage.timing, self.oldest_ms)
        if call.method in ITEM_WRITES:
            old = dict(items)
            changed = {k: shifting.settled_item(i) for k, i in store.items.items() if old.get(k) is not i}
            kept = tuple(sorted({**old, **changed}.items())) if changed else items
        if isinstance(answer, Answered):
            answer = replace(answer, row=shifting.settled_row(answer.row, self.stage.timing, self.oldest_ms))
        return after, kept, answer

    def from_bot(self, made: Callable[..., Any], seen: Seen, row: int | None = None) -> int | None:
        """What the stage's bot comes to in one way (see `answers`), beside a row; None where it does not."""
        key = (made, seen, row)
        if key not in self.memo:
            answer = made(seen) if row is None else made(seen, self.rows[row])
            self.memo[key] = None if answer is None else self.answers.number(answer)
        found: int | None = self.memo[key]
        return found

    def heard(self, ledger: int, event: int) -> int:
        """The ledger once a person was told that what they said is taken."""
        entered, words = self.ledgers[ledger], named(event)
        if not by_person(event) or words in entered.heard:
            return ledger
        return self.ledgers.number(replace(entered, heard=(*entered.heard, words)))

    def doubted(self, ledger: int) -> int:
        """The ledger with a doubt in it; one is as good as many, and under `hold` none allows anything."""
        if self.bound.in_doubt == "hold":
            return ledger
        return self.ledgers.number(replace(self.ledgers[ledger], doubts=1))

    # --- wake-ups and time ---

    def wake_up(self, wake_up: WakeUp) -> int:
        """The number of a wake-up as it is armed."""
        return self.woken.number(shifting.settled_wake_up(wake_up, self.stage.timing))

    def as_seen(self, number: int, row: int) -> int:
        """A wake-up beside a row: once that has moved since it was armed, how far and in which round is no matter."""
        key = ("seen", number, row)
        found = self.memo.get(key)
        if found is None:
            wake_up, at = self.woken[number], self.rows[row]
            if wake_up.seen != (at.answered, at.lease_token):
                wake_up = replace(wake_up, seen=OUTDATED, attempt=0)
            found = self.memo[key] = self.woken.number(wake_up)
        return int(found)

    def returned(self, number: int) -> int:
        """The wake-up of an invocation that died, as the queue brings it again."""
        wake_up = self.programs[number].beginning.argument
        assert isinstance(wake_up, WakeUp)
        return self.wake_up(replace(wake_up, due_at_ms=NOW_MS + self.stage.timing.visibility_ms))

    def fresh_owner(self, state: State, wake_up: WakeUp) -> str:  # noqa: ARG002  # a mutant draws it from the wake-up
        """The first owner that nothing in a state mentions: names that nobody knows any more are as good as new."""
        used = self.mentions(state) | self._mentions("ledger", state.ledger)
        return next(owner for owner in OWNERS if owner not in used)

    def mentions(self, state: State) -> frozenset[str]:
        """Every owner whose reply may still be sent, or whose writes may still come."""
        return self._mentions("row", state.row).union(
            *(self.mentioned[number] for number in state.running),
            *(self._mentions("call", number) for number in state.delayed),
        )

    def settled_ledger(self, state: State) -> int:
        """The ledger without the names of replies that nobody knows any more."""
        known = self.mentions(state)
        key = ("ledger", state.ledger, known)
        found = self.memo.get(key)
        if found is None:
            ledger = self.ledgers[state.ledger]
            found = self.memo[key] = self.ledgers.number(ledger.without_names(lambda i: bool(owners_in(i) & known)))
        return int(found)

    def _mentions(self, kind: str, number: int) -> frozenset[str]:
        key = (kind, number)
        found = self.memo.get(key)
        if found is None:
            table: Any = {"row": self.rows, "ledger": self.ledgers, "call": self.calls}[kind]
            found = self.memo[key] = owners_in(table[number])
        return found

    def moved_row(self, number: int, by_ms: int) -> int:
        """The row as it looks when time has passed."""
        key = ("moved row", number, by_ms)
        found = self.memo.get(key)
        if found is None:
            row = shifting.settled_row(shifting.shifted(self.rows[number], by_ms), self.stage.timing, self.oldest_ms)
            found = self.memo[key] = self.rows.number(row)
        return int(found)

    def moved_wake_up(self, number: int, by_ms: int) -> int:
        """The wake-up as it looks when time has passed."""
        key = ("moved wake-up", number, by_ms)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self.wake_up(shifting.shifted(self.woken[number], by_ms))
        return int(found)

    def moved_call(self, number: int, by_ms: int) -> int:
        """The delayed copy as it looks when time has passed."""
        key = ("moved call", number, by_ms)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self.calls.number(shifting.shifted(self.calls[number], by_ms))
        return int(found)
