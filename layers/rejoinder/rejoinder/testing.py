"""Race your own bot: bursts, crashes, slow models and lost sends around it, in virtual time, in a plain test.

    from rejoinder.testing import burst, crash, race

    def test_one_reply_covers_both():
        with race(reply) as told:
            burst("my phone is 555 0199", at=0)
            burst("and my e-mail is ana@example.com", at=0.3)
            crash(during="generation")
        assert told.replies == ["Thanks! I have your phone and your e-mail."]

Everything else is the real thing: the use cases, the protocol and its checks run as they do when deployed, over a store
in memory and a manual clock. Nothing is random and nothing sleeps: a test always goes the same way. `docs/testing.md`
shows more. As a pytest plugin (loaded with the package) it adds what happened to the report of a test that fails.
"""

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pytest

from rejoinder.ports import (
    Event,
    Fault,
    Inbound,
    Media,
    Policy,
    Reply,
    Request,
    Response,
    Transient,
    Turn,
    UnknownOutcome,
    part_text,
)
from rejoinder.protocol.conversation import Attachment, Message, Row
from rejoinder.protocol.timing import Timing

if TYPE_CHECKING:
    from rejoinder.simulator.timeline import Timeline

During = Literal["ingest", "generation", "commit", "send", "finish"]

REDELIVERED_AFTER_S = 60.0
"""A provider that got no answer brings its webhooks again after this."""

PAUSE_MARGIN_S = 5.0


class NoRaceError(RuntimeError):
    """`burst` and the others were called outside `with race(...)`."""


class UnansweredError(AssertionError):
    """The race is over, and something is still owed."""


@dataclass(slots=True)
class Told:
    """What came of a race. Complete when the `with` block has ended.

    Attributes:
        replies: what people were sent, in order, as text.
        sent: the same, with the seconds since the start of the race.
        turns: what the bot was asked, once for each generation.
    """

    timing: Timing
    replies: list[str] = field(default_factory=list)
    sent: list[tuple[float, str]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)
    told: str = ""

    def history(self) -> str:
        """Who did what, with the row after each step; one line each."""
        return self.told

    def row(self, chat: str = "ana") -> Row:
        """The row of a conversation, as the race left it."""
        return self.rows.get(conversation_of(chat), Row())


@dataclass(slots=True)
class Race:
    """A race that is being set up."""

    timeline: "Timeline"
    told: Told
    channel: "RaceChannel"
    requests: list[Request] = field(default_factory=list)
    written: int = 0


_RACE: ContextVar[Race | None] = ContextVar("race", default=None)
_LAST: list[Told] = []
"""The races of the running test, for the report if it fails."""


def conversation_of(chat: str) -> str:
    """The conversation id that a chat of a race has."""
    return f"race:shop:{chat}"


class RaceChannel:
    """Implements `ports.Channel`: people write through `burst`, and what they are sent is kept.

    Implements `ports.Channels`, too: it is the one account.
    """

    taken: Response | None = None
    typing_ms: int | None = None

    def __init__(self) -> None:
        self.media: dict[str, Media | Fault] = {}

    async def channel(self, name: str, via: str) -> "RaceChannel":  # noqa: ARG002
        """Find the one account."""
        return self

    async def refreshed(self, name: str, via: str) -> None:
        """Its proofs never fail."""

    def verify(self, request: Request, now_ms: int) -> None:
        """Everybody may write."""

    def handshake(self, request: Request) -> Response | None:  # noqa: ARG002
        """No request is a handshake."""
        return None

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:  # noqa: ARG002
        """Read what `burst` wrote."""
        written = json.loads(request.body)
        return [
            Inbound(**fields | {"attachments": tuple(Attachment(**one) for one in fields["attachments"])})
            for fields in written
        ]

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:  # noqa: ARG002
        """Write each part as the text that a person would see."""
        return tuple(part_text(part) for part in reply.parts)

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """The time-line keeps what is sent."""

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:  # noqa: ARG002
        """Most channels cannot tell."""
        return None

    async def typing(self, to: Message) -> None:
        """Nobody looks."""

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:  # noqa: ARG002
        """Give what `burst` was given, or raise it."""
        media = self.media[attachment.ref]
        if isinstance(media, Fault):
            raise media
        return media


@contextmanager
def race(
    bot: Callable[[Turn], object],
    *,
    thinks: float = 1.0,
    timing: Timing | None = None,
    in_doubt: Literal["hold", "resend"] = "hold",
    fallback: str = "",
) -> Iterator[Told]:
    """Set a race up in a `with` block; it is run at the block's end.

    Args:
        bot: your function, as it is deployed.
        thinks: how many seconds each generation takes.
        timing: the protocol's settings; the defaults if None.
        in_doubt: what to do with a reply of which nobody knows whether it was sent.
        fallback: what is said where every attempt failed.

    Raises:
        UnansweredError: when all is over, somebody still waits.
    """
    # not before somebody races: this module is a plugin
    from rejoinder.bots.function import answer, covering  # noqa: PLC0415
    from rejoinder.effects import Effects  # noqa: PLC0415
    from rejoinder.media import Fetching  # noqa: PLC0415
    from rejoinder.newer import Look  # noqa: PLC0415
    from rejoinder.simulator.records import START_MS, CountedIds, Thought  # noqa: PLC0415
    from rejoinder.simulator.timeline import Timeline  # noqa: PLC0415

    told = Told(timing or Timing())
    channel = RaceChannel()

    def think(turn: Turn) -> Thought:
        turn.fetch = fetching.at(turn)
        turn.once = effects.once_in(turn)
        watch = look.at(turn)
        told.turns.append(turn)
        result: Any = covering(answer(bot, turn), watch)
        return Thought(result, round(thinks * 1000))

    policy = Policy(in_doubt=in_doubt, fallback=fallback)
    timeline = Timeline(think, {("race", "default"): channel}, timing=told.timing, policy=policy)
    fetching = Fetching(channel, timeline.clock, timeline.observer)
    effects = Effects(timeline.store, timeline.clock, CountedIds(), timeline.observer, told.timing)
    look = Look(timeline.store, timeline.clock, policy.on_newer, told.timing.absorb_ms)
    _LAST.append(told)
    token = _RACE.set(Race(timeline, told, channel))
    try:
        yield told
    finally:
        _RACE.reset(token)
    try:
        timeline.run()
    finally:
        told.sent = [((sent.at_ms - START_MS) / 1000, sent.part) for sent in timeline.replies]
        told.replies = [sent.part for sent in timeline.replies]
        told.rows = timeline.rows
        told.told = timeline.history()
    if owing := [conversation for conversation, row in told.rows.items() if row.owes]:
        raise UnansweredError(f"somebody still waits in {', '.join(owing)}\n{told.told}")


def _running() -> Race:
    running = _RACE.get()
    if running is None:
        raise NoRaceError("no race is being set up; call this inside `with race(bot):`")
    return running


# --- what people do ---------------------------------------------------------------------------------------------------


def burst(
    *texts: str,
    at: float = 0.0,
    gap: float = 0.0,
    by: str = "ana",
    chat: str | None = None,
    media: Sequence[Media | Fault] = (),
) -> None:
    """Somebody writes one message, or several in a row.

    Args:
        texts: what is written; each is a message and a webhook of its own.
        at: when the first is written, in seconds since the start.
        gap: seconds between one and the next.
        by: who writes.
        chat: where; a chat of their own if None. Several people in one chat make a group.
        media: files that come with the last message, or with one without a text. A fault stands for a photo, and is
            what `turn.fetch` raises for it.
    """
    running = _running()
    texts = texts or ("",)
    for place, text in enumerate(texts):
        running.written += 1
        message: dict[str, Any] = {
            "conversation_id": conversation_of(chat or by),
            "provider_id": f"message {running.written}",
            "author": by,
            "author_name": by.capitalize(),
            "text": text,
            "attachments": attached(running, media) if place == len(texts) - 1 else [],
        }
        request = Request("POST", "/webhooks/race/default", {}, json.dumps([message]).encode())
        running.requests.append(request)
        running.timeline.webhook(round((at + place * gap) * 1000), "race", request)


def attached(running: Race, media: Sequence[Media | Fault]) -> list[dict[str, str]]:
    """Keep files until they are fetched, and write them as a message's attachments: only `ref` leads to one."""
    written = []
    for file in media:
        ref = f"file {len(running.channel.media) + 1}"
        running.channel.media[ref] = file
        mime = file.mime if isinstance(file, Media) else "image/jpeg"
        family = mime.partition("/")[0]
        written.append({"kind": family if family in {"image", "audio", "video"} else "file", "ref": ref, "mime": mime})
    return written


def redeliver(*, at: float, message: int = -1) -> None:
    """The provider brings a message again, as providers do: by default the last that was written."""
    running = _running()
    running.timeline.webhook(round(at * 1000), "race", running.requests[message])


# --- what goes wrong --------------------------------------------------------------------------------------------------

_WHERE: dict[During, tuple[str, str]] = {
    "ingest": ("store", "record"),
    "generation": ("work", "wait"),
    "commit": ("store", "commit"),
    "send": ("channel", "send"),
    "finish": ("store", "finish"),
}


def crash(*, during: During, times: int = 1, after: bool = False) -> None:
    """Let an invocation die.

    Args:
        during: where; a crash in `ingest` is followed by the provider's redelivery a minute later.
        times: how many invocations die so, one after another.
        after: just after the call instead of just before it: after `send`, the reply went out and nobody knows.
    """
    from rejoinder.simulator.records import Disturbance  # noqa: PLC0415

    running = _running()
    port, method = _WHERE[during]
    running.timeline.disturb(Disturbance(port=port, method=method, crash="after" if after else "before", times=times))
    if during == "ingest":
        for request in running.requests:
            running.timeline.webhook(round(REDELIVERED_AFTER_S * 1000), "race", request)


def pause(*, during: During) -> None:
    """Let an invocation freeze until its lease is over and another has taken its place; then it goes on."""
    from rejoinder.simulator.records import Disturbance  # noqa: PLC0415

    running = _running()
    port, method = _WHERE[during]
    delay_ms = running.told.timing.lease_ms + round(PAUSE_MARGIN_S * 1000)
    running.timeline.disturb(Disturbance(port=port, method=method, delay_ms=delay_ms))


def refuse(*, times: int = 1, retry_after: float | None = None) -> None:
    """Let the channel refuse the next sends for now, as with a 429.

    Args:
        times: how many.
        retry_after: the seconds that it asks to wait.
    """
    from rejoinder.simulator.records import Disturbance  # noqa: PLC0415

    fault = Transient("429", retry_after_ms=None if retry_after is None else round(retry_after * 1000))
    _running().timeline.disturb(Disturbance(port="channel", method="send", refuse=fault, times=times))


def lose_answer(*, sent: bool = True) -> None:
    """Let the next send time out, so that nobody knows whether the reply went out.

    Args:
        sent: whether it really did.
    """
    from rejoinder.simulator.records import Disturbance  # noqa: PLC0415

    fault = UnknownOutcome("timed out")
    lost = {"lose": fault} if sent else {"refuse": fault}
    _running().timeline.disturb(Disturbance(port="channel", method="send", **lost))  # type: ignore[arg-type]


# --- the plugin -------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,  # noqa: ARG001  # pytest calls by name
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what happened in each race to the report of a test that failed."""
    report = yield
    if call.when == "call":
        if report.failed:
            report.sections += [(f"race {place}", told.told) for place, told in enumerate(_LAST, 1) if told.told]
        _LAST.clear()
    return report
