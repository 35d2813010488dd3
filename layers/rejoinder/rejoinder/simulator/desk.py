"""What comes by a webhook of an exploration, each with a number: messages, edits of them, what people ask for.

A person on our side pauses the bot, gives the conversation back, or answers in it. All of it goes through the real
`Ingest`, as a signed request does.
"""

from typing import Any

from rejoinder.simulator.shifting import NAMED_AT_MS

PAUSE = 100
"""Messages have the numbers below."""

RESUME = 101
PERSON = 102
"""And from here on what people say: ten numbers for each count of messages that they have read."""

EDIT = 200
"""From here on edits: ten numbers for each message."""

STOP = 1_200
"""And from here on words of consent, which are messages like any other."""

START = 1_210

CONVERSATION = "stage:shop:ana"
"""The one conversation that is explored: no two share anything."""


def words_of(count: int, read: int) -> int:
    """The number of what a person says as the `count`th thing of all, who has read the first messages."""
    return PERSON + 10 * read + count - 1


def edit_of(message: int, count: int) -> int:
    """The number of the edit that is made of a message as the `count`th of all: that is its time, too."""
    return EDIT + 10 * message + count


def named(number: int) -> str:
    """The name of an event."""
    if number < PAUSE:
        return f"m{number + 1}"
    if number >= START:
        return f"start{number - START + 1}"
    if number >= STOP:
        return f"stop{number - STOP + 1}"
    if number >= EDIT:
        message, count = divmod(number - EDIT, 10)
        return f"m{message + 1}'{count}"
    return {PAUSE: "pause", RESUME: "resume"}.get(number, f"p{number - PERSON + 1}")


def numbered(name: str) -> int:
    """The number of the event with a name."""
    if name in ("pause", "resume"):
        return {"pause": PAUSE, "resume": RESUME}[name]
    if "'" in name:
        message, _, count = name[1:].partition("'")
        return edit_of(int(message) - 1, int(count))
    kind = name.rstrip("0123456789")
    return {"m": 0, "p": PERSON, "stop": STOP, "start": START}[kind] + int(name.removeprefix(kind)) - 1


def by_person(number: int) -> bool:
    """Whether a person on our side said something.

    Its webhook comes again only when nobody handles it any more: two at once may leave the words in the history twice.
    """
    return PERSON <= number < EDIT


def is_edit(number: int) -> bool:
    """Whether it changes a message."""
    return EDIT <= number < STOP


def is_message(number: int) -> bool:
    """Whether it is to be recorded: what somebody wrote, a word of consent included."""
    return number < PAUSE or number >= STOP


def event_fields(name: str, until_ms: int) -> dict[str, Any]:
    """Write an event as the stage's channel reads it; a message's text is its name.

    Args:
        name: of the event.
        until_ms: the end of a pause that begins now.
    """
    number = numbered(name)
    own = {"conversation_id": CONVERSATION}
    if is_message(number):
        consent = "" if number < PAUSE else "withdrawn" if number < START else "given"
        sent_at = {"sent_at_ms": NAMED_AT_MS + 2 * number + 1} if number < PAUSE else {}
        return {**own, "provider_id": name, "author": "ana", "text": name, "consent": consent, **sent_at}
    if is_edit(number):
        message, _, count = name.partition("'")
        now = {**own, "provider_id": message, "author": "ana", "text": name}
        return {"type": "edit", "now": now, "edited_at_ms": int(count)}
    if number == PAUSE:
        return {"type": "pause", **own, "until_ms": until_ms}
    if number == RESUME:
        return {"type": "resume", **own}
    said_at_ms = NAMED_AT_MS + 2 * ((number - PERSON) // 10)
    return {"type": "operator", **own, "text": name, "sent_at_ms": said_at_ms}
