"""What a bot says, and how it reads as text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text; the channel splits what is too long."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image by URL."""

    url: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """A file by URL."""

    url: str
    name: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Buttons:
    """A text with answers to choose from; a channel without buttons lists them."""

    text: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """The channel's own JSON, sent as it is.

    Attributes:
        payload: the request body, without the address.
        text: what the history shows.
    """

    payload: Mapping[str, Any]
    text: str = ""


Part = Text | Image | File | Buttons | Raw


@dataclass(frozen=True, slots=True)
class Reply:
    """What the bot says, in order. No parts: it says nothing, and the messages count as answered."""

    parts: tuple[Part, ...] = ()

    @property
    def text(self) -> str:
        """The reply as the history keeps it."""
        return "\n\n".join(said for part in self.parts if (said := part_text(part)))


def part_text(part: Part) -> str:
    """Write a part as text: what the history keeps, and what a channel shows that cannot show the part."""
    match part:
        case Text(text):
            return text
        case Image(url, caption) | File(url, _, caption):
            return f"{caption}\n{url}" if caption else url
        case Buttons(text, options):
            return "\n".join([text, *(f"• {option}" for option in options)])
        case Raw(_, text):
            return text
