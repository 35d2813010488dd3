"""What one Slack message says: its text without Slack's own notation, and its files as attachments.

Sources: Slack developer docs, "Formatting message text" (mentions, links, escapes), "File object" and "message event".
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rejoinder.channels import reading
from rejoinder.protocol.conversation import Attachment

MAX_ATTACHMENTS = 20
"""Of one message; Slack's own clients stop at ten files."""

KINDS = {"image": "image", "audio": "audio", "video": "video"}

_ANGLED = re.compile(r"<([^<>\n]{1,4000})>")
"""A link, a mention or a command; every other `<` of a text comes escaped."""


@dataclass(frozen=True, slots=True)
class Content:
    """What was said.

    Attributes:
        text: empty where there is none.
    """

    text: str
    attachments: tuple[Attachment, ...]


def mentions(message: Mapping[str, Any], users: Collection[str]) -> bool:
    """Tell whether the text mentions one of the users.

    Raises:
        Malformed: its text is no text.
    """
    text = reading.text_field(message, "text")
    return any(f"<@{user}>" in text or f"<@{user}|" in text for user in users)


def content_of(message: Mapping[str, Any], own: Collection[str]) -> Content:
    """Read a message.

    Args:
        message: Slack's.
        own: our bot's user ids: a mention of it that begins or ends a text calls it, and is not part of what is said.

    Raises:
        Malformed: a field is not in its form.
    """
    raw = reading.text_field(message, "text")
    called = raw
    for user in own:
        mention = rf"<@{re.escape(user)}(?:\|[^<>]*)?>"
        called = re.sub(rf"\A\s*{mention}[\s,:]*|\s*{mention}\s*\Z", "", called)
    files = _listed(message, "files")
    text = plain(called if called.strip() or files else raw)
    forwarded = [quoted for entry in _listed(message, "attachments") if (quoted := _forwarded(entry))]
    attachments = [attachment for file in files[:MAX_ATTACHMENTS] if (attachment := _file(file)) is not None]
    return Content("\n".join(filter(None, (text, *forwarded))), tuple(attachments))


def plain(text: str) -> str:
    """Write a text of Slack's as people see it: links and mentions by their names, escapes as their characters."""
    readable = _ANGLED.sub(lambda found: _readable(found[1]), text)
    return readable.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _readable(inner: str) -> str:
    """Write what stands in angle brackets."""
    target, _, label = inner.partition("|")
    match target[:1]:
        case "@":
            return f"@{label or target[1:]}"
        case "#":
            return f"#{label or target[1:]}"
        case "!":  # such as <!here>, <!subteam^S0123|@team> or <!date^0^{date}|January>
            return label or f"@{target[1:].partition('^')[0]}"
    bare = target.removeprefix("mailto:").removeprefix("tel:")
    if not label or label in {target, bare} or target in {f"http://{label}", f"https://{label}"}:
        return bare
    return f"{label} ({bare})"


def _file(file: Mapping[str, Any]) -> Attachment | None:
    """A file by its id, which `files.info` answers for; None for one without: it must not lose the text beside it."""
    file_id = file.get("id")
    if not isinstance(file_id, str) or not 0 < len(file_id) <= 64:
        return None
    mime = reading.text_field(file, "mimetype", max_bytes=reading.MAX_NAME_BYTES)
    name = reading.text_field(file, "name", max_bytes=reading.MAX_NAME_BYTES)
    title = reading.text_field(file, "title", max_bytes=reading.MAX_NAME_BYTES)
    kind = KINDS.get(mime.partition("/")[0], "file")
    return Attachment(kind, file_id, name or title or kind, mime, reading.size_field(file, "size"))


def _forwarded(entry: Mapping[str, Any]) -> str:
    """The text of a message that was forwarded, as a quotation; empty for previews of links."""
    text = entry.get("text")
    if entry.get("is_share") is not True or not isinstance(text, str):
        return ""
    return "\n".join(f"> {line}" for line in plain(text).split("\n"))


def _listed(message: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """An optional list of objects, the others left out."""
    found = message.get(name)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
