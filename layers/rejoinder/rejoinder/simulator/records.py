"""What a run in virtual time is made of: its clock, who runs, what is sent, what befalls a call, what was done."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from rejoinder.ports import BotFailed, Fault, Outdated, Replied, Request, Response, Turn
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.simulator.stepping import Actor, Call

START_MS = 1_790_000_000_000
"""2026-09-21T14:13:20Z: any instant does, as long as it is always the same."""


@dataclass(slots=True)
class ManualClock:
    """Implements `ports.Clock`: it shows what it is set to."""

    now: int = START_MS

    def now_ms(self) -> int:
        """Epoch milliseconds."""
        return self.now


@dataclass(slots=True)
class CountedIds:
    """Implements `ports.Ids`: fresh, and the same in every run."""

    given: int = 0

    def fresh(self) -> str:
        """32 hex digits."""
        self.given += 1
        return f"{self.given:032x}"


@dataclass(frozen=True, slots=True)
class Thought:
    """What the bot will say, and how long it takes to (None: for ever)."""

    result: Replied | BotFailed | Outdated
    takes_ms: int | None = 0


ThinkingBot = Callable[[Turn], Thought]


@dataclass(slots=True, eq=False)
class Invocation:
    """One run of a function.

    Attributes:
        name: `ingest-1`, `generate-2`: the function, and the how-many-eth run of it.
        wake_up: what a generator was woken by.
        webhook: what an ingest was given, and of which channel.
        armed: the wake-ups that it has armed.
        ended: how it ended; None while it runs.
        frozen_until_ms: nothing of it moves before (epoch).
    """

    name: str
    actor: Actor
    began_at_ms: int
    wake_up: WakeUp | None = None
    webhook: tuple[str, Request] | None = None
    armed: list[WakeUp] = field(default_factory=list)
    ended: Literal["returned", "raised", "crashed", "timed out"] | None = None
    ended_at_ms: int | None = None
    frozen_until_ms: int = 0

    @property
    def function(self) -> str:
        """`ingest` or `generate`."""
        return self.name.partition("-")[0]

    @property
    def response(self) -> Response | None:
        """What an ingest has answered."""
        return self.actor.result if isinstance(self.actor.result, Response) else None

    @property
    def acknowledged(self) -> bool:
        """Whether an ingest has told the provider that it need not bring its webhook again."""
        return self.ended == "returned" and self.response is not None and self.response.status < 300


@dataclass(slots=True, eq=False)
class Generation:
    """One run of the bot.

    Attributes:
        done_at_ms: when it will have answered (epoch); None: never.
        ended_at_ms: when it was heard or cancelled, or when its invocation ended; None while it runs.
    """

    turn: Turn
    invocation: Invocation
    began_at_ms: int
    done_at_ms: int | None
    result: Replied | BotFailed | Outdated
    ended_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """One rendered part that has reached the channel."""

    at_ms: int
    channel: str
    via: str
    part: str
    reply_id: str
    index: int
    by: Invocation


@dataclass(slots=True, kw_only=True)
class Disturbance:
    """What befalls the next calls of one kind.

    Attributes:
        port: `store`, `wake_ups`, `channels`, `channel`, `bot` or `work`.
        method: of the port.
        refuse: raised in place of the call.
        lose: raised although the call was performed.
        repeat: performed twice, and the second answer given, as by an SDK that got no answer to its first try.
        delay_ms: performed so much later.
        crash: the invocation ends before or after the call.
        times: how many calls; counts down.
        from_ms: only calls since then (ms since the start).
        by: only calls of this invocation, by its name or by what holds of it.
    """

    port: str
    method: str
    refuse: Fault | None = None
    lose: Fault | None = None
    repeat: bool = False
    delay_ms: int = 0
    crash: Literal["before", "after"] | None = None
    times: int = 1
    from_ms: int = 0
    by: Callable[[Invocation], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Step:
    """One call that was made, its answer, and the row after it where it was the store's."""

    at_ms: int
    invocation: Invocation
    call: Call
    answer: Any
    row: Row | None = None

    def __str__(self) -> str:
        """One line of a history."""
        answer = "" if self.answer is None else f" -> {_brief(self.answer)}"
        row = "" if self.row is None else f"   [{_brief(self.row)}]"
        return (
            f"{(self.at_ms - START_MS) / 1000:9.3f} s  {self.invocation.name:<12} "
            f"{self.call.port}.{self.call.method}{answer}{row}"
        )


def _brief(answer: object) -> str:
    if isinstance(answer, Row):
        lease = f", lease {answer.lease_token} of {answer.lease_owner}" if answer.lease_owner else ""
        outbox = ", outbox" if answer.outbox else ""
        return f"received {answer.received}, answered {answer.answered}{lease}{outbox}"
    if isinstance(answer, BotFailed):
        return f"BotFailed: {answer.reason}"
    if isinstance(answer, Fault):
        return f"{type(answer).__name__}: {answer}"
    return type(answer).__name__
