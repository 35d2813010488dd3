"""A conversation as JSON for people and programs: `rejoinder inspect` prints it, the playground draws it."""

from typing import Any

from rejoinder.ports import Store
from rejoinder.protocol.conversation import Held, Message, Outbox, Row, TurnRecord
from rejoinder.protocol.invariants import broken
from rejoinder.protocol.timing import Timing, cap_ms, due_at_ms


async def conversation_view(
    store: Store, conversation_id: str, timing: Timing, now_ms: int, *, turns: int, texts: bool
) -> dict[str, Any] | None:
    """Read a conversation and describe it; None where nothing of it is stored.

    Args:
        store: the table.
        conversation_id: encoded.
        timing: the settings that the due time is derived with.
        now_ms: epoch milliseconds.
        turns: how many of the last turns to show.
        texts: show what people and the bot wrote; else only lengths.
    """
    row = await store.read(conversation_id)
    history = await store.history(conversation_id, turns, now_ms)
    held = await store.held(conversation_id, now_ms)
    effects = await store.open_effects(conversation_id, now_ms)
    if row == Row() and not history and not held and not effects:
        return None
    return {
        "conversation_id": conversation_id,
        "now_ms": now_ms,
        "row": row_view(row, timing, now_ms, texts=texts),
        "turns": [turn_view(turn, texts=texts) for turn in history],
        "held": [held_view(reply, texts=texts) for reply in held],
        "effects": [{"name": effect.name, "begun_at_ms": effect.begun_at_ms} for effect in effects],
    }


def row_view(row: Row, timing: Timing, now_ms: int, *, texts: bool) -> dict[str, Any]:
    """Describe the row: what it holds, and what follows from it (due time, cap, attempts, broken invariants)."""
    return {
        "received": row.received,
        "answered": row.answered,
        "owes": row.owes,
        "owed_since_ms": row.owed_since_ms,
        "pending": [message_view(message, texts=texts) for message in row.pending],
        "window_opened_at_ms": row.window_opened_at_ms,
        "last_message_at_ms": row.last_message_at_ms,
        "due_at_ms": (due_at_ms(row, timing) or now_ms) if row.owes and row.outbox is None else None,
        "cap_at_ms": cap_ms(row, timing),
        "retry_at_ms": row.retry_at_ms,
        "paused_until_ms": row.paused_until_ms,
        "promised_token": row.promised_token,
        "lease": lease_view(row, now_ms),
        "lease_token": row.lease_token,
        "outbox": None if row.outbox is None else outbox_view(row.outbox, texts=texts),
        "superseded": row.superseded,
        "attempts": row.attempts,
        "overflowed": row.overflowed,
        "opted_out_at_ms": row.opted_out_at_ms,
        "remembered": len(row.answered_ids),
        "expires_at_s": row.expires_at_s,
        "broken": broken(row),
    }


def lease_view(row: Row, now_ms: int) -> dict[str, Any] | None:
    """Describe who may generate; None while nobody holds the lease."""
    if row.lease_owner is None:
        return None
    return {
        "owner": row.lease_owner,
        "token": row.lease_token,
        "expires_at_ms": row.lease_expires_at_ms,
        "live": row.held_at(now_ms),
    }


def message_view(message: Message, *, texts: bool) -> dict[str, Any]:
    """Describe a message; its text only where texts are shown."""
    view: dict[str, Any] = {
        "id": message.id.hex(),
        "provider_id": message.provider_id,
        "author": message.author,
        "author_name": message.author_name,
        "sent_at_ms": message.sent_at_ms,
        "arrived_at_ms": message.arrived_at_ms,
        "attachments": len(message.attachments),
        "stored": message.stored,
    }
    return view | ({"text": message.text} if texts else {"characters": len(message.text)})


def outbox_view(outbox: Outbox, *, texts: bool) -> dict[str, Any]:
    """Describe a committed reply."""
    view: dict[str, Any] = {
        "reply_id": outbox.reply_id,
        "parts": len(outbox.parts),
        "sent": outbox.sent,
        "covers": len(outbox.messages),
        "committed_at_ms": outbox.committed_at_ms,
        "token": outbox.token,
        "refused": outbox.refused_token is not None,
        "failed": outbox.failed,
        "handled": outbox.handled,
        "hands_off": bool(outbox.handoff),
        "stored": outbox.stored,
    }
    if not texts:
        return view | {"characters": len(outbox.said)}
    return view | {"said": outbox.said} | ({"handoff": outbox.handoff} if outbox.handoff else {})


def turn_view(turn: TurnRecord, *, texts: bool) -> dict[str, Any]:
    """Describe a turn of the history."""
    view: dict[str, Any] = {
        "answered": turn.answered,
        "token": turn.token,
        "at_ms": turn.at_ms,
        "delivery": turn.delivery,
        "failed": turn.failed,
        "reply_id": turn.reply_id,
        "messages": [message_view(message, texts=texts) for message in turn.messages],
    }
    return view | ({"said": turn.said} if texts else {"characters": len(turn.said)})


def held_view(held: Held, *, texts: bool) -> dict[str, Any]:
    """Describe a reply that waits for an operator."""
    return {
        "answered": held.answered,
        "reason": held.reason,
        "at_ms": held.at_ms,
        "reply": outbox_view(held.outbox, texts=texts),
    }
