"""The two who act in an exploration of effects, as values: a generator, and the bot that it runs, which books once.

Both are the real code: `generate`, and `Effects.once` as a bot calls it. Each is a function of what it was begun with
and of the answers that it was given, so its state is rebuilt from these wherever the exploration comes back to it. What
nobody else can see of what they do (which account, which history, which wake-up for later) is answered at once.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from rejoinder.bots.function import ended_by
from rejoinder.effects import Act, Effects
from rejoinder.generate import generate
from rejoinder.ports import BotFailed, Fault, Grant, Outdated, Outside, Policy, Replied, Reply, Text, Turn
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.simulator.stage import SilentObserver, StageChannel, StageClock, StageIds
from rejoinder.simulator.stepping import Actor, Call, SteppedPort
from rejoinder.stores.memory import MemoryStore

CONVERSATION = "stage:shop:ana"
GENERATION_MS = 8_000
"""How long a bot may take; less than a renewal's period, so that a wait ends in an answer or at this deadline."""

BookingPolicy = Literal["hold", "retry", "check"]


class Answer(NamedTuple):
    """What somebody who waited was given, and when; `stopped` is what its turn would say then."""

    now_ms: int
    value: Any = None
    fault: Fault | None = None
    stopped: bool = False


class Generator(NamedTuple):
    """Somebody who handles a wake-up."""

    name: str
    wake_up: WakeUp
    log: tuple[Answer, ...]


class Booker(NamedTuple):
    """The bot of a generator of the same name. It outlives the deadline of its turn, as a thread does."""

    name: str
    messages: tuple[Message, ...]
    grant: Grant
    deadline_ms: int
    log: tuple[Answer, ...]
    cancelled: bool = False


Acting = Generator | Booker


@dataclass(frozen=True, slots=True)
class Built:
    """Where somebody is: waiting for the answer to a call, or at the end.

    Attributes:
        call: None at the end.
        result: what it returned.
        armed: the wake-ups that it has armed since its last answer.
        begun: the bot that it has begun since its last answer.
        cancelled: it has cancelled its bot since its last answer.
    """

    call: Call | None
    result: Any = None
    armed: tuple[WakeUp, ...] = ()
    begun: Booker | None = None
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """What is explored: the real code, or a mutant of it.

    Attributes:
        timing: the settings of the protocol.
        policy: what the bot says to do where its booking is in doubt.
        effects: the use case behind `turn.once`.
        grant: by what right a turn is answered.
        store: what decides.
    """

    timing: Timing = field(default_factory=lambda: Timing(max_superseded=1))
    policy: BookingPolicy = "hold"
    effects: type[Effects] = Effects
    grant: Callable[[Grant], Grant] = field(default=lambda grant: grant)
    store: type[MemoryStore] = MemoryStore


@dataclass(slots=True)
class Cast:
    """Builds whoever acts, and remembers those that it has built."""

    rules: Rules
    clock: StageClock = field(default_factory=StageClock)
    ids: StageIds = field(default_factory=StageIds)
    known: dict[Acting, Built] = field(default_factory=dict)
    stopped: bool = False

    def build(self, acting: Acting) -> Built:
        """Bring somebody to where its answers lead."""
        found = self.known.get(acting)
        if found is None:
            found = self.known[acting] = self._built(acting)
        return found

    def _built(self, acting: Acting) -> Built:
        actor = Actor(acting.name, self._generate(acting) if isinstance(acting, Generator) else self._book(acting))
        unseen: list[Call] = []
        for number, answer in enumerate(acting.log):
            self.clock.now, self.stopped = answer.now_ms, answer.stopped
            self.ids.next = acting.name if isinstance(acting, Generator) else f"{acting.name}.{number}"
            actor = actor.answer(answer.value) if answer.fault is None else actor.fail(answer.fault)
            unseen = []
            while actor.waits_for is not None and is_unseen(actor.waits_for):
                unseen.append(actor.waits_for)
                actor.answer(answered_at_once(actor.waits_for))
        actor.use_case.close()
        if actor.failure is not None:
            raise actor.failure
        started = [call.args[0] for call in unseen if call.method == "start"]
        return Built(
            actor.waits_for,
            actor.result,
            armed=tuple(call.args[0] for call in unseen if call.method == "arm"),
            begun=self._begun(acting.name, started[0], acting.log[-1].now_ms) if started else None,
            cancelled=any(call.method == "cancel" for call in unseen),
        )

    def _begun(self, name: str, turn: Turn, now_ms: int) -> Booker:
        assert turn.grant is not None  # as of any turn that a generator begins
        return Booker(name, turn.messages, self.rules.grant(turn.grant), turn.deadline_ms, (Answer(now_ms),))

    def _generate(self, generator: Generator) -> Coroutine[Call, Any, None]:
        ports: dict[str, Any] = {name: SteppedPort(name) for name in ("store", "wake_ups", "channels", "bot")}
        outside = Outside(
            clock=self.clock,
            ids=self.ids,
            observer=SilentObserver(),
            timing=self.rules.timing,
            policy=Policy(fallback=FALLBACK, history_turns=0),
            **ports,
        )
        return generate(generator.wake_up, generator.log[0].now_ms + GENERATION_MS, outside)

    async def _book(self, booker: Booker) -> Replied | BotFailed | Outdated:
        """A bot that thinks, books, and tells the number; what it raises ends as it does with any bot.

        Where its thinking gives newer messages, they join its turn.
        """
        other: Any = SteppedPort("other", about=(booker.name, booker.messages[0].id))
        store: Any = SteppedPort("store", about=booker.name)
        effects = self.rules.effects(store, self.clock, self.ids, SilentObserver(), self.rules.timing)
        turn = Turn(CONVERSATION, booker.messages, deadline_ms=booker.deadline_ms, stopped=lambda: self.stopped)
        act = Act(
            "book",
            None,
            other.book,
            in_doubt="retry" if self.rules.policy == "retry" else "hold",
            check=other.check if self.rules.policy == "check" else None,
        )
        try:
            newer = await other.think()
            turn.messages, grant = (*turn.messages, *newer), booker.grant
            if grant.received is not None:
                grant = replace(grant, received=grant.received + len(newer))
            number = await effects.once(turn, grant, act)
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001  # as `FunctionBot` takes whatever a bot raises
            return ended_by(error, type(error).__name__)
        return Replied(Reply((Text(f"{BOOKED}{number}"),)), absorbed=newer)


FALLBACK = "sorry"
BOOKED = "booked "
_UNSEEN = frozenset(
    {"history", "state", "texts", "put_text", "put_turn", "put_state", "put_held", "was_sent", "typing", "cancel"}
)


def is_unseen(call: Call) -> bool:
    """Whether nobody else can see or change what a call does: whoever goes first, they come to the same."""
    return call.port in ("channels", "wake_ups", "bot") or call.method in _UNSEEN


def answered_at_once(call: Call) -> Any:
    """What an unseen call is answered."""
    match call.port, call.method:
        case "channels", _:
            return StageChannel()
        case "bot", _:
            return SteppedPort("work")
        case _, "history":
            return ()
        case _, "texts":
            return {}
        case _, "put_turn" | "put_state":
            return True
    return None
