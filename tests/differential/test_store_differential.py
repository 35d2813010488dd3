"""The DynamoDB store beside the memory store, which applies the pure transitions, through generated programs.

Each step is one call to both. They must give the same answer with the same row, and read the same afterwards.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from pynamodb.connection.base import Connection

from rejoinder.protocol.conversation import Lease, Message, Outbox, Row, TurnRecord
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.outcomes import Claimed
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.dynamodb.schema import ROW, row_of
from rejoinder.stores.dynamodb.table import connect
from rejoinder.stores.memory import MemoryStore
from serialised_moto import REGION, fresh_store, serialised_moto

ANA = "webhook:shop:ana"
TIMING = Timing(max_pending=3, max_answered_ids=3)
"""Bounds so small that a short program meets them."""

NAMES = [f"m{number}" for number in range(9)]
"""Few enough that redeliveries come up, of pending messages and of long answered ones."""

JUMPS = st.sampled_from(
    [1, 99, TIMING.debounce_ms, TIMING.max_wait_ms, TIMING.lease_ms - 1, TIMING.lease_ms, -1, -250, -3_000]
)
"""How far the clock goes at once: mostly forwards, a little backwards, since clocks of processes differ."""

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
    arguments: tuple[Any, ...] = field(default=())


class SideBySide(RuleBasedStateMachine):
    """Both stores, one clock, and everybody who was ever granted a lease."""

    holdings: Bundle[Holding] = Bundle("holdings")

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.memory = MemoryStore(TIMING)
        self.dynamodb = fresh_store(connection, f"conversations-{next(TABLES)}", TIMING)
        self.now_ms = STARTED_MS
        self.owners = count(1)
        self.last = Repeatable("read")

    def both(self, method: str, *arguments: Any) -> Any:
        self.last = Repeatable(method, arguments)
        expected = run(getattr(self.memory, method)(ANA, *arguments))
        actual = run(getattr(self.dynamodb, method)(ANA, *arguments))
        assert actual == expected
        return expected

    def taken(self, owner: str, outcome: object) -> Holding | MultipleResults[Holding]:
        if not isinstance(outcome, Claimed):
            return multiple()
        return Holding(Lease(owner, outcome.row.lease_token), outcome.row)

    @invariant()
    def both_hold_the_same(self) -> None:
        """The row, and beside it the set of ids that decides what is a duplicate."""
        raw = self.dynamodb.table.get(ANA, ROW)
        expected = run(self.memory.read(ANA))
        assert row_of(raw) == expected
        assert set((raw or {}).get("pending_ids", {}).get("BS", ())) == expected.pending_ids

    @rule(name=st.sampled_from(NAMES), text=st.text(st.characters(codec="utf-8"), max_size=3))
    def record(self, name: str, text: str) -> None:
        message = Message(message_id(name), name, "ana", self.now_ms - 5, self.now_ms, text=text)
        self.both("record", message, self.now_ms)

    @rule()
    def overflow(self) -> None:
        self.both("overflow")

    @rule(target=holdings, method=st.sampled_from(["claim", "resume"]))
    def take(self, method: str) -> Holding | MultipleResults[Holding]:
        owner = f"owner-{next(self.owners)}"
        return self.taken(owner, self.both(method, owner, self.now_ms))

    @rule(target=holdings, method=st.sampled_from(["claim", "resume"]), holding=holdings)
    def take_again(self, method: str, holding: Holding) -> Holding | MultipleResults[Holding]:
        """A late repeat, of whichever of the two it was; but never so late that the row was erased meanwhile."""
        if run(self.memory.read(ANA)).lease_token < holding.lease.token:
            return multiple()
        return self.taken(holding.lease.owner, self.both(method, holding.lease.owner, self.now_ms))

    @rule(holding=holdings)
    def renew(self, holding: Holding) -> None:
        self.both("renew", holding.lease, self.now_ms)

    @rule(
        holding=holdings,
        method=st.sampled_from(["commit", "commit_partial"]),
        absorbs=st.booleans(),
        parts=st.lists(st.text(st.characters(codec="utf-8"), max_size=2), max_size=3).map(tuple),
        state=st.none() | st.just("{}"),
    )
    def commit(self, holding: Holding, method: str, absorbs: bool, parts: tuple[str, ...], state: str | None) -> None:
        claimed = holding.claimed
        covers = claimed.pending
        if absorbs and covers == (pending := run(self.memory.read(ANA)).pending)[: len(covers)]:
            covers = pending
        if not covers:  # resumed: there is nothing to commit
            return
        outbox = Outbox(
            f"reply-of-{holding.lease.owner}", parts, covers, state=state, token=holding.lease.token, failed=absorbs
        )
        self.both(method, holding.lease, claimed, outbox, self.now_ms)

    @rule(holding=holdings, sent=st.integers(0, 3))
    def progress(self, holding: Holding, sent: int) -> None:
        self.both("progress", holding.lease, sent, self.now_ms)

    @rule(holding=holdings)
    def finish(self, holding: Holding) -> None:
        self.both("finish", holding.lease)

    @rule(holding=holdings)
    def finish_owing(self, holding: Holding) -> None:
        self.both("finish_owing", holding.lease, self.now_ms)

    @rule(holding=holdings)
    def release_superseded(self, holding: Holding) -> None:
        self.both("release_superseded", holding.lease)

    @rule(
        holding=holdings,
        method=st.sampled_from(["release_failed", "release_refused"]),
        pause_ms=st.sampled_from([0, 100, 60_000]),
    )
    def release_for_now(self, holding: Holding, method: str, pause_ms: int) -> None:
        self.both(method, holding.lease, self.now_ms + pause_ms)

    @rule(holding=holdings, method=st.sampled_from(["finish", "release_superseded", "renew"]))
    def half_a_lease(self, holding: Holding, method: str) -> None:
        """The right owner with another's token, and the reverse."""
        more = (self.now_ms,) if method == "renew" else ()
        self.both(method, replace(holding.lease, token=holding.lease.token + 1), *more)
        self.both(method, replace(holding.lease, owner="nobody"), *more)

    @rule()
    def repeat(self) -> None:
        self.both(self.last.method, *self.last.arguments)

    @rule(jump_ms=JUMPS)
    def time_passes(self, jump_ms: int) -> None:
        self.now_ms += jump_ms

    @rule(
        answered=st.integers(1, 4),
        covers=st.sampled_from(NAMES),
        skew_ms=st.integers(-3_000, 3_000),
        jump_ms=st.sampled_from([0, TIMING.retention_ms]),
    )
    def write_history(self, answered: int, covers: str, skew_ms: int, jump_ms: int) -> None:
        """By zombies too: in any order. A turn's time follows its watermark, as far as clocks agree."""
        message = Message(message_id(covers), covers, "ana", self.now_ms, self.now_ms)
        at_ms = STARTED_MS + answered * 5_000 + skew_ms
        self.both("put_turn", TurnRecord(answered, 1, at_ms, (message,)), self.now_ms)
        self.both("put_state", f'{{"at": {self.now_ms}}}', answered, self.now_ms)
        self.both("history", 2, self.now_ms + jump_ms)
        self.both("state", self.now_ms + jump_ms)
        self.both("was_answered", message.id, STARTED_MS + 10_000)

    @rule(certain=st.integers(0, 4))
    def forget(self, certain: int) -> None:
        """Seldom: what follows meets an empty table."""
        if certain == 4:
            self.both("forget")


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with serialised_moto():
        yield connect(REGION)


def test_both_stores_go_through_the_same_program_alike(connection: Connection) -> None:
    class OverThisTable(SideBySide):
        def __init__(self) -> None:
            super().__init__(connection)

    run_state_machine_as_test(
        OverThisTable,
        settings=settings(
            max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
