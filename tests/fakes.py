"""Small real implementations of the ports, for tests of the use cases without any I/O."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rejoinder.generate import generate
from rejoinder.ingest import Ingest
from rejoinder.observe.memory import MemoryObserver
from rejoinder.ports import (
    BotFailed,
    Event,
    Fault,
    Inbound,
    Media,
    Outdated,
    Outside,
    Permanent,
    Policy,
    Replied,
    Reply,
    Request,
    Response,
    Text,
    Turn,
    Unverified,
)
from rejoinder.protocol.conversation import Attachment, Consent, Message, Row
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.invariants import broken
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore
from rejoinder.wakeups.memory import MemoryWakeUps

START_MS = 1_790_000_000_000
CONVERSATION = "lines:shop:ana"


@dataclass(slots=True)
class ManualClock:
    """Time that passes when a test says so."""

    ms: int = START_MS

    def now_ms(self) -> int:
        return self.ms


@dataclass(slots=True)
class CountedIds:
    """Owners that can be told apart in a failure's output."""

    count: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"owner-{self.count}"


@dataclass(slots=True)
class LinesChannel:
    """A channel whose requests are lines `conversation|id|author|text`; each reply part is one send.

    Attributes:
        sent: what arrived, in order: `(part, reply_id, index)`.
        answers: what the next sends meet: a fault to raise, or None for success; success when used up.
        knows: what `was_sent` answers.
        asked: what it was asked.
        reports: what the next request tells, before its lines.
        consents: what texts mean of being written to.
        files: what the refs of attachments lead to, or the fault that fetching them raises.
        fetched: by what it was asked for them: `(attachment, of, within_ms)`.
    """

    taken: Response | None = None
    sent: list[tuple[str, str, int]] = field(default_factory=list)
    answers: list[Exception | None] = field(default_factory=list)
    knows: bool | None = None
    asked: list[tuple[str, str, int]] = field(default_factory=list)
    reports: list[Event] = field(default_factory=list)
    consents: dict[str, Consent] = field(default_factory=dict)
    greeting: Response | None = None
    cannot_show: str | None = None
    typing_ms: int | None = None
    typed: int = 0
    files: dict[str, Media | Fault] = field(default_factory=dict)
    fetched: list[tuple[Attachment, Message, int]] = field(default_factory=list)

    def verify(self, request: Request, now_ms: int) -> None:
        if request.headers.get("x-proof") != "yes":
            raise Unverified("the proof is not yes")

    def handshake(self, request: Request) -> Response | None:
        return self.greeting

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:
        events: list[Event] = [*self.reports]
        self.reports.clear()
        for line in request.body.decode().splitlines():
            conversation, provider_id, author, text = line.split("|", 3)
            consent = self.consents.get(text, "")
            events.append(Inbound(f"lines:shop:{conversation}", provider_id, author, text, consent=consent))
        return events

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        if self.cannot_show is not None and reply.text == self.cannot_show:
            raise Permanent("no such glyph")
        return tuple(part.text for part in reply.parts if isinstance(part, Text))

    async def send(self, part: str, reply_id: str, index: int) -> None:
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        self.sent.append((part, reply_id, index))

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:
        self.asked.append((part, reply_id, index))
        return self.knows

    async def typing(self, to: Message) -> None:
        self.typed += 1

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:
        self.fetched.append((attachment, of, within_ms))
        media = self.files[attachment.ref]
        if isinstance(media, Fault):
            raise media
        return media

    @property
    def texts(self) -> list[str]:
        return [part for part, _, _ in self.sent]


@dataclass(slots=True)
class OneAccount:
    """Every account is this channel, until it is gone."""

    the_channel: LinesChannel
    gone: bool = False

    async def channel(self, name: str, via: str) -> LinesChannel:
        if self.gone:
            raise Permanent(f"no account {via!r} on channel {name!r}")
        return self.the_channel

    async def refreshed(self, name: str, via: str) -> LinesChannel | None:
        return None


@dataclass(slots=True)
class Work:
    """A bot's answer, ready after some time on the manual clock; meanwhile the test's world goes on."""

    result: Replied | BotFailed | Outdated
    ready_at_ms: int
    clock: ManualClock
    meanwhile: Callable[[], object]
    cancelled: bool = False

    async def wait(self, until_ms: int) -> Replied | BotFailed | Outdated | None:
        self.meanwhile()
        if self.ready_at_ms <= until_ms:
            self.clock.ms = max(self.clock.ms, self.ready_at_ms)
            return self.result
        self.clock.ms = until_ms
        return None

    async def cancel(self) -> int:
        self.cancelled = True
        return self.result.tokens


def nothing() -> None:
    """What happens meanwhile, by default."""


@dataclass(slots=True)
class FakeBot:
    """Answers by a function; takes `takes_ms`; `meanwhile` runs while it is at work."""

    clock: ManualClock
    answer: Callable[[Turn], Replied | BotFailed | Outdated] = lambda turn: Replied(Reply((Text(f"re: {turn.text}"),)))
    takes_ms: int = 0
    meanwhile: Callable[[], object] = nothing
    turns: list[Turn] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)

    async def start(self, turn: Turn) -> Work:
        self.turns.append(turn)
        work = Work(self.answer(turn), self.clock.ms + self.takes_ms, self.clock, self.meanwhile)
        self.works.append(work)
        return work


class World:
    """The use cases over memory, one step after another."""

    def __init__(self, timing: Timing | None = None, policy: Policy | None = None) -> None:
        self.timing = timing or Timing()
        self.clock = ManualClock()
        self.store = MemoryStore(self.timing)
        self.wake_ups = MemoryWakeUps()
        self.channel = LinesChannel()
        self.accounts = OneAccount(self.channel)
        self.bot = FakeBot(self.clock)
        self.seen = MemoryObserver()
        self.outside = Outside(
            self.store,
            self.wake_ups,
            self.accounts,
            self.bot,
            self.clock,
            CountedIds(),
            self.seen,
            self.timing,
            policy or Policy(),
        )
        self.ingest = Ingest(self.store, self.wake_ups, self.accounts, self.clock, self.seen, self.timing)

    @property
    def row(self) -> Row:
        return self.store.rows.get(CONVERSATION, Row())

    def write(self, provider_id: str, text: str | None = None) -> Response:
        """Ana writes a message."""
        body = f"ana|{provider_id}|ana|{text if text is not None else provider_id}".encode()
        return run(self.ingest("lines", Request("POST", "/", {"x-proof": "yes"}, body)))

    def wake(self, wake_up: WakeUp) -> None:
        run(generate(wake_up, self.clock.ms + 100_000, self.outside))

    def settle(self, limit: int = 200) -> None:
        """Let time pass, and every wake-up come, until none is left."""
        for _ in range(limit):
            due = self.wake_ups.next_due_ms()
            if due is None:
                return
            self.clock.ms = max(self.clock.ms, due)
            for wake_up in self.wake_ups.take_due(self.clock.ms):
                self.wake(wake_up)
        raise AssertionError(f"still {len(self.wake_ups.armed)} wake-ups after {limit} rounds")


def message(name: str, at_ms: int = START_MS, text: str | None = None) -> Message:
    """A short message whose id, author and text follow from its name."""
    return Message(message_id(name), name, "ana", at_ms, at_ms, text=name if text is None else text)


def at_rest(world: World) -> bool:
    """Nothing is owed, nothing is held, no wake-up is left, and no invariant is broken."""
    row = world.row
    return not row.owes and row.lease_owner is None and not world.wake_ups.armed and broken(row) == []
