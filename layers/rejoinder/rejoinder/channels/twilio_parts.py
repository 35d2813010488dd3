"""A reply's parts as Twilio's sends.

An SMS is plain text, split by segments. What goes to WhatsApp keeps its markup and shows media by URL (Twilio Docs,
"Messages resource": `MediaUrl`; at most 1,600 characters of `Body`).
"""

import json
from collections.abc import Sequence
from typing import Any

from rejoinder.channels import sms
from rejoinder.channels.degrading import degraded
from rejoinder.channels.markup import PLAIN, WHATSAPP, written
from rejoinder.channels.splitting import split, utf16_units
from rejoinder.ports import File, Image, Part, Permanent, Raw, Reply, Text, part_text

TEXT_LIMIT = 1_600
WHATSAPP_PREFIX = "whatsapp:"

SHOWN_AS_SMS: frozenset[type[Part]] = frozenset({Text, Raw})
SHOWN_BY_WHATSAPP: frozenset[type[Part]] = frozenset({Text, Image, File, Raw})


def rendered(reply: Reply, address: str) -> tuple[str, ...]:
    """Write each part as the JSON of one send's parameters.

    Args:
        reply: what the bot says.
        address: our number and the other side's, with a space between.

    Raises:
        Permanent: nothing to show, or a `Raw` that is no JSON.
    """
    ours, _, theirs = address.partition(" ")
    to = {"From": ours, "To": theirs}
    whatsapp = theirs.startswith(WHATSAPP_PREFIX)
    parts = degraded(reply, SHOWN_BY_WHATSAPP if whatsapp else SHOWN_AS_SMS)
    contents = [content for part in parts for content in (_whatsapp(part) if whatsapp else _sms(part))]
    try:
        return tuple(
            json.dumps({**content, **to}, ensure_ascii=False, allow_nan=False)
            for content in sms.bounded(contents, "Body")
        )
    except (TypeError, ValueError, RecursionError):
        raise Permanent("the payload of a Raw part cannot be written as JSON") from None


def _sms(part: Part) -> Sequence[dict[str, Any]]:
    """Write one part as SMS; Twilio puts look-alikes in the place of typographic characters, which cost segments."""
    if isinstance(part, Raw):
        return [dict(part.payload)]
    return [{"Body": piece, "SmartEncoded": "true"} for piece in sms.pieces(written(part_text(part), PLAIN))]


def _whatsapp(part: Part) -> Sequence[dict[str, Any]]:
    """Write one part for WhatsApp; a caption that is too long follows as text."""
    match part:
        case Raw(payload):
            return [dict(payload)]
        case Image(url, caption) | File(url, _, caption) if url.startswith(("http://", "https://")):
            texts = [{"Body": piece} for piece in split(written(caption, WHATSAPP), TEXT_LIMIT, utf16_units)]
            if len(texts) == 1:
                return [{"MediaUrl": url, **texts[0]}]
            return [{"MediaUrl": url}, *texts]
        case _:
            return [{"Body": piece} for piece in split(written(part_text(part), WHATSAPP), TEXT_LIMIT, utf16_units)]
