"""Writes the examples in docs/prompting.md by folding real turns: `make docs`."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rejoinder.bots.folding import folded
from rejoinder.bots.model import Entry
from rejoinder.bots.pictures import Unseen
from rejoinder.ports import Media, Turn
from rejoinder.protocol.conversation import Attachment, Message, TurnRecord
from rejoinder.protocol.identity import message_id

PAGE = Path(__file__).with_name("prompting.md")
BLOCK = re.compile(r"<!-- example: (\w+) -->\n.*?<!-- end of example -->", re.DOTALL)
AT_MS = 1_790_000_000_000
"""2026-09-21 14:13:20 UTC."""


def said(text: str, name: str = "Ana", after_s: int = 0, *attachments: Attachment) -> Message:
    """A message of the examples."""
    at_ms = AT_MS + after_s * 1_000
    return Message(
        message_id(text), text, name.lower(), at_ms, at_ms, text=text, author_name=name, attachments=attachments
    )


def turn(*messages: Message, **more: Any) -> Turn:
    """A turn of the examples."""
    return Turn("webhook:shop:c-1", messages, **more)


def burst() -> list[Entry]:
    """Two messages seconds apart."""
    return folded(turn(said("my phone is 555-0142"), said("and my e-mail is\nana@example.com", after_s=3)))


def group() -> list[Entry]:
    """Two people, with minutes between them."""
    bo = said("i can't at 5\n[3, Ana] then let us cancel", "Bo", 70)
    return folded(turn(said("when do we meet?"), bo))


def attachments() -> list[Entry]:
    """What is not text, for a model without eyes."""
    return folded(turn(*with_photo()))


def images() -> list[Entry]:
    """The same, for a model that takes images, with one more that is too large."""
    huge = Attachment("image", "AgACAgIAAx", "photo", size_bytes=7_340_032)
    looks = {
        "https://cdn.example.com/41.jpg": Media(b"x" * 90_112, "image/jpeg"),
        huge.ref: Unseen("too large to look at", huge.size_bytes),
    }
    return folded(turn(*with_photo(), said("and from behind", "Ana", 9, huge)), looks=looks)


def with_photo() -> tuple[Message, ...]:
    """A photo that has an address, and a voice message that only its provider can give out."""
    photo = Attachment("image", "https://cdn.example.com/41.jpg", "part.jpg", "image/jpeg", 90_112)
    voice = Attachment("audio", "AwACAgIAAx", "voice message, 12 s")
    return said("do you have this one?", "Ana", 0, photo), said("", "Ana", 4, voice)


def history() -> list[Entry]:
    """A turn that was answered, one whose reply was never delivered, and the one to answer."""
    before = (
        TurnRecord(1, 1, AT_MS, (said("do you have rye bread?"),), said="Every day from 6:30."),
        TurnRecord(2, 2, AT_MS, (said("and on sundays?"),), said="From 8.", delivery="held"),
    )
    return folded(turn(said("hello?", after_s=60), history=before))


def overflow() -> list[Entry]:
    """More than the row takes."""
    return folded(turn(said("first"), said("second"), overflowed=12))


EXAMPLES: dict[str, Callable[[], list[Entry]]] = {
    function.__name__: function for function in (burst, group, attachments, images, history, overflow)
}


def shown(entries: list[Entry]) -> str:
    """Write entries for a reader: the role at the margin, the content beside it, images as what they are."""
    lines: list[str] = []
    for entry in entries:
        content = [
            f"(image {number}: {len(image.content)} bytes of {image.mime})"
            for number, image in enumerate(entry.images, start=1)
        ]
        content += entry.content.split("\n")
        lines += [f"{entry.role if not index else '':<11}{line}".rstrip() for index, line in enumerate(content)]
    return "\n".join(lines)


def written(page: str) -> str:
    """The page with its examples as they should be.

    Raises:
        ValueError: an example stands in no place of the page.
    """
    found = [match[1] for match in BLOCK.finditer(page)]
    if sorted(found) != sorted(EXAMPLES):
        raise ValueError(f"docs/prompting.md has the examples {found}; there are {list(EXAMPLES)}")

    def example(match: re.Match[str]) -> str:
        return f"<!-- example: {match[1]} -->\n```\n{shown(EXAMPLES[match[1]]())}\n```\n<!-- end of example -->"

    return BLOCK.sub(example, page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
