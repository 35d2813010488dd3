"""While a slow bot is at work: typing is held up, patience is asked for once, and what it all cost is counted."""

from dataclasses import replace

import pytest

from fakes import CONVERSATION, START_MS, LinesChannel, World
from rejoinder.handover import Handover
from rejoinder.ports import BotFailed, Outdated, Permanent, Policy, Replied, Reply, Text, Transient, UnknownOutcome
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.timing import Timing
from rejoinder.run import run

MOMENT = "One moment, please."


def slow(takes_ms: int, policy: Policy | None = None, timing: Timing | None = None) -> World:
    world = World(timing, policy)
    world.bot.takes_ms = takes_ms
    return world


# --- typing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown_ms", "takes_ms", "asked"),
    [
        (5_000, 21_000, 1 + 4),  # each 4.5 s: 4.5, 9, 13.5, 18
        (5_000, 4_000, 1),
        (25_000, 60_000, 1 + 2),  # each 24.5 s, past renewals of the lease
        (None, 60_000, 1),
    ],
)
def test_typing_is_held_up_as_long_as_the_bot_is_at_work(shown_ms: int | None, takes_ms: int, asked: int) -> None:
    world = slow(takes_ms)
    world.channel.typing_ms = shown_ms
    world.write("a")
    world.settle()
    assert world.channel.typed == asked
    assert world.channel.texts == ["re: a"]


def test_the_lease_is_renewed_all_the_same() -> None:
    """A minute of work under a lease of 30 s, with an errand each second."""
    world = slow(60_000)
    world.channel.typing_ms = 1_200
    world.write("a")
    world.settle()
    assert world.seen.count("lost") == 0
    assert world.row.lease_token == 1


# --- one moment -------------------------------------------------------------------------------------------------------


def test_a_slow_reply_is_announced_once() -> None:
    world = slow(40_000, Policy(moment=MOMENT, moment_ms=5_000))
    world.write("a")
    world.settle()
    assert world.channel.texts == [MOMENT, "re: a"]
    assert [turn.said for turn in run(world.store.history(CONVERSATION, 5, world.clock.ms))] == ["re: a"]


def test_typing_goes_on_at_once_after_the_announcement() -> None:
    """A message ends it on every channel: shown at 0 s, and from 5 s on each 24.5 s, so at 5 s and 29.5 s."""
    world = slow(40_000, Policy(moment=MOMENT, moment_ms=5_000))
    world.channel.typing_ms = 25_000
    world.write("a")
    world.settle()
    assert world.channel.typed == 1 + 2


def test_a_quick_one_is_not_nor_is_any_by_default() -> None:
    for takes_ms, policy in ((4_999, Policy(moment=MOMENT, moment_ms=5_000)), (90_000, Policy())):
        world = slow(takes_ms, policy)
        world.write("a")
        world.settle()
        assert world.channel.texts == ["re: a"]


def test_however_often_it_is_generated_it_is_announced_once() -> None:
    """Two attempts fail, the third answers."""
    world = slow(20_000, Policy(moment=MOMENT, moment_ms=5_000))
    results: list[Replied | BotFailed | Outdated] = [BotFailed("no"), BotFailed("no")]
    world.bot.answer = lambda turn: results.pop() if results else Replied(Reply((Text("at last"),)))
    world.write("a")
    world.settle()
    assert world.channel.texts == [MOMENT, "at last"]
    assert len(world.bot.turns) == 3


def test_the_next_burst_has_its_own() -> None:
    world = slow(20_000, Policy(moment=MOMENT, moment_ms=5_000))
    for text in ("a", "b"):
        world.write(text)
        world.settle()
    assert world.channel.texts == [MOMENT, "re: a", MOMENT, "re: b"]


@pytest.mark.parametrize("fault", [Transient("429"), Permanent("blocked"), UnknownOutcome("cut off")])
def test_whatever_becomes_of_it_it_counts_as_said(fault: Exception) -> None:
    world = slow(20_000, Policy(moment=MOMENT, moment_ms=5_000))
    results: list[BotFailed] = [BotFailed("no")]
    world.bot.answer = lambda turn: results.pop() if results else Replied(Reply((Text("at last"),)))
    world.channel.answers = [fault]
    world.write("a")
    world.settle()
    assert world.channel.texts == ["at last"]
    assert world.seen.count("moment_unsaid") == 1


def test_a_line_that_the_channel_cannot_show_is_no_failed_attempt() -> None:
    world = slow(20_000, Policy(moment=MOMENT, moment_ms=5_000))
    world.channel.cannot_show = MOMENT
    world.write("a")
    world.settle()
    assert world.channel.texts == ["re: a"]


def test_a_stop_between_two_parts_of_the_line_keeps_back_the_second() -> None:
    """The right to say it is taken anew before each part: once for the first, and only looked at for the next."""
    world = slow(20_000, Policy(moment=MOMENT, moment_ms=5_000))

    class TwoParts(LinesChannel):
        def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
            return ("one", "two")

        async def send(self, part: str, reply_id: str, index: int) -> None:
            await LinesChannel.send(self, part, reply_id, index)
            if part == "one":
                world.write("stop", "STOP")

    channel = TwoParts(consents={"STOP": "withdrawn"})
    world.accounts.the_channel = channel
    world.write("a")
    world.settle()
    assert channel.texts == ["one"]


def test_nothing_is_announced_in_a_pause_or_after_a_stop() -> None:
    for meanwhile in ("pause", "stop"):
        world = slow(20_000, Policy(moment=MOMENT, moment_ms=5_000))
        world.channel.consents = {"STOP": "withdrawn"}
        handover = Handover(world.store, world.wake_ups, world.clock, world.seen, world.timing)

        def interrupt(world: World = world, handover: Handover = handover, how: str = meanwhile) -> None:
            if how == "pause" and world.row.paused_until_ms is None:
                run(handover.pause(CONVERSATION, START_MS + 120_000))
            if how == "stop" and world.row.opted_out_at_ms is None:
                world.write("STOP")

        world.bot.meanwhile = interrupt
        world.write("a")
        world.clock.ms += 2_000
        for wake_up in world.wake_ups.take_due(world.clock.ms):
            world.wake(wake_up)
        assert world.channel.texts == []


def test_who_announces_and_dies_has_announced() -> None:
    """The right is taken before the line is sent: the next holder does not send another."""
    world = slow(20_000, Policy(moment=MOMENT, moment_ms=5_000))
    world.write("a")
    world.clock.ms += 2_000
    claimed = run(world.store.claim(CONVERSATION, "dead", world.clock.ms)).row
    world.store.rows[CONVERSATION] = replace(claimed, promised_token=claimed.lease_token)
    world.settle()
    assert world.channel.texts == ["re: a"]


# --- tokens -----------------------------------------------------------------------------------------------------------


def spent(world: World) -> tuple[int, int]:
    """Everything that was spent, and spent in vain."""
    fields = [one.fields for one in world.seen.happenings]
    counts = [
        [value for one in fields if isinstance(value := one.get(name), int)] for name in ("tokens", "tokens_in_vain")
    ]
    return sum(counts[0]), sum(counts[1])


def test_a_reply_that_is_sent_was_not_in_vain_but_for_what_it_threw_away() -> None:
    world = World()
    world.bot.answer = lambda turn: Replied(Reply((Text("hi"),)), tokens=100, in_vain=30)
    world.write("a")
    world.settle()
    assert spent(world) == (100, 30)


def test_what_is_superseded_was_in_vain() -> None:
    world = World()
    world.bot.answer = lambda turn: Replied(Reply((Text("hi"),)), tokens=100)
    late = ["b"]
    world.bot.meanwhile = lambda: world.write(late.pop()) if late else None
    world.write("a")
    world.settle()
    assert spent(world) == (200, 100)


@pytest.mark.parametrize("result", [BotFailed("no", tokens=40), Outdated(tokens=40)])
def test_what_has_failed_or_stopped_was_in_vain(result: BotFailed | Outdated) -> None:
    world = World()
    results: list[BotFailed | Outdated] = [result]
    world.bot.answer = lambda turn: results.pop() if results else Replied(Reply((Text("hi"),)), tokens=100)
    world.write("a")
    world.settle()
    assert spent(world) == (140, 40)


def test_what_was_given_up_for_its_time_was_in_vain() -> None:
    world = slow(150_000)
    world.bot.answer = lambda turn: Replied(Reply((Text("hi"),)), tokens=100)
    world.write("a")
    world.settle()
    assert world.bot.works[0].cancelled
    assert spent(world) == (300, 300)  # three attempts, then the fallback


def test_what_a_pause_withholds_was_in_vain() -> None:
    world = World()
    world.bot.answer = lambda turn: Replied(Reply((Text("hi"),)), tokens=100)
    handover = Handover(world.store, world.wake_ups, world.clock, world.seen, world.timing)
    world.bot.meanwhile = lambda: run(handover.pause(CONVERSATION, START_MS + 60_000))
    world.write("a")
    world.clock.ms += 2_000
    for wake_up in world.wake_ups.take_due(world.clock.ms):
        world.wake(wake_up)
    assert (spent(world), world.seen.count("withheld")) == ((100, 100), 1)


def test_what_another_has_taken_over_was_in_vain() -> None:
    """Its holder learns of it at the next renewal, and cancels."""
    world = slow(40_000)
    world.bot.answer = lambda turn: Replied(Reply((Text("hi"),)), tokens=100)
    world.write("a")
    world.clock.ms += 2_000

    def taken_over() -> None:
        if world.row.lease_owner != "another":
            world.store.rows[CONVERSATION] = replace(world.row, lease_owner="another", lease_token=2)

    world.bot.meanwhile = taken_over
    for wake_up in world.wake_ups.take_due(world.clock.ms):
        world.wake(wake_up)
    assert (spent(world), world.seen.count("lost")) == ((100, 100), 1)
