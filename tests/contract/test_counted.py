"""What a message, a reply and a stale wake-up cost in DynamoDB: the requests that botocore really makes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes import CONVERSATION, CountedIds, FakeBot, LinesChannel, ManualClock, OneAccount
from rejoinder.effects import Effects
from rejoinder.generate import generate
from rejoinder.ingest import Ingest
from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import Outside, Replied, Reply, Request, Text, Turn
from rejoinder.protocol.timing import Timing
from rejoinder.run import run
from rejoinder.stores.dynamodb.table import connect
from rejoinder.wakeups.memory import MemoryWakeUps
from serialised_moto import REGION, fresh_store, serialised_moto

TIMING = Timing()


def stateless(turn: Turn) -> Replied:
    return Replied(Reply((Text("hello"),)))


def stateful(turn: Turn) -> Replied:
    return Replied(Reply((Text("hello"),)), state='{"met": true}')


@dataclass(slots=True)
class Counted:
    """The use cases over DynamoDB, and what they asked of it since the last `take`.

    Attributes:
        requests: by operation and the item's sort key (a turn's without its number).
        failed: how many conditions failed.
        listed: how many items the queries brought.
    """

    ingest: Ingest
    outside: Outside
    bot: FakeBot
    wake_ups: MemoryWakeUps
    clock: ManualClock
    channel: LinesChannel
    requests: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    listed: int = 0

    def on_request(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        body = params["body"].decode()
        kinds = [kind for kind in ("ROW", "STATE", "TURN#", "TEXT#", "HELD#", "EFFECT#") if f'"S": "{kind}' in body]
        self.requests[" ".join([model.name, *kinds])] += 1

    def on_answer(self, parsed: dict[str, Any], **_: Any) -> None:
        self.failed += parsed.get("Error", {}).get("Code") == "ConditionalCheckFailedException"
        self.listed += parsed.get("Count", 0)

    def take(self) -> tuple[dict[str, int], int]:
        taken = dict(self.requests), self.failed
        self.requests.clear()
        self.failed = 0
        return taken

    def write(self, provider_id: str, text: str = "hi") -> None:
        body = f"ana|{provider_id}|ana|{text}".encode()
        assert run(self.ingest("lines", Request("POST", "/", {"x-proof": "yes"}, body))).status == 200

    def wake(self, later_ms: int = TIMING.debounce_ms) -> None:
        self.clock.ms += later_ms
        run(generate(self.wake_ups.armed[0], self.clock.ms + 60_000, self.outside))


@pytest.fixture
def counted() -> Iterator[Counted]:
    with serialised_moto():
        connection = connect(REGION)
        store = fresh_store(connection, "conversations", TIMING)
        clock, wake_ups, channel, observer = ManualClock(), MemoryWakeUps(), LinesChannel(), MemoryObserver()
        accounts, bot = OneAccount(channel), FakeBot(clock, stateless)
        outside = Outside(store, wake_ups, accounts, bot, clock, CountedIds(), observer, TIMING)
        ingest = Ingest(store, wake_ups, accounts, clock, observer, TIMING)
        counted = Counted(ingest, outside, bot, wake_ups, clock, channel)
        events: Any = connection.client.meta.events
        events.register("before-call.dynamodb", counted.on_request)
        events.register("after-call.dynamodb", counted.on_answer)
        yield counted


def test_a_message_costs_one_write_and_nothing_else(counted: Counted) -> None:
    for provider_id in ("m1", "m2", "m3"):
        counted.write(provider_id)
        assert counted.take() == ({"UpdateItem ROW": 1}, 0)


def test_a_redelivery_costs_one_failed_condition(counted: Counted) -> None:
    counted.write("m1")
    counted.take()
    counted.clock.ms += 500
    counted.write("m1")
    assert counted.take() == ({"UpdateItem ROW": 1}, 1)


def test_a_long_message_costs_one_item_more(counted: Counted) -> None:
    """The first of a conversation is written again: the one before may just have been erased, and the text with it."""
    counted.write("m1", "x" * 5_000)
    assert counted.take() == ({"PutItem TEXT#": 2, "UpdateItem ROW": 1, "GetItem ROW": 1}, 1)
    counted.write("m2", "x" * 5_000)
    assert counted.take() == ({"PutItem TEXT#": 1, "UpdateItem ROW": 1}, 0)


def test_a_reply_costs_claim_commit_finish_and_one_turn(counted: Counted) -> None:
    """Whatever it covers. Its two reads are the turns before it and the bot's state."""
    counted.write("m1")
    counted.write("m2")
    counted.take()
    counted.wake()
    assert counted.channel.texts == ["hello"]
    reads = {"Query TURN#": 1, "GetItem STATE": 1}
    assert counted.take() == ({"UpdateItem ROW": 3, "PutItem TURN#": 1, **reads}, 0)


def test_a_reply_that_changes_the_state_costs_that_item_more(counted: Counted) -> None:
    counted.bot.answer = stateful
    counted.write("m1")
    counted.take()
    counted.wake()
    requests, failed = counted.take()
    assert failed == 0
    writes = {name: number for name, number in requests.items() if name.startswith(("Update", "Put"))}
    assert writes == {"UpdateItem ROW": 3, "PutItem TURN#": 1, "PutItem STATE": 1}


def test_an_effect_costs_three_writes_and_asked_for_again_two(counted: Counted) -> None:
    """A renewal, a begin, an end; then a renewal, and a begin that is refused and gives the result."""
    outside = counted.outside
    effects = Effects(outside.store, counted.clock, CountedIds(), outside.observer, TIMING)

    def booking(turn: Turn) -> Replied:
        once = effects.once_in(turn)
        counted.take()
        assert once("book", None, lambda: 1) == 1
        taken.append(counted.take())
        assert once("book", None, lambda: 2) == 1
        taken.append(counted.take())
        return stateless(turn)

    taken: list[tuple[dict[str, int], int]] = []
    counted.bot.answer = booking
    counted.write("m1")
    counted.wake()
    writes = {"UpdateItem ROW": 1, "UpdateItem EFFECT#": 2}
    assert taken == [(writes, 0), (writes | {"UpdateItem EFFECT#": 1}, 1)]


@pytest.mark.parametrize("state", ["answered", "too early", "held"])
def test_a_stale_wake_up_costs_one_failed_condition_and_nothing_else(counted: Counted, state: str) -> None:
    counted.write("m1")
    if state == "answered":
        counted.wake()
    elif state == "held":
        run(counted.outside.store.claim(CONVERSATION, "another", counted.clock.ms + TIMING.debounce_ms))
    counted.take()
    counted.wake(later_ms=0 if state == "too early" else TIMING.debounce_ms)
    assert counted.take() == ({"UpdateItem ROW": 1}, 1)
    assert len(counted.channel.texts) == (state == "answered")


def test_a_great_backlog_is_read_no_further_than_it_is_listed(counted: Counted) -> None:
    """Of each of the eight shards at most one page, which is never longer than the list."""
    bodies = "\n".join(f"chat{number}|m1|ana|hi" for number in range(60))
    run(counted.ingest("lines", Request("POST", "/", {"x-proof": "yes"}, bodies.encode())))
    counted.take()
    assert len(run(counted.outside.store.owed(counted.clock.ms + 1, 2))) == 2
    assert counted.take() == ({"Query": 8}, 0)
    assert counted.listed <= 8 * 2
