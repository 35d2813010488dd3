"""How each channel is told where its webhooks go: by its API, or by a person who pastes; and how that is tried out.

What is tried is a request that the provider itself could have made, signed with the account's secret, of which nothing
comes: no message, and no trace but a line in the log.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rejoinder.channels import meta, slack, telegram, twilio_proof
from rejoinder.channels.telegram_events import TAKEN
from rejoinder.channels.webhook import signature_headers
from rejoinder.ports import Permanent

Fields = Mapping[str, str]
JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Trial:
    """A signed request of which nothing comes."""

    body: bytes
    headers: Mapping[str, str]
    query: str = ""


@dataclass(frozen=True, slots=True)
class Connection:
    """What connecting one channel takes.

    Attributes:
        paste: what a person does at the provider, step by step; `{url}` and the account's fields stand in it.
        trial: makes a request from fields, URL and time; None where nothing comes by a public webhook.
        register: tells the provider by its API; says what it did.
        makes_up: fields that are words of our own choice, and how to choose one.
    """

    paste: tuple[str, ...]
    trial: Callable[[Fields, str, int], Trial] | None
    register: Callable[[Fields, str], str] | None = None
    makes_up: Mapping[str, Callable[[], str]] = field(default_factory=dict)


def connection(channel: str) -> Connection:
    """Find what connecting a channel takes.

    Raises:
        KeyError: nobody has written it down.
    """
    return CONNECTIONS[channel]


def _try_webhook(fields: Fields, _url: str, now_ms: int) -> Trial:
    """A message of a type that is none."""
    body = json.dumps({"id": "connect", "conversation_id": "connect", "user_id": "connect", "type": "check"}).encode()
    return Trial(body, JSON | signature_headers(fields["secret"], body, now_ms))


def _try_telegram(fields: Fields, _url: str, _now_ms: int) -> Trial:
    """An update of no kind."""
    return Trial(b'{"update_id": 0}', JSON | {"x-telegram-bot-api-secret-token": fields["secret"]})


def _try_meta(kind: str) -> Callable[[Fields, str, int], Trial]:
    """A webhook without entries."""

    def make(fields: Fields, _url: str, _now_ms: int) -> Trial:
        body = json.dumps({"object": kind, "entry": []}).encode()
        return Trial(body, JSON | {"x-hub-signature-256": meta.signature(fields["app_secret"], body)})

    return make


def _try_slack(fields: Fields, _url: str, now_ms: int) -> Trial:
    """The check that Slack itself makes."""
    body = json.dumps({"type": "url_verification", "challenge": "connect"}).encode()
    timestamp = str(now_ms // 1_000)
    proof = slack.signature(fields["signing_secret"], timestamp, body)
    return Trial(body, JSON | {"x-slack-request-timestamp": timestamp, "x-slack-signature": proof})


def _try_twilio(fields: Fields, url: str, _now_ms: int) -> Trial:
    """JSON, whose hash Twilio puts into the URL; no message is JSON."""
    body = b"{}"
    query = f"bodySHA256={hashlib.sha256(body).hexdigest()}"
    called = f"{(fields.get('public_url') or url).partition('?')[0]}?{query}"
    proof = twilio_proof.signature(fields["auth_token"], called, b"")
    return Trial(body, JSON | {"x-twilio-signature": proof}, query)


def _register_telegram(fields: Fields, url: str) -> str:
    """Set the webhook with its secret, and read back what Telegram has noted.

    Raises:
        Fault: Telegram cannot be asked, or refuses.
    """
    channel = telegram.from_fields("default", fields)
    asked = {"url": url, "secret_token": fields["secret"], "allowed_updates": TAKEN}
    channel.call("setWebhook", asked, telegram.SENDING)
    noted = channel.call("getWebhookInfo", {}, telegram.SENDING)
    if not isinstance(noted, dict) or noted.get("url") != url:
        raise Permanent("Telegram took the webhook, and has noted another one: is somebody else setting it, too?")
    return f"Telegram sends to {url} now; {noted.get('pending_update_count', 0)} updates wait there"


def _meta_steps(product: str, fields: str) -> tuple[str, ...]:
    return (
        f"App dashboard, {product}, Webhooks: callback URL {{url}}",
        "verify token {verify_token}",
        f"press Verify and save, then subscribe to {fields}",
    )


META_WORDS = {"verify_token": lambda: secrets.token_hex(16)}

CONNECTIONS: dict[str, Connection] = {
    "webhook": Connection(
        (
            "the sender POSTs its messages to {url}, signed with the secret",
            "replies are POSTed to {reply_url}, signed with the same one",
        ),
        _try_webhook,
    ),
    "telegram": Connection(
        ("nothing: Telegram is told by its API",),
        _try_telegram,
        _register_telegram,
        {"secret": lambda: secrets.token_urlsafe(32)},
    ),
    "whatsapp": Connection(
        _meta_steps(
            "WhatsApp, Configuration",
            "messages; and to smb_message_echoes, if a number is also used in the WhatsApp Business app",
        ),
        _try_meta("whatsapp_business_account"),
        makes_up=META_WORDS,
    ),
    "messenger": Connection(
        _meta_steps("Messenger", "messages, messaging_postbacks, message_edits and message_echoes; then add the page"),
        _try_meta("page"),
        makes_up=META_WORDS,
    ),
    "instagram": Connection(
        _meta_steps(
            "Instagram", "messages, messaging_postbacks and message_edit; then switch the account's webhook on"
        ),
        _try_meta("instagram"),
        makes_up=META_WORDS,
    ),
    "whatsapp_aws": Connection(
        (
            "AWS End User Messaging, WhatsApp: let the account's events go to the topic {topic_arn}",
            "deploy with that topic among the template's parameters: docs/channels/whatsapp-aws.md",
        ),
        None,
    ),
    "slack": Connection(
        (
            "api.slack.com/apps, Event Subscriptions: request URL {url}",
            "Subscribe to bot events: app_mention, message.im, message.channels, message.groups, message.mpim",
            "Interactivity & Shortcuts: the same URL, for buttons",
            "App Home: allow messages from the messages tab; then install the app again, and invite it to its channels",
        ),
        _try_slack,
    ),
    "twilio": Connection(
        (
            "Twilio Console, the number's or the Messaging Service's settings: a message comes in, webhook {url}, POST",
            "behind a proxy or a domain of one's own, that URL is also the field public_url",
        ),
        _try_twilio,
    ),
    "sms_aws": Connection(
        (
            "AWS End User Messaging, SMS: switch the number's two-way messages on, with the topic {topic_arn}",
            "deploy with that topic among the template's parameters",
        ),
        None,
    ),
}
