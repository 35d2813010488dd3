"""Fold a turn into what a chat model reads: one user entry for all unanswered messages, roles that alternate.

Inside an entry each message can still be told apart. Where there are several, each begins with a header in brackets at
the margin, and every further line of it is indented: nobody can write a line that passes for another's header.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rejoinder.ports import Turn
from rejoinder.protocol.conversation import Attachment, Message

MINUTE_MS = 60_000

SHOWN = frozenset({"sent"})
"""The deliveries after which the person has the reply for certain; the model must not refer to any other."""

type Entry = dict[str, str]


def folded(turn: Turn, system: str = "") -> list[Entry]:
    """Write the turn as entries of `role` and `content`: the system's first, if any, then user and assistant by turns.

    The last entry is the user's. No content is blank. A turn of the history whose reply was not shown gives no
    assistant entry, so that its messages join the next user entry.
    """
    everyone = [message for record in turn.history for message in record.messages] + list(turn.messages)
    names = names_of(everyone)
    entries: list[Entry] = []
    for record in turn.history:
        _append(entries, "user", fold(record.messages, names))
        if record.delivery in SHOWN and record.said.strip():
            _append(entries, "assistant", record.said)
    last = fold(turn.messages, names)
    if turn.overflowed:
        last += f"\n[{turn.overflowed} more came at the same time and could not be kept]"
    _append(entries, "user", last)
    return ([{"role": "system", "content": system}] if system.strip() else []) + entries


def _append(entries: list[Entry], role: str, content: str) -> None:
    """Add an entry, or join it to the last one of the same role: many models refuse two in a row."""
    if not content:
        return
    if entries and entries[-1]["role"] == role:
        entries[-1]["content"] += f"\n\n{content}"
    else:
        entries.append({"role": role, "content": content})


def names_of(messages: Iterable[Message]) -> dict[str, str]:
    """Name each author, where several write; one name for two people is told apart by their ids."""
    called = {message.author: _one_line(message.author_name) or _one_line(message.author) for message in messages}
    if len(called) < 2:
        return {}
    taken = list(called.values())
    return {author: name if taken.count(name) == 1 else f"{name} ({author})" for author, name in called.items()}


def fold(messages: Sequence[Message], names: dict[str, str]) -> str:
    """Write messages as one text, in their order.

    Args:
        messages: of one turn, in reading order.
        names: who is called what; empty where one person writes alone.
    """
    if not messages:
        return ""
    times = [message.sent_at_ms for message in messages]
    timed = max(times) - min(times) >= MINUTE_MS
    dated = _day(min(times)) != _day(max(times))
    folds = []
    for number, message in enumerate(messages, start=1):
        header = [str(number)] if len(messages) > 1 else []
        header += [names[message.author]] if message.author in names else []
        header += [_clock(message.sent_at_ms, dated=dated)] if timed else []
        content = content_of(message)
        folds.append(f"[{', '.join(header)}] " + content.replace("\n", "\n  ") if header else content)
    return "\n".join(folds)


def content_of(message: Message) -> str:
    """Write one message: its text, then a line for each attachment."""
    lines = [message.text] if message.text.strip() else []
    lines += [placeholder(attachment) for attachment in message.attachments]
    return "\n".join(lines) or "[empty message]"


def placeholder(attachment: Attachment) -> str:
    """Write an attachment as a model without eyes can read it; an address only if it is one."""
    about = [
        _one_line(attachment.name),
        attachment.mime,
        f"{attachment.size_bytes} bytes" if attachment.size_bytes else "",
    ]
    about.append(attachment.ref if attachment.ref.startswith(("http://", "https://", "geo:", "tel:")) else "")
    described = ", ".join(part for part in about if part)
    return f"[{attachment.kind}: {described}]" if described else f"[{attachment.kind}]"


def _one_line(text: str) -> str:
    """A name without what could end the header it stands in."""
    return " ".join(text.replace("[", "(").replace("]", ")").split())


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")


def _clock(at_ms: int, *, dated: bool) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC" if dated else "%H:%M UTC")
