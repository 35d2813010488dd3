"""What the contract suite needs to know of a channel: how it proves a request, writes one, and answers a send.

A new channel is one function here that returns its `Subject`, and one line in `test_channels.py`.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from loopback import Say
from rejoinder import gateway, notifications
from rejoinder.channels.splitting import code_points, utf16_units
from rejoinder.ports import Permanent, Request, Transient, UnknownOutcome

EVENTS = Path(__file__).parents[2] / "events"
NOW_MS = 1_790_000_000_000
SECRET = "contract-secret_0123456789"

type Body = dict[str, Any]


@dataclass(frozen=True)
class Refusal:
    """An answer of the channel's API, and what `send` must make of it."""

    say: Say
    fault: type[Exception]
    retry_after_ms: int | None = None
    ours: bool = False


@dataclass(frozen=True)
class Subject:
    """One channel under the suite.

    Attributes:
        fields: the account's, but for the address of its API.
        api_field: the field that takes that address.
        proof: makes the headers that prove a body at a time.
        proof_header: the one that holds the proof.
        signs: whether the proof is of this body (else it is a mere secret).
        ages: whether it is of a time, too (else a replay is a duplicate).
        body: a message with the given id and text.
        own: what our own side wrote: a bot, or a person past it.
        unknown: authentic, of a kind that the channel's module does not know.
        text_of: reads the text of a rendered part, or of a request that was sent.
        text_limit: the longest text of one part, in units of `width`.
        width: the units of one character.
        accepted: the API's answer to a send that worked.
        refusals: its other answers.
        sent_as: the content type of a send.
        most_parts: how many sends a reply may become at most, where that is bounded; the last one ends with `cut`.
        cut: that end.
    """

    name: str
    fields: Mapping[str, str]
    api_field: str
    proof: Callable[[bytes, int], dict[str, str]]
    proof_header: str
    signs: bool
    ages: bool
    body: Callable[[str, str], Body]
    own: Body
    unknown: Body
    text_of: Callable[[bytes], str]
    text_limit: int
    width: Callable[[str], int]
    accepted: Say
    refusals: tuple[Refusal, ...]
    sent_as: str = "application/json"
    most_parts: int | None = None
    cut: str = ""

    def encoded(self, content: Any) -> bytes:
        """Write a body as the provider does."""
        return json.dumps(content).encode()

    def content(self, case: str) -> Any:
        """Read a stored event's body."""
        return json.loads(self.event_request(case).body)

    def request(self, body: bytes, at_ms: int = NOW_MS) -> Request:
        """A request with a right proof."""
        headers = {"content-type": "application/json", **self.proof(body, at_ms)}
        return Request("POST", f"/webhooks/{self.name}/default", headers, body)

    def bearing(self, request: Request, proof: str) -> Request:
        """The request with another proof; an empty one: with none."""
        headers = {name: value for name, value in request.headers.items() if name != self.proof_header}
        return replace(request, headers=headers | ({self.proof_header: proof} if proof else {}))

    def event_names(self) -> list[str]:
        """The cases in `events/`."""
        return sorted(path.stem for path in (EVENTS / self.name).glob("*.json"))

    def json_event_names(self) -> list[str]:
        """Those of them whose body is JSON, and no form."""
        return [case for case in self.event_names() if self.event_request(case).body.startswith(b"{")]

    def event_request(self, case: str, at_ms: int = NOW_MS) -> Request:
        """A stored event as a request, with a right proof."""
        event = json.loads((EVENTS / self.name / f"{case}.json").read_text())
        channel, request = gateway.read(event)
        assert channel == self.name
        return replace(request, headers={**request.headers, **self.proof(request.body, at_ms)})


def webhook() -> Subject:
    """The generic channel. Its signature is computed here once more, from its page in words."""

    def proof(body: bytes, at_ms: int) -> dict[str, str]:
        timestamp = str(at_ms // 1000)
        digest = hmac.digest(SECRET.encode(), f"v1:{timestamp}:".encode() + body, hashlib.sha256)
        return {"x-rejoinder-timestamp": timestamp, "x-rejoinder-signature": f"v1={digest.hex()}"}

    def body(provider_id: str, text: str) -> Body:
        return {"id": provider_id, "conversation_id": "c-1", "user_id": "ana", "text": text}

    return Subject(
        name="webhook",
        fields={"secret": SECRET},
        api_field="reply_url",
        proof=proof,
        proof_header="x-rejoinder-signature",
        signs=True,
        ages=True,
        body=body,
        own=body("1", "beep") | {"is_bot": True},
        unknown=body("1", "") | {"type": "hologram"},
        text_of=lambda content: json.loads(content)["text"],
        text_limit=20_000,
        width=code_points,
        accepted=Say(202),
        refusals=(
            Refusal(Say(429, headers={"Retry-After": "3"}), Transient, retry_after_ms=3_000),
            Refusal(Say(503, headers={"Retry-After": "120"}), Transient, retry_after_ms=120_000),
            Refusal(Say(500), Transient),
            Refusal(Say(408), Transient),
            Refusal(Say(425), Transient),
            Refusal(Say(401), Transient, ours=True),
            Refusal(Say(403), Transient, ours=True),
            Refusal(Say(307, headers={"Location": "http://127.0.0.1:9/"}), Transient, ours=True),
            Refusal(Say(400), Permanent),
            Refusal(Say(410), Permanent),
            Refusal(Say(cut="after request"), UnknownOutcome),
            Refusal(Say(200, b"half", cut="in answer"), UnknownOutcome),
        ),
    )


def telegram() -> Subject:
    """The Bot API."""

    def body(provider_id: str, text: str) -> Body:
        author = {"id": 5550000001, "is_bot": False, "first_name": "Ana"}
        chat = {"id": 5550000001, "type": "private"}
        message = {"message_id": int(provider_id), "from": author, "chat": chat, "date": NOW_MS // 1000, "text": text}
        return {"update_id": 900000001, "message": message}

    def answer(status: int, description: str, http_status: int | None = None, **parameters: int) -> Say:
        content: Body = {"ok": False, "error_code": status, "description": description}
        return Say(http_status or status, json.dumps(content | {"parameters": parameters}).encode())

    own = body("1", "beep")
    own["message"]["from"]["is_bot"] = True
    return Subject(
        name="telegram",
        fields={"token": "123456:ABC-def_ghi", "secret": SECRET},
        api_field="api_url",
        proof=lambda body, at_ms: {"x-telegram-bot-api-secret-token": SECRET},
        proof_header="x-telegram-bot-api-secret-token",
        signs=False,
        ages=False,
        body=body,
        own=own,
        unknown={"update_id": 900000002, "hologram": {"id": 1}},
        text_of=lambda content: json.loads(content)["text"],
        text_limit=4_096,
        width=utf16_units,
        accepted=Say(200, b'{"ok": true, "result": {"message_id": 7}}'),
        refusals=(
            Refusal(answer(429, "Too Many Requests: retry after 3", retry_after=3), Transient, retry_after_ms=3_000),
            Refusal(answer(429, "Too Many Requests"), Transient),
            Refusal(answer(401, "Unauthorized"), Transient, ours=True),
            Refusal(answer(404, "Not Found"), Transient, ours=True),
            Refusal(answer(403, "Forbidden: bot was blocked by the user"), Permanent),
            Refusal(answer(400, "Bad Request: chat not found"), Permanent),
            Refusal(answer(403, "Forbidden: an error inside a 200", http_status=200), Permanent),
            Refusal(answer(429, "inside a 200", http_status=200, retry_after=9), Transient, retry_after_ms=9_000),
            Refusal(Say(200, b"<html>not JSON</html>"), UnknownOutcome),
            Refusal(Say(200, b'{"result": 1}'), UnknownOutcome),
            Refusal(Say(502, b"Bad Gateway"), UnknownOutcome),
            Refusal(Say(cut="after request"), UnknownOutcome),
            Refusal(Say(200, b'{"ok": true', cut="in answer"), UnknownOutcome),
        ),
    )


# --- Meta's channels ---

META_FIELDS = {"app_secret": SECRET, "verify_token": "syn-verify", "access_token": SECRET}


def meta_proof(body: bytes, at_ms: int) -> dict[str, str]:
    """Sign as Meta does."""
    return {"x-hub-signature-256": f"sha256={hmac.digest(SECRET.encode(), body, hashlib.sha256).hex()}"}


def meta_error(status: int, code: int, subcode: int | None = None, headers: Mapping[str, str] | None = None) -> Say:
    """An error of the Graph API, whose message quotes what must not be repeated."""
    error: Body = {"message": f"Malformed access token {SECRET}", "type": "OAuthException", "code": code}
    if subcode is not None:
        error["error_subcode"] = subcode
    return Say(status, json.dumps({"error": error}).encode(), headers or {})


META_REFUSALS = (
    Refusal(meta_error(401, 190, 463), Transient, ours=True),
    Refusal(meta_error(403, 10), Transient, ours=True),
    Refusal(meta_error(403, 200), Transient, ours=True),
    Refusal(meta_error(403, 299), Transient, ours=True),
    Refusal(meta_error(400, 100, 33), Transient, ours=True),
    Refusal(meta_error(400, 4), Transient),
    Refusal(meta_error(429, 613, headers={"Retry-After": "7"}), Transient, retry_after_ms=7_000),
    Refusal(meta_error(400, 100), Permanent),
    Refusal(meta_error(200, 100), Permanent),  # an error inside a 200
    Refusal(meta_error(500, 1), UnknownOutcome),
    Refusal(meta_error(503, 2), UnknownOutcome),
    Refusal(Say(429), Transient),
    Refusal(Say(401, b"<html>"), Transient, ours=True),
    Refusal(Say(302, headers={"Location": "http://127.0.0.1:9/"}), Transient, ours=True),
    Refusal(Say(413, b"<html>"), Permanent),
    Refusal(Say(502, b"Bad Gateway"), UnknownOutcome),
    Refusal(Say(200, b"<html>not JSON</html>"), UnknownOutcome),
    Refusal(Say(200, b"{}"), UnknownOutcome),
    Refusal(Say(200, b'{"error": "odd"}'), UnknownOutcome),
    Refusal(Say(cut="after request"), UnknownOutcome),
    Refusal(Say(200, b'{"messages": [', cut="in answer"), UnknownOutcome),
)
"""What the Graph API answers on every channel of Meta's."""


def whatsapp_text(provider_id: str, text: str) -> Body:
    """Somebody's message."""
    written_at = str(NOW_MS // 1000)
    return {"from": "12025550111", "id": provider_id, "timestamp": written_at, "type": "text", "text": {"body": text}}


WHATSAPP_ECHO = whatsapp_text("1", "beep") | {"to": "12025550112"}
"""What a colleague writes to a customer in the business app."""


def whatsapp_entry(field: str = "messages", **value: Any) -> Body:
    """An entry of one change."""
    metadata = {"display_phone_number": "12025550100", "phone_number_id": "200000000000001"}
    return {
        "id": "100000000000001",
        "changes": [{"field": field, "value": {"messaging_product": "whatsapp", "metadata": metadata, **value}}],
    }


def whatsapp() -> Subject:
    """The Cloud API."""

    def body(entry: Body) -> Body:
        return {"object": "whatsapp_business_account", "entry": [entry]}

    return Subject(
        name="whatsapp",
        fields=META_FIELDS,
        api_field="api_url",
        proof=meta_proof,
        proof_header="x-hub-signature-256",
        signs=True,
        ages=False,
        body=lambda provider_id, text: body(whatsapp_entry(messages=[whatsapp_text(provider_id, text)])),
        own=body(whatsapp_entry("smb_message_echoes", message_echoes=[WHATSAPP_ECHO])),
        unknown=body(whatsapp_entry("hologram")),
        text_of=lambda content: json.loads(content)["text"]["body"],
        text_limit=4_096,
        width=utf16_units,
        accepted=Say(200, b'{"messaging_product": "whatsapp", "messages": [{"id": "wamid.OUT"}]}'),
        refusals=(
            *META_REFUSALS,
            Refusal(meta_error(400, 131047), Permanent),
            Refusal(meta_error(400, 131026), Permanent),
            Refusal(meta_error(400, 131051), Permanent),
            Refusal(meta_error(429, 130429), Transient),
            Refusal(meta_error(429, 131048), Transient),
            Refusal(meta_error(429, 80007), Transient),
            Refusal(meta_error(429, 131056), Transient, retry_after_ms=6_000),
            Refusal(meta_error(503, 131016), Transient),
            Refusal(meta_error(403, 131031), Transient, ours=True),
            Refusal(meta_error(500, 131000), UnknownOutcome),
            Refusal(Say(200, b'{"messages": []}'), UnknownOutcome),
        ),
    )


def messenger() -> Subject:
    """A page."""
    return messaging("messenger", "page", "300000000000001", 2_000, utf16_units)


def instagram() -> Subject:
    """An Instagram account, whose texts are measured in bytes."""
    return messaging("instagram", "instagram", "500000000000001", 1_000, lambda character: len(character.encode()))


def messaging(name: str, kind: str, account: str, text_limit: int, width: Callable[[str], int]) -> Subject:
    """What Messenger and Instagram share."""

    def envelope(sender: str, recipient: str, **what: Any) -> Body:
        event = {"sender": {"id": sender}, "recipient": {"id": recipient}, "timestamp": NOW_MS, **what}
        return {"object": kind, "entry": [{"id": account, "time": NOW_MS, "messaging": [event]}]}

    person = "400000000000001"
    echo = {"mid": "1", "text": "beep", "is_echo": True, "app_id": 700000000000001}
    return Subject(
        name=name,
        fields=META_FIELDS,
        api_field="api_url",
        proof=meta_proof,
        proof_header="x-hub-signature-256",
        signs=True,
        ages=False,
        body=lambda provider_id, text: envelope(person, account, message={"mid": provider_id, "text": text}),
        own=envelope(account, person, message=echo),
        unknown=envelope(person, account, hologram={"id": 1}),
        text_of=lambda content: json.loads(content)["message"]["text"],
        text_limit=text_limit,
        width=width,
        accepted=Say(200, b'{"recipient_id": "400000000000001", "message_id": "m_OUT"}'),
        refusals=(
            *META_REFUSALS,
            Refusal(meta_error(400, 10, 2018278), Permanent),
            Refusal(meta_error(403, 10, 2534022), Permanent),
            Refusal(meta_error(400, 551, 1545041), Permanent),
            Refusal(meta_error(400, 100, 2018001), Permanent),
            Refusal(meta_error(400, 1200), Transient),
            Refusal(meta_error(400, 32), Transient),
            Refusal(Say(200, b'{"recipient_id": "400000000000001"}'), UnknownOutcome),
        ),
    )


@dataclass(frozen=True)
class TopicSubject(Subject):
    """A channel whose requests are SNS's notifications, and whose proof is their topic."""

    def request(self, body: bytes, at_ms: int = NOW_MS) -> Request:
        """As SNS brings it: neither headers nor a path."""
        return Request("POST", "", {}, body, topic_arn=self.fields["topic_arn"])

    def bearing(self, request: Request, proof: str) -> Request:
        """The request from another topic."""
        return replace(request, topic_arn=proof)

    def event_request(self, case: str, at_ms: int = NOW_MS) -> Request:
        """A stored notification, from the account's own topic."""
        event = json.loads((EVENTS / self.name / f"{case}.json").read_text())
        ((channel, request),) = notifications.read(event)
        assert channel == self.name
        return replace(request, topic_arn=self.fields["topic_arn"])


NUMBER_ARN = "arn:aws:social-messaging:eu-central-1:123456789012:phone-number-id/976c72a700aac43eaf573ae050example"


def whatsapp_aws() -> Subject:
    """AWS End User Messaging."""

    def body(entry: Body) -> Body:
        number = {"metaPhoneNumberId": "200000000000001", "arn": NUMBER_ARN}
        return {
            "context": {"MetaWabaIds": [], "MetaPhoneNumberIds": [number]},
            "whatsAppWebhookEntry": json.dumps(entry),
            "aws_account_id": "123456789012",
            "messageId": "6d69f07a-c317-4278-9d5c-6a84078419ec",
        }

    def text_of(content: bytes) -> str:
        """Of a rendered part, or of a call, which holds it in base64."""
        call = json.loads(content)
        payload = json.loads(base64.b64decode(call["message"])) if "message" in call else call
        text: str = payload["text"]["body"]
        return text

    def error(status: int, code: str) -> Say:
        return Say(status, json.dumps({"message": f"of {SECRET}"}).encode(), {"x-amzn-errortype": code})

    return TopicSubject(
        name="whatsapp_aws",
        fields={"topic_arn": SECRET, "phone_number_arns": NUMBER_ARN},
        api_field="endpoint_url",
        proof=lambda body, at_ms: {},
        proof_header="none",
        signs=False,
        ages=False,
        body=lambda provider_id, text: body(whatsapp_entry(messages=[whatsapp_text(provider_id, text)])),
        own=body(whatsapp_entry("smb_message_echoes", message_echoes=[WHATSAPP_ECHO])),
        unknown=body(whatsapp_entry("hologram")),
        text_of=text_of,
        text_limit=4_096,
        width=utf16_units,
        accepted=Say(200, b'{"messageId": "wamid.OUT"}', {"content-type": "application/json"}),
        refusals=(
            Refusal(error(429, "ThrottledRequestException"), Transient),
            Refusal(error(403, "AccessDeniedException"), Transient, ours=True),
            Refusal(error(404, "ResourceNotFoundException"), Transient, ours=True),
            Refusal(error(403, "InvalidSignatureException"), Transient, ours=True),
            Refusal(error(400, "InvalidParametersException"), Permanent),
            Refusal(error(400, "ValidationException"), Permanent),
            Refusal(error(413, "RequestTooLong"), Permanent),
            Refusal(Say(429), Transient),
            Refusal(Say(302, headers={"Location": "http://127.0.0.1:9/"}), Transient, ours=True),
            Refusal(error(500, "InternalServiceException"), UnknownOutcome),
            Refusal(error(502, "DependencyException"), UnknownOutcome),
            Refusal(Say(503, b"<html>"), UnknownOutcome),
            Refusal(Say(200, b"<html>not JSON</html>"), UnknownOutcome),
            Refusal(Say(cut="after request"), UnknownOutcome),
            Refusal(Say(200, b'{"messageId": ', cut="in answer"), UnknownOutcome),
        ),
    )


def slack() -> Subject:
    """The Events API, and `chat.postMessage`."""

    def proof(body: bytes, at_ms: int) -> dict[str, str]:
        timestamp = str(at_ms // 1000)
        digest = hmac.digest(SECRET.encode(), f"v0:{timestamp}:".encode() + body, hashlib.sha256)
        return {"x-slack-request-timestamp": timestamp, "x-slack-signature": f"v0={digest.hex()}"}

    def envelope(**event: Any) -> Body:
        authorization = {"team_id": "T0SYN0001", "user_id": "U0SYNBOT1", "is_bot": True}
        return {"type": "event_callback", "team_id": "T0SYN0001", "event": event, "authorizations": [authorization]}

    def body(provider_id: str, text: str) -> Body:
        written = {"user": "U0SYN0001", "ts": provider_id, "text": text}
        return envelope(type="message", channel="D0SYN0001", channel_type="im", **written)

    def error(code: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Say:
        return Say(status, json.dumps({"ok": False, "error": code}).encode(), headers or {})

    own = body("1", "beep")
    own["event"]["bot_id"] = "B0SYN0001"
    return Subject(
        name="slack",
        fields={"signing_secret": SECRET, "bot_token": f"xoxb-{SECRET}"},
        api_field="api_url",
        proof=proof,
        proof_header="x-slack-signature",
        signs=True,
        ages=True,
        body=body,
        own=own,
        unknown=envelope(type="hologram"),
        text_of=lambda content: json.loads(content)["text"],
        text_limit=4_000,
        width=utf16_units,
        accepted=Say(200, b'{"ok": true, "channel": "D0SYN0001", "ts": "1790000004.000100"}'),
        refusals=(
            Refusal(error("ratelimited", 429, {"Retry-After": "30"}), Transient, retry_after_ms=30_000),
            Refusal(error("ratelimited"), Transient),
            Refusal(error("message_limit_exceeded"), Transient),
            Refusal(error("request_timeout"), Transient),
            Refusal(error("service_unavailable", 503), Transient),
            *(
                Refusal(error(code), Transient, ours=True)
                for code in ("invalid_auth", "token_revoked", "account_inactive", "missing_scope", "not_authed")
            ),
            *(
                Refusal(error(code), Permanent)
                for code in ("channel_not_found", "is_archived", "not_in_channel", "msg_too_long", "invalid_blocks")
            ),
            Refusal(error("an_error_of_tomorrow"), Permanent),
            Refusal(error("internal_error"), UnknownOutcome),
            Refusal(error("fatal_error"), UnknownOutcome),
            Refusal(Say(429, b"", {"Retry-After": "7"}), Transient, retry_after_ms=7_000),
            Refusal(Say(401, b"<html>"), Transient, ours=True),
            Refusal(Say(302, headers={"Location": "http://127.0.0.1:9/"}), Transient, ours=True),
            Refusal(Say(413, b"<html>"), Permanent),
            Refusal(Say(502, b"Bad Gateway"), UnknownOutcome),
            Refusal(Say(200, b"<html>not JSON</html>"), UnknownOutcome),
            Refusal(Say(200, b'{"ok": true}'), UnknownOutcome),
            Refusal(Say(200, b'{"ok": false}'), UnknownOutcome),
            Refusal(Say(cut="after request"), UnknownOutcome),
            Refusal(Say(200, b'{"ok": ', cut="in answer"), UnknownOutcome),
        ),
    )


# --- SMS ---

TWILIO_URL = "https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/webhooks/twilio/default"


def twilio_proof(body: bytes, url: str = TWILIO_URL) -> dict[str, str]:
    """Sign a form as Twilio does; bytes that are no UTF-8 stay what they are."""
    pairs = parse_qsl(body.decode("latin-1"), keep_blank_values=True, encoding="latin-1")
    signed = url.encode() + b"".join(part.encode("latin-1") for pair in sorted(set(pairs)) for part in pair)
    return {"x-twilio-signature": base64.b64encode(hmac.digest(SECRET.encode(), signed, "sha1")).decode()}


@dataclass(frozen=True)
class FormSubject(Subject):
    """A channel whose requests and sends are forms; the proof is of the URL, too."""

    def encoded(self, content: Any) -> bytes:
        """As a form; what is no text becomes one."""
        fields = content if isinstance(content, dict) else {"": content}
        return urlencode({name: str(value) for name, value in fields.items()}, errors="surrogatepass").encode()

    def content(self, case: str) -> Any:
        """The fields of a stored form."""
        return dict(parse_qsl(self.event_request(case).body.decode(), keep_blank_values=True))

    def json_event_names(self) -> list[str]:
        """Those whose body is a form."""
        return [case for case in self.event_names() if case != "json"]

    def request(self, body: bytes, at_ms: int = NOW_MS) -> Request:
        """As it comes through API Gateway."""
        url = urlsplit(TWILIO_URL)
        headers = {"content-type": self.sent_as, **self.proof(body, at_ms)}
        return Request("POST", url.path, headers, body, host=url.netloc)

    def event_request(self, case: str, at_ms: int = NOW_MS) -> Request:
        """A stored event, proven for the URL that it came by."""
        event = json.loads((EVENTS / self.name / f"{case}.json").read_text())
        channel, request = gateway.read(event)
        assert channel == self.name
        url = f"https://{request.host}{request.path}" + (f"?{request.query}" if request.query else "")
        form = b"" if request.headers["content-type"] == "application/json" else request.body
        return replace(request, headers={**request.headers, **twilio_proof(form, url)})


def twilio() -> Subject:
    """Programmable Messaging: SMS, and WhatsApp through it."""

    def body(provider_id: str, text: str) -> Body:
        numbers = {"From": "+12025550111", "To": "+12025550100"}
        return {"MessageSid": provider_id, **numbers, "Body": text, "SmsStatus": "received", "NumMedia": "0"}

    def text_of(content: bytes) -> str:
        """Of a rendered part, or of the form that was sent."""
        if content.startswith(b"{"):
            text: str = json.loads(content)["Body"]
            return text
        return dict(parse_qsl(content.decode()))["Body"]

    def error(status: int, code: int, headers: Mapping[str, str] | None = None) -> Say:
        return Say(status, json.dumps({"code": code, "message": SECRET, "status": status}).encode(), headers or {})

    return FormSubject(
        name="twilio",
        fields={"account_sid": "ACSYNTHETIC", "auth_token": SECRET},
        api_field="api_url",
        proof=lambda body, at_ms: twilio_proof(body),
        proof_header="x-twilio-signature",
        signs=True,
        ages=False,
        body=body,
        own=body("1", "beep") | {"SmsStatus": "sent"},
        unknown=body("1", "") | {"EventType": "onHologram"},
        text_of=text_of,
        text_limit=1_600,
        width=utf16_units,
        accepted=Say(201, b'{"sid": "SMSYNOUT", "status": "queued", "error_code": null}'),
        refusals=(
            Refusal(error(429, 20429, {"Retry-After": "3"}), Transient, retry_after_ms=3_000),
            Refusal(error(429, 14107), Transient),
            Refusal(error(400, 21611), Transient),
            Refusal(error(400, 30001), Transient),
            Refusal(error(400, 63018), Transient),
            *(Refusal(error(401, code), Transient, ours=True) for code in (20003, 70051)),
            Refusal(error(404, 20404), Transient, ours=True),
            *(Refusal(error(400, code), Transient, ours=True) for code in (21606, 21608, 21659, 21660, 63007)),
            *(
                Refusal(error(400, code), Permanent)
                for code in (21211, 21408, 21610, 21612, 21614, 21617, 63016, 99999)
            ),
            Refusal(Say(201, b'{"sid": "SM1", "status": "failed", "error_code": 30003}'), Permanent),
            Refusal(Say(201, b'{"sid": "SM1", "status": "failed", "error_code": 30001}'), Transient),
            Refusal(error(500, 20500), UnknownOutcome),
            Refusal(error(503, 20503), UnknownOutcome),
            Refusal(Say(403, b"<html>"), Transient, ours=True),
            Refusal(Say(302, headers={"Location": "http://127.0.0.1:9/"}), Transient, ours=True),
            Refusal(Say(413, b"<html>"), Permanent),
            Refusal(Say(502, b"Bad Gateway"), UnknownOutcome),
            Refusal(Say(200, b"<html>not JSON</html>"), UnknownOutcome),
            Refusal(Say(201, b"{}"), UnknownOutcome),
            Refusal(Say(cut="after request"), UnknownOutcome),
            Refusal(Say(201, b'{"sid": ', cut="in answer"), UnknownOutcome),
        ),
        sent_as="application/x-www-form-urlencoded",
        most_parts=10,
        cut=" [...]",
    )


def sms_aws() -> Subject:
    """AWS End User Messaging SMS."""

    def body(provider_id: str, text: str, to: str = "+12025550100") -> Body:
        numbers = {"originationNumber": "+12025550111", "destinationNumber": to}
        return {**numbers, "messageKeyword": "KEYWORD", "messageBody": text, "inboundMessageId": provider_id}

    def error(status: int, code: str, reason: str = "") -> Say:
        content = {"__type": code, "Message": f"of {SECRET}"} | ({"Reason": reason} if reason else {})
        return Say(status, json.dumps(content).encode())

    return TopicSubject(
        name="sms_aws",
        fields={
            "topic_arn": "arn:aws:sns:eu-central-1:123456789012:two-way-sms",
            "phone_numbers": "+12025550100",
        },
        api_field="endpoint_url",
        proof=lambda body, at_ms: {},
        proof_header="none",
        signs=False,
        ages=False,
        body=body,
        own=body("1", "beep") | {"originationNumber": "+12025550100"},
        unknown=body("1", "hi", to="+12025550199"),
        text_of=lambda content: json.loads(content)["MessageBody"],
        text_limit=1_600,
        width=utf16_units,
        accepted=Say(200, b'{"MessageId": "m-out"}'),
        refusals=(
            Refusal(error(400, "ThrottlingException"), Transient),
            Refusal(error(400, "AccessDeniedException", "ACCOUNT_DISABLED"), Transient, ours=True),
            Refusal(error(400, "ResourceNotFoundException"), Transient, ours=True),
            Refusal(
                error(400, "ServiceQuotaExceededException", "MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT"),
                Transient,
                ours=True,
            ),
            Refusal(error(400, "ConflictException", "DESTINATION_PHONE_NUMBER_OPTED_OUT"), Permanent),
            Refusal(error(400, "ConflictException", "DESTINATION_PHONE_NUMBER_NOT_VERIFIED"), Transient, ours=True),
            Refusal(error(400, "ConflictException", "NUMBER_CAPABILITIES_MISMATCH"), Transient, ours=True),
            Refusal(error(400, "ValidationException", "DESTINATION_COUNTRY_BLOCKED"), Permanent),
            Refusal(error(400, "UnrecognizedClientException"), Transient, ours=True),
            Refusal(error(400, "AnErrorOfTomorrow"), Permanent),
            Refusal(Say(403, b"{}"), Transient, ours=True),
            Refusal(error(500, "InternalServerException"), UnknownOutcome),
            Refusal(Say(503, b"<html>"), UnknownOutcome),
            Refusal(Say(200, b"<html>not JSON</html>"), UnknownOutcome),
            Refusal(Say(200, b"{}"), UnknownOutcome),
            Refusal(Say(cut="after request"), UnknownOutcome),
            Refusal(Say(200, b'{"MessageId": ', cut="in answer"), UnknownOutcome),
        ),
        sent_as="application/x-amz-json-1.0",
        most_parts=10,
        cut=" [...]",
    )
