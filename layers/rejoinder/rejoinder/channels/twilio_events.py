"""Twilio's forms as events.

Sources: Twilio Docs, "Messaging webhooks" (Incoming message webhook, Status callback), "Outbound Message Status in
Status Callbacks", "Advanced Opt-Out".
"""

from collections.abc import Mapping
from urllib.parse import parse_qs

from rejoinder.channels import reading
from rejoinder.channels.opting import TWILIO, WHATSAPP, Meaning
from rejoinder.ports import Event, Ignored, Inbound, Malformed, Reported
from rejoinder.protocol.conversation import Attachment
from rejoinder.protocol.identity import ConversationId

MAX_MEDIA = 20
"""Twilio sends at most ten."""

RECEIVED = frozenset({"", "received", "receiving"})
TAKEN = frozenset({"accepted", "scheduled", "queued", "sending", "sent", "delivered", "read"})
"""Of a message that Twilio has: whichever of them comes proves that the send arrived there."""

NOT_DELIVERED = frozenset({"failed", "undelivered", "canceled"})

MARKED: dict[str, Meaning] = {"STOP": "withdrawn", "START": "given", "HELP": "help"}
"""What `OptOutType` says."""


def read(form: Mapping[str, str], query: str, *, advanced: bool) -> Event:
    """Read one form.

    Args:
        form: the fields.
        query: the URL's, which a status callback of ours has the part in.
        advanced: only `OptOutType` says what is STOP or START, and not the words.

    Raises:
        Malformed: it lacks what every message has.
    """
    if "EventType" in form:
        return Ignored("of another product than Programmable Messaging")
    provider_id = reading.id_field(form, "MessageSid")
    sender = reading.id_field(form, "From")
    recipient = reading.id_field(form, "To")
    status = (form.get("MessageStatus") or form.get("SmsStatus") or "").lower()
    if status not in RECEIVED:
        return _status(form, query, _conversation(sender, recipient), status)
    text = form.get("Body", "")
    marked = form.get("OptOutType", "").upper()
    words = WHATSAPP if sender.startswith("whatsapp:") else TWILIO
    meaning = MARKED.get(marked, "") if marked or advanced else words.meaning(text)
    if meaning == "help":
        return Ignored("HELP, which Twilio answers")
    return Inbound(
        _conversation(recipient, sender),
        provider_id,
        sender,
        text,
        author_name=reading.text_field(form, "ProfileName", max_bytes=reading.MAX_NAME_BYTES),
        attachments=(*_media(form), *_location(form)),
        address=f"{recipient} {sender}",
        consent=meaning,
    )


def _conversation(ours: str, theirs: str) -> str:
    if " " in ours or " " in theirs:
        raise Malformed("From or To holds a space, which no address has")
    try:
        return str(ConversationId("twilio", ours, theirs))
    except ValueError as error:
        raise Malformed(str(error)) from None


def _status(form: Mapping[str, str], query: str, conversation_id: str, status: str) -> Event:
    """Read what became of a message of ours; without our part in the query it is somebody else's."""
    reply_id, _, index = parse_qs(query).get("reply", [""])[0].rpartition("-")
    if not (reply_id and index.isascii() and index.isdigit() and len(index) <= 4):
        return Ignored("a status callback")
    if status in TAKEN:
        return Reported(conversation_id, reply_id, int(index))
    if status in NOT_DELIVERED:
        return Reported(conversation_id, reply_id, int(index), f"{status}, error {form.get('ErrorCode', '')[:10]}")
    return Ignored("a status callback that settles nothing")


def _media(form: Mapping[str, str]) -> list[Attachment]:
    count = form.get("NumMedia", "")
    media = []
    for index in range(min(int(count), MAX_MEDIA) if count.isascii() and count.isdigit() and len(count) < 4 else 0):
        url = reading.text_field(form, f"MediaUrl{index}", max_bytes=reading.MAX_REF_BYTES)
        mime = reading.text_field(form, f"MediaContentType{index}", max_bytes=reading.MAX_NAME_BYTES)
        if url:
            media.append(Attachment(_kind(mime), url, mime=mime))
    return media


def _kind(mime: str) -> str:
    family = mime.partition("/")[0]
    if family in {"image", "audio", "video"}:
        return family
    return "contact" if mime in {"text/vcard", "text/x-vcard"} else "file"


def _location(form: Mapping[str, str]) -> list[Attachment]:
    """A place, which WhatsApp's users send."""
    latitude, longitude = form.get("Latitude", "")[:24], form.get("Longitude", "")[:24]
    if not latitude or not longitude:
        return []
    named = [form[name] for name in ("Label", "Address") if form.get(name)]
    return [Attachment("location", f"{latitude},{longitude}", ", ".join(named)[: reading.MAX_NAME_BYTES // 4])]
