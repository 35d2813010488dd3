"""Texts as SMS: split so that each piece stays within what networks put together again, and bounded in number.

One character outside the GSM alphabet makes a whole message UCS-2, and a segment less than half as long.

Sources: 3GPP TS 23.038, "GSM 7 bit Default Alphabet"; Twilio Docs, "Message segments" (153 and 67 units a segment where
there are several); both providers take at most 1,600 characters (Twilio error 21617; End User Messaging, SMS API
Reference, "SendTextMessage").
"""

from collections.abc import Sequence
from typing import Any

from rejoinder.channels.splitting import split_by, utf16_units

MAX_SEGMENTS = 10
"""Longer messages arrive in pieces or not at all on some networks."""

SEPTETS = 153 * MAX_SEGMENTS
UNITS = 67 * MAX_SEGMENTS

MAX_PIECES = 10
"""A hundred segments cost about a dollar: no model's slip may cost more."""

CUT = " [...]"
"""Stands where a reply was cut; every character of it is in the GSM alphabet."""

_BASIC = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_EXTENDED = frozenset("\f^{}\\[~]|€")
"""Two septets each: an escape, and a character."""


def furthest(text: str, start: int, reserve: int = 0) -> int:
    """Find how far one message can reach from `start`; at least one character.

    Args:
        text: what is sent.
        start: where the message begins.
        reserve: characters of the GSM alphabet that must fit, too.
    """
    septets = units = reserve
    plain = True
    for end in range(start, len(text)):
        character = text[end]
        plain = plain and (character in _BASIC or character in _EXTENDED)
        septets += 2 if character in _EXTENDED else 1
        units += utf16_units(character)
        if septets > SEPTETS if plain else units > UNITS:
            return max(end, start + 1)
    return len(text)


def pieces(text: str) -> list[str]:
    """Split a text into messages; joined they are the text, but for pieces of mere white space."""
    return split_by(text, lambda start: furthest(text, start))


def bounded(contents: Sequence[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Keep at most `MAX_PIECES` sends of a reply; the last one that is kept says that there was more.

    Args:
        contents: the sends.
        key: under which each has its text.
    """
    if len(contents) <= MAX_PIECES:
        return list(contents)
    *before, last = contents[:MAX_PIECES]
    text = str(last.get(key, ""))
    kept = split_by(text, lambda start: furthest(text, start, len(CUT)))
    return [*before, {**last, key: (kept[0] if kept else "") + CUT}]
