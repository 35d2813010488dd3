"""ADR 2 in one small run: each port call of the real use cases is a point where somebody else may go first."""

from rejoinder.generate import generate
from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import Channel, Outside, Replied, Reply, Text
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import for_message
from rejoinder.run import run
from rejoinder.simulator.stepping import Actor, SteppedPort
from rejoinder.stores.memory import MemoryStore
from rejoinder.wakeups.memory import MemoryWakeUps

CONVERSATION = "webhook:shop:ana"
TIMING = Timing()


class Clock:
    now = 1_790_000_000_000

    def now_ms(self) -> int:
        return self.now


class Ids:
    count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"owner-{self.count}"


def message(name: str, at_ms: int) -> Message:
    return Message(message_id(name), name, "ana", at_ms, at_ms, text=name)


class World:
    """A store and wake-ups in memory; everything else is answered by the test."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore(TIMING)
        self.wake_ups = MemoryWakeUps()
        stepped: dict[str, SteppedPort] = {name: SteppedPort(name) for name in ("store", "wake_ups", "channels", "bot")}
        self.outside = Outside(
            store=stepped["store"],
            wake_ups=stepped["wake_ups"],
            channels=stepped["channels"],
            bot=stepped["bot"],
            clock=self.clock,
            ids=Ids(),
            observer=MemoryObserver(),
            timing=TIMING,
        )
        self.sent: list[str] = []

    def write(self, name: str) -> None:
        run(self.store.record(CONVERSATION, message(name, self.clock.now), self.clock.now))

    def wake(self, name: str) -> Actor:
        wake_up = for_message(CONVERSATION, message_id("phone"), self.clock.now - TIMING.debounce_ms, TIMING)
        return Actor(name, generate(wake_up, self.clock.now + 60_000, self.outside)).begin()

    def step(self, actor: Actor, text: str = "") -> None:
        """Answer the one call that the actor waits for."""
        call = actor.waits_for
        assert call is not None
        match call.port, call.method:
            case "store" | "wake_ups" as port, _:
                actor.answer(run(call.perform({"store": self.store, "wake_ups": self.wake_ups}[port])))
            case "channels", "channel":
                actor.answer(TextChannel())
            case "channel", "send":
                self.sent.append(call.args[0])
                actor.answer(None)
            case "bot", "start":
                actor.answer(SteppedPort("work"))
            case "work", "wait":
                actor.answer(Replied(Reply((Text(text),))))
            case _:
                actor.answer(None)

    def steps_until(self, actor: Actor, method: str | None, text: str = "") -> None:
        while actor.waits_for is not None and actor.waits_for.method != method:
            self.step(actor, text)


class TextChannel(SteppedPort):
    """Renders at once, as every channel does; sends and typing are steps."""

    typing_ms = None

    def __init__(self) -> None:
        super().__init__("channel")

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        return (reply.text,)


def test_a_channel_is_a_port() -> None:
    channel: Channel = TextChannel()
    assert channel.render(Reply((Text("a"),)), message("m", 0)) == ("a",)


def test_a_message_between_generation_and_commit_outdates_the_reply() -> None:
    """Phone, generation, e-mail just before the commit: the first reply is never sent, one reply covers both."""
    world = World()
    world.write("phone")
    world.clock.now += TIMING.debounce_ms
    first = world.wake("first")
    world.steps_until(first, "commit", "thanks for your phone number")
    world.write("email")
    world.steps_until(first, None)
    assert world.sent == []
    world.clock.now += TIMING.debounce_ms
    second = world.wake("second")
    world.steps_until(second, None, "thanks for both")
    assert world.sent == ["thanks for both"]
    row = world.store.rows[CONVERSATION]
    assert (row.received, row.answered, row.outbox, row.lease_owner) == (2, 2, None, None)


def test_two_wake_ups_at_once_start_one_generation() -> None:
    """Both have looked before either acts: one claims, the other arms itself for after the lease and ends."""
    world = World()
    world.write("phone")
    world.clock.now += TIMING.debounce_ms
    one, other = world.wake("one"), world.wake("other")
    world.step(one)
    world.steps_until(other, None)
    assert [wake_up.due_at_ms for wake_up in world.wake_ups.armed] == [world.clock.now + TIMING.lease_ms + 1_000]
    world.steps_until(one, None, "hello")
    assert world.sent == ["hello"]
