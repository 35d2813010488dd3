"""What the contract suite needs to know of the channels that carry SMS."""

import base64
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from contract.channel_suite import EVENTS, NOW_MS, SECRET, Body, Refusal, Subject, TopicSubject
from loopback import Say
from rejoinder import gateway
from rejoinder.channels.splitting import utf16_units
from rejoinder.ports import Permanent, Request, Transient, UnknownOutcome

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
