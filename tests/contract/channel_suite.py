"""What the contract suite needs to know of a channel: how it proves a request, writes one, and answers a send.

A new channel is one function that returns its `Subject`, here or in a module beside, and one line in
`channel_subjects.py`.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
