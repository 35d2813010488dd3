"""Rows, wake-ups and answers in a few words, for histories that people read."""

from typing import Any

from rejoinder.ports import Fault
from rejoinder.protocol.conversation import Message, Row
from rejoinder.protocol.outcomes import Answered
from rejoinder.protocol.wakeups import ForMessage, WakeUp


def worded(message: Message) -> str:
    """Name a message with the words that it has: as they were written, or those of which edit."""
    edit = f"'{message.edited_at_ms}" if message.edited_at_ms else ""
    return f"{message.provider_id}{edit}"


def row_in_words(row: Row, now_ms: int) -> str:
    """Write what decides of a row in one line, times relative to now."""
    words = [f"{row.answered}/{row.received}"]
    words.append("[" + " ".join(map(worded, row.pending)) + "]")
    if row.window_opened_at_ms is not None and row.last_message_at_ms is not None:
        words.append(f"window {row.window_opened_at_ms - now_ms:+}..{row.last_message_at_ms - now_ms:+}")
    if row.lease_owner is not None and row.lease_expires_at_ms is not None:
        words.append(f"lease {row.lease_owner[:8]} {row.lease_expires_at_ms - now_ms:+}")
    words.append(f"token {row.lease_token}")
    if row.outbox is not None:
        covers = " ".join(map(worded, row.outbox.messages))
        words.append(f"outbox({covers}; {row.outbox.sent}/{len(row.outbox.parts)})")
    if row.retry_at_ms is not None:
        words.append(f"retry {row.retry_at_ms - now_ms:+}")
    if row.paused_until_ms is not None:
        words.append(f"paused {row.paused_until_ms - now_ms:+}")
    words += ["opted out"] if row.opted_out_at_ms is not None else []
    words += [f"{name} {getattr(row, name)}" for name in ("superseded", "overflowed") if getattr(row, name)]
    return " ".join(words)


def wake_up_in_words(wake_up: WakeUp) -> str:
    """Write what a wake-up is for, and in which round without progress it is."""
    what = "a message" if isinstance(wake_up.armed_for, ForMessage) else f"received {wake_up.armed_for.received}"
    return f"a wake-up for {what} (round {wake_up.attempt})"


def answer_in_words(answer: Any) -> str:
    """Write an answer: what a transition came to, or the fault in its place."""
    if isinstance(answer, Answered):
        return type(answer).__name__ + (" (repeated)" if getattr(answer, "repeated", False) else "")
    if isinstance(answer, Fault):
        return f"{type(answer).__name__}: {answer}"
    if isinstance(answer, Row):
        return "a row"
    return "done" if answer is None or isinstance(answer, tuple | dict) else str(answer)
