"""The stores under the contract suite of `ports.Store`, each one line in `ADAPTERS`, and the states it begins from."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from pynamodb.connection.base import Connection

from rejoinder.ports import Store
from rejoinder.protocol.conversation import (
    Lease,
    Message,
    Outbox,
    Row,
)
from rejoinder.protocol.identity import message_id, owed_shard
from rejoinder.protocol.outcomes import (
    Claimed,
    Committed,
    Recorded,
)
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.dynamodb.table import connect
from rejoinder.stores.memory import MemoryStore
from serialised_moto import REGION, fresh_store, serialised_moto

NOW = 1_790_000_000_000
DAY = 24 * 3600 * 1000
ANA = "webhook:shop:ana"
TIMING = Timing(max_pending=3, max_answered_ids=3, retention_ms=30 * DAY)
EXPIRES_S = (NOW + 30 * DAY) // 1000


@contextmanager
def memory() -> Iterator[Callable[[], Store]]:
    yield lambda: MemoryStore(TIMING)


@contextmanager
def dynamodb_on_moto() -> Iterator[Callable[[], Store]]:
    with serialised_moto():
        yield tables(connect(REGION))


@contextmanager
def running_emulator() -> Iterator[Connection]:
    """A running emulator, named by `DYNAMODB_ENDPOINT`."""
    endpoint_url = os.environ.get("DYNAMODB_ENDPOINT")
    if not endpoint_url:
        pytest.skip("DYNAMODB_ENDPOINT names no running emulator")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield connect(REGION, endpoint_url)


@contextmanager
def dynamodb_on_emulator() -> Iterator[Callable[[], Store]]:
    with running_emulator() as connection:
        yield tables(connection)


def tables(connection: Connection) -> Callable[[], Store]:
    return lambda: fresh_store(connection, f"conversations-{secrets.token_hex(8)}", TIMING)


ADAPTERS = [memory, dynamodb_on_moto, pytest.param(dynamodb_on_emulator, marks=pytest.mark.e2e)]


@pytest.fixture(scope="module", params=ADAPTERS)
def fresh(request: pytest.FixtureRequest) -> Iterator[Callable[[], Store]]:
    with request.param() as make:
        yield make


@pytest.fixture
def store(fresh: Callable[[], Store]) -> Store:
    return fresh()


def message(name: str, at_ms: int = NOW) -> Message:
    return Message(message_id(name), name, "ana", at_ms - 300, at_ms, text=f"I am {name}", address="17")


def outbox(covers: tuple[Message, ...], token: int = 1) -> Outbox:
    return Outbox("reply", ("part one", "part two"), covers, said="both", token=token, committed_at_ms=NOW + 5_000)


ONE, TWO, THREE, FOUR = (message(name, NOW + 100 * index) for index, name in enumerate(("one", "two", "three", "four")))
LEASE = Lease("ida", 1)

RECORDED = Row(
    received=1,
    pending=(ONE,),
    window_opened_at_ms=NOW,
    last_message_at_ms=NOW,
    owed_shard=owed_shard(ANA),
    owed_since_ms=NOW,
    expires_at_s=EXPIRES_S,
)
DUE = NOW + TIMING.debounce_ms


@dataclass(frozen=True, slots=True)
class Given:
    """Brings a store to a state by the transitions themselves."""

    store: Store

    def recorded(self, *messages: Message) -> Row:
        for each in messages:
            outcome = run(self.store.record(ANA, each, each.arrived_at_ms))
            assert isinstance(outcome, Recorded)
        return outcome.row

    def claimed(self, *messages: Message, owner: str = "ida", at_ms: int = DUE + 1_000) -> Row:
        if messages:
            self.recorded(*messages)
        outcome = run(self.store.claim(ANA, owner, at_ms))
        assert isinstance(outcome, Claimed)
        return outcome.row

    def committed(self, *messages: Message) -> Row:
        claimed = self.claimed(*messages)
        outcome = run(self.store.commit(ANA, LEASE, claimed, outbox(claimed.pending), DUE + 2_000))
        assert isinstance(outcome, Committed)
        return outcome.row

    def taken_over(self, *messages: Message) -> Row:
        """Ida's lease has run out, and Bob has claimed."""
        expires = self.claimed(*messages).lease_expires_at_ms
        assert expires is not None
        return self.claimed(owner="bob", at_ms=expires)


@pytest.fixture
def given(store: Store) -> Given:
    return Given(store)
