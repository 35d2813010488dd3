"""What comes by a webhook of an exploration: messages, and what people on our side ask for. Each has a number.

A person pauses the bot, gives the conversation back, or answers in it. All of it goes through the real `Ingest`, as a
signed request does.
"""

from typing import Any

PAUSE = 100
"""Messages have the numbers below."""

RESUME = 101
PERSON = 102
"""And from here on what people say."""

SAID_AT_MS = 0
"""When a person says anything: a redelivery tells the same time, however late it comes."""

CONVERSATION = "stage:shop:ana"
"""The one conversation that is explored: no two share anything."""


def named(number: int) -> str:
    """The name of an event."""
    if number < PAUSE:
        return f"m{number + 1}"
    return {PAUSE: "pause", RESUME: "resume"}.get(number, f"p{number - PERSON + 1}")


def numbered(name: str) -> int:
    """The number of the event with a name."""
    if name[1:].isdigit():
        return int(name[1:]) - 1 + (PERSON if name[0] == "p" else 0)
    return {"pause": PAUSE, "resume": RESUME}[name]


def by_person(number: int) -> bool:
    """Whether a person said something.

    Its webhook comes again only when nobody handles it any more: two at once may leave the words in the history twice.
    """
    return number >= PERSON


def event_fields(name: str, until_ms: int) -> dict[str, Any]:
    """Write an event as the stage's channel reads it; a message's text is its name.

    Args:
        name: of the event.
        until_ms: the end of a pause that begins now.
    """
    number = numbered(name)
    if number < PAUSE:
        return {"conversation_id": CONVERSATION, "provider_id": name, "author": "ana", "text": name}
    if number == PAUSE:
        return {"type": "pause", "conversation_id": CONVERSATION, "until_ms": until_ms}
    if number == RESUME:
        return {"type": "resume", "conversation_id": CONVERSATION}
    return {"type": "operator", "conversation_id": CONVERSATION, "text": name, "sent_at_ms": SAID_AT_MS}
