"""The body of a wake-up: the same JSON in every lane, in the dead-letter queue, and as a Scheduler's event."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from rejoinder.protocol.conversation import Row
from rejoinder.protocol.identity import MAX_CONVERSATION_ID_BYTES, MESSAGE_ID_BYTES, ConversationId
from rejoinder.protocol.wakeups import ForMessage, ForReceived, WakeUp

VERSION = 1


class UnreadableWakeUpError(ValueError):
    """A body that is no wake-up of ours: no retry makes it one."""


def encode(wake_up: WakeUp) -> str:
    """Write a wake-up as JSON in ASCII, under 1 KB."""
    match wake_up.armed_for:
        case ForMessage(message):
            armed_for: dict[str, str | int] = {"message": base64.b64encode(message).decode()}
        case ForReceived(received):
            armed_for = {"received": received}
    body = {
        "v": VERSION,
        "conversation_id": wake_up.conversation_id,
        "armed_for": armed_for,
        "armed_at_ms": wake_up.armed_at_ms,
        "due_at_ms": wake_up.due_at_ms,
        "attempt": wake_up.attempt,
        "seen": list(wake_up.seen),
    }
    return json.dumps(body, separators=(",", ":"))


def decode(body: object) -> WakeUp:
    """Read what `encode` wrote, as text or as the object that Lambda made of it.

    Fields that this version does not know are left alone, so that a newer deployment's wake-ups are still answered
    while it rolls out; another `v` is refused, for then the known fields may mean something else. What Lambda sends to
    the dead-letter queue after a failed asynchronous invocation wraps the wake-up as `requestPayload` (AWS Lambda
    Developer Guide, "Capturing records of Lambda asynchronous invocations"); it is unwrapped, so that it can be sent
    back like any other.

    Raises:
        UnreadableWakeUpError: naming the field, its value and what is expected.
    """
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            raise UnreadableWakeUpError("the wake-up is not JSON") from None
    if isinstance(body, Mapping) and "requestPayload" in body:
        body = body["requestPayload"]
    if not isinstance(body, Mapping):
        raise UnreadableWakeUpError(f"the wake-up is a {type(body).__name__}; expected a JSON object")
    if body.get("v") != VERSION or isinstance(body["v"], bool):
        raise UnreadableWakeUpError(f"v is {_shown(body.get('v'))}; this version reads v {VERSION}")
    return WakeUp(
        conversation_id=_conversation_id(body.get("conversation_id")),
        armed_for=_armed_for(body.get("armed_for")),
        armed_at_ms=_count("armed_at_ms", body.get("armed_at_ms")),
        due_at_ms=_count("due_at_ms", body.get("due_at_ms")),
        attempt=_count("attempt", body.get("attempt")),
        seen=_seen(body.get("seen", [Row().answered, Row().lease_token])),
    )


def _conversation_id(value: object) -> str:
    """Read the id; one that is written in any way but ours (half a surrogate pair in it) is no key of the table."""
    try:
        if isinstance(value, str) and str(ConversationId.parse(value)) == value:
            return value
    except ValueError:
        pass  # refused like any other
    raise UnreadableWakeUpError(
        f"conversation_id is {_shown(value)}; expected channel:account:chat[:thread], encoded, in up to "
        f"{MAX_CONVERSATION_ID_BYTES} bytes"
    )


def _armed_for(value: object) -> ForMessage | ForReceived:
    match value:
        case {"message": str(encoded), **rest} if not rest:
            try:
                message = base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                message = b""
            if len(message) != MESSAGE_ID_BYTES:
                raise UnreadableWakeUpError(
                    f"armed_for.message is {_shown(encoded)}; expected {MESSAGE_ID_BYTES} bytes in base64"
                )
            return ForMessage(message)
        case {"received": received, **rest} if not rest:
            return ForReceived(_count("armed_for.received", received))
        case _:
            raise UnreadableWakeUpError(f"armed_for is {_shown(value)}; expected one of message and received")


def _seen(value: object) -> tuple[int, int]:
    match value:
        case [answered, lease_token]:
            return _count("seen[0]", answered), _count("seen[1]", lease_token)
        case _:
            raise UnreadableWakeUpError(f"seen is {_shown(value)}; expected [answered, lease_token]")


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnreadableWakeUpError(f"{name} is {_shown(value)}; expected a whole number from 0")
    return value


def _shown(value: object) -> str:
    """Show a refused value in an error, cut to a length that a log line bears."""
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
