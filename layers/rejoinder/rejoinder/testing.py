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
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import pytest

from rejoinder.ports import Fault, Media, Policy, Request, Transient, Turn, UnknownOutcome
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.timing import Timing

if TYPE_CHECKING:
    from rejoinder.simulator.race_channel import RaceChannel
    from rejoinder.simulator.raced_bot import RacedBot
    from rejoinder.simulator.timeline import Timeline

During = Literal["ingest", "generation", "commit", "send", "finish"]

REDELIVERED_AFTER_S = 60.0
"""A provider that got no answer brings its webhook again after this."""

PAUSE_MARGIN_S = 5.0


class NoRaceError(RuntimeError):
    """`burst` and the others were called outside `with race(...)`."""


class UnansweredError(AssertionError):
    """The race is over, and something is still owed, or was never received."""


class BotRaisedError(AssertionError):
    """The bot failed in a way that `race(…, raises=…)` does not name; `__cause__` is what it raised."""


@dataclass(slots=True)
class Told:
    """What came of a race. Complete when the `with` block has ended.

    Attributes:
        replies: what people were sent, in order, as text.
        sent: the same, with the seconds since the start of the race.
        turns: what the bot was asked, once for each generation. Their deadlines are in the time of the machine, which
            the bot's own clock shows.
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
    bot: "RacedBot"
    requests: list[Request] = field(default_factory=list)
    written: int = 0


_RACE: ContextVar[Race | None] = ContextVar("race", default=None)
_LAST: list[Told] = []
"""The races of the running test, for the report if it fails."""


def conversation_of(chat: str) -> str:
    """The conversation id that a chat of a race has."""
    return f"race:shop:{chat}"


@contextmanager
def race(
    bot: Callable[[Turn], object],
    *,
    thinks: float = 1.0,
    timing: Timing | None = None,
    in_doubt: Literal["hold", "resend"] = "hold",
    fallback: str = "",
    secrets: Mapping[str, str | Fault] = MappingProxyType({}),
    raises: type[BaseException] | tuple[type[BaseException], ...] = (),
) -> Iterator[Told]:
    """Set a race up in a `with` block; it is run at the block's end.

    Args:
        bot: your function, as it is deployed.
        thinks: how many seconds each generation takes.
        timing: the protocol's settings; the defaults if None.
        in_doubt: what to do with a reply of which nobody knows whether it was sent.
        fallback: what is said where every attempt failed.
        secrets: what `turn.secret` gives, by reference; a fault is what it raises.
        raises: what the bot may raise; with anything else, and with what is no reply, the race fails.

    Raises:
        BotRaisedError: the bot failed, and that was not declared.
        UnansweredError: when all is over, somebody still waits, or was never heard.
    """
    from rejoinder.simulator.raced_bot import RacedBot  # noqa: PLC0415  # not before somebody races: this is a plugin

    told = Told(timing or Timing())
    raced = RacedBot(bot, round(thinks * 1000), secrets, raises, told.turns)
    running = prepared(raced, told, Policy(in_doubt=in_doubt, fallback=fallback))
    _LAST.append(told)
    token = _RACE.set(running)
    try:
        yield told
    finally:
        _RACE.reset(token)
    conclude(running)


def prepared(bot: "RacedBot", told: Told, policy: Policy) -> Race:
    """Put a time-line around a bot, whose turns are given what they have when deployed."""
    from rejoinder.effects import Effects  # noqa: PLC0415
    from rejoinder.media import Fetching  # noqa: PLC0415
    from rejoinder.newer import Look  # noqa: PLC0415
    from rejoinder.simulator.race_channel import RaceChannel  # noqa: PLC0415
    from rejoinder.simulator.records import CountedIds, Thought  # noqa: PLC0415
    from rejoinder.simulator.timeline import Timeline  # noqa: PLC0415
    from rejoinder.system import SystemClock  # noqa: PLC0415

    def think(turn: Turn) -> Thought:
        turn.fetch = fetching.at(turn)
        turn.once = effects.once_in(turn)
        turn.deadline_ms += desk.now_ms() - timeline.clock.now_ms()  # a bot over a model looks at the desk's clock
        return bot.think(turn, look.at(turn))

    channel, desk = RaceChannel(), SystemClock()
    timeline = Timeline(
        think,
        {("race", "default"): channel},
        timing=told.timing,
        policy=policy,
        redelivery_ms=round(REDELIVERED_AFTER_S * 1000),
    )
    fetching = Fetching(channel, desk, timeline.observer)
    effects = Effects(timeline.store, timeline.clock, CountedIds(), timeline.observer, told.timing)
    look = Look(timeline.store, timeline.clock, policy.on_newer, told.timing.absorb_ms)
    return Race(timeline, told, channel, bot)


def conclude(running: Race) -> None:
    """Run a race that has been set up, and judge it.

    Raises:
        BotRaisedError: see `race`.
        UnansweredError: see `race`.
    """
    from rejoinder.simulator.records import START_MS  # noqa: PLC0415

    timeline, told, bot = running.timeline, running.told, running.bot
    try:
        timeline.run()
    finally:
        told.sent = [((sent.at_ms - START_MS) / 1000, sent.part) for sent in timeline.replies]
        told.replies = [sent.part for sent in timeline.replies]
        told.rows = timeline.rows
        told.told = timeline.history()
    if bot.failed:
        way_out = "" if bot.cause is None else f"; if that is meant: race(…, raises={type(bot.cause).__name__})"
        raise BotRaisedError(f"the bot failed in {bot.failed}{way_out}\n{told.told}") from bot.cause
    if owing := [conversation for conversation, row in told.rows.items() if row.owes]:
        raise UnansweredError(f"somebody still waits in {', '.join(owing)}\n{told.told}")
    heard = [one.webhook[1] for one in timeline.invocations if one.webhook is not None and one.acknowledged]
    if lost := [str(request.body[:200]) for request in running.requests if not any(request is one for one in heard)]:
        raise UnansweredError(f"every delivery failed, and nobody ever received {', '.join(lost)}\n{told.told}")


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
        during: where. After a crash in `ingest` the provider brings the webhook again, a minute after it came.
        times: how many invocations die so, one after another.
        after: just after the call instead of just before it: after `send`, the reply went out and nobody knows.
    """
    from rejoinder.simulator.records import Disturbance  # noqa: PLC0415

    running = _running()
    port, method = _WHERE[during]
    running.timeline.disturb(Disturbance(port=port, method=method, crash="after" if after else "before", times=times))


def pause(*, during: During) -> None:
    """Let an invocation freeze until its lease is over and another has taken its place; then it goes on.

    Args:
        during: where. In `ingest`, which holds no lease, for half its time-out: `redeliver` comes in between.
    """
    from rejoinder.simulator.records import Disturbance  # noqa: PLC0415

    running = _running()
    port, method = _WHERE[during]
    timing = running.told.timing
    overtaken_ms = timing.lease_ms + round(PAUSE_MARGIN_S * 1000)
    delay_ms = timing.ingest_timeout_ms // 2 if during == "ingest" else overtaken_ms
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
