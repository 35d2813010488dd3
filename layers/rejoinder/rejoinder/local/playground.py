"""What the playground's buttons do: real signed webhooks, and faults on purpose."""

import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rejoinder.channels.webhook import signature_headers
from rejoinder.local.deployment import Deployment
from rejoinder.per_account import PerAccount
from rejoinder.ports import Channel, Malformed, Request, Response
from rejoinder.protocol.identity import ConversationId
from rejoinder.run import run

MAX_BURST = 50
"""Messages that one press of a button may send."""

MAX_PAUSE_MS = 600_000

PAUSED_MS = 600_000
"""For how long the page's button takes a conversation."""


class Playground:
    """The people at the page, and where replies to them arrive.

    Attributes:
        bot_name: which bot answers, for the page.
    """

    def __init__(self, deployment: Deployment, channel: Channel, secret: str, bot_name: str) -> None:
        self.bot_name = bot_name
        self._deployment = deployment
        self._channel = channel
        self._secret = secret
        self._seen: set[str] = set()
        self._mutex = threading.Lock()

    def settings(self) -> dict[str, Any]:
        """Describe what the page shows around the conversation."""
        return {
            "timing": asdict(self._deployment.per_account.timing),
            "latency_ms": self._deployment.bot.latency_ms,
            "bot": self.bot_name,
            "accounts": webhook_accounts(self._deployment.per_account),
            "now_ms": self._deployment.clock.now_ms(),
            "newest": self._deployment.feed.newest,
        }

    def deliver(self, channel_name: str, request: Request) -> Response:
        """Take one webhook as the ingest Lambda does, and publish how it was answered."""
        response = run(self._deployment.ingest(channel_name, request))
        if request.method == "POST":
            is_json = response.content_type == "application/json"  # some providers want words of their own
            answer = json.loads(response.body) if is_json else {"text": response.body}
            self._deployment.feed.publish("webhook", status=response.status, answer=answer)
        return response

    def replied(self, request: Request) -> None:
        """Receive a part of a reply, as the customer's own server would.

        Raises:
            Unverified: not signed with our secret.
            Malformed: not a reply.
        """
        self._channel.verify(request, self._deployment.clock.now_ms())
        key = request.headers.get("idempotency-key", "")
        try:
            part: dict[str, Any] = json.loads(request.body)
            conversation_id = str(ConversationId("webhook", part["account"], part["conversation_id"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Malformed(f"not a reply: {error!r}") from None
        with self._mutex:
            again = key in self._seen
            self._seen.add(key)
        self._deployment.feed.publish("reply", conversation_id, key=key, again=again, part=part)

    def act(self, action: str, asked: Any) -> dict[str, Any]:
        """Do what a button asks for.

        Raises:
            LookupError: there is no such button.
            ValueError: it asks for something impossible.
        """
        if not isinstance(asked, Mapping):
            raise ValueError("expected a JSON object")
        match action:
            case "messages":
                return self._write(account(asked), asked.get("messages"))
            case "pause":
                until_ms = self._deployment.clock.now_ms() + PAUSED_MS
                pause = {"type": "pause", "conversation_id": chat(asked), "until": until_ms}
                return self._signed(account(asked), pause)
            case "resume":
                return self._signed(account(asked), {"type": "resume", "conversation_id": chat(asked)})
            case "crash":
                return {"crashed": self._deployment.bot.crash()}
            case "latency":
                self._deployment.bot.latency_ms = bounded(asked, "ms", MAX_PAUSE_MS)
                self._deployment.feed.publish("settings", latency_ms=self._deployment.bot.latency_ms)
                return {"latency_ms": self._deployment.bot.latency_ms}
        raise LookupError(action)

    def _write(self, via: str, messages: Any) -> dict[str, Any]:
        """Send a burst, each message by a webhook of its own, side by side as a provider does."""
        if not isinstance(messages, list) or not 0 < len(messages) <= MAX_BURST:
            raise ValueError(f"messages: expected a list of 1 to {MAX_BURST}")
        bodies = [webhook_body(message) for message in messages]
        for message, body in zip(messages, bodies, strict=True):
            pause_s = bounded(message, "after_ms", MAX_PAUSE_MS) / 1_000
            timer = threading.Timer(pause_s, self._send, args=(via, body))
            timer.daemon = True
            timer.start()
        return {"ids": [body["id"] for body in bodies]}

    def _send(self, via: str, message: dict[str, Any]) -> None:
        self._signed(via, {"sent_at": self._deployment.clock.now_ms()} | message)

    def _signed(self, via: str, content: dict[str, Any]) -> dict[str, Any]:
        """Send one signed webhook to an account; answers with its status."""
        body = json.dumps(content).encode()
        proof = signature_headers(self._secret, body, self._deployment.clock.now_ms())
        headers = {"content-type": "application/json", **proof}
        request = Request("POST", f"/webhooks/webhook/{via}", headers, body, via=via)
        return {"status": self.deliver("webhook", request).status}


def webhook_accounts(per_account: PerAccount) -> list[str]:
    """The `webhook` accounts that are served: `default`, and whichever has something of its own."""
    named = [name.partition(":")[2] for name in per_account.own if name.startswith("webhook:")]
    return sorted({"default", *named})


def webhook_body(message: Any) -> dict[str, Any]:
    """Make the webhook's JSON of what the page asks for.

    Raises:
        ValueError: a field is missing or is no text.
    """
    if not isinstance(message, Mapping):
        raise ValueError("messages: expected objects")
    for name in ("conversation", "user", "text"):
        if not isinstance(message.get(name), str):
            raise ValueError(f"messages: {name} is missing, or is no text")
    sent_at_ms = message.get("sent_at_ms")
    return ({"sent_at": sent_at_ms} if isinstance(sent_at_ms, int) else {}) | {
        "id": str(message.get("id") or f"p-{secrets.token_hex(6)}"),
        "conversation_id": message["conversation"],
        "user_id": message["user"],
        "user_name": str(message.get("name") or message["user"]),
        "text": message["text"],
    }


def account(asked: Mapping[str, Any]) -> str:
    """Read which `webhook` account a button is for: `default`, where it says nothing.

    Raises:
        ValueError: it is no text.
    """
    name = asked.get("account", "default")
    if not isinstance(name, str):
        raise ValueError("account is no text")
    return name


def chat(asked: Mapping[str, Any]) -> str:
    """Read which conversation a button is for.

    Raises:
        ValueError: it is missing, or is no text.
    """
    name = asked.get("conversation")
    if not isinstance(name, str):
        raise ValueError("conversation is missing, or is no text")
    return name


def bounded(asked: Mapping[str, Any], name: str, most: int) -> int:
    """Read a whole number between 0 and a bound; absent reads as 0.

    Raises:
        ValueError: it is none.
    """
    value = asked.get(name, 0)
    if not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{name} is {value!r}; allowed is 0 to {most}")
    return value
