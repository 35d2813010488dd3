"""A number of WhatsApp's Cloud API, as the tests of its channel have it."""

import json
from typing import Any

from rejoinder.channels import whatsapp
from rejoinder.ports import Part, Reply
from rejoinder.protocol.conversation import Message
from rejoinder.protocol.identity import message_id

NOW_MS = 1_790_000_000_000
NUMBER = "200000000000001"
ANA = "12025550111"
REPLY_ID = "0123456789abcdef0123456789abcdef"


def channel(url: str = "http://127.0.0.1:9") -> whatsapp.WhatsAppChannel:
    fields = {"app_secret": "s", "verify_token": "v", "access_token": "t", "api_url": url, "api_version": "v1.0"}
    return whatsapp.from_fields("default", fields)


def to(address: str = f"{NUMBER}|number|{ANA}") -> Message:
    return Message(message_id("wamid.1"), "wamid.1", ANA, NOW_MS, NOW_MS, text="hi", address=address)


def sends(*parts: Part, address: str = f"{NUMBER}|number|{ANA}") -> list[dict[str, Any]]:
    return [json.loads(part) for part in channel().render(Reply(parts), to(address))]
