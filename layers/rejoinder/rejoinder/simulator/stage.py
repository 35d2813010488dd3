"""Where the real use cases run under exploration: stepped ports, a clock and ids that are set before each step."""

import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from rejoinder.generate import generate
from rejoinder.ingest import Ingest
from rejoinder.ports import (
    ByPerson,
    Edited,
    Event,
    Inbound,
    Outside,
    PauseAsked,
    Policy,
    Reply,
    Request,
    Response,
    ResumeAsked,
)
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.simulator.stepping import Call, SteppedPort

UseCase = Coroutine[Call, Any, Any]


@dataclass(slots=True)
class StageClock:
    """Implements `ports.Clock`; the world sets `now` to the acting invocation's own time."""

    now: int = 0

    def now_ms(self) -> int:
        """The time that was set."""
        return self.now


@dataclass(slots=True)
class StageIds:
    """Implements `ports.Ids`; the world sets `next` to what the acting invocation would draw."""

    next: str = ""

    def fresh(self) -> str:
        """The id that was set."""
        return self.next


class SilentObserver:
    """Implements `ports.Observer`: the simulator sees the calls themselves."""

    def happened(self, what: str, conversation_id: str = "", **fields: str | int | None) -> None:
        """Let it pass."""


@dataclass(frozen=True, slots=True)
class StageChannel(SteppedPort):
    """A channel whose requests are JSON lists of events, and whose sends and questions are steps."""

    name: str = "channel"
    split: int = 1
    taken: Response | None = None
    typing_ms: int | None = None

    def verify(self, request: Request, now_ms: int) -> None:
        """Take every request as genuine."""

    def handshake(self, request: Request) -> Response | None:  # noqa: ARG002
        """No request is a handshake."""
        return None

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:  # noqa: ARG002
        """Read the events of a request that `webhook` made."""
        return [event(**fields) for fields in json.loads(request.body)]

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:  # noqa: ARG002
        """Write the reply's text as `split` parts."""
        return tuple(f"{reply.text} [{index + 1}/{self.split}]" for index in range(self.split))


def event(type: str = "message", **fields: Any) -> Event:  # noqa: A002  # the word of the `webhook` channel's JSON
    """Read one event: the fields of its class in `ports`, and its type."""
    match type:
        case "edit":
            return Edited(Inbound(**fields["now"]), fields["edited_at_ms"])
        case "operator":
            return ByPerson(**fields)
        case "pause":
            return PauseAsked(**fields)
        case "resume":
            return ResumeAsked(**fields)
    return Inbound(**fields)


def webhook(events: Sequence[dict[str, Any]]) -> Request:
    """Write events, each as `event` reads it, as one request."""
    return Request("POST", "/webhooks/stage/default", {}, json.dumps(events).encode())


@dataclass(slots=True)
class Stage:
    """The use cases over stepped ports.

    Attributes:
        timing: the settings of the protocol.
        policy: the generator's policy.
        ingest_type: the use case of a webhook; a mutant puts another in its place.
    """

    timing: Timing
    policy: Policy = field(default_factory=Policy)
    ingest_type: Callable[..., Ingest] = Ingest
    clock: StageClock = field(default_factory=StageClock)
    ids: StageIds = field(default_factory=StageIds)

    def ingest(self, request: Request) -> UseCase:
        """Begin the handling of a webhook."""
        ports: dict[str, Any] = {name: SteppedPort(name) for name in ("store", "wake_ups", "channels")}
        use_case = self.ingest_type(
            clock=self.clock, observer=SilentObserver(), timing=self.timing, policy=self.policy, **ports
        )
        return use_case("stage", request)

    def generate(self, wake_up: WakeUp, deadline_ms: int) -> UseCase:
        """Begin the handling of a wake-up."""
        return generate(wake_up, deadline_ms, self.outside())

    def outside(self) -> Outside:
        """All that a generator has of the world."""
        ports: dict[str, Any] = {
            name: SteppedPort(name) for name in ("store", "wake_ups", "channels", "bot", "notifier")
        }
        return Outside(
            clock=self.clock,
            ids=self.ids,
            observer=SilentObserver(),
            timing=self.timing,
            policy=self.policy,
            **ports,
        )
