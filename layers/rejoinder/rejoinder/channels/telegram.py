"""The channel `telegram`: one bot of the Telegram Bot API, by webhook.

In: one update a request. Out: one request a part to `https://api.telegram.org/bot<token>/<method>`. What Telegram does
not accept is corrected at once where it says how: it did certainly not happen, so that nothing is sent twice.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from rejoinder import http
from rejoinder.channels import reading
from rejoinder.channels.telegram_events import Address, UpdateReader
from rejoinder.channels.telegram_parts import Call, rendered, unformatted, without_medium
from rejoinder.ports import (
    Event,
    Fault,
    Malformed,
    Media,
    Permanent,
    Reply,
    Request,
    Response,
    Transient,
    UnknownOutcome,
    Unverified,
)
from rejoinder.protocol.conversation import Attachment, Message

FIELDS = {
    "token": "the bot's token, from @BotFather",
    "secret": "the secret_token given to setWebhook: 1 to 256 of A-Z, a-z, 0-9, _ and -",
}
OPTIONAL_FIELDS = {"api_url": "the address of a Bot API server of one's own; without it, https://api.telegram.org"}

API_URL = "https://api.telegram.org"
SENDING = http.Limits(connect_ms=2_000, read_ms=10_000, total_ms=15_000, max_bytes=1_048_576)
TYPING = http.Limits(connect_ms=500, read_ms=1_000, total_ms=1_500, max_bytes=65_536)

MAX_CORRECTIONS = 3
"""Of one request: another chat, no markup, no medium."""

_QUOTATION = re.compile('".*"', re.DOTALL)

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}")


def from_fields(via: str, fields: Mapping[str, str]) -> "TelegramChannel":
    """Open the account.

    Raises:
        Permanent: fields are missing, the token has not the form of one, or `api_url` is no http(s) address.
    """
    reading.require_fields("telegram", via, fields, FIELDS)
    token = fields["token"].strip()
    api_url = (fields.get("api_url") or API_URL).strip().rstrip("/")
    if not _TOKEN.fullmatch(token):
        raise Permanent(f"channel telegram, account {via}: token is not of the form 123456:ABC-def; copy it again")
    if not api_url.startswith(("http://", "https://")):
        raise Permanent(f"channel telegram, account {via}: api_url must begin with http:// or https://")
    return TelegramChannel(token, fields["secret"], api_url)


class TelegramChannel:
    """Implements `ports.Channel` for one bot. Its account is the bot's id, which is the token up to the colon."""

    taken = None
    typing_ms = 5_000

    def __init__(self, token: str, secret: str, api_url: str) -> None:
        self._reader = UpdateReader(token.partition(":")[0])
        self._secret = secret
        self._token = token
        self._api_url = api_url
        self._base_url = f"{api_url}/bot{token}"
        self._files_url = f"{api_url}/file/bot{token}"
        self._moved: dict[object, int] = {}

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

        Raises:
            Malformed: not an update at all.
        """
        return [self._reader.read(reading.read_object(request.body))]

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        """Write each part as the JSON of one request, its method included.

        Raises:
            Permanent: nothing to show, or a `Raw` without a method or that is no JSON.
        """
        return rendered(reply, Address.parse(to.address))

    async def send(self, part: str, reply_id: str, index: int) -> None:  # noqa: ARG002  # Telegram knows no such key
        """Make one request; one that is not accepted is made once more as Telegram wants it.

        A group that has become a supergroup is written to by its new id, markup that cannot be parsed is left out, and
        a medium that cannot be fetched is sent as its address.

        Raises:
            Transient: too many requests, or (`ours`) a bad token.
            Permanent: refused for good: blocked, no such chat, not acceptable.
            UnknownOutcome: the connection broke, the server failed, or its answer cannot be read.
        """
        call = json.loads(part)
        method = call.pop("method")
        call["chat_id"] = self._moved.get(call.get("chat_id"), call.get("chat_id"))
        for _ in range(MAX_CORRECTIONS):
            try:
                self.call(method, call, SENDING)
                return
            except BadRequest as refusal:
                corrected = self._corrected(method, call, refusal)
                if corrected is None:
                    raise
                method, call = corrected
        self.call(method, call, SENDING)

    def _corrected(self, method: str, call: Call, refusal: "BadRequest") -> tuple[str, Call] | None:
        """The request as Telegram would take it; None where it would not."""
        if refusal.moved_to is not None:
            self._moved[call["chat_id"]] = refusal.moved_to  # for the parts that follow, and for typing
            return method, {**call, "chat_id": refusal.moved_to}
        if refusal.unparsable and "parse_mode" in call:
            return method, unformatted(call)
        message = without_medium(method, call)
        return None if message is None else ("sendMessage", message)

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:  # noqa: ARG002  # the port's
        """Telegram cannot tell."""
        return None

    async def typing(self, to: Message) -> None:
        """Show "typing" for five seconds, or until the reply comes; a button that was pressed stops to glow."""
        address = Address.parse(to.address)
        calls: list[tuple[str, Mapping[str, Any]]] = [("sendChatAction", {**address.fields, "action": "typing"})]
        if address.press:
            calls.insert(0, ("answerCallbackQuery", {"callback_query_id": address.press}))
        for method, payload in calls:
            with suppress(Fault):  # best effort; a button that is answered already must not hide the typing
                self.call(method, payload, TYPING)

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:  # noqa: ARG002  # the port's
        """Ask where the file is, and get it.

        Raises:
            Permanent: gone, too large, no file, or a server of one's own keeps it on its disk.
            Transient: it may come later, or (`ours`) a bad token.
        """
        from rejoinder.channels.fetching import Reach, asking, begun, file_id  # noqa: PLC0415  # ingest never fetches

        download = begun(attachment, within_ms, Reach(self._api_url))
        try:
            with asking():
                found = self.call("getFile", {"file_id": file_id(attachment)}, download.limits())
        except BadRequest as refusal:
            raise Permanent(f"{refusal} (a bot is given files of at most 20 MB)") from None
        file = found if isinstance(found, dict) else {}
        download.expect(reading.size_field(file, "file_size"))
        path = file.get("file_path")
        if not isinstance(path, str) or not path:
            raise Permanent("Telegram answered getFile without a file_path")
        if path.startswith("/"):
            raise Permanent("the Bot API server keeps the file on its own disk; run it without --local to fetch files")
        return download.file(f"{self._files_url}/{quote(path)}", attachment.mime, hint="the bot's token")

    def call(self, method: str, payload: Mapping[str, Any], limits: http.Limits) -> Any:
        """Make one request of any method, and give the `result` of a success.

        Raises:
            Transient: refused for now, or (`ours`) a bad token.
            Permanent: refused for good.
            UnknownOutcome: it may have happened.
        """
        body = json.dumps(payload).encode()
        answer = http.post(f"{self._base_url}/{method}", body, {"content-type": "application/json"}, limits)
        try:
            content = reading.read_object(answer.body)
        except Malformed:
            content = {}
        if answer.status == 200 and content.get("ok") is True:
            return content.get("result")
        raise _fault(method, answer.status, content, self._token)


class BadRequest(Permanent):
    """Telegram does not accept what was asked.

    Attributes:
        moved_to: the supergroup that the chat has become.
        unparsable: its markup is the reason.
    """

    def __init__(self, reason: str, *, moved_to: int | None = None, unparsable: bool = False) -> None:
        super().__init__(reason)
        self.moved_to = moved_to
        self.unparsable = unparsable


class Conflict(Permanent):
    """Another way to get updates is in use: a webhook, or somebody else who polls."""


def _fault(method: str, http_status: int, content: Mapping[str, Any], token: str) -> Fault:
    """Translate an answer that is not `ok`. The code in the body counts: a 200 can hold an error.

    What it says stands in the reason, without what it quotes: markup that cannot be parsed is of the reply's words.
    """
    code = content.get("error_code")
    status = code if isinstance(code, int) and content.get("ok") is False else http_status
    description = content.get("description")
    reason = f"Telegram answered {method} with {status}"
    if said := http.quoted(_QUOTATION.sub('"…"', description) if isinstance(description, str) else "", token):
        reason += f": {said}"
    match status:
        case 429:
            return Transient(reason, retry_after_ms=_retry_after_ms(content))
        case 401 | 404:  # 404: no bot has this token (or a Raw part names no method)
            return Transient(f"{reason}; check the bot's token", ours=True)
        case 400:
            unparsable = isinstance(description, str) and "can't parse" in description.lower()
            return BadRequest(reason, moved_to=_parameter(content, "migrate_to_chat_id"), unparsable=unparsable)
        case 409:
            return Conflict(reason)
        case _ if 300 <= status < 400:
            return Transient(f"{reason}; redirects are not followed, correct api_url", ours=True)
        case _ if 400 <= status < 500:
            return Permanent(reason)
        case _:  # a 5xx, and a 200 that cannot be read, may stand for a message that was sent
            return UnknownOutcome(reason)


def _retry_after_ms(content: Mapping[str, Any]) -> int | None:
    """Read `parameters.retry_after`, which is in seconds."""
    seconds = _parameter(content, "retry_after")
    return None if seconds is None or seconds < 0 else min(seconds * 1000, http.MAX_RETRY_AFTER_MS)


def _parameter(content: Mapping[str, Any], name: str) -> int | None:
    """Read a number among what Telegram says how to go on by (Telegram Bot API, ResponseParameters)."""
    parameters = content.get("parameters")
    value = parameters.get(name) if isinstance(parameters, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
