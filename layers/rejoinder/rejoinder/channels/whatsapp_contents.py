"""What one WhatsApp message says: its text, and its attachments with readable names.

Source: WhatsApp Business Platform, "messages webhook reference", one page a type.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rejoinder.channels import reading
from rejoinder.ports import Ignored, Malformed
from rejoinder.protocol.conversation import Attachment

MAX_ATTACHMENTS = 20
"""Of one message; only contacts come as a list."""

NO_MESSAGES = {
    "reaction": "a reaction",
    "system": "a system message",
    "request_welcome": "a chat was opened and nothing written",
    "ephemeral": "a notice of vanishing messages",
    "edit": "a message of our own side was changed",
    "revoke": "a message was taken back",
}
"""Types that nobody wrote to be answered. A customer's own edit is read before its type is asked for here."""


@dataclass(frozen=True, slots=True)
class Content:
    """What was said.

    Attributes:
        text: empty where there is none.
    """

    text: str = ""
    attachments: tuple[Attachment, ...] = ()


def content_of(message: Mapping[str, Any]) -> Content | Ignored:
    """Read a message by its type.

    Raises:
        Malformed: what belongs to its type is not there, or not in its form.
    """
    kind = reading.text_field(message, "type", max_bytes=64)
    if kind in NO_MESSAGES:
        return Ignored(NO_MESSAGES[kind])
    if kind not in _READERS:
        # a type that Meta adds may be a notice: to answer it could make a loop of two machines
        return Ignored(f"a message of the unknown type {kind!r}")
    return _READERS[kind](message)


def _text(message: Mapping[str, Any]) -> Content:
    return Content(reading.text_field(reading.object_field(message, "text"), "body"))


def _button(message: Mapping[str, Any]) -> Content:
    """A quick reply of a template that was pressed."""
    return Content(reading.text_field(reading.object_field(message, "button"), "text"))


def _interactive(message: Mapping[str, Any]) -> Content:
    """A button or an entry of a list that was chosen, or a form (WhatsApp Flows) that was sent, as its JSON."""
    source = reading.object_field(message, "interactive")
    kind = reading.text_field(source, "type", max_bytes=64)
    match kind:
        case "button_reply" | "list_reply":
            return Content(reading.text_field(reading.object_field(source, kind), "title"))
        case "nfm_reply":
            return Content(reading.text_field(reading.object_field(source, kind), "response_json"))
        case _:
            raise Malformed(f"interactive of the unknown type {kind!r}")


def _medium(kind: str, field: str, name: str) -> Callable[[Mapping[str, Any]], Content]:
    """A reader of one medium; `ref` is its media id, good for 30 days (Cloud API, Media)."""

    def read(message: Mapping[str, Any]) -> Content:
        source = reading.object_field(message, field)
        usual = "voice message" if source.get("voice") is True else name
        attachment = Attachment(
            kind,
            reading.id_field(source, "id"),
            reading.text_field(source, "filename", max_bytes=reading.MAX_NAME_BYTES) or usual,
            reading.text_field(source, "mime_type", max_bytes=reading.MAX_NAME_BYTES),
        )
        return Content(reading.text_field(source, "caption"), (attachment,))

    return read


def _location(message: Mapping[str, Any]) -> Content:
    source = reading.object_field(message, "location")
    where = reading.coordinates(source)
    named = (reading.text_field(source, name, max_bytes=reading.MAX_NAME_BYTES) for name in ("name", "address"))
    name = ", ".join(part for part in named if part)
    return Content(attachments=(Attachment("location", f"geo:{where}", name or f"location {where}"),))


def _contacts(message: Mapping[str, Any]) -> Content:
    cards = reading.objects_field(message, "contacts")
    return Content(attachments=tuple(_contact(card) for card in cards[:MAX_ATTACHMENTS]))


def _contact(card: Mapping[str, Any]) -> Attachment:
    """A card with its first number; one may have none."""
    numbers = reading.objects_field(card, "phones") if card.get("phones") is not None else []
    number = reading.text_field(numbers[0], "phone", max_bytes=64) if numbers else ""
    name = reading.text_field(reading.object_field(card, "name"), "formatted_name", max_bytes=reading.MAX_NAME_BYTES)
    return Attachment("contact", f"tel:{number}", " ".join(filter(None, (name, number))))


def _order(message: Mapping[str, Any]) -> Content:
    """A cart: how many of what. Prices are numbers with a fraction in no said unit; the catalogue knows them."""
    source = reading.object_field(message, "order")
    items = [
        f"{reading.size_field(item, 'quantity')} x {reading.id_field(item, 'product_retailer_id')}"
        for item in reading.objects_field(source, "product_items")
    ]
    name = f"order: {', '.join(items)}"[: reading.MAX_NAME_BYTES]
    return Content(
        reading.text_field(source, "text"), (Attachment("order", reading.id_field(source, "catalog_id"), name),)
    )


def _unsupported(message: Mapping[str, Any]) -> Content:  # noqa: ARG001  # nothing of it is passed on
    """What Meta does not pass on (error 131051), such as a poll: the bot can at least say that it could not read it."""
    return Content(attachments=(Attachment("unsupported", "", "a message that WhatsApp does not pass on"),))


_READERS: dict[str, Callable[[Mapping[str, Any]], Content]] = {
    "text": _text,
    "button": _button,
    "interactive": _interactive,
    "image": _medium("image", "image", "image"),
    "audio": _medium("audio", "audio", "audio"),
    "video": _medium("video", "video", "video"),
    "document": _medium("file", "document", "file"),
    "sticker": _medium("sticker", "sticker", "sticker"),
    "location": _location,
    "contacts": _contacts,
    "order": _order,
    "unsupported": _unsupported,
}
