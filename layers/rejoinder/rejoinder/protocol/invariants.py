"""The invariants of one conversation, as named predicates. Simulator, tests and `rejoinder inspect` share them.

Each takes a row, or a row and the next one, and answers with a sentence where it is broken, else None. What needs the
whole history of a run (doubled sends, liveness) is checked by `rejoinder.simulator.checkers`.
"""

from collections.abc import Callable

from rejoinder.protocol.conversation import Row

RowCheck = Callable[[Row], str | None]
StepCheck = Callable[[Row, Row], str | None]


def pending_is_the_difference(row: Row) -> str | None:
    """Invariant 1: `len(pending) == received - answered`, and `0 <= answered <= received`."""
    if not 0 <= row.answered <= row.received:
        return f"answered {row.answered} is not between 0 and received {row.received}"
    if len(row.pending) != row.received - row.answered:
        return f"{len(row.pending)} pending, but received {row.received} - answered {row.answered}"
    return None


def no_window_without_pending(row: Row) -> str | None:
    """Invariant 6, second half: no window is open with nothing pending."""
    if row.window_opened_at_ms is not None and not row.pending:
        return f"a window is open since {row.window_opened_at_ms} with nothing pending"
    return None


def lease_is_whole(row: Row) -> str | None:
    """A lease has an owner and an expiry, or neither."""
    if (row.lease_owner is None) != (row.lease_expires_at_ms is None):
        return f"half a lease: owner {row.lease_owner}, expiry {row.lease_expires_at_ms}"
    return None


def owed_is_indexed(row: Row) -> str | None:
    """What owes something is in the index `owed`, so that the sweep finds it."""
    if row.owes and (row.owed_shard is None or row.owed_since_ms is None):
        return "something is owed, but the row is not in the index"
    return None


def counters_are_sound(row: Row) -> str | None:
    """The counters of attempts never run below zero."""
    if row.superseded < 0 or row.overflowed < 0 or row.attempts < 0:
        return f"negative: superseded {row.superseded}, overflowed {row.overflowed}, attempts {row.attempts}"
    return None


def counters_never_decrease(before: Row, after: Row) -> str | None:
    """Invariants 1 and 7: `received`, `answered` and `lease_token` only grow."""
    for name in ("received", "answered", "lease_token"):
        if getattr(after, name) < getattr(before, name):
            return f"{name} went from {getattr(before, name)} to {getattr(after, name)}"
    return None


def pending_keeps_its_order(before: Row, after: Row) -> str | None:
    """Invariant 6, first half: `pending` loses a prefix and gains at its end, and what is lost was answered."""
    dropped = after.answered - before.answered
    kept = _ids(before)[dropped:]
    if _ids(after)[: len(kept)] != kept:
        return f"{dropped} answered, but pending went from {_ids(before)} to {_ids(after)}"
    return None


def what_was_read_stays(before: Row, after: Row) -> str | None:
    """While somebody holds the row, no pending message says anything else: the holder has read it."""
    if before.lease_owner is None:
        return None
    standing = {message.id: message for message in before.pending}
    changed = [message.id.hex() for message in after.pending if standing.get(message.id, message) != message]
    return f"{', '.join(changed)} changed under a holder" if changed else None


def outbox_is_kept(before: Row, after: Row) -> str | None:
    """A committed reply is never replaced by another: it leaves by `finish` alone."""
    if before.outbox is not None and after.outbox is not None and before.outbox.reply_id != after.outbox.reply_id:
        return f"outbox {before.outbox.reply_id} was replaced by {after.outbox.reply_id}"
    return None


def _ids(row: Row) -> list[str]:
    return [message.id.hex() for message in row.pending]


OF_A_ROW: tuple[RowCheck, ...] = (
    pending_is_the_difference,
    no_window_without_pending,
    lease_is_whole,
    owed_is_indexed,
    counters_are_sound,
)
OF_A_STEP: tuple[StepCheck, ...] = (
    counters_never_decrease,
    pending_keeps_its_order,
    what_was_read_stays,
    outbox_is_kept,
)


def broken(row: Row) -> list[str]:
    """Name every invariant that the row breaks: `name: sentence`."""
    return [f"{check.__name__}: {said}" for check in OF_A_ROW if (said := check(row)) is not None]


def broken_step(before: Row, after: Row) -> list[str]:
    """Name every invariant that a change of the row breaks, those of the new row included."""
    steps = [f"{check.__name__}: {said}" for check in OF_A_STEP if (said := check(before, after)) is not None]
    return broken(after) + steps
