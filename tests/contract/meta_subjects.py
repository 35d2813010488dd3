"""What the contract suite needs to know of Meta's channels, whichever way they come."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any

from contract.channel_suite import NOW_MS, SECRET, Body, Refusal, Subject, TopicSubject
from loopback import Say
from rejoinder.channels.splitting import utf16_units
from rejoinder.ports import Permanent, Transient, UnknownOutcome

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
