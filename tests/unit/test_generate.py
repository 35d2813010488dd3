"""The generator's use case: who answers, when, and what is left behind."""

import json
from itertools import pairwise
from typing import Literal

import pytest

from fakes import CONVERSATION, START_MS, World, message
from rejoinder.ports import (
    BotFailed,
    Permanent,
    Policy,
    Replied,
    Reply,
    Reported,
    Request,
    Text,
    Transient,
    UnknownOutcome,
)
from rejoinder.protocol.conversation import Row
from rejoinder.protocol.identity import message_id
from rejoinder.protocol.invariants import broken
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import ForMessage, ForReceived, WakeUp, for_message
from rejoinder.run import run


def at_rest(world: World) -> bool:
    """Nothing is owed, nothing is held, no wake-up is left, and no invariant is broken."""
    row = world.row
    return not row.owes and row.lease_owner is None and not world.wake_ups.armed and broken(row) == []


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


def test_a_refused_send_is_repeated_with_the_same_bytes_and_id() -> None:
    world = World()
    world.channel.answers = [Transient("429", retry_after_ms=7_000)]
    world.write("q")
    world.settle()
    assert world.channel.texts == ["re: q"]
    assert len(world.bot.turns) == 1
    assert world.clock.ms - START_MS >= world.timing.debounce_ms + 7_000
    assert at_rest(world)


def test_a_reply_of_parts_goes_on_where_it_stopped() -> None:
    world = World()
    world.bot.answer = lambda turn: Replied(Reply((Text("1"), Text("2"), Text("3"))))
    world.channel.answers = [None, Transient("429"), None, None]
    world.write("q")
    world.settle()
    assert [(part, index) for part, _, index in world.channel.sent] == [("1", 0), ("2", 1), ("3", 2)]
    assert len({reply_id for _, reply_id, _ in world.channel.sent}) == 1


def test_a_final_refusal_ends_the_turn_and_the_conversation_goes_on() -> None:
    world = World()
    world.channel.answers = [Permanent("403 blocked")]
    world.write("q")
    world.settle()
    assert world.channel.sent == []
    assert at_rest(world)
    world.write("again")
    world.settle()
    assert world.channel.texts == ["re: again"]
    assert [turn.delivery for turn in world.bot.turns[1].history] == ["refused"]


def test_in_doubt_is_held_and_not_sent_again() -> None:
    world = World()
    world.channel.answers = [UnknownOutcome("read timed out")]
    world.write("q")
    world.settle()
    assert world.channel.sent == []
    held = run(world.store.held(CONVERSATION, world.clock.ms))
    assert [(h.outbox.parts, h.reason) for h in held] == [(("re: q",), "in doubt")]
    assert at_rest(world)


def test_in_doubt_is_resent_where_losing_is_worse() -> None:
    world = World(policy=Policy(in_doubt="resend"))
    world.channel.answers = [UnknownOutcome("read timed out")]
    world.write("q")
    world.settle()
    assert world.channel.texts == ["re: q"]
    assert at_rest(world)


@pytest.mark.parametrize(("knows", "copies"), [(True, 0), (False, 1)])
def test_in_doubt_is_resolved_by_a_channel_that_can_tell(knows: bool, copies: int) -> None:
    world = World()
    world.channel.knows = knows
    world.channel.answers = [UnknownOutcome("read timed out")]
    world.write("q")
    world.settle()
    assert len(world.channel.sent) == copies
    assert run(world.store.held(CONVERSATION, world.clock.ms)) == ()
    assert at_rest(world)


@pytest.mark.parametrize(("knows", "copies"), [(True, 0), (False, 1)])
def test_a_channel_that_can_tell_later_is_asked_of_the_part_when_the_lease_has_run_out(
    knows: bool, copies: int
) -> None:
    """Asked at once it might still be at work on it, and what is not there yet would be sent twice."""
    world = World()
    world.channel.knows = knows
    world.channel.answers = [UnknownOutcome("read timed out", told_later=True)]
    world.write("q")
    world.settle()
    ((part, reply_id, index),) = world.channel.asked
    assert (part, index) == ("re: q", 0)
    assert world.clock.ms >= START_MS + world.timing.debounce_ms + world.timing.lease_ms
    assert world.channel.sent == [("re: q", reply_id, 0)] * copies
    assert at_rest(world)


@pytest.mark.parametrize("policy", ["hold", "resend"])
def test_where_the_channel_reports_the_next_holder_looks_up_what_it_reported(
    policy: Literal["hold", "resend"],
) -> None:
    """Nobody decides before the lease has run out: by then the report of what was sent has come."""
    world = World(policy=Policy(in_doubt=policy))
    world.channel.answers = [UnknownOutcome("read timed out", told_later=True)]
    world.write("q")
    world.clock.ms += 2_000
    world.wake(world.wake_ups.take_due(world.clock.ms)[0])
    outbox = world.row.outbox
    assert outbox is not None
    world.channel.reports = [Reported(CONVERSATION, outbox.reply_id, 0)]
    assert json.loads(run(world.ingest("lines", Request("POST", "/", {"x-proof": "yes"}, b""))).body) == {"reported": 1}
    world.settle()
    assert world.channel.sent == []
    (turn,) = run(world.store.history(CONVERSATION, 1, world.clock.ms))
    assert turn.delivery == "sent"
    assert at_rest(world)


def test_where_no_report_comes_the_reply_is_held_when_the_lease_has_run_out() -> None:
    world = World()
    world.channel.answers = [UnknownOutcome("read timed out", told_later=True)]
    world.write("q")
    world.settle()
    (held,) = run(world.store.held(CONVERSATION, world.clock.ms))
    assert held.reason == "in doubt"
    assert held.at_ms > held.outbox.committed_at_ms + world.timing.lease_ms
    assert world.channel.sent == []
    assert at_rest(world)


def test_a_report_of_one_part_says_nothing_of_another() -> None:
    world = World()
    world.bot.answer = lambda turn: Replied(Reply((Text("one"), Text("two"))))
    world.channel.answers = [None, UnknownOutcome("read timed out", told_later=True)]
    world.write("q")
    world.clock.ms += 2_000
    world.wake(world.wake_ups.take_due(world.clock.ms)[0])
    outbox = world.row.outbox
    assert outbox is not None
    world.channel.reports = [Reported(CONVERSATION, outbox.reply_id, 0)]
    run(world.ingest("lines", Request("POST", "/", {"x-proof": "yes"}, b"")))
    world.settle()
    assert len(run(world.store.held(CONVERSATION, world.clock.ms))) == 1


def test_a_holder_that_dies_after_the_commit_leaves_the_reply_in_doubt() -> None:
    """Nobody can know whether it was sent; by default it is held, and nothing is generated anew."""
    world = World()
    world.write("q")
    world.clock.ms += 2_000
    world.channel.answers = [KeyboardInterrupt()]  # type: ignore[list-item]  # the process dies inside the request
    with pytest.raises(KeyboardInterrupt):
        world.wake(world.wake_ups.take_due(world.clock.ms)[0])
    world.settle()
    assert len(world.bot.turns) == 1
    assert world.channel.sent == []
    assert len(run(world.store.held(CONVERSATION, world.clock.ms))) == 1
    assert at_rest(world)


def test_a_crash_after_a_second_try_is_in_doubt_although_the_first_was_refused() -> None:
    """ADR 3.2: the mark of a refusal is good for the next token alone."""
    world = World()
    world.channel.answers = [Transient("429"), KeyboardInterrupt()]  # type: ignore[list-item]
    world.write("q")
    with pytest.raises(KeyboardInterrupt):
        world.settle()
    world.settle()
    assert world.channel.sent == []
    assert [held.reason for held in run(world.store.held(CONVERSATION, world.clock.ms))] == ["in doubt"]


def test_our_own_fault_is_reported_and_the_reply_waits() -> None:
    world = World()
    world.channel.answers = [Transient("190 token expired", ours=True)]
    world.write("q")
    world.settle()
    assert world.seen.count("misconfigured") == 1
    assert world.channel.texts == ["re: q"]


def test_a_reply_refused_for_too_long_is_held_for_an_operator() -> None:
    world = World(Timing(outbox_max_age_ms=60_000))
    world.channel.answers = [Transient("503")] * 50
    world.write("q")
    world.settle()
    held = run(world.store.held(CONVERSATION, world.clock.ms))
    assert len(held) == 1
    assert "503" in held[0].reason
    assert at_rest(world)


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


def test_a_wake_up_before_its_message_looks_again_when_the_ingest_must_be_over() -> None:
    world = World()
    early = for_message(CONVERSATION, message_id("slow"), world.clock.ms, world.timing)
    world.clock.ms += 2_000
    world.wake(early)
    again = world.wake_ups.armed[0]
    assert again.armed_for == ForMessage(message_id("slow"))
    assert again.armed_at_ms == START_MS
    assert again.due_at_ms == START_MS + world.timing.ingest_timeout_ms + 1_000
    world.settle()
    assert at_rest(world)


def test_a_wake_up_that_finds_a_live_lease_comes_back_after_it() -> None:
    world = World()
    world.write("q")
    world.clock.ms += 2_000
    run(world.store.claim(CONVERSATION, "dead", world.clock.ms))
    wake_up = world.wake_ups.take_due(world.clock.ms)[0]
    world.wake(wake_up)
    due = {armed.due_at_ms for armed in world.wake_ups.armed}
    assert START_MS + 2_000 + world.timing.lease_ms + 1_000 in due
    world.settle()
    assert world.channel.texts == ["re: q"]


def test_a_stale_wake_up_costs_one_look() -> None:
    world = World()
    world.write("q")
    world.settle()
    world.wake(WakeUp(CONVERSATION, ForReceived(1), START_MS, START_MS))
    assert world.seen.happenings[-1].fields == {"found": "Settled"}
    assert at_rest(world)


def test_a_wake_up_for_a_conversation_that_never_was_ends() -> None:
    world = World()
    world.wake(WakeUp("lines:shop:nobody", ForReceived(3), START_MS, START_MS))
    assert world.wake_ups.armed == []
    assert world.store.rows == {}


def test_a_row_that_never_moves_ends_in_the_dead_letter_queue() -> None:
    """A lease that lies far in the future, as of a holder whose clock is broken, and nobody to renew it."""
    world = World()
    world.store.rows[CONVERSATION] = Row(
        received=1,
        pending=(message("q"),),
        lease_owner="lost",
        lease_token=1,
        lease_expires_at_ms=START_MS + 10**12,
        owed_shard="0",
        owed_since_ms=START_MS,
    )
    world.wake(WakeUp(CONVERSATION, ForReceived(1), START_MS, START_MS))
    world.settle()
    assert [wake_up.attempt for wake_up in world.wake_ups.buried] == [world.timing.max_rounds + 1]
    assert world.wake_ups.armed == []
