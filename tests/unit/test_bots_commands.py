"""Hooks around a bot: commands, a reset, an opening line."""

from dataclasses import replace
from typing import Any

import pytest

from fakes import CONVERSATION, World, message
from rejoinder.bots.commands import commands, opening, reset
from rejoinder.bots.function import answer
from rejoinder.ports import Grant, Image, Outdated, Replied, Reply, Text, Turn
from rejoinder.protocol.conversation import Lease, Message, TurnRecord

seen: list[Turn] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    seen.clear()


def other(turn: Turn) -> str:
    seen.append(turn)
    return f"to {turn.text}"


def said(text: str) -> Message:
    return message(text)


def turn(*texts: str, **changes: Any) -> Turn:
    return Turn("lines:shop:ana", tuple(map(said, texts)), **changes)


def texts(bot: Any, given: Turn) -> list[str]:
    result = answer(bot, given)
    assert isinstance(result, Replied), result
    return [part.text for part in result.reply.parts if isinstance(part, Text)]


BOT = commands(
    {
        "/start": "Welcome!",
        "/echo": lambda turn: turn.text.upper(),
        "/quiet": None,
        "/photo": Reply((Image("https://x/p.jpg"),)),
        "/reset": reset("Forgotten."),
    },
    otherwise=other,
)


@pytest.mark.parametrize("written", ["/start", "/START now", "/start@my_bot", " /start\n"])
def test_a_command_is_answered_by_itself(written: str) -> None:
    assert texts(BOT, turn(written)) == ["Welcome!"]
    assert seen == []


@pytest.mark.parametrize("written", ["hello", "do /start", "/starting", "/", " ", ""])
def test_what_is_no_command_is_the_bot_s(written: str) -> None:
    given = turn("x")
    given.messages = (replace(said("x"), text=written),)
    assert texts(BOT, given) == [f"to {written}"]


def test_a_command_may_be_a_function_a_reply_or_silence() -> None:
    assert texts(BOT, turn("/echo hi")) == ["/ECHO HI"]
    assert answer(BOT, turn("/quiet")) == Replied(Reply())
    assert answer(BOT, turn("/photo")) == Replied(Reply((Image("https://x/p.jpg"),)))


def test_a_burst_with_commands_gets_one_reply_to_all_of_it() -> None:
    assert texts(BOT, turn("my phone is 1", "/start", "and my e-mail 2", "/echo a")) == [
        "Welcome!",
        "/ECHO A",
        "to my phone is 1\nand my e-mail 2",
    ]
    (given,) = seen
    assert [one.text for one in given.messages] == ["my phone is 1", "and my e-mail 2"]


def test_a_reset_forgets_state_history_and_what_came_before_it_in_the_burst() -> None:
    history = (TurnRecord(1, 1, 0, (said("old"),), said="ok"),)
    given = turn("never mind", "/reset", "new", state={"name": "Ana"}, history=history)
    assert texts(BOT, given) == ["Forgotten.", "to new"]
    assert (given.state, seen[0].history) == ({}, ())


def test_after_a_reset_the_bot_sees_only_what_came_since() -> None:
    old = TurnRecord(1, 1, 0, (said("old"),), said="ok")
    resetting = TurnRecord(2, 2, 0, (said("/reset"),), said="Forgotten.")
    since = TurnRecord(3, 3, 0, (said("new"),), said="ok")
    texts(BOT, turn("and?", history=(old, resetting, since)))
    assert seen[0].history == (since,)


def test_a_reset_that_was_answered_by_the_fallback_has_reset_nothing() -> None:
    old = TurnRecord(1, 1, 0, (said("old"),), said="ok")
    failed = TurnRecord(2, 2, 0, (said("/reset"),), said="Sorry.", failed=True)
    texts(BOT, turn("and?", history=(old, failed)))
    assert seen[0].history == (old, failed)


def test_an_async_bot_may_be_behind_the_hooks() -> None:
    async def later(turn: Turn) -> str:
        return f"later {turn.text}"

    async def now(turn: Turn) -> str:
        return "now"

    bot = opening("Hi!", commands({"/now": now}, otherwise=later))
    assert texts(bot, turn("/now", "x")) == ["Hi!", "now", "later x"]


def test_an_opening_line_is_said_once_in_a_conversation_and_again_after_a_reset() -> None:
    """Through the real use cases: it counts as said when its reply is committed."""
    world = World()
    bot = commands({"/reset": reset("Forgotten.")}, otherwise=opening("Hi, I am a machine.", otherwise=other))

    def reply(turn: Turn) -> Replied:
        result = answer(bot, turn)
        assert isinstance(result, Replied)
        return result

    world.bot.answer = reply
    for number, text in enumerate(("one", "two", "/reset", "three")):
        world.write(f"m{number}", text)
        world.settle()
    assert world.channel.texts == [
        "Hi, I am a machine.", "to one", "to two", "Forgotten.", "Hi, I am a machine.", "to three",
    ]  # fmt: skip
    assert world.store.rows[CONVERSATION].answered == 4


# --- what comes meanwhile ---------------------------------------------------------------------------------------------


def looking(turn: Turn) -> str:
    """A bot that looks once, as those over a model do."""
    came = turn.newer()
    return f"to {turn.text}, and to {', '.join(message.text for message in came)}"


def joined_by(text: str, *, received: int | None) -> Turn:
    given = turn("a", grant=Grant(Lease("me", 1), b"", received, 1))
    given.newer = lambda *, now=False: (said(text),)
    return given


def test_what_comes_meanwhile_joins_the_rest() -> None:
    assert texts(commands({"/start": "Welcome!"}, looking), joined_by("b", received=1)) == ["to a, and to b"]


def test_a_command_that_comes_meanwhile_stops_the_work() -> None:
    """The next attempt answers it as the command that it is."""
    assert answer(commands({"/start": "Welcome!"}, looking), joined_by("/start", received=1)) == Outdated()


def test_at_the_bound_on_superseding_it_is_read_as_a_text() -> None:
    bot = commands({"/start": "Welcome!"}, looking)
    assert texts(bot, joined_by("/start", received=None)) == ["to a, and to /start"]


def test_nothing_joins_the_answer_to_a_command() -> None:
    given = replace(joined_by("b", received=1), messages=(said("/look"),))
    assert texts(commands({"/look": looking}, looking), given) == ["to /look, and to "]
