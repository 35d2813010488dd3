"""A reply's parts as WhatsApp's messages.

Limits: WhatsApp Business Platform, "Text messages" (body 4,096), "Image messages" (caption 1,024), "Interactive reply
buttons messages" (3 buttons of 20, body 1,024), "Interactive list messages" (10 rows of 24, button 20). The pages say
"characters"; UTF-16 units are the most that can mean.
"""

import json
from collections.abc import Sequence
from typing import Any

from rejoinder.channels.degrading import degraded
from rejoinder.channels.markup import WHATSAPP, written
from rejoinder.channels.splitting import split, utf16_units
from rejoinder.channels.whatsapp_events import Address
from rejoinder.ports import Buttons, File, Image, Part, Permanent, Raw, Reply, Text, part_text

TEXT_LIMIT = 4_096
CAPTION_LIMIT = 1_024
BODY_LIMIT = 1_024
MAX_BUTTONS = 3
BUTTON_LIMIT = 20
MAX_ROWS = 10
ROW_LIMIT = 24

LIST_BUTTON = "☰"
"""What opens a list, in nobody's language."""

SHOWS: frozenset[type[Part]] = frozenset({Text, Image, File, Buttons, Raw})


def rendered(reply: Reply, address: Address) -> tuple[str, ...]:
    """Write each part as the JSON of one send, with `from` for what it is sent from.

    Raises:
        Permanent: nothing to show, or a `Raw` that is no JSON.
    """
    to = {"from": address.sender, "messaging_product": "whatsapp", **address.recipient}
    contents = [content for part in degraded(reply, SHOWS) for content in _contents(part)]
    try:
        return tuple(json.dumps({**content, **to}, ensure_ascii=False, allow_nan=False) for content in contents)
    except (TypeError, ValueError, RecursionError):
        raise Permanent("the payload of a Raw part cannot be written as JSON") from None


def _contents(part: Part) -> Sequence[dict[str, Any]]:
    """Write one part, without who it goes to."""
    match part:
        case Text(text):
            return _texts(text)
        case Image(url, caption) if _is_link(url):
            return _media("image", {"link": url}, caption)
        case File(url, name, caption) if _is_link(url):
            return _media("document", {"link": url} | ({"filename": name} if name else {}), caption)
        case Buttons(text, options):
            return _choice(part, text, [*dict.fromkeys(stripped for option in options if (stripped := option.strip()))])
        case Raw(payload):
            return [dict(payload)]
        case _:
            return _texts(part_text(part))


def _is_link(url: str) -> bool:
    return url.startswith(("http://", "https://"))


def _texts(text: str, limit: int = TEXT_LIMIT) -> list[dict[str, Any]]:
    pieces = split(written(text, WHATSAPP), limit, utf16_units)
    return [{"type": "text", "text": {"body": piece}} for piece in pieces]


def _media(kind: str, medium: dict[str, str], caption: str) -> list[dict[str, Any]]:
    """A medium by URL; a caption that is too long follows as text."""
    caption = written(caption, WHATSAPP)
    if not caption.strip():
        return [{"type": kind, kind: medium}]
    if _width(caption) > CAPTION_LIMIT:
        return [{"type": kind, kind: medium}, *_texts(caption)]
    return [{"type": kind, kind: {**medium, "caption": caption}}]


def _choice(part: Part, text: str, options: list[str]) -> list[dict[str, Any]]:
    """Buttons, or a list where they are too many or too long; as text where it is too much for both."""
    longest = max(map(_width, options), default=0)
    if not text.strip() or not options or len(options) > MAX_ROWS or longest > ROW_LIMIT:
        return _texts(part_text(part))
    *before, body = _texts(text, BODY_LIMIT)
    if len(options) <= MAX_BUTTONS and longest <= BUTTON_LIMIT:
        buttons = [{"type": "reply", "reply": {"id": option, "title": option}} for option in options]
        interactive = {"type": "button", "body": {"text": body["text"]["body"]}, "action": {"buttons": buttons}}
    else:
        rows = [{"id": option, "title": option} for option in options]
        action = {"button": LIST_BUTTON, "sections": [{"rows": rows}]}
        interactive = {"type": "list", "body": {"text": body["text"]["body"]}, "action": action}
    return [*before, {"type": "interactive", "interactive": interactive}]


def _width(text: str) -> int:
    return sum(map(utf16_units, text))
