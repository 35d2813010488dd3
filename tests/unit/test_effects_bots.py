"""Effects behind a bot: what a turn that is outdated, in doubt or tried again leaves of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fakes import CONVERSATION, CountedIds, ManualClock, World
from rejoinder.bots.function import FunctionBot, answer
from rejoinder.effects import Effects
from rejoinder.ports import (
    BotFailed,
    EffectInDoubt,
    Outdated,
    Policy,
    Turn,
    UnknownOutcome,
    Unwanted,
)
from rejoinder.protocol.conversation import Message, Row
from rejoinder.protocol.identity import message_id
from rejoinder.run import run
from unit.bookings import RESULT, Bookings


def no_row(_: str) -> Row:
    return Row()


def with_effects(world: World, reply: Callable[[Turn], Any]) -> None:
    effects = Effects(world.store, world.clock, CountedIds(), world.seen, world.timing)
    bot = FunctionBot(reply, world.clock, once=effects.once_in)
    world.outside = replace(world.outside, bot=bot)


def test_a_superseded_turn_leaves_its_effect_to_the_next() -> None:
    """The newer message comes after the booking: one booking, one reply that covers both."""
    world, bookings = World(), Bookings()

    def reply(turn: Turn) -> str:
        booked = turn.once("book", None, bookings.book)
        if len(turn.messages) == 1:
            world.write("b")
        return f"{len(turn.messages)}: {booked['number']}"

    with_effects(world, reply)
    world.write("a")
    world.settle()
    assert world.channel.texts == ["2: 1"]
    assert bookings.made == ["table"]


def test_the_key_is_the_first_message_by_arrival_and_not_by_its_own_time() -> None:
    """The second message was written before the first, and overtaken on its way."""
    world, bookings = World(), Bookings()

    def late(name: str, sent_at_ms: int) -> None:
        now_ms = world.clock.ms
        run(world.store.record(CONVERSATION, Message(message_id(name), name, "ana", sent_at_ms, now_ms), now_ms))

    def reply(turn: Turn) -> str:
        booked = turn.once("book", None, bookings.book)
        keys.append(turn.idempotency_key("book", None))
        if len(turn.messages) == 1:
            late("earlier", world.clock.ms - 5_000)
        return f"{turn.messages[0].provider_id}: {booked['number']}"

    keys: list[str] = []
    with_effects(world, reply)
    world.write("a")
    world.settle()
    assert world.channel.texts == ["earlier: 1"]
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_a_bot_that_is_stopped_for_a_newer_message_is_superseded_and_no_failure() -> None:
    world, bookings = World(), Bookings()

    def reply(turn: Turn) -> str:
        if len(turn.messages) == 1:
            world.write("b")
        try:
            turn.once("book", None, bookings.book)
        except Exception:  # noqa: BLE001  # as a tool loop does
            return "could not book"
        return f"{len(turn.messages)}"

    with_effects(world, reply)
    world.write("a")
    world.settle()
    assert world.channel.texts == ["2"]
    assert (world.seen.count("superseded"), world.seen.count("attempt_failed")) == (1, 0)
    assert bookings.made == ["table"]


def test_an_effect_in_doubt_ends_the_turn_with_the_fallback_at_once() -> None:
    world, bookings = World(policy=Policy(fallback="sorry")), Bookings(meets=[UnknownOutcome("cut off")])
    with_effects(world, lambda turn: str(turn.once("book", None, bookings.book)))
    world.write("a")
    world.settle()
    assert world.channel.texts == ["sorry"]
    assert (world.seen.count("effect_in_doubt"), world.seen.count("attempt_failed")) == (1, 1)
    world.write("b")
    world.settle()
    assert world.channel.texts[1:] == [str(RESULT)], "the next turn is another one"


def test_one_that_can_be_settled_later_is_tried_again_then() -> None:
    world, bookings = World(), Bookings(meets=[UnknownOutcome("cut off")])
    with_effects(world, lambda turn: str(turn.once("book", None, bookings.book, check=lambda: None)))
    world.write("a")
    world.settle()
    assert world.channel.texts == [str(RESULT)]


@pytest.mark.parametrize(
    ("raised", "result"),
    [
        (Unwanted("newer", outdated=True), Outdated()),
        (EffectInDoubt("soon", retry_after_ms=5_000), BotFailed("", in_doubt_ms=5_000)),
        (EffectInDoubt("never"), BotFailed("", final=True)),
    ],
)
def test_what_a_bot_raises_tells_how_its_turn_goes_on(raised: BaseException, result: BotFailed | Outdated) -> None:
    def reply(_: Turn) -> str:
        raise raised

    ended = answer(reply, Turn(CONVERSATION, ()))
    assert (replace(ended, reason="") if isinstance(ended, BotFailed) else ended) == result


def test_a_turn_made_by_hand_makes_its_effects() -> None:
    """For a test of a bot's own function."""
    clock = ManualClock()
    turn = Turn(CONVERSATION, ())
    assert turn.once("book", 7, clock.now_ms) == clock.now_ms()
    assert len(turn.idempotency_key("book", 7)) == 32
