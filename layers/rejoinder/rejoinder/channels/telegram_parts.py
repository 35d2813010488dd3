"""A reply's parts as Telegram's requests, and what to ask for instead where Telegram does not accept one.

Markdown is sent in Telegram's HTML; a text without any markup goes as plain text. Sources: Telegram Bot API,
"sendMessage", "sendPhoto", "Sending files", "Formatting options" and "ResponseParameters".
"""

import html
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from rejoinder.channels.degrading import degraded
from rejoinder.channels.markup import TELEGRAM, open_fence, written
from rejoinder.channels.splitting import split, utf16_units
from rejoinder.channels.telegram_events import Address
from rejoinder.ports import Buttons, File, Image, Part, Permanent, Raw, Reply, Text, part_text

TEXT_LIMIT = 4_096
"""UTF-16 units in one message (sendMessage: "1-4096 characters after entities parsing")."""

CAPTION_LIMIT = 1_024
"""UTF-16 units in one caption (sendPhoto)."""

SENT_BY_URL = (".pdf", ".zip", ".gif")
"""The only kinds of document that Telegram fetches by URL (Sending files)."""

SHOWS: frozenset[type[Part]] = frozenset({Text, Image, File, Buttons, Raw})
MEDIA = {"sendPhoto": "photo", "sendDocument": "document"}

_METHOD = re.compile(r"[A-Za-z]{1,64}")
_LINK = re.compile(r'<a href="([^"]*)">(.*?)</a>', re.DOTALL)
_TAG = re.compile(r"</?[a-z]+>")

type Call = dict[str, Any]


def rendered(reply: Reply, address: Address) -> tuple[str, ...]:
    """Write each part as the JSON of one request, its method included.

    Raises:
        Permanent: nothing to show, or a `Raw` without a method or that is no JSON.
    """
    calls = [call for part in degraded(reply, SHOWS) for call in _calls(part)]
    try:
        return tuple(json.dumps({**address.fields, **call}, ensure_ascii=False, allow_nan=False) for call in calls)
    except (TypeError, ValueError, RecursionError):
        raise Permanent("the payload of a Raw part cannot be written as JSON") from None


def _calls(part: Part) -> list[Call]:
    """Write one part as requests, without chat and topic."""
    match part:
        case Text(text):
            return _texts(text)
        case Image(url, caption):
            return _media("sendPhoto", url, caption)
        case File(url, _, caption) if urlsplit(url).path.lower().endswith(SENT_BY_URL):
            return _media("sendDocument", url, caption)
        case File():
            return _texts(part_text(part))
        case Buttons(text, options):
            *before, last = _texts(text if text.strip() else part_text(part))
            keyboard = [[{"text": option}] for option in options if option.strip()]
            markup = {"keyboard": keyboard, "one_time_keyboard": True, "resize_keyboard": True}
            return [*before, {**last, "reply_markup": markup} if keyboard else last]
        case Raw(payload):
            method = payload.get("method")
            if not isinstance(method, str) or not _METHOD.fullmatch(method):
                raise Permanent("a Raw part for telegram needs a method, such as sendVenue")
            return [dict(payload)]


def _texts(markdown: str) -> list[Call]:
    """One message for each piece. A fenced block that is cut goes on fenced: marks count for nothing in the limit."""
    calls: list[Call] = []
    carried = ""
    for piece in split(markdown, TEXT_LIMIT, utf16_units):
        text = f"{carried}\n{piece}" if carried else piece
        carried = open_fence(text)
        call = _formatted("text", text)
        if plain(call, "text").strip():
            calls.append({"method": "sendMessage", **call})
    return calls or [{"method": "sendMessage", "text": piece} for piece in split(markdown, TEXT_LIMIT, utf16_units)]


def _formatted(field: str, markdown: str) -> Call:
    """A text in HTML, where there is any markup in it."""
    formatted = written(markdown, TELEGRAM)
    if formatted == TELEGRAM.escaped(markdown):
        return {field: markdown}
    return {field: formatted, "parse_mode": "HTML"}


def _media(method: str, url: str, caption: str) -> list[Call]:
    """A medium by URL; a caption that is too long follows as text."""
    medium = {"method": method, MEDIA[method]: url}
    if sum(map(utf16_units, caption)) > CAPTION_LIMIT:
        return [medium, *_texts(caption)]
    return [medium | (_formatted("caption", caption) if caption else {})]


def plain(call: Mapping[str, Any], field: str) -> str:
    """A request's text without markup; a link keeps its address."""
    text = str(call.get(field, ""))
    if call.get("parse_mode") != "HTML":
        return text
    return html.unescape(_TAG.sub("", _LINK.sub(r"\2 (\1)", text)))


def unformatted(call: Call) -> Call:
    """The same request in plain text."""
    texts = {field: plain(call, field) for field in ("text", "caption") if field in call}
    return {name: value for name, value in call.items() if name != "parse_mode"} | texts


def without_medium(method: str, call: Call) -> Call | None:
    """A message with the medium's address and caption in its place; None where there is no medium by URL."""
    field = MEDIA.get(method, "")
    if not isinstance(call.get(field), str):
        return None
    text = part_text(Image(call[field], plain(call, "caption")))
    return {name: value for name, value in call.items() if name not in {field, "caption", "parse_mode"}} | {
        "text": text
    }
