"""A reply's parts as messages of Messenger or Instagram: plain text, attachments by URL, quick replies.

Limits: Messenger Platform, "Quick replies" (13, of 20 characters) and "Send API" (text of 2,000 characters); Instagram
Messaging, "Send a message" (UTF-8 text of 1,000 bytes). The pages say "characters"; UTF-16 units are the most that can
mean. Neither documents a markup.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from rejoinder.channels.degrading import degraded
from rejoinder.channels.markup import PLAIN, written
from rejoinder.channels.splitting import split, utf16_units
from rejoinder.ports import Buttons, File, Image, Part, Permanent, Raw, Reply, Text, part_text

MAX_QUICK_REPLIES = 13
QUICK_REPLY_LIMIT = 20

SHOWS: frozenset[type[Part]] = frozenset({Text, Image, File, Buttons, Raw})


@dataclass(frozen=True, slots=True)
class Limits:
    """What differs between the two.

    Attributes:
        text: the longest text of one message, in units of `width`.
        width: the units of one character.
        file_types: the endings of files that can be sent by URL; None: all.
    """

    text: int
    width: Callable[[str], int]
    file_types: tuple[str, ...] | None = None


def rendered(reply: Reply, recipient: str, limits: Limits) -> tuple[str, ...]:
    """Write each part as the JSON of one send.

    Raises:
        Permanent: nothing to show, or a `Raw` that is no JSON.
    """
    to = {"recipient": {"id": recipient}, "messaging_type": "RESPONSE"}
    contents = [content for part in degraded(reply, SHOWS) for content in _contents(part, limits)]
    try:
        return tuple(json.dumps({**content, **to}, ensure_ascii=False, allow_nan=False) for content in contents)
    except (TypeError, ValueError, RecursionError):
        raise Permanent("the payload of a Raw part cannot be written as JSON") from None


def _contents(part: Part, limits: Limits) -> Sequence[dict[str, Any]]:
    """Write one part, without who it goes to."""
    match part:
        case Text(text):
            return _texts(text, limits)
        case Image(url, caption) if _is_link(url):
            return [_attachment("image", url), *_texts(caption, limits)]
        case File(url, _, caption) if _is_link(url) and _is_sendable(url, limits):
            return [_attachment("file", url), *_texts(caption, limits)]
        case Buttons(text, options):
            return _choice(
                part, text, [*dict.fromkeys(stripped for option in options if (stripped := option.strip()))], limits
            )
        case Raw(payload):
            return [dict(payload)]
        case _:
            return _texts(part_text(part), limits)


def _is_link(url: str) -> bool:
    return url.startswith(("http://", "https://"))


def _is_sendable(url: str, limits: Limits) -> bool:
    return limits.file_types is None or urlsplit(url).path.lower().endswith(limits.file_types)


def _texts(text: str, limits: Limits) -> list[dict[str, Any]]:
    return [{"message": {"text": piece}} for piece in split(written(text, PLAIN), limits.text, limits.width)]


def _attachment(kind: str, url: str) -> dict[str, Any]:
    return {"message": {"attachment": {"type": kind, "payload": {"url": url}}}}


def _choice(part: Part, text: str, options: list[str], limits: Limits) -> list[dict[str, Any]]:
    """Quick replies under the last piece; as text where they are too many or too long for that."""
    longest = max((sum(map(utf16_units, option)) for option in options), default=0)
    if not text.strip() or not options or len(options) > MAX_QUICK_REPLIES or longest > QUICK_REPLY_LIMIT:
        return _texts(part_text(part), limits)
    *before, last = _texts(text, limits)
    quick_replies = [{"content_type": "text", "title": option, "payload": option} for option in options]
    return [*before, {"message": {**last["message"], "quick_replies": quick_replies}}]
