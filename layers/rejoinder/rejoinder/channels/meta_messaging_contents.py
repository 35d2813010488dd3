"""What one message of Messenger or Instagram says: its text, and its attachments with readable names.

Sources: Messenger Platform, "messages webhook event reference"; Instagram Messaging, "Webhooks" and "Story mention".
"""

from collections.abc import Mapping
from typing import Any

from rejoinder.channels import reading
from rejoinder.protocol.conversation import Attachment

MAX_ATTACHMENTS = 30
"""Of one message; Messenger's app lets a person choose 30 photos at once."""

KINDS = {
    "image": ("image", "image"),
    "audio": ("audio", "voice message"),
    "video": ("video", "video"),
    "file": ("file", "file"),
    "fallback": ("link", "link"),
    "share": ("share", "shared post"),
    "post": ("share", "shared post"),
    "ig_post": ("share", "shared post"),
    "reel": ("share", "shared reel"),
    "ig_reel": ("share", "shared reel"),
    "story_mention": ("story", "mentioned us in a story"),
    "ig_story": ("story", "shared story"),
}
"""What an attachment's type is to a bot, and what it is called where it has no title."""

UNSUPPORTED = Attachment("unsupported", "", "a message that Meta does not pass on")


def content_of(message: Mapping[str, Any]) -> tuple[str, tuple[Attachment, ...]]:
    """Read a message.

    Raises:
        Malformed: what is there is not in its form.
    """
    text = reading.text_field(message, "text")
    given = reading.objects_field(message, "attachments") if message.get("attachments") is not None else []
    attachments = [_attachment(attachment) for attachment in given[:MAX_ATTACHMENTS]]
    if message.get("is_unsupported") in (True, "true"):
        attachments.append(UNSUPPORTED)
    if message.get("reply_to") is not None:
        attachments += _story(reading.object_field(message, "reply_to"))
    if message.get("quick_reply") is not None:
        chosen = reading.object_field(message, "quick_reply")
        payload = reading.text_field(chosen, "payload", max_bytes=reading.MAX_REF_BYTES)
        attachments += reading.payload_of(payload, text)
    return text, tuple(attachments)


def _attachment(source: Mapping[str, Any]) -> Attachment:
    """Read one attachment; one that was not passed on has no payload."""
    kind = reading.text_field(source, "type", max_bytes=64)
    payload = reading.object_field(source, "payload") if source.get("payload") is not None else {}
    title = _first(payload, source, "title", reading.MAX_NAME_BYTES)
    url = _first(payload, source, "url", reading.MAX_REF_BYTES)
    if kind == "location":
        where = reading.coordinates(_with_long_names(reading.object_field(payload, "coordinates")))
        return Attachment("location", f"geo:{where}", title or f"location {where}")
    if payload.get("sticker_id") is not None:
        return Attachment("sticker", url, "sticker")
    if kind not in KINDS or not url:
        return Attachment("unsupported", url, title or f"an attachment ({kind}) that Meta does not pass on")
    named, usual = KINDS[kind]
    return Attachment(named, url, title or usual)


def _first(payload: Mapping[str, Any], source: Mapping[str, Any], name: str, max_bytes: int) -> str:
    """A field of the payload, or of the attachment itself, where a shared link has it."""
    return reading.text_field(payload, name, max_bytes=max_bytes) or reading.text_field(
        source, name, max_bytes=max_bytes
    )


def _with_long_names(coordinates: Mapping[str, Any]) -> dict[str, Any]:
    return {"latitude": coordinates.get("lat"), "longitude": coordinates.get("long")}


def _story(reply_to: Mapping[str, Any]) -> list[Attachment]:
    """The story that was replied to; a reply to a message needs nothing: the history has it."""
    if reply_to.get("story") is None:
        return []
    story = reading.object_field(reply_to, "story")
    return [
        Attachment("story", reading.text_field(story, "url", max_bytes=reading.MAX_REF_BYTES), "replied to our story")
    ]
