"""A page of Messenger's and an account of Instagram's, as the tests of their channel have them."""

import json

import pytest

from rejoinder.channels import instagram, messenger
from rejoinder.channels.meta_messaging import MessagingChannel
from rejoinder.ports import Event, Request

NOW_MS = 1_790_000_000_000
PAGE, ANA = "300000000000001", "400000000000001"
FIELDS = {"app_secret": "app-secret", "verify_token": "verify", "access_token": "EAAB-token"}
REPLY_ID = "0123456789abcdef0123456789abcdef"
each_channel = pytest.mark.parametrize("name", ["messenger", "instagram"])


def channel(name: str = "messenger", url: str = "http://127.0.0.1:9", **fields: str) -> MessagingChannel:
    given = {**FIELDS, "api_url": url, **fields}
    if name == "instagram":
        return instagram.from_fields("default", given)
    return messenger.from_fields("default", given)


def parse(*events: object, name: str = "messenger", **fields: str) -> list[Event]:
    kind = {"messenger": "page", "instagram": "instagram"}[name]
    body = {"object": kind, "entry": [{"id": PAGE, "time": NOW_MS, "messaging": list(events)}]}
    return list(channel(name, **fields).parse(Request("POST", "/", {}, json.dumps(body).encode()), NOW_MS))


def echo(message: dict[str, object]) -> dict[str, object]:
    return {"sender": {"id": PAGE}, "recipient": {"id": ANA}, "timestamp": NOW_MS, "message": message}
