"""The generator's use case: who answers, when, and what is left behind."""

import json
from itertools import pairwise

import pytest

from fakes import CONVERSATION, START_MS, World, at_rest
from rejoinder.ports import (
    BotFailed,
    Policy,
    Replied,
    Reply,
    Text,
    Transient,
)
from rejoinder.protocol.timing import Timing
from rejoinder.run import run


def test_a_burst_gets_one_reply_to_all_of_it() -> None:
    world = World()
    world.write("phone")
    world.clock.ms += 1_500
    world.write("email")
    world.settle()
    assert world.channel.texts == ["re: phone\nemail"]
    assert [m.text for m in world.bot.turns[0].messages] == ["phone", "email"]
    assert at_rest(world)


def test_the_reply_comes_a_debounce_after_the_last_message() -> None:
    world = World()
    world.write("a")
    world.clock.ms += 1_500
    world.write("b")
    world.settle()
    claimed_at = world.store.items[CONVERSATION, "TURN#000000000002"].value
    assert getattr(claimed_at, "at_ms", None) == START_MS + 1_500 + world.timing.debounce_ms


def test_who_never_pauses_is_answered_at_the_cap() -> None:
    world = World()
    for second in range(10):
        world.write(f"m{second}")
        world.clock.ms += 1_000
        for wake_up in world.wake_ups.take_due(world.clock.ms):
            world.wake(wake_up)
    assert world.clock.ms - START_MS == world.timing.max_wait_ms
    assert len(world.bot.turns) == 1


def test_a_message_in_mid_generation_outdates_the_reply() -> None:
    """The e-mail comes while the phone number is being answered: one reply, to both."""
    world = World()
    world.write("phone")
    world.bot.takes_ms = 3_000
    world.bot.meanwhile = lambda: world.write("email")
    world.settle()
    assert world.channel.texts == ["re: phone\nemail"]
    assert world.seen.count("superseded") == 1
    assert at_rest(world)


def test_superseding_is_bounded() -> None:
    """Somebody writes during every generation: the third reply is sent all the same, the rest stays pending."""
    world = World()
    count = 0

    def another() -> None:
        nonlocal count
        if count < 3:
            count += 1
            world.write(f"more {count}")

    world.write("first")
    world.bot.meanwhile = another
    world.bot.takes_ms = 100
    world.settle()
    assert world.channel.texts == ["re: first\nmore 1\nmore 2", "re: more 3"]
    assert at_rest(world)


def test_an_outdated_reply_is_in_no_history() -> None:
    world = World()
    world.write("hello")
    texts = iter(["Hi! How can I help?", "Sorry to hear that."])
    world.bot.answer = lambda turn: Replied(Reply((Text(next(texts)),)))
    world.bot.meanwhile = lambda: world.write("my order is late")
    world.settle()
    assert world.bot.turns[1].history == ()
    turns = run(world.store.history(CONVERSATION, 10, world.clock.ms))
    assert [turn.said for turn in turns] == ["Sorry to hear that."]


def test_the_lease_is_renewed_while_a_model_is_slow() -> None:
    world = World()
    world.write("q")
    world.bot.takes_ms = 95_000
    expiries: list[int] = []
    world.bot.meanwhile = lambda: expiries.append(world.row.lease_expires_at_ms or 0)
    world.settle()
    assert world.channel.texts == ["re: q"]
    steps = [later - sooner for sooner, later in pairwise(expiries)]
    assert set(steps) == {world.timing.renew_ms}
    assert len(steps) == 9


def test_a_bot_that_misses_its_deadline_has_failed() -> None:
    world = World()
    world.write("q")
    world.bot.takes_ms = 10_000_000
    world.settle()
    assert [work.cancelled for work in world.bot.works] == [True, True, True]
    assert world.channel.texts == []
    assert at_rest(world)


def test_after_the_bound_of_attempts_the_fallback_is_said_once() -> None:
    world = World(policy=Policy(fallback="Something went wrong. Please write again."))
    world.bot.answer = lambda turn: BotFailed("ValueError in tool")
    world.write("q")
    world.settle()
    assert [turn.attempt for turn in world.bot.turns] == [1, 2, 3]
    assert world.channel.texts == ["Something went wrong. Please write again."]
    assert at_rest(world)
    turn = run(world.store.history(CONVERSATION, 1, world.clock.ms))[0]
    assert turn.failed


def test_attempts_pause_longer_each_time_and_as_long_as_the_model_asks() -> None:
    world = World()
    failures = [BotFailed("overloaded"), BotFailed("overloaded", retry_after_ms=9_000)]
    starts: list[int] = []

    def answer(_: object) -> Replied | BotFailed:
        starts.append(world.clock.ms)
        return failures.pop(0) if failures else Replied(Reply((Text("there"),)))

    world.bot.answer = answer
    world.write("q")
    world.settle()
    assert [later - sooner for sooner, later in pairwise(starts)] == [2_000, 9_000]
    assert world.channel.texts == ["there"]


@pytest.mark.parametrize(
    ("failed", "pause_ms"),
    [
        (BotFailed("come back tomorrow", retry_after_ms=86_400_000), 60_000),
        (BotFailed("may be under way", in_doubt_ms=90_000), 90_000),
    ],
)
def test_nobody_waits_longer_for_a_model_than_for_the_longest_pause(failed: BotFailed, pause_ms: int) -> None:
    """`max_retry_ms` is 60 s. What is in doubt cannot be settled sooner, however long that takes."""
    world = World()
    failures, starts = [failed], list[int]()

    def answer(_: object) -> Replied | BotFailed:
        starts.append(world.clock.ms)
        return failures.pop() if failures else Replied(Reply((Text("there"),)))

    world.bot.answer = answer
    world.write("q")
    world.settle()
    assert starts[1] - starts[0] == pause_ms


def test_a_failure_that_no_attempt_can_mend_is_not_tried_again() -> None:
    world = World(policy=Policy(fallback="Please ask something else."))
    world.bot.answer = lambda turn: BotFailed("withheld by a content filter", final=True)
    world.write("q")
    world.settle()
    assert [turn.attempt for turn in world.bot.turns] == [1]
    assert world.channel.texts == ["Please ask something else."]
    assert at_rest(world)


def test_a_fault_of_ours_raises_the_alarm_each_time_it_is_met() -> None:
    world = World()
    world.bot.answer = lambda turn: BotFailed("the key has expired", ours=True)
    world.write("q")
    world.settle()
    assert len(world.bot.turns) == world.seen.count("misconfigured") == 3


def test_holders_that_crash_use_up_the_attempts() -> None:
    """Each claims and is never heard of again: no write counts them, the tokens do."""
    world = World(policy=Policy(fallback="sorry"))
    world.write("q")
    for crash in range(3):
        world.clock.ms += 60_000
        run(world.store.claim(CONVERSATION, f"dead-{crash}", world.clock.ms))
    world.settle()
    assert world.bot.turns == []
    assert world.channel.texts == ["sorry"]
    assert at_rest(world)


def test_a_reply_that_says_nothing_answers_and_keeps_the_state() -> None:
    world = World()
    world.bot.answer = lambda turn: Replied(Reply(), state=json.dumps({"seen": 1}))
    world.write("q")
    world.settle()
    assert world.channel.sent == []
    assert world.row.answered == 1
    assert run(world.store.state(CONVERSATION, world.clock.ms)) == '{"seen": 1}'
    assert at_rest(world)


def test_the_state_comes_back_in_the_next_turn() -> None:
    world = World()
    world.bot.answer = lambda turn: Replied(Reply((Text("ok"),)), state=json.dumps({"n": turn.state.get("n", 0) + 1}))
    for name in ("a", "b", "c"):
        world.write(name)
        world.settle()
    assert run(world.store.state(CONVERSATION, world.clock.ms)) == '{"n": 3}'
    assert [turn.said for turn in world.bot.turns[2].history] == ["ok", "ok"]


def test_a_long_message_reaches_the_bot_whole() -> None:
    world = World()
    world.write("long", "x" * 5_000)
    assert world.row.pending[0].text == ""
    world.settle()
    assert world.bot.turns[0].messages[0].text == "x" * 5_000
    world.write("next")
    world.settle()
    assert world.bot.turns[1].history[0].messages[0].text == "x" * 5_000


def test_a_long_reply_is_sent_whole_and_kept_off_the_row() -> None:
    world = World()
    world.bot.answer = lambda turn: Replied(Reply((Text("y" * 3_000), Text("z" * 3_000))))
    world.write("q")
    world.channel.answers = [Transient("busy")]
    for wake_up in world.wake_ups.take_due(START_MS + 2_000):
        world.clock.ms = START_MS + 2_000
        world.wake(wake_up)
    assert world.row.outbox is not None
    assert world.row.outbox.parts == ()
    world.settle()
    assert world.channel.texts == ["y" * 3_000, "z" * 3_000]
    world.write("next")
    world.settle()
    assert world.bot.turns[1].history[0].said == "y" * 3_000 + "\n\n" + "z" * 3_000


def test_what_the_channel_cannot_show_is_a_failed_attempt_and_silence_at_last() -> None:
    world = World(policy=Policy(fallback="sorry"))
    world.channel.cannot_show = "re: q"
    world.write("q")
    world.settle()
    assert world.channel.texts == ["sorry"]
    world.channel.cannot_show = "sorry"
    world.bot.answer = lambda turn: BotFailed("no")
    world.write("r")
    world.settle()
    assert world.channel.texts == ["sorry"]
    assert at_rest(world)


def test_an_account_that_is_gone_does_not_stop_its_conversations() -> None:
    world = World()
    world.write("q")
    world.accounts.gone = True
    world.settle()
    assert world.bot.turns == []
    assert world.seen.count("account_gone") == 1
    assert at_rest(world)


def test_the_bot_is_told_how_many_were_refused_once() -> None:
    world = World(Timing(max_pending=2))
    for name in ("a", "b", "c", "d"):
        world.write(name)
    world.settle()
    world.write("e")
    world.settle()
    assert [turn.overflowed for turn in world.bot.turns] == [2, 0]


def test_a_refusal_during_the_generation_is_told_in_the_next_turn() -> None:
    """ADR 3.1: the commit subtracts what this turn told, and no more."""
    world = World(Timing(max_pending=2))
    world.write("a")
    world.write("b")
    world.bot.meanwhile = lambda: world.write("c")
    for wake_up in world.wake_ups.take_due(START_MS + 2_000):
        world.clock.ms = START_MS + 2_000
        world.wake(wake_up)
    world.bot.meanwhile = lambda: None
    world.write("d")
    world.settle()
    assert [turn.overflowed for turn in world.bot.turns] == [0, 1]
