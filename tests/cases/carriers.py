"""How a record's payload gets onto a channel: the real one, signed as its provider signs; or carried by another.

A case for "any" channel uses the payloads of channels that may not exist here yet. Its texts, ids and conversations
then travel over the generic webhook instead. That is decided by `rejoinder.channels.NAMES` alone: as soon as the real
channel is there, the case runs on it, and needs its line in `SIGNERS` and `ACCOUNTS`.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rejoinder.channels import NAMES, open_channel
from rejoinder.channels.webhook import signature_headers
from rejoinder.ports import Channel, Request

META_SECRET = "syn-meta-secret"
"""The secret that the records' own signature vectors were made with."""

WEBHOOK_SECRET = "syn-webhook-secret"
TELEGRAM_SECRET = "syn-tg-secret"
TELEGRAM_HEADER = "x-telegram-bot-api-secret-token"

NAMES_HERE = {"generic": "webhook"}
"""What the records call a channel, where we call it otherwise."""

META_FIELDS = {"app_secret": META_SECRET, "verify_token": "syn-verify", "access_token": "syn-access-token"}

ACCOUNTS: dict[str, dict[str, str]] = {
    "webhook": {"secret": WEBHOOK_SECRET, "reply_url": "https://replies.example.test/", "account": "shop"},
    "telegram": {"secret": TELEGRAM_SECRET, "token": "5559999999:syn-token-syn-token-syn-token-syn"},
    "whatsapp": META_FIELDS,
    "whatsapp_aws": {
        "topic_arn": "arn:aws:sns:eu-central-1:123456789012:syn-topic",
        "phone_number_arns": "arn:aws:social-messaging:eu-central-1:123456789012:phone-number-id/synexample",
    },
    "messenger": META_FIELDS,
    "instagram": META_FIELDS,
}


def is_here(channel: str) -> bool:
    """Whether the channel of a record exists."""
    return NAMES_HERE.get(channel, channel) in NAMES


def carrier(channel: str) -> str:
    """The channel that carries a payload of the given one: itself where it exists."""
    return NAMES_HERE.get(channel, channel) if is_here(channel) else "webhook"


def open_accounts(
    server_url: str | None = None, telegram_secret: str = TELEGRAM_SECRET
) -> dict[tuple[str, str], Channel]:
    """Open the account of every channel that exists.

    Args:
        server_url: what stands for every channel's own server.
        telegram_secret: the one that a case is about.

    Raises:
        NotImplementedError: a channel has become one, and has no lines here yet.
    """
    if missing := [name for name in NAMES if name not in ACCOUNTS or name not in SIGNERS]:
        raise NotImplementedError(
            f"{', '.join(missing)}: its cases now run on the channel itself; give it its lines in ACCOUNTS and SIGNERS"
        )
    server = {} if server_url is None else {"api_url": server_url, "reply_url": server_url}
    fields = {name: {**ACCOUNTS[name], **server} for name in NAMES}
    fields["telegram"]["secret"] = telegram_secret
    return {(name, "default"): open_channel(name, "default", fields[name]) for name in NAMES}


ACCEPTED: dict[str, bytes] = {
    "webhook": b"",
    "telegram": b'{"ok": true, "result": {"message_id": 1}}',
    "whatsapp": b'{"messaging_product": "whatsapp", "messages": [{"id": "wamid.SYNOUT"}]}',
    "messenger": b'{"recipient_id": "400000000000001", "message_id": "m_SYNOUT"}',
    "instagram": b'{"recipient_id": "600000000000001", "message_id": "aWdfSYNOUT"}',
}
"""What a channel's server answers to a send that it takes."""


def request(channel: str, body: dict[str, Any], now_ms: int, headers: Mapping[str, str] | None = None) -> Request:
    """Sign a record's parsed body as the request of its own channel, or of the one that carries it."""
    content = body
    if not is_here(channel):
        messages = CARRIED[channel](body)
        content = messages[0] if len(messages) == 1 else {"messages": messages}
    request = signed(carrier(channel), json.dumps(content).encode(), now_ms)
    more = {name.lower(): value for name, value in (headers or {}).items()}
    return replace(request, headers={**more, **request.headers})


def texts(channel: str, body: dict[str, Any]) -> list[str]:
    """The texts that people wrote in a record's body, whatever its channel."""
    found: list[str] = []

    def look(value: Any, key: str) -> None:
        match value:
            case dict():
                for name, inner in value.items():
                    look(inner, name)
            case list():
                for inner in value:
                    look(inner, key)
            case str() if key in TEXT_KEYS[channel] and value:
                found.append(value)

    look(body, "")
    return found


TEXT_KEYS = {
    "generic": {"text"},
    "telegram": {"text", "caption"},
    "whatsapp": {"body", "caption"},
    "messenger": {"text"},
    "instagram": {"text"},
    "slack": {"text"},
    "twilio": {"Body"},
}


def signed(name: str, raw: bytes, now_ms: int) -> Request:
    """Sign a raw body as the channel's provider does."""
    headers = {"content-type": "application/json"} | SIGNERS[name](raw, now_ms)
    return Request("POST", f"/webhooks/{name}/default", headers, raw)


def meta_headers(raw: bytes, _now_ms: int) -> dict[str, str]:
    """Sign a raw body as Meta does."""
    return {"x-hub-signature-256": meta_signature(raw)}


def meta_signature(raw: bytes) -> str:
    """The HMAC of the raw body under the app secret."""
    return "sha256=" + hmac.new(META_SECRET.encode(), raw, hashlib.sha256).hexdigest()


SIGNERS: dict[str, Callable[[bytes, int], dict[str, str]]] = {
    "webhook": lambda raw, now_ms: signature_headers(WEBHOOK_SECRET, raw, now_ms),
    "telegram": lambda _raw, _now_ms: {TELEGRAM_HEADER: TELEGRAM_SECRET},
    "whatsapp": meta_headers,
    "whatsapp_aws": lambda _raw, _now_ms: {},  # its proof is a topic, and no case comes by one
    "messenger": meta_headers,
    "instagram": meta_headers,
}


# --- payloads of channels that are not here yet, as generic messages ---


def from_slack(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The message of an event callback; its time is a number with a fraction."""
    event = body["event"]
    thread = f"-{event['thread_ts']}" if "thread_ts" in event else ""
    return [
        {
            "id": f"{event['channel']}-{event['ts']}",
            "conversation_id": f"{event['team']}-{event['channel']}{thread}",
            "user_id": event["user"],
            "text": event["text"],
            "sent_at": float(event["ts"]),
        }
    ]


def from_twilio(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The form's one message; Twilio gives no time."""
    return [
        {
            "id": body["MessageSid"],
            "conversation_id": f"{body['To']}-{body['From']}",
            "user_id": body["From"],
            "text": body["Body"],
        }
    ]


CARRIED: dict[str, Callable[[dict[str, Any]], list[dict[str, Any]]]] = {
    "slack": from_slack,
    "twilio": from_twilio,
}


# --- complete API Gateway events ---


def routed(channel: str, event: dict[str, Any]) -> dict[str, Any]:
    """Send a record's API Gateway event to our own route.

    Raises:
        NotImplementedError: its channel is not here; a signature cannot be carried.
    """
    if is_here(channel):
        return event | {"pathParameters": {"channel": carrier(channel)}}
    raise NotImplementedError(f"carrying an API Gateway event of {channel}")
