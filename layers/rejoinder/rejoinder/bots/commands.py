"""Hooks around a bot: commands such as `/start`, a reset, an opening line. Each gives a function of a turn again.

reply = commands({"/start": HELLO, "/reset": reset("Forgotten. What can I do for you?")}, otherwise=my_bot)
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import cast

from rejoinder.bots.function import BotFunction, read_reply
from rejoinder.ports import Newer, Reply, Turn, Unwanted, none_newer
from rejoinder.protocol.conversation import Message, TurnRecord

OPENED = "opened"
"""The field of the bot's state that says that the opening line was said."""


@dataclass(frozen=True, slots=True)
class Reset:
    """A command after which the bot knows nothing of what was before; see `reset`."""

    said: Reply | str | None


type Answer = Reply | str | Reset | BotFunction | None
"""What a command gives: a reply, silence, a reset, or a function of the turn, whose only message is the command."""


def reset(said: Reply | str | None = None) -> Reset:
    """Make a command that clears the bot's state and hides what was said before, in the history and in the burst.

    Nothing is deleted: what is kept of a person is deleted by `rejoinder forget`.
    """
    return Reset(said)


def commands(answers: Mapping[str, Answer], otherwise: BotFunction) -> BotFunction:
    """Answer commands, and leave the rest to another bot.

    A message is a command if its first word is one, in any case, also as `/start@my_bot`. A function finds it in
    `turn.text`, with whatever was written behind it. In a burst, each command is answered in its place, and what else
    was written by `otherwise`, all in one reply.
    """
    known = {name.casefold(): answer for name, answer in answers.items()}

    def command_of(message: Message) -> str | None:
        first, *_ = (message.text or " ").split(maxsplit=1) or [""]
        name = first.partition("@")[0].casefold()
        return name if name in known else None

    def resets(message: Message) -> bool:
        name = command_of(message)
        return name is not None and isinstance(known[name], Reset)

    def reply(turn: Turn) -> object:
        turn = replace(turn, history=since_reset(turn.history, resets))
        given: list[object] = []
        rest: list[Message] = []
        for message in turn.messages:
            if (name := command_of(message)) is None:
                rest.append(message)
                continue
            answer = known[name]
            if isinstance(answer, Reset):
                turn.state.clear()
                turn = replace(turn, history=())
                rest.clear()
                answer = answer.said
            given.append(answer(replace(turn, messages=(message,), newer=none_newer)) if callable(answer) else answer)
        if rest:
            given.append(otherwise(replace(turn, messages=tuple(rest), newer=but_commands(turn))))
        return joined(given)

    def but_commands(turn: Turn) -> Newer:
        """What joins the rest of a turn. A command does not: the turn begins anew with it, as long as it may."""

        def newer(*, now: bool = False) -> tuple[Message, ...]:
            came = turn.newer(now=now)
            may_stop = turn.grant is not None and turn.grant.received is not None
            if may_stop and any(command_of(message) is not None for message in came):
                raise Unwanted("a command has come", outdated=True)
            return came

        return newer

    return reply


def opening(line: Reply | str, otherwise: BotFunction) -> BotFunction:
    """Begin a conversation with a line of its own, before the first reply of another bot."""

    def reply(turn: Turn) -> object:
        if turn.state.get(OPENED):
            return otherwise(turn)
        turn.state[OPENED] = True
        return joined([line, otherwise(turn)])

    return reply


def since_reset(history: tuple[TurnRecord, ...], resets: Callable[[Message], bool]) -> tuple[TurnRecord, ...]:
    """The turns after the last one in which a reset was answered; one whose every attempt failed has reset nothing."""
    for count, record in enumerate(reversed(history)):
        if not record.failed and any(map(resets, record.messages)):
            return history[len(history) - count :]
    return history


def joined(given: list[object]) -> object:
    """Make one reply of several; those that are awaited come later, in their places."""
    if any(isawaitable(one) for one in given):
        return _later(given)
    return Reply(tuple(part for one in given for part in read_reply(one).parts))


async def _later(given: list[object]) -> object:
    return joined([await cast("Awaitable[object]", one) if isawaitable(one) else one for one in given])
