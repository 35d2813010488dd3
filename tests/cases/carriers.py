"""How a record's payload gets onto its channel: encoded and signed as the provider does it."""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from twilio.request_validator import RequestValidator

from cases.unknown import UnknownToRunnerError
from rejoinder.channels import NAMES, open_channel
from rejoinder.channels.webhook import signature_headers
from rejoinder.ports import Channel, Request

META_SECRET = "syn-meta-secret"
"""The secret that the records' own signature vectors were made with."""

WEBHOOK_SECRET = "syn-webhook-secret"
SLACK_SECRET = "syn-slack-secret"
TWILIO_SECRET = "syn-twilio-token"
TELEGRAM_SECRET = "syn-tg-secret"
TELEGRAM_HEADER = "x-telegram-bot-api-secret-token"

HOST = "hooks.example.test"

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
    "slack": {"signing_secret": SLACK_SECRET, "bot_token": "xoxb-syn", "answers": "all"},
    "twilio": {"account_sid": "ACSYNTHETIC0000000000000000000001", "auth_token": TWILIO_SECRET},
    "sms_aws": {"topic_arn": "arn:aws:sns:eu-central-1:123456789012:syn-topic"},
}

OF_ACCOUNTS = {
    "telegram_secret_token": [("telegram", "secret")],
    "meta_verify_token": [("whatsapp", "verify_token"), ("messenger", "verify_token"), ("instagram", "verify_token")],
    "slack_require_mention": [("slack", "answers")],
    "twilio_public_url": [("twilio", "public_url")],
}
"""A case's settings that are fields of accounts: channel and field."""

SAID = {True: "mentions"}
"""A case's value in the account's words, where those differ."""


def name_here(channel: str) -> str:
    """Our name of a record's channel."""
    return NAMES_HERE.get(channel, channel)


def open_accounts(
    server_url: str | None = None, config: Mapping[str, Any] | None = None
) -> dict[tuple[str, str], Channel]:
    """Open the account of every channel that exists.

    Args:
        server_url: what stands for every channel's own server.
        config: a case's settings; some are of accounts.

    Raises:
        UnknownToRunnerError: a new channel has no lines here yet.
    """
    if missing := [name for name in NAMES if name not in ACCOUNTS or name not in SIGNERS]:
        raise UnknownToRunnerError(f"{', '.join(missing)}: give it its lines in ACCOUNTS and SIGNERS")
    server = {} if server_url is None else {"api_url": server_url, "reply_url": server_url}
    fields = {name: {**ACCOUNTS[name], **server} for name in NAMES}
    for setting, value in (config or {}).items():
        for channel, field in OF_ACCOUNTS.get(setting, ()):
            fields[channel][field] = SAID.get(value, value)
    return {(name, "default"): open_channel(name, "default", fields[name]) for name in NAMES}


ACCEPTED: dict[str, bytes] = {
    "webhook": b"",
    "telegram": b'{"ok": true, "result": {"message_id": 1}}',
    "whatsapp": b'{"messaging_product": "whatsapp", "messages": [{"id": "wamid.SYNOUT"}]}',
    "messenger": b'{"recipient_id": "400000000000001", "message_id": "m_SYNOUT"}',
    "instagram": b'{"recipient_id": "600000000000001", "message_id": "aWdfSYNOUT"}',
    "slack": b'{"ok": true, "channel": "D0SYN0001", "ts": "1790000099.000100"}',
    "twilio": b'{"sid": "SMSYNOUT", "status": "queued", "error_code": null}',
}
"""What a channel's server answers to a send that it takes."""


def request(channel: str, body: dict[str, Any], now_ms: int, headers: Mapping[str, str] | None = None) -> Request:
    """Encode and sign a record's parsed body."""
    raw = urlencode(body, errors="surrogatepass") if channel == "twilio" else json.dumps(body)
    request = signed(name_here(channel), raw.encode(), now_ms)
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
    content_type = "application/x-www-form-urlencoded" if name == "twilio" else "application/json"
    headers = {"content-type": content_type} | SIGNERS[name](raw, now_ms)
    return Request("POST", f"/webhooks/{name}/default", headers, raw, host=HOST)


def meta_headers(raw: bytes, _now_ms: int) -> dict[str, str]:
    """Sign a raw body as Meta does."""
    return {"x-hub-signature-256": meta_signature(raw)}


def meta_signature(raw: bytes) -> str:
    """The HMAC of the raw body under the app secret."""
    return "sha256=" + hmac.new(META_SECRET.encode(), raw, hashlib.sha256).hexdigest()


def slack_headers(raw: bytes, now_ms: int) -> dict[str, str]:
    """Sign a raw body as Slack does."""
    timestamp = str(now_ms // 1000)
    digest = hmac.new(SLACK_SECRET.encode(), f"v0:{timestamp}:".encode() + raw, hashlib.sha256).hexdigest()
    return {"x-slack-request-timestamp": timestamp, "x-slack-signature": f"v0={digest}"}


def twilio_headers(raw: bytes, _now_ms: int) -> dict[str, str]:
    """Sign a form as Twilio's own code does."""
    form = dict(parse_qsl(raw.decode(), keep_blank_values=True))
    url = f"https://{HOST}/webhooks/twilio/default"
    return {"x-twilio-signature": RequestValidator(TWILIO_SECRET).compute_signature(url, form)}


SIGNERS: dict[str, Callable[[bytes, int], dict[str, str]]] = {
    "webhook": lambda raw, now_ms: signature_headers(WEBHOOK_SECRET, raw, now_ms),
    "telegram": lambda _raw, _now_ms: {TELEGRAM_HEADER: TELEGRAM_SECRET},
    "whatsapp": meta_headers,
    "whatsapp_aws": lambda _raw, _now_ms: {},  # its proof is a topic, and no case comes by one
    "messenger": meta_headers,
    "instagram": meta_headers,
    "slack": slack_headers,
    "twilio": twilio_headers,
    "sms_aws": lambda _raw, _now_ms: {},  # likewise
}


def routed(channel: str, event: dict[str, Any]) -> dict[str, Any]:
    """Send a record's API Gateway event to our own route."""
    return event | {"pathParameters": {"channel": name_here(channel)}}
