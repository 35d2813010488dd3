"""The channel `twilio`: SMS, and WhatsApp through Twilio, by webhook.

In: POSTed forms, signed with the account's auth token. Out: the Messages resource; the reply goes out from the number
that was written to. Twilio wants TwiML for an answer; an empty one sends nothing.

Where `public_url` is set, each send names it for its status callbacks, with the reply's id and the part's index in the
query: so a send whose answer was lost is known a moment later. Other status callbacks are ignored.

Sources: Twilio Docs, "Messages resource", "Messaging webhooks", "Webhooks security".
"""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from rejoinder import http
from rejoinder.channels import reading
from rejoinder.channels.twilio_errors import fault
from rejoinder.channels.twilio_events import read
from rejoinder.channels.twilio_parts import rendered
from rejoinder.channels.twilio_proof import form, verify
from rejoinder.ports import Event, Ignored, Malformed, Media, Permanent, Reply, Request, Response, UnknownOutcome
from rejoinder.protocol.conversation import Attachment, Message
from rejoinder.system import SystemClock

API_URL = "https://api.twilio.com"

SENDING = http.Limits(connect_ms=2_000, read_ms=10_000, total_ms=15_000, max_bytes=1_048_576)

FIELDS = {
    "account_sid": "Twilio Console, Account Info, Account SID (AC…)",
    "auth_token": "Twilio Console, Account Info, Auth Token: it signs the webhooks",
}
OPTIONAL_FIELDS = {
    "public_url": "the webhook's URL as it was entered at Twilio; needed behind a proxy, and for delivery reports",
    "api_key": "an API key's SID (SK…) to send with, in place of the auth token",
    "api_key_secret": "that key's secret",
    "messaging_service_sid": "a Messaging Service (MG…) to send through, with all numbers among its senders",
    "opt_out": "`advanced` where Advanced Opt-Out is on: then only what Twilio marks is STOP or START",
    "api_url": f"another address of the API, such as another region's; without it, {API_URL}",
}


def from_fields(via: str, fields: Mapping[str, str]) -> "TwilioChannel":
    """Open the account.

    Raises:
        Permanent: fields are missing, or one cannot be right.
    """
    reading.require_fields("twilio", via, fields, FIELDS)
    given = {name: value.strip() for name, value in fields.items()}
    where = f"channel twilio, account {via}"
    for name in ("api_url", "public_url"):
        if given.get(name) and not given[name].startswith(("http://", "https://")):
            raise Permanent(f"{where}: {name} must begin with http:// or https://")
    if bool(given.get("api_key")) != bool(given.get("api_key_secret")):
        raise Permanent(f"{where}: api_key and api_key_secret belong together; one is missing")
    if given.get("opt_out", "") not in {"", "advanced"}:
        raise Permanent(f"{where}: opt_out is `advanced` or absent")
    return TwilioChannel(given)


class TwilioChannel:
    """Implements `ports.Channel` for one Twilio account, with all its numbers: they are the conversations' accounts."""

    taken = Response(200, '<?xml version="1.0" encoding="UTF-8"?><Response/>', "text/xml")
    typing_ms = None

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._auth_token = fields["auth_token"]
        self._public_url = fields.get("public_url", "")
        self._advanced = bool(fields.get("opt_out"))
        self._service_sid = fields.get("messaging_service_sid", "")
        api_url = (fields.get("api_url") or API_URL).rstrip("/")
        self._api_url = api_url
        account = quote(fields["account_sid"], safe="")
        self._messages_url = f"{api_url}/2010-04-01/Accounts/{account}/Messages.json"
        name = fields.get("api_key") or fields["account_sid"]
        password = fields.get("api_key_secret") or fields["auth_token"]
        self._authorization = "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()

    def verify(self, request: Request, now_ms: int) -> None:  # noqa: ARG002  # Twilio signs no time
        """Check the signature over the URL and the form.

        Raises:
            Unverified: absent, wrong, or of a URL that is not known here.
        """
        verify(request, self._auth_token, self._public_url)

    def handshake(self, request: Request) -> Response | None:  # noqa: ARG002  # the port's
        """There is none."""
        return None

    def parse(self, request: Request, now_ms: int) -> Sequence[Event]:  # noqa: ARG002  # Twilio tells no time
        """Read one form: a message, or the status of one of ours.

        Raises:
            Malformed: no form, or one that lacks what every message has.
        """
        content_type, _, parameters = request.headers.get("content-type", "").lower().partition(";")
        if content_type.strip() == "application/json":
            return [Ignored("JSON, which no message is")]
        if content_type.strip() != "application/x-www-form-urlencoded":
            raise Malformed(
                f"content-type is {content_type[:100]!r}; messages are application/x-www-form-urlencoded", status=415
            )
        charset = parameters.partition("charset=")[2].partition(";")[0].strip().strip('"')
        if charset not in {"", "utf-8"}:
            raise Malformed(f"charset is {charset[:40]!r}; Twilio's is UTF-8", status=415)
        return [read(form(request.body), request.query, advanced=self._advanced)]

    def render(self, reply: Reply, to: Message) -> tuple[str, ...]:
        """Write each part as the JSON of one send's parameters.

        Raises:
            Permanent: nothing to show, or a `Raw` that is no JSON.
        """
        return rendered(reply, to.address)

    async def send(self, part: str, reply_id: str, index: int) -> None:
        """Send one part from the number that was written to.

        Raises:
            Transient: too many requests, or (`ours`) a wrong token, number or account.
            Permanent: refused for good, such as after STOP.
            UnknownOutcome: the connection broke, or an answer of 5xx; `told_later` where reports come.
        """
        parameters: dict[str, Any] = json.loads(part)
        if self._service_sid:
            parameters["MessagingServiceSid"] = self._service_sid
        if self._public_url:
            separator = "&" if "?" in self._public_url else "?"
            parameters["StatusCallback"] = f"{self._public_url}{separator}reply={reply_id}-{index}"
        headers = {"content-type": "application/x-www-form-urlencoded", "authorization": self._authorization}
        told_later = bool(self._public_url)
        try:
            answer = http.post(self._messages_url, encoded(parameters), headers, SENDING)
        except UnknownOutcome as unknown:
            raise UnknownOutcome(str(unknown), told_later=told_later) from None
        try:
            content = reading.read_object(answer.body)
        except Malformed:
            content = {}
        if answer.status not in {200, 201} or not content.get("sid") or content.get("error_code"):
            raise fault(answer, content, SystemClock().now_ms(), told_later=told_later)

    async def was_sent(self, part: str, reply_id: str, index: int) -> bool | None:  # noqa: ARG002  # the port's
        """Twilio cannot be asked by our ids; where `public_url` is set, it reports by itself."""
        return None

    async def typing(self, to: Message) -> None:
        """SMS knows no such sign."""

    async def fetch(self, attachment: Attachment, of: Message, within_ms: int) -> Media:  # noqa: ARG002  # the port's
        """Get the file: Twilio wants to know who asks, and leads to where it lies, which does not.

        Raises:
            Permanent: gone, too large, or no file.
            Transient: it may come later, or (`ours`) a bad token.
        """
        from rejoinder.channels.fetching import Reach, address, begun  # noqa: PLC0415  # ingest never fetches

        download = begun(attachment, within_ms, Reach(self._api_url, ("twilio.com",)))
        credentials = {"authorization": self._authorization}
        return download.file(address(attachment), attachment.mime, credentials, "account_sid and the tokens")


def encoded(parameters: Mapping[str, Any]) -> bytes:
    """Write parameters as a form: a list as several of one name, an object (of a `Raw`) as its JSON."""
    values = {
        name: json.dumps(value) if isinstance(value, dict) else value
        for name, value in parameters.items()
        if value is not None
    }
    return urlencode(values, doseq=True, errors="replace").encode()
