"""Delivery: a committed reply is refused, in doubt, reported, or left by a holder that died."""

import json
from typing import Literal

import pytest

from fakes import CONVERSATION, START_MS, World, at_rest
from rejoinder.ports import (
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
from rejoinder.protocol.timing import Timing
from rejoinder.run import run


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
