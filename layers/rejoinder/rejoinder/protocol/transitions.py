"""Every change of a conversation, as pure functions: the row as it is, in; the answer and the next row, out.

A burst begins with `record`: the message is appended and counted, and the debounce window opens or moves. Nobody has
promised a reply yet, but from now on `received > answered`, and that difference is the only test for "is anything
owed?". Some wake-up comes, and whoever handles it tries `claim`. Exactly one is granted the lease, with a fencing token
one higher than ever before; the window closes. While it generates, the holder says `renew`, and anybody may `record`.

`commit` is the recheck before the send, and the only place where `answered` moves. It demands that the lease is still
the caller's, that the watermark is where the claim found it, and that nothing newer than what the reply covers was
recorded. The reply is then in the outbox, and the conversation owes its delivery instead of its generation. If
something newer came, the reply leaves no trace: `release`, and the next holder answers everything. After
`max_superseded` such rounds `commit_partial` drops the last demand, so that who never stops typing is answered too.

`progress` counts the parts that were sent; `finish` ends the turn. Where a holder dies, its lease runs out: before the
commit the next `claim` generates anew, after it `resume` takes up the delivery, and never generates.

The DynamoDB store says each of these as one conditional write; a differential test makes the two agree. There, a failed
condition may be the caller's own first attempt, whose answer was lost. So each function first recognises its own work
in the row (`repeated`), and none does harm when it is applied twice.
"""

from dataclasses import replace

from rejoinder.protocol.conversation import Lease, Message, Outbox, Row
from rejoinder.protocol.identity import owed_shard
from rejoinder.protocol.outcomes import (
    Claimed,
    Committed,
    Duplicate,
    Finished,
    Full,
    Held,
    Lost,
    NotDue,
    Overflowed,
    Overruled,
    Owing,
    Paused,
    Recorded,
    Released,
    Renewed,
    Room,
    Settled,
    Superseded,
    Undelivered,
)
from rejoinder.protocol.timing import Timing, due_at_ms


def mine(row: Row, lease: Lease) -> bool:
    """Whether the lease on the row is the caller's, expired or not: until another takes it, it is still good."""
    return row.lease_owner == lease.owner and row.lease_token == lease.token


def let_go(row: Row, lease: Lease) -> bool:
    """Whether the caller's own earlier write has already removed its lease, and nobody has claimed since."""
    return row.lease_owner is None and row.lease_token == lease.token


def expiry_s(now_ms: int, timing: Timing) -> int:
    """DynamoDB's TTL for what is written now, in epoch seconds, rounded up."""
    return -(-(now_ms + timing.retention_ms) // 1_000)


def record(
    row: Row, conversation_id: str, message: Message, now_ms: int, timing: Timing
) -> Recorded | Duplicate | Full | Overruled:
    """Count a genuine inbound message, append it, and open or extend the debounce window.

    A word that gives consent must be later than the one that stands. It may have been refused once, for want of room,
    and a refused message is known by no id: a late repeat of it would undo a STOP that was sent since.

    Transition:
        if: id in neither `pending` nor `answered_ids`; `pending` below its bound; where it gives consent, nobody has
            opted out since it was sent
        then: `received` +1; the message at the end of `pending`; `last_message_at_ms`, `expires_at_s`;
            `window_opened_at_ms` and the `owed` keys if absent; `opted_out_at_ms` where it withdraws consent, and gone
            where it gives consent
    """
    for pending in row.pending:
        mine_before = (pending.id, pending.arrived_at_ms) == (message.id, message.arrived_at_ms)
        if mine_before and pending.edited_at_ms >= message.edited_at_ms:  # else it is an edit in the place of another
            return Recorded(row, repeated=True)
    if row.knows(message.id):
        return Duplicate(row)
    if len(row.pending) >= timing.max_pending:
        return Full(row)
    if overruled(row, message):
        return Overruled(row)
    opened = row.window_opened_at_ms if row.window_opened_at_ms is not None else now_ms
    owed_since = row.owed_since_ms if row.owed_since_ms is not None else now_ms
    return Recorded(
        replace(
            row,
            received=row.received + 1,
            pending=(*row.pending, message),
            last_message_at_ms=now_ms,
            window_opened_at_ms=opened,
            owed_shard=owed_shard(conversation_id),
            owed_since_ms=owed_since,
            opted_out_at_ms=opted_out_after(row, message),
            expires_at_s=expiry_s(now_ms, timing),
        )
    )


def opted_out_after(row: Row, message: Message) -> int | None:
    """Since when nothing may be sent, once the message is counted; None where it may."""
    match message.consent:
        case "withdrawn":
            return message.sent_at_ms
        case "given" | "implied":
            return None
        case "":
            return row.opted_out_at_ms


def overflow(row: Row, message: Message, timing: Timing) -> Overflowed | Overruled | Room:
    """Count a message that found `pending` full; what it says of consent counts like any other's. The bot is told.

    A STOP's own late repeat opts out again, whatever came since: that errs to the safe side.

    Transition:
        if: `pending` at its bound; where it gives consent, nobody has opted out since it was sent
        then: `overflowed` +1; `opted_out_at_ms` where it withdraws consent, and gone where it gives consent

    Args:
        row: the row.
        message: the one that was refused.
        timing: the settings.
    """
    if len(row.pending) < timing.max_pending:
        return Room(row)
    if overruled(row, message):
        return Overruled(row)
    return Overflowed(replace(row, overflowed=row.overflowed + 1, opted_out_at_ms=opted_out_after(row, message)))


def overruled(row: Row, message: Message) -> bool:
    """Whether a message gives consent that its author has withdrawn since, or at the very same time.

    By when they were sent, where the channel tells that, and else by when they came.
    """
    if not gives_consent(message) or row.opted_out_at_ms is None:
        return False
    return row.opted_out_at_ms >= message.sent_at_ms


def gives_consent(message: Message) -> bool:
    """Whether its author wants to be written to again."""
    return message.consent in ("given", "implied")


def claim(
    row: Row, owner: str, now_ms: int, timing: Timing
) -> Claimed | NotDue | Held | Paused | Settled | Undelivered:
    """Take the lease to generate a reply to everything pending, and close the window.

    Transition:
        if: no outbox; lease absent or expired; something owed; not paused; due
        then: lease to me under the next token; the window closes; a pause that is over goes
    """
    if row.lease_owner == owner:  # before NotDue: a newer message may have reopened the window
        return Claimed(row, repeated=True)
    if not row.owes:
        return Settled(row)
    if row.lease_expires_at_ms is not None and row.lease_expires_at_ms > now_ms:
        return Held(row, row.lease_expires_at_ms)
    if row.outbox is not None:
        return Undelivered(row)
    if row.paused_until_ms is not None and row.paused_until_ms > now_ms:
        return Paused(row, row.paused_until_ms)
    due = due_at_ms(row, timing)
    if due > now_ms:
        return NotDue(row, due)
    return Claimed(replace(granted(row, owner, now_ms, timing), window_opened_at_ms=None, paused_until_ms=None))


def resume(row: Row, owner: str, now_ms: int, timing: Timing) -> Claimed | NotDue | Held | Paused | Settled:
    """Take the lease to deliver the committed reply. The window stays: newer messages have opened it.

    Transition:
        if: outbox present; lease absent or expired; `retry_at_ms` absent or past; not paused, or by this very reply,
            or nothing to send
        then: lease to me under the next token; the window stays
    """
    if row.lease_owner == owner:
        return Claimed(row, repeated=True)
    if row.outbox is None:
        return Settled(row)
    if row.lease_expires_at_ms is not None and row.lease_expires_at_ms > now_ms:
        return Held(row, row.lease_expires_at_ms)
    if row.paused_until_ms is not None and row.paused_until_ms > now_ms and not row.delivers_in_pause:
        return Paused(row, row.paused_until_ms)
    if row.retry_at_ms is not None and row.retry_at_ms > now_ms:
        return NotDue(row, row.retry_at_ms)
    return Claimed(granted(row, owner, now_ms, timing))


def granted(row: Row, owner: str, now_ms: int, timing: Timing) -> Row:
    """The row with a fresh lease under the next fencing token."""
    return replace(
        row, lease_owner=owner, lease_expires_at_ms=now_ms + timing.lease_ms, lease_token=row.lease_token + 1
    )


def renew(row: Row, lease: Lease, now_ms: int, timing: Timing) -> Renewed | Lost:
    """Say that the holder is alive: a full lease again.

    Transition:
        if: mine
        then: a full lease
    """
    if not mine(row, lease):
        return Lost(row)
    return Renewed(replace(row, lease_expires_at_ms=now_ms + timing.lease_ms))


def commit(
    row: Row, lease: Lease, answered: int, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Committed | Superseded | Paused | Lost:
    """Recheck, and put the reply in the outbox, in one step: the last one before the send.

    Transition:
        if: mine; `answered` as my claim found it; not paused since; `received` is what the reply covers
        then: `answered` to what it covers; the covered prefix leaves `pending` for `answered_ids`; the window
            closes; `outbox`; `superseded` to 0; `overflowed` less what the turn told; `committed_token`;
            `promised_token` goes; a pause, where the reply calls a person; a full lease

    Args:
        row: the row.
        lease: the caller's.
        answered: the watermark that the caller's claim found.
        overflowed: the count of refused messages that the caller's turn told the bot.
        outbox: the reply; it covers `len(outbox.messages)` messages from the watermark on.
        now_ms: the caller's clock.
        timing: the settings.
    """
    if not mine(row, lease):
        return Lost(row)
    covers = answered + len(outbox.messages)
    if row.answered == covers:
        return Committed(row, repeated=True)
    if row.answered != answered:  # or a repeated write would drop newer entries
        return Lost(row)
    if row.paused_until_ms is not None:  # my claim removed one that was over: this one came since
        return Paused(row, row.paused_until_ms)
    if row.received != covers:
        return Superseded(row)
    # absorbed messages may have opened a window
    return Committed(replace(covered(row, lease, overflowed, outbox, now_ms, timing), window_opened_at_ms=None))


def commit_partial(
    row: Row, lease: Lease, answered: int, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing
) -> Committed | Paused | Lost:
    """Commit a reply although newer messages came: they stay pending, and their window stays open.

    Only for a holder whose `commit` was just superseded, at the bound: so something newer is there for certain.

    Transition:
        if: mine; `answered` as my claim found it; not paused since
        then: the same, but the window stays
    """
    if not mine(row, lease):
        return Lost(row)
    if row.answered == answered + len(outbox.messages):
        return Committed(row, repeated=True)
    if row.answered != answered:
        return Lost(row)
    if row.paused_until_ms is not None:
        return Paused(row, row.paused_until_ms)
    return Committed(covered(row, lease, overflowed, outbox, now_ms, timing))


def covered(row: Row, lease: Lease, overflowed: int, outbox: Outbox, now_ms: int, timing: Timing) -> Row:
    """The row after a commit: the covered prefix of `pending` is answered, and the reply is in the outbox."""
    count = len(outbox.messages)
    return replace(
        row,
        answered=row.answered + count,
        pending=row.pending[count:],
        answered_ids=answered_ids_after(row, outbox, timing),
        outbox=outbox,
        superseded=0,
        overflowed=row.overflowed - overflowed,
        committed_token=lease.token,
        retry_at_ms=None,
        promised_token=None,
        paused_until_ms=row.paused_until_ms if outbox.pause_until_ms is None else outbox.pause_until_ms,
        lease_expires_at_ms=now_ms + timing.lease_ms,
        expires_at_s=expiry_s(now_ms, timing),
    )


def answered_ids_after(row: Row, outbox: Outbox, timing: Timing) -> tuple[bytes, ...]:
    """The ids that the row remembers as answered once the outbox is committed: the newest, oldest first."""
    return (*row.answered_ids, *(message.id for message in outbox.messages))[-timing.max_answered_ids :]


def progress(row: Row, lease: Lease, sent: int, now_ms: int, timing: Timing) -> Renewed | Lost:
    """Record that `sent` parts of the outbox are sent. Only upwards: an older write may arrive late.

    Transition:
        if: mine; outbox present; no more parts sent than this
        then: `outbox.sent`; a full lease
    """
    if not mine(row, lease) or row.outbox is None:
        return Lost(row)
    if row.outbox.sent > sent:
        return Renewed(row, repeated=True)
    return Renewed(replace(row, outbox=replace(row.outbox, sent=sent), lease_expires_at_ms=now_ms + timing.lease_ms))


def finish(row: Row, lease: Lease) -> Finished | Owing | Lost:
    """End the turn where nothing newer is pending: nothing is owed any more.

    Transition:
        if: mine; nothing newer pending
        then: outbox, lease, `retry_at_ms` and the `owed` keys go; `committed_token`
    """
    if let_go(row, lease):
        return Finished(row, repeated=True)
    if not mine(row, lease):
        return Lost(row)
    if row.received != row.answered:
        return Owing(row)
    return Finished(replace(ended(row, lease), owed_shard=None, owed_since_ms=None))


def finish_owing(row: Row, lease: Lease, owed_since_ms: int) -> Finished | Lost:
    """End the turn where something newer is pending: that is what is owed now, since `owed_since_ms`.

    Transition:
        if: mine
        then: outbox, lease and `retry_at_ms` go; `committed_token`; owed since the oldest pending message
    """
    if let_go(row, lease):
        return Finished(row, repeated=True)
    if not mine(row, lease):
        return Lost(row)
    return Finished(replace(ended(row, lease), owed_since_ms=owed_since_ms))


def ended(row: Row, lease: Lease) -> Row:
    """The row without outbox and lease; what failed before no longer counts."""
    return replace(unheld(row), outbox=None, retry_at_ms=None, committed_token=lease.token)


def release_superseded(row: Row, lease: Lease) -> Released | Lost:
    """Give the lease back because the reply was outdated: it leaves no trace but the count.

    Transition:
        if: mine
        then: the lease goes; `superseded` +1
    """
    if let_go(row, lease):
        return Released(row, repeated=True)
    if not mine(row, lease):
        return Lost(row)
    return Released(replace(unheld(row), superseded=row.superseded + 1))


def release_failed(row: Row, lease: Lease, retry_at_ms: int) -> Released | Lost:
    """Give the lease back because the attempt failed; nobody tries again before `retry_at_ms`.

    Transition:
        if: mine
        then: the lease goes; `retry_at_ms`
    """
    if let_go(row, lease):
        return Released(row, repeated=True)
    if not mine(row, lease):
        return Lost(row)
    return Released(replace(unheld(row), retry_at_ms=retry_at_ms))


def release_refused(row: Row, lease: Lease, retry_at_ms: int) -> Released | Lost:
    """Give the lease back because the channel refused the committed reply for now: safe to send again.

    Transition:
        if: mine; outbox present
        then: the lease goes; `retry_at_ms`; the outbox is marked as refused under my token
    """
    if let_go(row, lease):
        return Released(row, repeated=True)
    if not mine(row, lease) or row.outbox is None:
        return Lost(row)
    return Released(
        replace(unheld(row), outbox=replace(row.outbox, refused_token=lease.token), retry_at_ms=retry_at_ms)
    )


def unheld(row: Row) -> Row:
    """The row without a lease. The token stays: it is never reused."""
    return replace(row, lease_owner=None, lease_expires_at_ms=None)
