"""What a webhook brings becomes a message that the row can keep, or is refused for its size."""

import json
from dataclasses import replace

from rejoinder.ports import Inbound
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import MAX_AUTHOR_BYTES, MAX_PROVIDER_ID_BYTES, message_id
from rejoinder.protocol.unicode import valid

MAX_TEXT_BYTES = 262_144
"""A longer text is cut, with a marker: an item of DynamoDB holds 400 KB, and no model reads more. Counted as it is
stored: in JSON, where a control character takes six."""

MAX_NAME_LENGTH = 64
CUT_MARKER = "\n[…]"


def what_is_oversized(inbound: Inbound) -> str | None:
    """Name an id that is too long (or empty) to be kept on the row, which must fit an item when it is full."""
    bounds = (
        ("message id", inbound.provider_id, MAX_PROVIDER_ID_BYTES),
        ("author", inbound.author, MAX_AUTHOR_BYTES),
        ("address", inbound.address, MAX_PROVIDER_ID_BYTES),
    )
    for name, text, most in bounds:
        if len(text.encode("utf-8", "surrogatepass")) > most:
            return f"{name} over {most} bytes"
    return None if inbound.provider_id else "no message id"


def cleaned(inbound: Inbound, via: str, now_ms: int) -> Message:
    """Make the message that the row can keep: valid Unicode, no NUL, no blank text, bounded lengths."""
    return Message(
        id=message_id(inbound.provider_id),
        provider_id=valid(inbound.provider_id),
        author=valid(inbound.author),
        sent_at_ms=now_ms if inbound.sent_at_ms is None else inbound.sent_at_ms,
        arrived_at_ms=now_ms,
        sequence=inbound.sequence,
        text=bounded(valid(inbound.text)),
        author_name=valid(inbound.author_name)[:MAX_NAME_LENGTH],
        attachments=tuple(kept(attachment) for attachment in inbound.attachments),
        via=via,
        address=valid(inbound.address),
        consent=inbound.consent,
    )


def kept(attachment: Attachment) -> Attachment:
    """The attachment with valid Unicode."""
    return replace(
        attachment,
        kind=valid(attachment.kind),
        ref=valid(attachment.ref),
        name=valid(attachment.name),
        mime=valid(attachment.mime),
    )


def bounded(text: str) -> str:
    """Strip a blank text to nothing, and cut one over `MAX_TEXT_BYTES` with a marker."""
    if not text.strip():
        return ""
    encoded = json.dumps(text, ensure_ascii=False)[1:-1].encode()
    if len(encoded) <= MAX_TEXT_BYTES:
        return text
    cut = encoded[: MAX_TEXT_BYTES - len(json.dumps(CUT_MARKER))].decode("utf-8", "ignore")
    while True:
        try:
            return f"{json.loads(f'"{cut}"')}{CUT_MARKER}"
        except ValueError:
            cut = cut[:-1]  # it ends in the midst of an escape: five characters at the most
