"""The channel `telegram`: one bot of the Telegram Bot API, by webhook.

In: one update a request; `message` updates of people become messages, every other kind is ignored. Out: one request a
part to `https://api.telegram.org/bot<token>/<method>`; plain text, so that no character of a model is markup.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from rejoinder import http
from rejoinder.channels import reading
from rejoinder.channels.degrading import degraded
from rejoinder.channels.splitting import split, utf16_units
from rejoinder.channels.telegram_contents import attachments_of
from rejoinder.ports import (
    Buttons,
    Event,
    Fault,
    File,
    Ignored,
    Image,
    Inbound,
    Malformed,
    Part,
    Permanent,
    Raw,
    Rejected,
    Reply,
    Request,
    Response,
    Text,
    Transient,
    UnknownOutcome,
    Unverified,
    part_text,
)
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import ConversationId

FIELDS = {
    "token": "the bot's token, from @BotFather",
    "secret": "the secret_token given to setWebhook: 1 to 256 of A-Z, a-z, 0-9, _ and -",
}
OPTIONAL_FIELDS = {"api_url": "the address of a Bot API server of one's own; without it, https://api.telegram.org"}

TEXT_LIMIT = 4_096
"""UTF-16 units in one message (Telegram Bot API, sendMessage: "1-4096 characters after entities parsing")."""

CAPTION_LIMIT = 1_024
"""UTF-16 units in one caption (Telegram Bot API, sendPhoto)."""

SENT_BY_URL = (".pdf", ".zip", ".gif")
"""The only kinds of document that Telegram fetches by URL (Telegram Bot API, Sending files)."""

SHOWS: frozenset[type[Part]] = frozenset({Text, Image, File, Buttons, Raw})
SENDING = http.Limits(connect_ms=2_000, read_ms=10_000, total_ms=15_000, max_bytes=1_048_576)
TYPING = http.Limits(connect_ms=500, read_ms=1_000, total_ms=1_500, max_bytes=65_536)

OTHER_UPDATES = frozenset({
    "edited_message", "channel_post", "edited_channel_post", "business_connection", "business_message",
    "edited_business_message", "deleted_business_messages", "message_reaction", "message_reaction_count",
    "inline_query", "chosen_inline_result", "callback_query", "shipping_query", "pre_checkout_query",
    "purchased_paid_media", "poll", "poll_answer", "my_chat_member", "chat_member", "chat_join_request", "chat_boost",
    "removed_chat_boost",
})  # fmt: skip
"""What else an update can be (Telegram Bot API, Update)."""

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}")
_METHOD = re.compile(r"[A-Za-z]{1,64}")


def from_fields(via: str, fields: Mapping[str, str]) -> "TelegramChannel":
    """Open the account.

    Raises:
        Permanent: fields are missing, the token has not the form of one, or `api_url` is no http(s) address.
    """
    reading.require_fields("telegram", via, fields, FIELDS)
    token = fields["token"].strip()
    api_url = (fields.get("api_url") or "https://api.telegram.org").strip().rstrip("/")
    if not _TOKEN.fullmatch(token):
        raise Permanent(f"channel telegram, account {via}: token is not of the form 123456:ABC-def; copy it again")
    if not api_url.startswith(("http://", "https://")):
        raise Permanent(f"channel telegram, account {via}: api_url must begin with http:// or https://")
    return TelegramChannel(token, fields["secret"], api_url)


class TelegramChannel:
    """Implements `ports.Channel` for one bot. Its account is the bot's id, which is the token up to the colon."""

    def __init__(self, token: str, secret: str, api_url: str) -> None:
        self._account = token.partition(":")[0]
        self._secret = secret
        self._base_url = f"{api_url}/bot{token}"

    def verify(self, request: Request, now_ms: int) -> None:  # noqa: ARG002  # Telegram signs no time
        """Check the secret header.

        Raises:
            Unverified: absent or wrong.
        """
        given = request.headers.get("x-telegram-bot-api-secret-token", "")
        if not given:
            raise Unverified("no secret token")
        if not reading.same(given, self._secret):
            raise Unverified("wrong secret token")

    def handshake(self, request: Request) -> Response | None:  # noqa: ARG002  # the port's
        """There is none."""
        return None

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:  # noqa: ARG002  # times are Telegram's
        """Read one update.

        A message that cannot be read is rejected and not refused: Telegram would repeat it for a day, and hold back
        what comes after it.

        Raises:
            Malformed: not an update at all.
        """
        update = reading.read_object(request.body)
        if "message" in update:
            try:
                return [self._message(reading.object_field(update, "message"))]
            except Malformed as fault:
                return [Rejected(str(fault))]
        kinds = sorted(OTHER_UPDATES & update.keys())
        if not kinds and "update_id" not in update:
            raise Malformed("neither message nor update_id: not a Telegram update")
        return [Ignored(f"update: {kinds[0] if kinds else 'of an unknown kind'}")]

    def _message(self, message: Mapping[str, Any]) -> Event:
        chat_id = reading.integer_field(reading.object_field(message, "chat"), "id")
        message_id = reading.integer_field(message, "message_id")
        author = _author(message)
        if isinstance(author, Ignored):
            return author
        text = reading.text_field(message, "text") or reading.text_field(message, "caption")
        attachments = attachments_of(message)
        if not text and not attachments:
            return Ignored("a service message, or of an unknown kind")
        # a reply in General carries a message_thread_id too; used as a topic it is refused (tdlib/telegram-bot-api#447)
        topic = message.get("is_topic_message") is True
        thread = str(reading.integer_field(message, "message_thread_id")) if topic else None
        return Inbound(
            str(ConversationId("telegram", self._account, str(chat_id), thread)),
            str(message_id),
            author[0],
            text,
            sent_at_ms=reading.integer_field(message, "date") * 1000,
            sequence=message_id,
            author_name=author[1],
            attachments=attachments,
            address=f"{chat_id}:{thread}" if topic else str(chat_id),
        )

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        """Write each part as the JSON of one request, its method included.

        Raises:
            Permanent: nothing to show, or a `Raw` without a method or that is no JSON.
        """
        calls = [call for part in degraded(reply, SHOWS) for call in _calls(part)]
        address = _address(to)
        try:
            return tuple(json.dumps({**address, **call}, ensure_ascii=False, allow_nan=False) for call in calls)
        except (TypeError, ValueError, RecursionError):
            raise Permanent("the payload of a Raw part cannot be written as JSON") from None

    async def send(self, part: str, reply_id: str, index: int) -> None:  # noqa: ARG002  # Telegram knows no such key
        """Make one request.

        A medium that Telegram refuses is sent as text with its address: nothing of it was shown yet.

        Raises:
            Transient: too many requests, or (`ours`) a bad token.
            Permanent: refused for good: blocked, no such chat, not acceptable.
            UnknownOutcome: the connection broke, the server failed, or its answer cannot be read.
        """
        call = json.loads(part)
        method = call.pop("method")
        try:
            self._call(method, call, SENDING)
        except BadRequest:
            media = {"sendPhoto": "photo", "sendDocument": "document"}.get(method)
            if media is None or not isinstance(call.get(media), str):
                raise
            caption = call.pop("caption", "")
            text = part_text(Image(call.pop(media), caption))
            self._call("sendMessage", {**call, "text": text}, SENDING)

    async def was_sent(self, reply_id: str, index: int) -> bool | None:  # noqa: ARG002  # the port's
        """Telegram cannot tell."""
        return None

    async def typing(self, to: Message) -> None:
        """Show "typing" for five seconds, or until the reply comes."""
        try:
            self._call("sendChatAction", {**_address(to), "action": "typing"}, TYPING)
        except Fault:
            return  # best effort

    def _call(self, method: str, payload: Mapping[str, Any], limits: http.Limits) -> None:
        """Make one request; returns where Telegram says `ok`."""
        body = json.dumps(payload).encode()
        answer = http.post(f"{self._base_url}/{method}", body, {"content-type": "application/json"}, limits)
        try:
            content = reading.read_object(answer.body)
        except Malformed:
            content = {}
        if answer.status == 200 and content.get("ok") is True:
            return
        raise _fault(method, answer.status, content)


class BadRequest(Permanent):
    """Telegram does not accept what was asked."""


def _fault(method: str, http_status: int, content: Mapping[str, Any]) -> Fault:
    """Translate an answer that is not `ok`. The code in the body counts: a 200 can hold an error."""
    code = content.get("error_code")
    status = code if isinstance(code, int) and content.get("ok") is False else http_status
    description = content.get("description")
    reason = f"Telegram answered {method} with {status}"
    if isinstance(description, str):
        reason = f"{reason}: {description[:200]}"
    match status:
        case 429:
            return Transient(reason, retry_after_ms=_retry_after_ms(content))
        case 401 | 404:  # 404: no bot has this token (or a Raw part names no method)
            return Transient(f"{reason}; check the bot's token", ours=True)
        case 400:
            return BadRequest(reason)
        case _ if 300 <= status < 400:
            return Transient(f"{reason}; redirects are not followed, correct api_url", ours=True)
        case _ if 400 <= status < 500:
            return Permanent(reason)
        case _:  # a 5xx, and a 200 that cannot be read, may stand for a message that was sent
            return UnknownOutcome(reason)


def _retry_after_ms(content: Mapping[str, Any]) -> int | None:
    """Read `parameters.retry_after`, which is in seconds (Telegram Bot API, ResponseParameters)."""
    parameters = content.get("parameters")
    seconds = parameters.get("retry_after") if isinstance(parameters, dict) else None
    if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds < 0:
        return None
    return min(seconds * 1000, http.MAX_RETRY_AFTER_MS)


def _author(message: Mapping[str, Any]) -> tuple[str, str] | Ignored:
    """Find who wrote: id and name.

    Who writes as a group or as a channel has that chat as `sender_chat`, and a placeholder bot as `from`.
    """
    if message.get("is_automatic_forward") is True:
        return Ignored("forwarded from the linked channel")
    if message.get("sender_chat") is not None:
        sender = reading.object_field(message, "sender_chat")
        return str(reading.integer_field(sender, "id")), reading.text_field(sender, "title")
    sender = reading.object_field(message, "from")
    if sender.get("is_bot") is True:
        return Ignored("from a bot")
    names = (reading.text_field(sender, "first_name"), reading.text_field(sender, "last_name"))
    name = " ".join(name for name in names if name)
    return str(reading.integer_field(sender, "id")), name or reading.text_field(sender, "username")


def _address(to: Message) -> dict[str, int]:
    """Read a message's address back as the fields that name chat and topic."""
    chat, _, thread = to.address.partition(":")
    return {"chat_id": int(chat)} | ({"message_thread_id": int(thread)} if thread else {})


def _calls(part: Part) -> list[dict[str, Any]]:
    """Write one part as requests, without chat and topic."""
    match part:
        case Text(text):
            return _texts(text)
        case Image(url, caption):
            return _media("sendPhoto", "photo", url, caption)
        case File(url, _, caption) if urlsplit(url).path.lower().endswith(SENT_BY_URL):
            return _media("sendDocument", "document", url, caption)
        case File():
            return _texts(part_text(part))
        case Buttons(text, options):
            *before, last = _texts(text if text.strip() else part_text(part))
            keyboard = [[{"text": option}] for option in options if option.strip()]
            markup = {"keyboard": keyboard, "one_time_keyboard": True, "resize_keyboard": True}
            return [*before, {**last, "reply_markup": markup} if keyboard else last]
        case Raw(payload):
            method = payload.get("method")
            if not isinstance(method, str) or not _METHOD.fullmatch(method):
                raise Permanent("a Raw part for telegram needs a method, such as sendVenue")
            return [dict(payload)]


def _texts(text: str) -> list[dict[str, Any]]:
    return [{"method": "sendMessage", "text": piece} for piece in split(text, TEXT_LIMIT, utf16_units)]


def _media(method: str, kind: str, url: str, caption: str) -> list[dict[str, Any]]:
    """A medium by URL; a caption that is too long follows as text."""
    if sum(map(utf16_units, caption)) > CAPTION_LIMIT:
        return [{"method": method, kind: url}, *_texts(caption)]
    return [{"method": method, kind: url} | ({"caption": caption} if caption else {})]
