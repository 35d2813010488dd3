"""What a Telegram message holds besides text, as attachments with readable names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rejoinder.channels import reading
from rejoinder.ports import Malformed
from rejoinder.protocol.conversation import Attachment


def attachments_of(message: Mapping[str, Any]) -> tuple[Attachment, ...]:
    """Read what is attached. Some kinds come with a second one for old clients, which is left out.

    Raises:
        Malformed: a kind is there, but not in its form.
    """
    for kind, read in _READERS.items():
        if message.get(kind) is not None:
            return (read(message),)
    return ()


def _photo(message: Mapping[str, Any]) -> Attachment:
    """The largest of the sizes in which a photo comes."""
    sizes = message["photo"]
    if not isinstance(sizes, list) or not sizes or not all(isinstance(size, dict) for size in sizes):
        raise Malformed("photo is not a list of sizes")
    largest = max(sizes, key=lambda size: reading.size_field(size, "width") * reading.size_field(size, "height"))
    return _file("image", "photo", largest)


def _of_kind(kind: str, field: str, name: str) -> Callable[[Mapping[str, Any]], Attachment]:
    """A reader of a kind that is one file, perhaps of a length in seconds."""

    def read(message: Mapping[str, Any]) -> Attachment:
        source = reading.object_field(message, field)
        seconds = reading.size_field(source, "duration")
        return _file(kind, f"{name}, {seconds} s" if seconds else name, source)

    return read


def _file(kind: str, name: str, source: Mapping[str, Any]) -> Attachment:
    ref = reading.text_field(source, "file_id", max_bytes=reading.MAX_REF_BYTES)
    if not ref:
        raise Malformed(f"{name} has no file_id")
    return Attachment(
        kind,
        ref,
        reading.text_field(source, "file_name", max_bytes=reading.MAX_NAME_BYTES) or name,
        reading.text_field(source, "mime_type", max_bytes=reading.MAX_NAME_BYTES),
        reading.size_field(source, "file_size"),
    )


def _sticker(message: Mapping[str, Any]) -> Attachment:
    source = reading.object_field(message, "sticker")
    return _file("sticker", f"sticker {reading.text_field(source, 'emoji', max_bytes=64)}".strip(), source)


def _location(message: Mapping[str, Any]) -> Attachment:
    where = reading.coordinates(reading.object_field(message, "location"))
    return Attachment("location", f"geo:{where}", f"location {where}")


def _venue(message: Mapping[str, Any]) -> Attachment:
    source = reading.object_field(message, "venue")
    where = reading.coordinates(reading.object_field(source, "location"))
    named = (reading.text_field(source, name, max_bytes=reading.MAX_NAME_BYTES) for name in ("title", "address"))
    return Attachment("location", f"geo:{where}", ", ".join(name for name in named if name) or f"location {where}")


def _contact(message: Mapping[str, Any]) -> Attachment:
    source = reading.object_field(message, "contact")
    number = reading.text_field(source, "phone_number", max_bytes=64)
    names: Sequence[str] = [reading.text_field(source, name, max_bytes=256) for name in ("first_name", "last_name")]
    return Attachment("contact", f"tel:{number}", " ".join([*filter(None, names), number]).strip())


def _poll(message: Mapping[str, Any]) -> Attachment:
    source = reading.object_field(message, "poll")
    return Attachment(
        "poll",
        reading.text_field(source, "id", max_bytes=reading.MAX_NAME_BYTES),
        reading.text_field(source, "question", max_bytes=2_048),
    )


def _dice(message: Mapping[str, Any]) -> Attachment:
    source = reading.object_field(message, "dice")
    emoji = reading.text_field(source, "emoji", max_bytes=64)
    return Attachment("dice", "", f"{emoji} {reading.size_field(source, 'value')}".strip())


_READERS: dict[str, Callable[[Mapping[str, Any]], Attachment]] = {
    "photo": _photo,
    "voice": _of_kind("audio", "voice", "voice message"),
    "audio": _of_kind("audio", "audio", "audio"),
    "video": _of_kind("video", "video", "video"),
    "video_note": _of_kind("video", "video_note", "video message"),
    "animation": _of_kind("video", "animation", "animation"),  # before document, which repeats it
    "document": _of_kind("file", "document", "file"),
    "sticker": _sticker,
    "venue": _venue,  # before location, which repeats it
    "location": _location,
    "contact": _contact,
    "poll": _poll,
    "dice": _dice,
}
"""One kind each, in the order in which they are looked for (Telegram Bot API, Message)."""
