"""A bot for the deployed handlers: `BOT=recording_bot:reply`. It remembers its turns, and does what a test told it."""

from collections.abc import Callable

from rejoinder.ports import Turn

turns: list[Turn] = []
during: list[Callable[[], object]] = []
"""What happens while it is at work, one entry a turn, in order."""


A_PERSON = "a person, please"


def reset() -> None:
    """Forget everything."""
    turns.clear()
    during.clear()


def reply(turn: Turn) -> str:
    """Name every text that it answers; call a person where that is asked for."""
    turns.append(turn)
    if A_PERSON in turn.text:
        turn.handoff("asks for a person")
    if during:
        during.pop(0)()
    return "re: " + ", ".join(message.text for message in turn.messages)


def remembering(turn: Turn) -> str:
    """Count the turns in the bot's own state, and say so at some length."""
    turn.state["turns"] = turn.state.get("turns", 0) + 1
    return f"{reply(turn)} ({turn.state['turns']})"
