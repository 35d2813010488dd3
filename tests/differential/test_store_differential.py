"""The DynamoDB store beside the memory store, which applies the pure transitions, through generated programs.

Each step is one call to both. They must give the same answer with the same row, and read the same afterwards.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from json import dumps
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from pynamodb.connection.base import Connection

from differential.programs import ANA, EFFECTS, NAMES, STEPS, TEXTS, TIMING
from rejoinder.protocol.conversation import Consent, Held, Lease, Message, Outbox, Row, TurnRecord
from rejoinder.protocol.effects import Effect
from rejoinder.protocol.erasing import ERASER, Written
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.outcomes import Claimed
from rejoinder.protocol.wakeups import next_look_ms
from rejoinder.run import run
from rejoinder.stores.dynamodb.schema import ROW, row_of
from rejoinder.stores.dynamodb.table import connect
from rejoinder.stores.memory import MemoryStore
from serialised_moto import REGION, fresh_store, serialised_moto
from store_suite import running_emulator

STARTED_MS = 1_790_000_000_000
TABLES = count()


@dataclass(frozen=True, slots=True)
class Holding:
    """A lease that somebody was granted once, and the row as it was then. It may long be another's."""

    lease: Lease
    claimed: Row


@dataclass(slots=True)
class Repeatable:
    """The last call, which an SDK repeats where the answer was lost."""

    method: str
    arguments: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)


class SideBySide(RuleBasedStateMachine):
    """Both stores over one conversation and one clock."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.memory = MemoryStore(TIMING)
        self.dynamodb = fresh_store(connection, f"conversations-{next(TABLES)}", TIMING)
        self.now_ms = STARTED_MS
        self.last = Repeatable("read")

    def both(self, method: str, *arguments: Any, **named: Any) -> Any:
        self.last = Repeatable(method, arguments, named)
        expected = run(getattr(self.memory, method)(ANA, *arguments, **named))
        actual = run(getattr(self.dynamodb, method)(ANA, *arguments, **named))
        assert actual == expected
        return expected

    def repeat(self) -> None:
        """The answer was lost, and the SDK makes the call once more."""
        self.both(self.last.method, *self.last.arguments, **self.last.named)


class RowSideBySide(SideBySide):
    """The transitions, by everybody who was ever granted a lease, the newest first.

    One rule with weights, and not a rule for each: Hypothesis leaves some rules out of a whole program, and hardly a
    program without `record` and `take` comes anywhere.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.owners = count(1)
        self.holdings: list[Holding] = []

    @property
    def row(self) -> Row:
        return run(self.memory.read(ANA))

    @invariant()
    def both_hold_the_same(self) -> None:
        """The row, and beside it the set of ids that decides what is a duplicate."""
        raw = self.dynamodb.table.get(ANA, ROW)
        assert row_of(raw) == self.row
        assert set((raw or {}).get("pending_ids", {}).get("BS", ())) == self.row.pending_ids

    @rule(step=STEPS)
    def go_on(self, step: tuple[Any, ...]) -> None:
        name, *arguments = step
        getattr(self, name)(*arguments)

    def time_passes(self, jump_ms: int) -> None:
        self.now_ms += jump_ms

    def record(self, name: str, text: str, consent: Consent) -> None:
        self.now_ms += 7
        message = Message(message_id(name), name, "ana", self.now_ms - 5, self.now_ms, text=text, consent=consent)
        self.both("record", message, self.now_ms)

    def amend(self, index: int, there: bool, text: str, edited_at_ms: int) -> None:
        """Mostly at the place where the message is."""
        known = self.row.pending[index : index + 1] if there else ()
        name = known[0].provider_id if known else NAMES[index]
        edit = Message(
            *(message_id(name), name, "x", 0, 0),
            text=text,
            stored=not text,
            edited_at_ms=edited_at_ms,
            digest=message_id(text),
        )
        self.both("amend", index, edit)

    def overflow(self, consent: Consent, late_ms: int) -> None:
        """Mostly at once; or as a late repeat."""
        at_ms = self.now_ms - 5 - late_ms
        self.both("overflow", Message(message_id("x"), "x", "ana", at_ms, self.now_ms, consent=consent))

    def take(self, method: str, patient: bool) -> None:
        """As a wake-up does, at the first instant at which the lease can be had, or too early."""
        self.take_as(f"owner-{next(self.owners)}", method, patient)

    def take_again(self, which: int, method: str, patient: bool) -> None:
        """A late repeat of one's own; but never so late that the row was erased meanwhile."""
        holding = self.holding(which)
        if holding is not None and self.row.lease_token >= holding.lease.token:
            self.take_as(holding.lease.owner, method, patient)

    def take_as(self, owner: str, method: str, patient: bool) -> None:
        if patient:
            due_ms = next_look_ms(self.row, self.now_ms, TIMING)
            self.now_ms = max(due_ms, self.row.lease_expires_at_ms or 0)
        outcome = self.both(method, owner, self.now_ms)
        if isinstance(outcome, Claimed):
            self.holdings.insert(0, Holding(Lease(owner, outcome.row.lease_token), outcome.row))

    def pause(self, length_ms: int) -> None:
        self.both("pause", self.now_ms + length_ms, self.now_ms)

    def unpause(self) -> None:
        self.both("unpause")

    def settle(self, stale: bool, first: bool) -> None:
        """Everything, or the first message; by the row as it is, or by one that was read before somebody claimed."""
        read = self.row
        if not read.pending:
            return
        if stale and self.holdings and self.holdings[0].claimed.pending:
            read = self.holdings[0].claimed
        elif stale:
            read = replace(read, amended=read.amended + 1)
        outbox = Outbox(
            f"by-hand-{next(self.owners)}", (), read.pending[: 1 if first else None], said="I am on it.", handled=True
        )
        self.both("settle", read, outbox, self.now_ms)

    def holding(self, which: int) -> Holding | None:
        return self.holdings[min(which, len(self.holdings) - 1)] if self.holdings else None

    def commit(self, which: int, method: str, absorbs: bool, calls_for_ms: int | None, parts: tuple[str, ...]) -> None:
        holding = self.holding(which)
        covers = holding.claimed.pending if holding is not None else ()
        if absorbs and covers == self.row.pending[: len(covers)]:
            covers = self.row.pending
        if holding is None or not covers:  # it was resumed: there is nothing to commit
            return
        lease = holding.lease
        state = "{}" if absorbs else None
        outbox = Outbox(f"of-{lease.owner}", parts, covers, state=state, token=lease.token, failed=absorbs)
        if calls_for_ms is not None:
            outbox = replace(outbox, handoff="she asks for a person", pause_until_ms=self.now_ms + calls_for_ms)
        self.both(method, lease, holding.claimed, outbox, self.now_ms)

    def promise(self, which: int) -> None:
        if (holding := self.holding(which)) is not None:
            self.both("promise", holding.lease)

    def progress(self, which: int, sent: int) -> None:
        if (holding := self.holding(which)) is not None:
            self.both("progress", holding.lease, sent, self.now_ms)

    def finish(self, which: int) -> None:
        if (holding := self.holding(which)) is not None:
            self.both("finish", holding.lease)

    def release_superseded(self, which: int) -> None:
        if (holding := self.holding(which)) is not None:
            self.both("release_superseded", holding.lease)

    def hold_or_let_go(self, which: int, method: str, at_ms: int) -> None:
        if (holding := self.holding(which)) is not None:
            self.both(method, holding.lease, self.now_ms + at_ms)

    def half_a_lease(self, which: int, method: str, mine: bool) -> None:
        """The right owner with another's token, or the reverse."""
        if (holding := self.holding(which)) is not None:
            half = replace(holding.lease, token=holding.lease.token + 1) if mine else replace(holding.lease, owner="x")
            self.both(method, half, self.now_ms)

    def seize(self, patient: bool) -> None:
        """Who forgets is given the lease, with whatever is owed: they may also die, and another goes on."""
        self.take_as(f"{ERASER}{next(self.owners)}", "seize", patient)

    def erase(self, which: int, as_seized: bool) -> None:
        """Mostly after a while; else as soon as the lease is there."""
        holding = self.holding(which)
        if holding is not None and (as_seized or self.row.answered > 2):
            self.both("erase", holding.lease, self.row if as_seized else holding.claimed)


class ItemsSideBySide(SideBySide):
    """What hangs on a conversation beside its row. By zombies too: at any watermark, in any order."""

    @rule()
    def again(self) -> None:
        self.repeat()

    @rule(jump_ms=st.sampled_from([1, 1_000, -250, TIMING.retention_ms - 1_000, TIMING.retention_ms]))
    def time_passes(self, jump_ms: int) -> None:
        self.now_ms += jump_ms

    @rule(answered=st.integers(1, 12), name=st.sampled_from(NAMES), skew_ms=st.integers(-3_000, 3_000))
    def put_turn(self, answered: int, name: str, skew_ms: int) -> None:
        """A turn's time follows its watermark, as far as clocks agree."""
        at_ms = STARTED_MS + answered * 30_000 + skew_ms
        message = Message(message_id(name), name, "ana", at_ms, at_ms, text=name, stored=name in NAMES[:3])
        self.both("put_turn", TurnRecord(answered, 1, at_ms, (message,)), self.now_ms)

    @rule(answered=st.integers(1, 12), state=TEXTS)
    def put_state(self, answered: int, state: str) -> None:
        self.both("put_state", state, answered, self.now_ms)

    @rule(name=st.sampled_from(NAMES[:3]), text=TEXTS, anew=st.booleans())
    def put_text(self, name: str, text: str, anew: bool) -> None:
        content = dumps({"text": text, "attachments": []})
        self.both("put_text", message_id(name).hex(), content, self.now_ms, anew=anew)

    @rule(answered=st.integers(1, 12), parts=st.lists(TEXTS, max_size=2).map(tuple))
    def put_held(self, answered: int, parts: tuple[str, ...]) -> None:
        self.both("put_held", Held(answered, Outbox("reply", parts, ()), "in doubt", self.now_ms), self.now_ms)

    @rule(answered=st.integers(1, 12))
    def take_held(self, answered: int) -> None:
        self.both("take_held", answered, self.now_ms)
        self.both("tell_sent", answered, self.now_ms)

    @rule(
        turn=st.none() | st.integers(1, 12),
        state=st.none() | st.tuples(st.integers(1, 12), TEXTS),
        reply_id=st.sampled_from(["", "reply"]),
        held=st.none() | st.integers(1, 12),
        names=st.lists(st.sampled_from(NAMES[:3]), max_size=2),
    )
    def take_back(
        self, reply_id: str, turn: int | None, state: tuple[int, str] | None, held: int | None, names: list[str]
    ) -> None:
        key = None if turn is None else TurnRecord(turn, 1, 0, (Message(message_id("m0"), "m0", "ana", 0, 0),)).key
        texts = tuple(message_id(name).hex() for name in names)
        self.both("take_back", Written(reply_id, key, state, held, texts))

    @rule(also=st.integers(0, 9))
    def clear(self, also: int) -> None:
        """Seldom, or hardly anything is ever there."""
        if also == 0:
            self.both("clear")

    @rule(limit=st.integers(0, 5), name=st.sampled_from(NAMES), turns=st.integers(0, 12))
    def look(self, limit: int, name: str, turns: int) -> None:
        """Everything that can be read."""
        self.both("history", limit, self.now_ms)
        self.both("state", self.now_ms)
        self.both("texts", [message_id(each).hex() for each in NAMES], self.now_ms)
        self.both("held", self.now_ms)
        self.both("was_answered", message_id(name), STARTED_MS + turns * 30_000)


class EffectsSideBySide(SideBySide):
    """Effects that are begun, ended and withdrawn by few enough that they meet, in their own name and in others'."""

    @rule()
    def again(self) -> None:
        self.repeat()

    @rule(jump_ms=st.sampled_from([1, -250, TIMING.lease_ms - 1, TIMING.lease_ms, TIMING.retention_ms]))
    def time_passes(self, jump_ms: int) -> None:
        self.now_ms += jump_ms

    @rule(key=st.sampled_from(EFFECTS), by=st.sampled_from("xyz"), over=st.none() | st.sampled_from("xyz"))
    def begin(self, key: str, by: str, over: str | None) -> None:
        """Whoever begins over another begin does so by a fresh name."""
        self.both("begin_effect", key, "book", by, self.now_ms, over if over != by else None)

    @rule(key=st.sampled_from(EFFECTS), by=st.sampled_from("xyz"), result=st.integers())
    def end(self, key: str, by: str, result: int) -> None:
        self.both("end_effect", key, by, str(result), self.now_ms)

    @rule(key=st.sampled_from(EFFECTS), by=st.sampled_from("xyz"), over=st.none() | st.sampled_from("xyz"))
    def withdraw(self, key: str, by: str, over: str | None) -> None:
        before = Effect() if over in (None, by) else Effect("book", over, STARTED_MS)
        self.both("withdraw_effect", key, by, before)

    @rule(key=st.sampled_from(EFFECTS))
    def take_back(self, key: str) -> None:
        self.both("take_back", Written(effects_of=bytes.fromhex(key.partition("#")[0])))

    @rule()
    def look(self) -> None:
        self.both("open_effects", self.now_ms)


@contextmanager
def moto() -> Iterator[Connection]:
    with serialised_moto():
        yield connect(REGION)


@pytest.fixture(scope="module", params=[moto, pytest.param(running_emulator, marks=pytest.mark.e2e)])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    with request.param() as connection:
        yield connection


@pytest.mark.parametrize(("machine", "programs"), [(RowSideBySide, 30), (ItemsSideBySide, 12), (EffectsSideBySide, 20)])
def test_both_stores_go_through_the_same_programs_alike(
    connection: Connection, machine: type[SideBySide], programs: int
) -> None:
    class OverThisConnection(machine):  # type: ignore[valid-type, misc]  # Hypothesis takes classes without arguments
        def __init__(self) -> None:
            super().__init__(connection)

    run_state_machine_as_test(
        OverThisConnection,
        settings=settings(max_examples=programs, stateful_step_count=30),
    )
