"""Split a long text where a reader would: after a paragraph, a line, a sentence, a word; never inside a grapheme.

What a grapheme is follows Unicode Standard Annex 29 closely enough to never cut one: the tables of the standard library
know neither `Grapheme_Cluster_Break` nor emoji, so the rule below also keeps together a few things that it might cut.
"""

import re
import unicodedata
from collections.abc import Callable

_BREAKS = (
    re.compile(r"\n[^\S\n]*\n\s*"),  # paragraph
    re.compile(r"\n\s*"),  # line
    re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+\s+|[。！？]+"),  # sentence; possessive, or a row of dots is quadratic
    re.compile(r"\s+"),  # word
)

_JOINING_AFTER = frozenset("\u0e33\u0eb3\uff9e\uff9f")
"""Letters that extend what stands before them (UAX 29: SpacingMark and Extend outside the mark categories)."""

_JOINING_BEFORE = frozenset(
    "\u200d"  # the joiner of emoji
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    "\u0d4e\U000111c2\U000111c3\U0001193f\U00011941\U00011a3a\U00011d46\U00011f02"
    "\U00011a84\U00011a85\U00011a86\U00011a87\U00011a88\U00011a89"
)
"""Characters that belong to what follows them (UAX 29: ZWJ and Prepend)."""

_VIRAMA = 9
"""The combining class of the signs that join two consonants (UAX 29, rule GB9c)."""


def code_points(_character: str) -> int:
    """Count a character as one: the unit of channels that count code points."""
    return 1


def utf16_units(character: str) -> int:
    """Count a character as Telegram does: UTF-16 units, two outside the basic plane."""
    return 2 if character > "\uffff" else 1


def utf8_bytes(character: str) -> int:
    """Count a character as Instagram does: bytes of UTF-8; a lone surrogate as the replacement that it becomes."""
    return 3 if "\ud800" <= character <= "\udfff" else len(character.encode())


def split(text: str, limit: int, width: Callable[[str], int] = code_points) -> list[str]:
    """Split a text into pieces of at most `limit` units.

    Joined, the pieces are the text, but for pieces of mere white space: no channel shows one. A grapheme that is longer
    than the limit by itself is cut between code points.

    Args:
        text: what to split; a blank one gives no piece.
        limit: the longest piece, in units; at least 2.
        width: the units of one character.
    """
    return split_by(text, lambda start: furthest(text, start, limit, width))


def split_by(text: str, reach: Callable[[int], int]) -> list[str]:
    """Split a text into pieces, each as far as it may reach from where it begins (at least one character)."""
    pieces = []
    start = 0
    while start < len(text):
        end = reach(start)
        if end < len(text):
            end = best_cut(text, start, end)
        pieces.append(text[start:end])
        start = end
    return [piece for piece in pieces if piece.strip()]


def furthest(text: str, start: int, limit: int, width: Callable[[str], int]) -> int:
    """Find how far a piece of at most `limit` units can reach; at least one character."""
    end = start
    left = limit
    while end < len(text) and (left := left - width(text[end])) >= 0:
        end += 1
    return max(end, start + 1)


def best_cut(text: str, start: int, end: int) -> int:
    """Choose where to cut in `text[start:end]`: the best kind of break that leaves the piece at least half full."""
    half = start + (end - start) // 2
    for pattern in _BREAKS:
        ends = [found.end() for found in pattern.finditer(text, start, end) if found.end() >= half]
        cuts = [at for at in ends if may_cut(text, at)]
        if cuts:
            return cuts[-1]
    return next((cut for cut in range(end, start, -1) if may_cut(text, cut)), end)


def may_cut(text: str, at: int) -> bool:
    """Tell whether a cut before `text[at]` leaves every grapheme whole. Both ends of the text are such places."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before in "\r\n" or after in "\r\n":
        return before + after != "\r\n"
    if unicodedata.category(after) in {"Mn", "Mc", "Me", "Cf"} or after in _JOINING_AFTER or _is_skin_tone(after):
        return False
    if before in _JOINING_BEFORE or unicodedata.combining(before) == _VIRAMA:
        return False
    if _is_flag_half(before) and _is_flag_half(after):
        return _flag_halves_before(text, at) % 2 == 0
    return not _joins_hangul(before, after)


def _is_skin_tone(character: str) -> bool:
    return "\U0001f3fb" <= character <= "\U0001f3ff"


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_halves_before(text: str, at: int) -> int:
    count = 0
    while count < at and _is_flag_half(text[at - 1 - count]):
        count += 1
    return count


def _joins_hangul(before: str, after: str) -> bool:
    """Rules GB6 to GB8: leading, vowel and trailing jamo, and syllables made of them."""
    leading = "\u1100" <= before <= "\u115f" or "\ua960" <= before <= "\ua97c"
    follows = "\u1160" <= after <= "\u11ff" or "\ud7b0" <= after <= "\ud7fb"
    begins = "\u1100" <= after <= "\u115f" or "\ua960" <= after <= "\ua97c" or "\uac00" <= after <= "\ud7a3"
    hangul = "\u1100" <= before <= "\u11ff" or "\ua960" <= before <= "\ua97c" or "\uac00" <= before <= "\ud7fb"
    return (leading and begins) or (hangul and follows)
