"""The feed and the bot that takes its time: what threads wait for."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fakes import CONVERSATION, START_MS, ManualClock
from rejoinder.local.feed import KEPT, Feed, FeedObserver
from rejoinder.local.terminal import instant, span
from rejoinder.local.thinking import Crashed, ThinkingBot
from rejoinder.ports import BotFailed, Replied, Reply, Text, Turn, Work
from rejoinder.run import run


class InstantBot:
    """Answers at once, and counts how often it was asked."""

    starts = 0
    cancelled = False

    async def start(self, turn: Turn) -> Work:
        self.starts += 1
        return self

    async def wait(self, until_ms: int) -> Replied | BotFailed | None:
        return Replied(Reply((Text("done"),)))

    async def cancel(self) -> int:
        self.cancelled = True
        return 0


def numbers(feed: Feed, after: int = 0) -> list[int]:
    """What a closed feed still gives."""
    return [entry.number for entry in feed.follow(after) if entry is not None]


def test_a_follower_gets_everything_in_order_then_the_end() -> None:
    feed = Feed(lambda: START_MS)
    for count in range(3):
        feed.publish("write", CONVERSATION, count=count)
    feed.close()
    entries = [entry for entry in feed.follow() if entry is not None]
    assert [(entry.number, entry.at_ms, entry.fields) for entry in entries] == [
        (number + 1, START_MS, {"count": number}) for number in range(3)
    ]


def test_a_follower_goes_on_after_what_it_saw() -> None:
    feed = Feed(lambda: START_MS)
    for _ in range(5):
        feed.publish("write")
    feed.close()
    assert numbers(feed, 3) == [4, 5]


def test_a_follower_of_an_earlier_program_begins_anew() -> None:
    feed = Feed(lambda: START_MS)
    feed.publish("write")
    feed.close()
    assert numbers(feed, 900) == [1]


def test_the_feed_is_bounded() -> None:
    feed = Feed(lambda: START_MS)
    for _ in range(KEPT + 10):
        feed.publish("write")
    feed.close()
    assert numbers(feed) == list(range(11, KEPT + 11))


def test_a_quiet_feed_gives_a_sign_of_life() -> None:
    assert next(Feed(lambda: START_MS, quiet_s=0.001).follow()) is None


def test_a_waiting_follower_is_told_at_once() -> None:
    feed = Feed(lambda: START_MS)
    follower = feed.follow()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, follower)
        feed.publish("reply")
        entry = waiting.result(timeout=10)
    assert entry is not None
    assert entry.kind == "reply"


def test_the_observer_writes_a_line_without_what_is_unknown() -> None:
    lines: list[str] = []
    feed = Feed(lambda: START_MS)
    FeedObserver(feed, lines.append).happened("claimed", CONVERSATION, token=3, reason=None)
    feed.close()
    assert lines == [f"claimed        {CONVERSATION} token=3"]
    (entry,) = (entry for entry in feed.follow() if entry is not None)
    assert entry.fields == {"what": "claimed", "fields": {"token": 3, "reason": None}}


def test_the_bot_is_asked_once_its_pause_is_over() -> None:
    inner, clock, began = InstantBot(), ManualClock(), list[str]()
    bot = ThinkingBot(inner, clock, began.append, 5_000)
    work = run(bot.start(Turn(CONVERSATION, ())))
    assert began == [CONVERSATION]
    assert run(work.wait(clock.ms)) is None
    assert inner.starts == 0
    clock.ms += 5_000
    assert run(work.wait(clock.ms + 60_000)) == Replied(Reply((Text("done"),)))
    assert inner.starts == 1


def test_a_crash_ends_whoever_waits() -> None:
    bot = ThinkingBot(InstantBot(), ManualClock(), lambda _: None, 600_000)
    work = run(bot.start(Turn(CONVERSATION, ())))
    crashes: list[BaseException] = []

    def wait() -> None:
        try:
            run(work.wait(ManualClock().ms + 600_000))
        except Crashed as crash:
            crashes.append(crash)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert bot.crash() == 1
    waiting.join(timeout=10)
    assert len(crashes) == 1
    assert bot.crash() == 0


def test_what_has_answered_cannot_crash() -> None:
    clock = ManualClock()
    bot = ThinkingBot(InstantBot(), clock, lambda _: None, 0)
    work = run(bot.start(Turn(CONVERSATION, ())))
    run(work.wait(clock.ms))
    assert bot.crash() == 0


def test_cancelling_reaches_the_bot() -> None:
    inner, clock = InstantBot(), ManualClock()
    work = run(ThinkingBot(inner, clock, lambda _: None, 0).start(Turn(CONVERSATION, ())))
    run(work.wait(clock.ms))
    run(work.cancel())
    assert inner.cancelled


@pytest.mark.parametrize(
    ("length_ms", "text"),
    [
        (0, "0.0 s"),
        (1_450, "1.4 s"),
        (59_900, "59.9 s"),
        (60_000, "1 min 0 s"),
        (125_000, "2 min 5 s"),
        (3_600_000, "1 h 0 min"),
        (11_400_000, "3 h 10 min"),
        (93_600_000, "1 d 2 h"),
    ],
)
def test_lengths_of_time(length_ms: int, text: str) -> None:
    assert span(length_ms) == text


def test_instants_say_how_far_they_are() -> None:
    assert instant(START_MS, START_MS + 12_000) == "2026-09-21 14:13:20 UTC (12.0 s ago)"
    assert instant(START_MS, START_MS - 3_000) == "2026-09-21 14:13:20 UTC (in 3.0 s)"
