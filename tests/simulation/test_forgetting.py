"""`forget` at every port call of whoever else is at work: nothing of the person is left, and what comes next is new.

The worst case of each: who is at work stalls there until their lease has run out, knows nothing, and goes on.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from fakes import CONVERSATION, START_MS, CountedIds, ManualClock
from rejoinder.forgetting import Forgotten, InUse, forget
from rejoinder.generate import generate
from rejoinder.ingest import Ingest
from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import (
    ByPerson,
    Edited,
    Event,
    Fault,
    Inbound,
    Outside,
    Permanent,
    Replied,
    Reply,
    Reported,
    Request,
    Store,
    Text,
    Transient,
    Turn,
    UnknownOutcome,
)
from rejoinder.protocol.conversation import Message, Row
from rejoinder.protocol.effects import effect_key
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import ForReceived, WakeUp
from rejoinder.run import run
from rejoinder.simulator.stepping import Actor, Call, SteppedPort
from rejoinder.stores.dynamodb.schema import SORT_KEY
from rejoinder.stores.dynamodb.store import DynamoDBStore
from rejoinder.stores.dynamodb.table import connect
from rejoinder.stores.memory import MemoryStore
from rejoinder.wakeups.memory import MemoryWakeUps
from serialised_moto import REGION, fresh_store, serialised_moto

TIMING = Timing()
LONG = "long " * 500
"""Too long for the row, as a message and as a reply."""

TABLES = count()


def names(store: Store) -> set[str]:
    """The sort keys of everything that is stored of the conversation."""
    if isinstance(store, DynamoDBStore):
        return {item[SORT_KEY]["S"] for item in store.table.query(CONVERSATION)}
    assert isinstance(store, MemoryStore)
    return {key for _, key in store.items} | ({"ROW"} if store.rows else set())


@dataclass(slots=True)
class Stage:
    """One conversation, a holder or a webhook that stops at each call, and somebody who forgets.

    Attributes:
        store: the table.
        sends: what sending a part meets, each time.
        calls: what calling a person meets.
        turns: what the bot was given.
    """

    store: Store
    sends: Exception | None = None
    calls: Exception | None = None
    clock: ManualClock = field(default_factory=ManualClock)
    wake_ups: MemoryWakeUps = field(default_factory=MemoryWakeUps)
    ids: CountedIds = field(default_factory=CountedIds)
    turns: list[Turn] = field(default_factory=list)

    def outside(self) -> Outside:
        ports: dict[str, SteppedPort] = {
            name: SteppedPort(name) for name in ("store", "wake_ups", "channels", "bot", "notifier")
        }
        return Outside(
            ports["store"],
            ports["wake_ups"],
            ports["channels"],
            ports["bot"],
            self.clock,
            self.ids,
            MemoryObserver(),
            TIMING,
            notifier=ports["notifier"],
        )

    def write(self, name: str, text: str = "") -> None:
        """A message comes."""
        self.take(Inbound(CONVERSATION, name, "ana", text or name))

    def take(self, event: Event) -> None:
        self.finish(self.receive(event))

    def receive(self, event: Event) -> Actor:
        """A webhook brings an event."""
        store, wake_ups, channels = (SteppedPort(name) for name in ("store", "wake_ups", "channels"))
        ingest = Ingest(store, wake_ups, channels, self.clock, MemoryObserver(), TIMING)
        self.reports = [event]
        return Actor("ingest", ingest("lines", Request("POST", "/", {"x-proof": "yes"}, b""))).begin()

    def wake(self) -> Actor:
        """A wake-up comes."""
        wake_up = WakeUp(CONVERSATION, ForReceived(1), self.clock.ms, self.clock.ms)
        return Actor("generate", generate(wake_up, self.clock.ms + 60_000, self.outside())).begin()

    def forgets(self) -> Actor:
        """Somebody forgets the conversation, once every lease has run out."""
        self.clock.ms += TIMING.lease_ms
        port: Store = SteppedPort("store")
        return Actor("forget", forget(port, self.ids, CONVERSATION, self.clock.ms)).begin()

    def finish(self, actor: Actor, calls: int | None = None) -> int:
        """Let an actor make its calls, all or so many; answers how many it made."""
        made = 0
        while actor.waits_for is not None and made != calls:
            try:
                actor.answer(self.perform(actor.waits_for))
            except Fault as fault:
                actor.fail(fault)
            made += 1
        assert actor.failure is None
        return made

    def perform(self, call: Call) -> Any:
        match call.port, call.method:
            case "store" | "wake_ups" as port, _:
                return run(call.perform({"store": self.store, "wake_ups": self.wake_ups}[port]))
            case "channels", "channel":
                return Sending(self.reports)
            case "channel", "send" if self.sends is not None:
                raise self.sends
            case "bot", "start":
                self.turns.append(call.args[0])
                return SteppedPort("work", call.args[0])
            case "work", "wait":
                return self.answer(call.about)
            case "notifier", "call" if self.calls is not None:
                raise self.calls
        return None

    def answer(self, turn: Turn) -> Replied:
        """The bot does something outside, however late, and answers at length."""
        assert turn.grant is not None
        key = effect_key(turn.grant.first, "book", 1)
        run(self.store.begin_effect(CONVERSATION, key, "book", self.ids.fresh(), self.clock.ms))
        state = '{"seen": "' + turn.messages[-1].text[:9] + '"}'
        return Replied(Reply((Text(LONG),)), state=state, handoff="she asks" if self.calls else "")

    reports: list[Event] = field(default_factory=list)


class Sending(SteppedPort):
    """A channel that verifies, parses and renders at once, as every channel does; sends and typing are steps."""

    typing_ms = None
    taken = None

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__("channel")
        object.__setattr__(self, "events", events)

    def verify(self, request: Request, now_ms: int) -> None:
        """Anybody may."""

    def handshake(self, request: Request) -> None:
        """None is asked for."""

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:
        events: Sequence[Event] = self.__dict__["events"]
        return events

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        return (reply.text,)


@pytest.fixture(scope="module")
def on_dynamodb() -> Iterator[Callable[[], Store]]:
    with serialised_moto():
        connection = connect(REGION)
        yield lambda: fresh_store(connection, f"conversations-{next(TABLES)}", TIMING)


def in_memory() -> Store:
    return MemoryStore(TIMING)


Begins = Callable[[Stage], Actor]

FAULTS: dict[str, dict[str, Exception]] = {
    "sent": {},
    "held": {"sends": UnknownOutcome("read timed out")},
    "held, and nobody hears the call": {"sends": UnknownOutcome("read timed out"), "calls": Transient("SNS")},
    "refused for now": {"sends": Transient("429")},
    "refused for good": {"sends": Permanent("403 blocked")},
}


def talked(stage: Stage) -> None:
    """The conversation has a turn and a state."""
    stage.write("a", f"a {LONG}")
    stage.clock.ms += TIMING.debounce_ms
    stage.finish(stage.wake())
    stage.clock.ms += TIMING.lease_ms


def at_work(how: str, *, first: bool = False) -> Begins:
    """A holder who answers the second message, or the first, and meets faults."""

    def begins(stage: Stage) -> Actor:
        if not first:
            talked(stage)
        stage.write("b", f"b {LONG}")
        stage.clock.ms += TIMING.debounce_ms
        stage.sends, stage.calls = FAULTS[how].get("sends"), FAULTS[how].get("calls")
        return stage.wake()

    return begins


def calls_of(begins: Begins) -> list[str]:
    """The calls that an actor makes when nobody comes in between."""
    stage = Stage(in_memory())
    actor = begins(stage)
    made = []
    while actor.waits_for is not None:
        made.append(actor.waits_for.method)
        stage.finish(actor, 1)
    return made


def interleaved(stage: Stage, actor: Actor, calls: int, of_forget: int | None) -> None:
    """The actor stops after so many calls; so does who forgets; the actor goes on to its end, and then the other."""
    stage.finish(actor, calls)
    eraser = stage.forgets()
    stage.finish(eraser, of_forget)
    stage.finish(actor)
    stage.finish(eraser)
    if isinstance(eraser.result, InUse):  # the actor has only claimed meanwhile
        stage.clock.ms = eraser.result.until_ms
        stage.finish(stage.forgets())


@pytest.mark.parametrize("how", FAULTS)
@pytest.mark.parametrize("of_forget", [None, 1, 2, 3])
def test_nothing_is_left_wherever_a_holder_stalls(how: str, of_forget: int | None) -> None:
    made = calls_of(at_work(how))
    assert {"put_text", "commit", "send"} <= set(made)
    for calls in range(len(made) + 1):
        stage = Stage(in_memory())
        interleaved(stage, at_work(how)(stage), calls, of_forget)
        assert names(stage.store) == set(), (calls, made[:calls])


@pytest.mark.parametrize("how", FAULTS)
def test_the_next_conversation_begins_with_nothing_and_keeps_what_it_says(how: str) -> None:
    """It has begun, or is even answered, before the holder of the old one goes on.

    Who goes on so late may have replaced its state, whose number is lower, and takes that back: no state is left, and
    none of another's.
    """
    made = calls_of(at_work(how))
    for calls in range(1, len(made) + 1):
        for answered in (False, True):
            stage = Stage(in_memory())
            holder = at_work(how)(stage)
            stage.finish(holder, calls)
            stage.finish(stage.forgets())
            faults = stage.sends, stage.calls
            stage.sends = stage.calls = None
            stage.write("new")
            stage.clock.ms += TIMING.debounce_ms
            if answered:
                stage.finish(stage.wake())
            stage.sends, stage.calls = faults
            stage.finish(holder)
            stage.sends = stage.calls = None
            stage.finish(stage.wake())
            (turn,) = [each for each in stage.turns if each.text == "new"]
            assert (turn.history, turn.state) == ((), {}), (calls, made[:calls])
            (kept,) = run(stage.store.history(CONVERSATION, 9, stage.clock.ms))
            assert ([each.text for each in kept.messages], kept.said) == (["new"], LONG)
            state = run(stage.store.state(CONVERSATION, stage.clock.ms))
            assert state == '{"seen": "new"}' or (answered and state is None)
            kinds = sorted(name.partition("#")[0] for name in names(stage.store) - {"STATE"})
            assert kinds == ["EFFECT", "ROW", "TEXT", "TURN"]


EVENTS: dict[str, Callable[[Stage], Event]] = {
    "a long message": lambda stage: Inbound(CONVERSATION, "c", "ana", f"c {LONG}"),
    "a redelivery": lambda stage: Inbound(CONVERSATION, "b", "ana", f"b {LONG}"),
    "an edit": lambda stage: Edited(Inbound(CONVERSATION, "a", "ana", f"a, or {LONG}"), stage.clock.ms),
    "a report": lambda stage: Reported(CONVERSATION, "reply", 0),
    "a colleague's words": lambda stage: ByPerson(CONVERSATION, LONG, stage.clock.ms),
    "a colleague's words that answer nothing": lambda stage: ByPerson(CONVERSATION, LONG, stage.clock.ms - 1),
    "a colleague's words, days late": lambda stage: ByPerson(CONVERSATION, LONG, START_MS - 10**9),
}


@pytest.mark.parametrize("what", EVENTS)
@pytest.mark.parametrize("of_forget", [None, 1, 2, 3])
def test_what_comes_meanwhile_is_forgotten_or_a_conversation_of_its_own(what: str, of_forget: int | None) -> None:
    """Never half of one: no long text without its message, and no message without its text."""

    def begins(stage: Stage) -> Actor:
        talked(stage)
        stage.write("b", f"b {LONG}")
        stage.clock.ms += 1
        return stage.receive(EVENTS[what](stage))

    made = calls_of(begins)
    for calls in range(len(made) + 1):
        stage = Stage(in_memory())
        interleaved(stage, begins(stage), calls, of_forget)
        row = run(stage.store.read(CONVERSATION))
        texts = {f"TEXT#{each.text_key}" for each in row.pending if each.stored}
        if row.outbox is not None and row.outbox.stored:
            texts.add(f"TEXT#{row.outbox.reply_id}")
        if row.outbox is not None:
            texts |= {f"TEXT#{each.text_key}" for each in row.outbox.messages if each.stored}
        left = names(stage.store) - {"ROW"}
        if row != Row():  # a colleague has begun it
            left = {name for name in left if not name.startswith("TURN#")}
        assert left == texts, (calls, made[:calls])


@pytest.mark.parametrize("of_forget", [None, 1, 2, 3])
def test_a_long_first_message_is_whole_or_forgotten(of_forget: int | None) -> None:
    """Where nothing was, who forgets makes a row to hold: what is recorded on it goes with it."""
    for calls in range(len(calls_of(first_comes)) + 1):
        stage = Stage(in_memory())
        interleaved(stage, first_comes(stage), calls, of_forget)
        row = run(stage.store.read(CONVERSATION))
        assert names(stage.store) - {"ROW"} == {f"TEXT#{each.text_key}" for each in row.pending}, calls


def first_comes(stage: Stage) -> Actor:
    return stage.receive(Inbound(CONVERSATION, "c", "ana", f"c {LONG}"))


def test_a_turn_of_the_same_number_is_not_taken_for_ones_own() -> None:
    """The next conversation's first turn is over when who has stalled in the first turn of the old one goes on."""
    made = calls_of(at_work("sent", first=True))
    for calls in range(made.index("commit") + 1, len(made)):
        stage = Stage(in_memory())
        holder = at_work("sent", first=True)(stage)
        stage.finish(holder, calls)
        stage.finish(stage.forgets())
        stage.write("new")
        stage.clock.ms += TIMING.debounce_ms
        stage.finish(stage.wake())
        before = names(stage.store)
        stage.finish(holder)
        assert names(stage.store) == before, made[:calls]
        assert run(stage.store.state(CONVERSATION, stage.clock.ms)) == '{"seen": "new"}'


def test_who_forgets_waits_for_who_is_at_work() -> None:
    stage = Stage(in_memory())
    holder = at_work("sent")(stage)
    stage.finish(holder, 1)
    eraser = Actor("forget", forget(SteppedPort("store"), stage.ids, CONVERSATION, stage.clock.ms)).begin()
    before = names(stage.store)
    stage.finish(eraser)
    assert eraser.result == InUse(stage.clock.ms + TIMING.lease_ms)
    assert names(stage.store) == before
    stage.finish(holder)
    assert len(stage.turns) == 2
    eraser = stage.forgets()
    stage.finish(eraser)
    assert isinstance(eraser.result, Forgotten)


@pytest.mark.parametrize("calls", ["put_held", "put_turn", "finish"])
def test_on_dynamodb_a_late_delivery_takes_back_what_it_writes(on_dynamodb: Callable[[], Store], calls: str) -> None:
    """The expressions, once: every interleaving is gone through in memory, and the contract makes the two agree."""
    stage = Stage(on_dynamodb())
    interleaved(stage, at_work("held")(stage), calls_of(at_work("held")).index(calls), 3)
    assert names(stage.store) == set()
