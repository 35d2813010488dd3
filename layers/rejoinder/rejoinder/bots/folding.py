"""Fold a turn into what a chat model reads: one user entry for all unanswered messages, roles that alternate.

Inside an entry each message can still be told apart. Where there are several, each begins with a header in brackets at
the margin, and every further line of it is indented, whatever ends a line in Unicode: nobody can write a line that
passes for another's header.
`docs/prompting.md` shows it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal

from rejoinder.bots.model import Entry
from rejoinder.bots.pictures import Look, Unseen
from rejoinder.ports import Media, Turn
from rejoinder.protocol.conversation import Attachment, Message, TurnRecord

MINUTE_MS = 60_000

HISTORY_TOKENS = 6_000
"""How much of the history a model is shown by default, at most: about ten pages. They are paid for with each turn."""

BYTES_A_TOKEN = 3
"""Tokenizers make three to four and a half bytes of European languages one token, and about three of CJK and Arabic."""

BLIND: Mapping[str, Look] = MappingProxyType({})
"""What a model without eyes sees."""

SHOWN = frozenset({"sent", "handled"})
"""The deliveries after which the person has what was said for certain, by the bot or by a colleague; the model must not
refer to any other."""


def folded(turn: Turn, *, looks: Mapping[str, Look] = BLIND, history_tokens: int = HISTORY_TOKENS) -> list[Entry]:
    """Write the turn as entries of user and assistant by turns; the first and the last are the user's, none is blank.

    A turn of the history whose reply was not shown gives no assistant entry, so that its messages join the next user
    entry. Images of earlier turns are placeholders: the model has seen them, and what it saw is in its replies.

    Args:
        turn: to answer.
        looks: what became of the turn's images, by `ref`, in their order.
        history_tokens: how much history there may be; the oldest turns fall out first, each as a whole. The turn
            itself is never cut.
    """
    everyone = [message for record in turn.history for message in record.messages] + list(turn.messages)
    names = names_of(everyone)
    said: list[tuple[Literal["user", "assistant"], str]] = []
    for record in recent(turn.history, names, history_tokens):
        said.append(("user", fold(record.messages, names)))
        if record.delivery in SHOWN:
            said.append(("assistant", record.said))
    last = fold(turn.messages, names, looks)
    if turn.overflowed:
        last += f"\n[{turn.overflowed} more came at the same time and could not be kept]"
    said.append(("user", last))
    return joined(said, tuple(look for look in looks.values() if isinstance(look, Media)))


def joined(said: Iterable[tuple[Literal["user", "assistant"], str]], images: tuple[Media, ...]) -> list[Entry]:
    """Join what follows in one role, since many models refuse two in a row, and begin with the user.

    Args:
        said: by whom, and what.
        images: the last entry's.
    """
    entries: list[Entry] = []
    for role, content in said:
        if not content.strip() or (not entries and role == "assistant"):
            continue
        if entries and entries[-1].role == role:
            content = f"{entries.pop().content}\n\n{content}"  # noqa: PLW2901
        entries.append(Entry(role, content))
    entries[-1] = Entry("user", entries[-1].content, images)
    return entries


def tokens(text: str) -> int:
    """Estimate how many tokens a model makes of a text: rather too many than too few."""
    return -(-len(text.encode(errors="replace")) // BYTES_A_TOKEN)


def recent(history: Sequence[TurnRecord], names: dict[str, str], limit: int) -> Sequence[TurnRecord]:
    """The newest turns of a history that make at most so many tokens together."""
    for count, record in enumerate(reversed(history)):
        limit -= tokens(fold(record.messages, names)) + tokens(record.said if record.delivery in SHOWN else "")
        if limit < 0:
            return history[len(history) - count :]
    return history


def names_of(messages: Iterable[Message]) -> dict[str, str]:
    """Name each author, where several write, and no two alike: namesakes have their ids behind their names.

    So has whoever calls himself what a namesake is called by then.
    """
    called = {message.author: _one_line(message.author_name) or _one_line(message.author) for message in messages}
    if len(called) < 2:
        return {}
    count = Counter(called.values())
    names: dict[str, str] = {}
    for author, name in sorted(called.items(), key=lambda one: count[one[1]] == 1):  # namesakes first
        own = f" ({_one_line(author)})"
        label = name if count[name] == 1 else name + own
        while label in names.values():
            label += own
        names[author] = label
    return names


def fold(messages: Sequence[Message], names: dict[str, str], looks: Mapping[str, Look] = BLIND) -> str:
    """Write messages as one text, in their order.

    Args:
        messages: of one turn, in reading order.
        names: who is called what; empty where one person writes alone.
        looks: what became of images; the model is told the numbers of those that it gets.
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
        content = content_of(message, looks)
        folds.append(f"[{', '.join(header)}] " + "\n  ".join(content.splitlines()) if header else content)
    return "\n".join(folds)


def content_of(message: Message, looks: Mapping[str, Look]) -> str:
    """Write one message: its text, then a line for each attachment."""
    lines = [message.text] if message.text.strip() else []
    lines += [placeholder(attachment, looks) for attachment in message.attachments]
    return "\n".join(lines) or "[empty message]"


def placeholder(attachment: Attachment, looks: Mapping[str, Look]) -> str:
    """Write an attachment as a model without eyes can read it; an address only if it is one."""
    about = [_one_line(attachment.name), attachment.mime]
    kind = attachment.kind
    look = looks.get(attachment.ref)
    if isinstance(look, Media):
        shown = [ref for ref, other in looks.items() if isinstance(other, Media)]
        kind = f"image {shown.index(attachment.ref) + 1}"
    else:
        unseen = look or Unseen("", attachment.size_bytes)
        about.append(f"{unseen.size_bytes} bytes" if unseen.size_bytes else "")
        about.append(unseen.why)
        about.append(attachment.ref if attachment.ref.startswith(("http://", "https://", "geo:", "tel:")) else "")
    described = ", ".join(part for part in about if part)
    return f"[{kind}: {described}]" if described else f"[{kind}]"


def _one_line(text: str) -> str:
    """A name without what could end the header it stands in."""
    return " ".join(text.replace("[", "(").replace("]", ")").split())


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")


def _clock(at_ms: int, *, dated: bool) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC" if dated else "%H:%M UTC")
