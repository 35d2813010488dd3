"""The Slack workspace of the tests: its app, what is written there, and where a reply goes."""

import json
from pathlib import Path
from typing import Any

from loopback import Say
from rejoinder import gateway
from rejoinder.channels import slack
from rejoinder.channels.slack_events import Address
from rejoinder.ports import (
    Event,
    Part,
    Reply,
    Request,
)
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id

EVENTS = Path(__file__).parents[2] / "events" / "slack"
NOW_MS = 1_790_000_000_000
REPLY = "0123456789abcdef0123456789abcdef"
SECRET = "syn-slack-secret"
POSTED = Say(200, b'{"ok": true, "channel": "D0SYN0001", "ts": "1790000004.000100"}')


def channel(url: str = "http://127.0.0.1:9", **fields: str) -> slack.SlackChannel:
    given = {"signing_secret": SECRET, "bot_token": "xoxb-syn", "api_url": url}
    return slack.from_fields("default", given | fields)


def read(case: str, **fields: str) -> Any:
    """The one event that a stored request is read as."""
    _, request = gateway.read(json.loads((EVENTS / f"{case}.json").read_text()))
    (event,) = channel(**fields).parse(request, NOW_MS)
    return event


def parse(content: object, **fields: str) -> Event:
    (event,) = channel(**fields).parse(Request("POST", "/", {}, json.dumps(content).encode()), NOW_MS)
    return event


def message(**event: object) -> dict[str, object]:
    """A direct message of Ana's, changed."""
    written = {"type": "message", "user": "U0SYN0001", "text": "hi", "ts": "1790000000.000100"}
    direct = {"channel": "D0SYN0001", "channel_type": "im"}
    authorization = {"team_id": "T0SYN0001", "user_id": "U0SYNBOT1", "is_bot": True}
    return {
        "type": "event_callback",
        "team_id": "T0SYN0001",
        "event": {name: value for name, value in (written | direct | event).items() if value is not ...},
        "authorizations": [authorization],
    }


def in_channel(**event: object) -> dict[str, object]:
    return message(channel="C0SYN0001", channel_type="channel", **event)


def to(thread: str = "", team: str = "T0SYN0001") -> Message:
    address = str(Address(team, "C0SYN0001" if thread else "D0SYN0001", thread))
    return Message(message_id("1"), "1", "U0SYN0001", NOW_MS + 7, NOW_MS, text="hi", address=address)


def rendered(*parts: Part, thread: str = "") -> list[dict[str, Any]]:
    return [json.loads(part) for part in channel().render(Reply(parts), to(thread))]
