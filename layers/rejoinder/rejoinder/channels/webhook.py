"""The channel `webhook`: any system of one's own that can sign JSON, and receive it.

In: POST of one message, or of `{"messages": [...]}`; with `type` also what people do past the bot: `operator` (a
colleague's own answer), `pause` (with `until`) and `resume`. Out: POST of each part to `reply_url`. Both are signed:
`x-rejoinder-timestamp` is the epoch second, `x-rejoinder-signature` is `v1=` and the hexadecimal HMAC-SHA256 of
`v1:<timestamp>:` followed by the raw body.

A reply's `idempotency-key` is the same for each try. A receiver must drop what it has seen: so an answer of 5xx, which
says "not accepted", can be followed by another try. A connection that breaks says nothing, and stays in doubt.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from rejoinder import http
from rejoinder.channels import NAMES, reading
from rejoinder.channels.degrading import degraded
from rejoinder.channels.splitting import split
from rejoinder.ports import (
    Buttons,
    ByPerson,
    Clock,
    Event,
    File,
    Ignored,
    Image,
    Inbound,
    Malformed,
    Media,
    Part,
    PauseAsked,
    Permanent,
    Raw,
    Rejected,
    Reply,
    Request,
    Response,
    ResumeAsked,
    Text,
    Transient,
    Unverified,
    part_text,
)
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.protocol.identity import MAX_AUTHOR_BYTES, ConversationId
from rejoinder.system import SystemClock

FIELDS = {
    "secret": "the secret that both sides sign with; make one with `openssl rand -hex 32`",
    "reply_url": "the http(s) address that replies are POSTed to",
}
OPTIONAL_FIELDS = {
    "account": "the name of this account in conversation ids; without it, the label in the URL",
    "media_url": (
        "where attachments lie, if that is inside or http, such as http://media.internal:8080: that host is asked "
        "too; without it, https addresses with a public name alone"
    ),
    "controls": "`all` lets it pause and resume conversations of every channel, by their whole ids",
}

TOLERANCE_MS = 5 * 60 * 1000
"""How far a time-stamp may be from our clock, either way: a recorded request is of no use later."""

TEXT_LIMIT = 20_000
MAX_BATCH = 100
MAX_ATTACHMENTS = 20

MS_FROM = 100_000_000_000
"""A `sent_at` from here on is milliseconds: as seconds it would be the year 5138."""

MAX_SENT_AT_MS = 100_000_000_000_000

SHOWS: frozenset[type[Part]] = frozenset({Text, Image, File, Buttons, Raw})


def from_fields(via: str, fields: Mapping[str, str]) -> "WebhookChannel":
    """Open the account.

    Raises:
        Permanent: fields are missing, or `reply_url` is no http(s) address.
    """
    reading.require_fields("webhook", via, fields, FIELDS)
    reply_url, media_url = fields["reply_url"].strip(), fields.get("media_url", "").strip()
    for name, url in (("reply_url", reply_url), ("media_url", media_url or reply_url)):
        if not _usable(url):
            raise Permanent(
                f"channel webhook, account {via}: {name} must begin with http:// or https:// and name a host"
            )
    controls = fields.get("controls", "")
    if controls not in {"", "all"}:
        raise Permanent(f"channel webhook, account {via}: controls is {controls[:40]!r}; allowed is all, or nothing")
    return WebhookChannel(
        fields.get("account") or via,
        fields["secret"],
        reply_url,
        SystemClock(),
        media_url=media_url,
        controls=controls == "all",
    )


def _usable(url: str) -> bool:
    """Whether it is an http(s) address."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False


def signature_headers(secret: str, body: bytes, now_ms: int) -> dict[str, str]:
    """Sign a body: the two headers that prove it."""
    timestamp = str(now_ms // 1000)
    return {"x-rejoinder-timestamp": timestamp, "x-rejoinder-signature": signature(secret, timestamp, body)}


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Compute the signature of a raw body at a time-stamp (decimal epoch seconds)."""
    signed = f"v1:{timestamp}:".encode() + body
    return "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


class WebhookChannel:
    """Implements `ports.Channel` for one account."""

    taken = None
    typing_ms = None

    def __init__(
        self,
        account: str,
        secret: str,
        reply_url: str,
        clock: Clock,
        *,
        media_url: str = "",
        controls: bool = False,
    ) -> None:
        self._account = account
        self._secret = secret
        self._reply_url = reply_url
        self._clock = clock
        self._media_url = media_url
        self._controls = controls

    def verify(self, request: Request, now_ms: int) -> None:
        """Check time-stamp and signature over the raw body.

        Raises:
            Unverified: absent, wrong, or over five minutes off.
        """
        timestamp = request.headers.get("x-rejoinder-timestamp", "")
        given = request.headers.get("x-rejoinder-signature", "")
        if not timestamp or not given:
            raise Unverified("no time-stamp or no signature")
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
            raise Unverified("time-stamp is not a number of seconds")
        off_ms = now_ms - int(timestamp) * 1000
        if abs(off_ms) > TOLERANCE_MS:
            raise Unverified(f"time-stamp is {off_ms // 1000} s old; at most {TOLERANCE_MS // 1000} s either way")
        if not reading.same(given, signature(self._secret, timestamp, request.body)):
            raise Unverified("wrong signature")

    def handshake(self, request: Request) -> Response | None:  # noqa: ARG002  # the port's
        """There is none."""
        return None

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:  # noqa: ARG002  # times are the sender's
        """Read one message, or a batch of which the bad ones are rejected alone.

        Raises:
            Malformed: not JSON, or a single message that cannot be one.
        """
        reading.require_json(request)
        content = reading.read_object(request.body)
        if "messages" not in content:
            return [self._event(content)]
        messages = content["messages"]
        if not isinstance(messages, list) or not 0 < len(messages) <= MAX_BATCH:
            raise Malformed(f"messages must be a list of 1 to {MAX_BATCH} messages")
        return [self._event_of_batch(entry) for entry in messages]

    def _event_of_batch(self, entry: object) -> Event:
        if not isinstance(entry, dict):
            return Rejected(f"an entry of messages is a {reading.kind(entry)}; an object is needed")
        try:
            return self._event(entry)
        except Malformed as refusal:
            return Rejected(str(refusal))

    def _event(self, source: Mapping[str, Any]) -> Event:
        """Read one message."""
        event_type = reading.text_field(source, "type")
        if event_type in {"operator", "pause", "resume"}:
            return self._of_people(event_type, source)
        if event_type not in {"", "message"}:
            return Ignored("a type other than message")
        if source.get("is_bot") is True:
            return Ignored("from a bot")
        chat = reading.id_field(source, "conversation_id")
        return Inbound(
            self._own(chat),
            reading.id_field(source, "id"),
            reading.id_field(source, "user_id", max_bytes=MAX_AUTHOR_BYTES),
            reading.text_field(source, "text"),
            sent_at_ms=_sent_at_ms(source.get("sent_at")),
            author_name=reading.text_field(source, "user_name", max_bytes=reading.MAX_NAME_BYTES),
            attachments=_attachments(source.get("attachments")),
            address=chat,
        )

    def _of_people(self, event_type: str, source: Mapping[str, Any]) -> Event:
        """Read what people do past the bot: they answer themselves, take a conversation, or give it back."""
        conversation_id = self._conversation(reading.id_field(source, "conversation_id"))
        match event_type:
            case "operator":
                said_at_ms = _sent_at_ms(source.get("sent_at"))
                if said_at_ms is None:
                    raise Malformed("sent_at is missing; by it a repeat of the same message is known")
                return ByPerson(conversation_id, reading.text_field(source, "text"), said_at_ms)
            case "pause":
                until_ms = _sent_at_ms(source.get("until"), "until")
                if until_ms is None:
                    raise Malformed("until is missing: a pause has an end, such as 2026-09-21T18:00:00Z")
                return PauseAsked(conversation_id, until_ms)
            case _:
                return ResumeAsked(conversation_id)

    def _own(self, chat: str) -> str:
        try:
            return str(ConversationId("webhook", self._account, chat))
        except ValueError as error:
            raise Malformed(str(error)) from None

    def _conversation(self, name: str) -> str:
        """The conversation that people mean: a chat of this account, or one that is named whole.

        Raises:
            Malformed: one of another account, and this one does not control all.
        """
        if name.count(":") not in (2, 3) or name.partition(":")[0] not in NAMES:
            return self._own(name)
        try:
            meant = ConversationId.parse(name)
            whole = str(meant)
        except ValueError as error:
            raise Malformed(str(error)) from None
        if not self._controls and (meant.channel, meant.account) != ("webhook", self._account):
            raise Malformed(
                f"conversation_id {name[:100]} is of another account; webhook:{self._account} may name its own chats "
                "alone, unless it has the field controls=all"
            )
        return whole

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        """Write each part as the JSON to POST, without the reply's id.

        Raises:
            Permanent: nothing to show, or a `Raw` that is no JSON.
        """
        bodies = [body for part in degraded(reply, SHOWS) for body in _bodies(part)]
        try:
            return tuple(
                json.dumps(
                    {
                        "part": index + 1,
                        "parts": len(bodies),
                        "conversation_id": to.address,
                        "account": self._account,
                        **body,
                    },
                    ensure_ascii=False,
                    allow_nan=False,
                )
                for index, body in enumerate(bodies)
            )
        except (TypeError, ValueError, RecursionError):
            raise Permanent("the payload of a Raw part cannot be written as JSON") from None

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """POST one part.

        Raises:
            Transient: refused for now, or (`ours`) since the receiver does not know our signature or address.
            Permanent: refused for good.
            UnknownOutcome: the connection broke.
        """
        body = json.dumps({"reply_id": reply_id, **json.loads(part)}).encode()
        headers = {"content-type": "application/json", "idempotency-key": f"{reply_id}-{index}"}
        now_ms = self._clock.now_ms()
        answer = http.post(self._reply_url, body, headers | signature_headers(self._secret, body, now_ms))
        reason = f"{http.host_of(self._reply_url)} answered {answer.status}"
        match answer.status:
            case status if 200 <= status < 300:
                return
            case 401 | 403:
                raise Transient(f"{reason}: does it check with the same secret?", ours=True)
            case status if 300 <= status < 400:
                raise Transient(f"{reason}: redirects are not followed, correct reply_url", ours=True)
            case 408 | 425 | 429:
                raise Transient(reason, retry_after_ms=http.retry_after_ms(answer.headers, now_ms))
            case status if status >= 500:
                raise Transient(reason, retry_after_ms=http.retry_after_ms(answer.headers, now_ms))
            case _:
                raise Permanent(reason)

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:  # noqa: ARG002  # the port's
        """A receiver is not asked."""
        return None

    async def typing(self, to: Message) -> None:
        """There is no such sign."""

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:  # noqa: ARG002  # the port's
        """Get the file by its address, with no proof of who asks.

        Raises:
            Permanent: gone, too large, no file, or nowhere that this account may reach.
            Transient: it may come later.
        """
        from rejoinder.channels.fetching import Reach, address, begun  # noqa: PLC0415  # ingest never fetches

        download = begun(attachment, within_ms, Reach(self._media_url))
        return download.file(address(attachment), attachment.mime, hint="media_url")


def _sent_at_ms(value: object, name: str = "sent_at") -> int | None:
    """Read an instant: RFC 3339, or epoch seconds or milliseconds."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Malformed(f"{name} is a {reading.kind(value)}; RFC 3339 or an epoch time is needed")
    if isinstance(value, str):
        try:
            instant = datetime.fromisoformat(value)
        except (ValueError, OverflowError):
            raise Malformed(f"{name} is not RFC 3339, such as 2026-09-21T14:13:20Z") from None
        if instant.tzinfo is None:
            raise Malformed(f"{name} has no offset from UTC; end it with Z or +00:00")
        at_ms = instant.timestamp() * 1000
    else:
        if isinstance(value, float) and not isfinite(value):
            raise Malformed(f"{name} is not a finite number")
        at_ms = value if abs(value) >= MS_FROM else value * 1000
    if not 0 <= at_ms < MAX_SENT_AT_MS:
        raise Malformed(f"{name} is out of bounds; between the years 1970 and 5138")
    return round(at_ms)


def _attachments(value: object) -> tuple[Attachment, ...]:
    """Read the list of attachments."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_ATTACHMENTS:
        raise Malformed(f"attachments must be a list of at most {MAX_ATTACHMENTS}")
    return tuple(_attachment(entry) for entry in value)


def _attachment(entry: object) -> Attachment:
    if not isinstance(entry, dict):
        raise Malformed(f"an attachment is a {reading.kind(entry)}; an object is needed")
    url = reading.text_field(entry, "url", max_bytes=reading.MAX_REF_BYTES)
    if not url:
        raise Malformed("an attachment has no url")
    return Attachment(
        reading.text_field(entry, "kind", max_bytes=reading.MAX_NAME_BYTES) or "file",
        url,
        reading.text_field(entry, "name", max_bytes=reading.MAX_NAME_BYTES),
        reading.text_field(entry, "mime", max_bytes=reading.MAX_NAME_BYTES),
        reading.size_field(entry, "size"),
    )


def _bodies(part: Part) -> list[dict[str, Any]]:
    """Write one part: `kind`, the part as `text` for who knows no kinds, and what belongs to the kind."""
    match part:
        case Text(text):
            return [{"kind": "text", "text": piece} for piece in split(text, TEXT_LIMIT)]
        case Image(url, caption):
            return [{"kind": "image", "text": part_text(part), "url": url, "caption": caption}]
        case File(url, name, caption):
            return [{"kind": "file", "text": part_text(part), "url": url, "name": name, "caption": caption}]
        case Buttons(text, options):
            return [{"kind": "buttons", "text": part_text(part), "question": text, "options": list(options)}]
        case Raw(payload, text):
            return [{"kind": "raw", "text": text, "payload": dict(payload)}]
