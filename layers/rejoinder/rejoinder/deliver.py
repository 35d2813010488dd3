"""Deliver a committed reply, under the lease: send what is not sent yet, write the history, finish.

The outbox is sent as it was committed, never a local copy: where a commit recognised its own earlier try, the row has
what counts.
"""

from dataclasses import dataclass, replace
from typing import Literal

from rejoinder.ports import Channel, Outside, Permanent, Store, Transient, UnknownOutcome
from rejoinder.protocol.conversation import Held, Lease, Outbox, Row, TurnRecord, with_reply
from rejoinder.protocol.erasing import Written, gone
from rejoinder.protocol.identity import report_key
from rejoinder.protocol.outcomes import Lost, Owing


@dataclass(frozen=True, slots=True)
class Sent:
    """Every part is sent, or was refused for good."""

    delivery: Literal["sent", "silent", "handled", "refused"]


@dataclass(frozen=True, slots=True)
class NotNow:
    """The channel refused for now."""

    retry_after_ms: int


@dataclass(frozen=True, slots=True)
class InDoubt:
    """It can be known soon: whoever resumes when the lease has run out asks the channel, or looks up what it told."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """An operator must decide."""

    reason: str


async def deliver(conversation_id: str, row: Row, lease: Lease, outside: Outside, *, fresh: bool) -> Row:
    """Send the row's outbox, and end the turn.

    Args:
        conversation_id: which.
        row: as the commit or the resume returned it; its lease is the caller's.
        lease: the caller's.
        outside: the world.
        fresh: the caller has just committed it, so nothing of it can have been sent by anybody else.

    Returns:
        The row as the last write returned it.

    Raises:
        Transient: the store cannot be asked; the lease is left to run out, and the outbox is in doubt then.
    """
    assert row.outbox is not None  # by the answer of commit or resume
    outbox = await whole(conversation_id, row.outbox, outside)
    result = await send(conversation_id, replace(row, outbox=outbox), lease, outside, safe=fresh or row.refused)
    match result:
        case Lost(lost_row):
            outside.observer.happened("lost", conversation_id, token=lease.token, at="delivery")
            return lost_row
        case NotNow(retry_after_ms):
            retry_at_ms = outside.clock.now_ms() + retry_after_ms
            return (await outside.store.release_refused(conversation_id, lease, retry_at_ms)).row
        case InDoubt():
            return row
        case GiveUp(reason):
            now_ms = outside.clock.now_ms()
            held = Held(row.answered, outbox, reason, now_ms)
            await outside.store.put_held(conversation_id, held, now_ms)
            outside.observer.happened("held", conversation_id, reason=reason, reply_id=outbox.reply_id)
            if await call_a_person(conversation_id, lease, outbox, outside) is not None:
                # still in doubt: whoever resumes when the lease has run out comes to the same
                now = await outside.store.read(conversation_id)
                if gone(now, lease.token, outbox.messages[-1].id):
                    written = Written(outbox.reply_id, held=row.answered, texts=(outbox.reply_id,))
                    await outside.store.take_back(conversation_id, written)
                return now
            return await end(conversation_id, row, lease, outbox, "held", outside)
        case Sent(delivery):
            if (again := await call_a_person(conversation_id, lease, outbox, outside)) is not None:
                return await call_later(conversation_id, lease, outbox, delivery, again, outside)
            return await end(conversation_id, row, lease, outbox, delivery, outside)


async def whole(conversation_id: str, outbox: Outbox, outside: Outside) -> Outbox:
    """Put a long reply together again; one whose item is gone has nothing left to send."""
    if not outbox.stored:
        return outbox
    texts = await outside.store.texts(conversation_id, [outbox.reply_id], outside.clock.now_ms())
    if outbox.reply_id not in texts:
        outside.observer.happened("reply_expired", conversation_id, reply_id=outbox.reply_id)
        return replace(outbox, stored=False)
    return with_reply(outbox, texts[outbox.reply_id])


async def send(
    conversation_id: str, row: Row, lease: Lease, outside: Outside, *, safe: bool
) -> Sent | NotNow | InDoubt | GiveUp | Lost:
    """Send the parts that are not known to be sent, one after another."""
    outbox = row.outbox
    assert outbox is not None
    if not outbox.parts:
        return Sent("handled" if outbox.handled else "silent")
    try:
        channel = await outside.channels.channel(conversation_id.partition(":")[0], outbox.via)
    except Permanent as gone:
        outside.observer.happened("send_refused", conversation_id, reason=str(gone))
        return Sent("refused")
    except Transient as fault:
        return not_now(conversation_id, row, lease, fault, outside)
    for index in range(outbox.sent, len(outbox.parts)):
        if row.opted_out_at_ms is not None:
            outside.observer.happened("send_refused", conversation_id, reason="the author has opted out")
            return Sent("refused")
        result = None if safe else await resolved(conversation_id, channel, outbox, index, outside)
        if isinstance(result, GiveUp):
            return result
        if result is None:
            failure = await send_part(conversation_id, channel, row, lease, index, outside)
            if failure is not None:
                return failure
        safe = True  # of the next part nothing was tried yet
        if index + 1 < len(outbox.parts):
            progress = await outside.store.progress(conversation_id, lease, index + 1, outside.clock.now_ms())
            if isinstance(progress, Lost):
                return progress
            row = replace(row, opted_out_at_ms=progress.row.opted_out_at_ms)
    outside.observer.happened("sent", conversation_id, reply_id=outbox.reply_id, parts=len(outbox.parts))
    return Sent("sent")


async def resolved(
    conversation_id: str, channel: Channel, outbox: Outbox, index: int, outside: Outside
) -> Literal["sent"] | GiveUp | None:
    """Resolve a part in doubt: `sent`, to be sent (None), or for an operator."""
    was_sent = await known(conversation_id, channel, outbox, index, outside.store, outside.clock.now_ms())
    if was_sent is not None:
        return "sent" if was_sent else None
    return None if outside.policy.in_doubt == "resend" else GiveUp("in doubt")


async def known(
    conversation_id: str, channel: Channel, outbox: Outbox, index: int, store: Store, now_ms: int
) -> bool | None:
    """Find out whether a part was sent: the channel is asked, then what it has reported; None: nobody can tell."""
    was_sent = await channel.was_sent(outbox.parts[index], outbox.reply_id, index)
    if was_sent is not None:
        return was_sent
    report = report_key(outbox.reply_id, index)
    return True if report in await store.texts(conversation_id, [report], now_ms) else None


async def send_part(
    conversation_id: str, channel: Channel, row: Row, lease: Lease, index: int, outside: Outside
) -> Sent | NotNow | InDoubt | GiveUp | None:
    """Send one part; None where it is sent."""
    outbox = row.outbox
    assert outbox is not None
    try:
        await channel.send(outbox.parts[index], outbox.reply_id, index)
    except Transient as fault:
        return not_now(conversation_id, row, lease, fault, outside)
    except Permanent as refusal:
        outside.observer.happened("send_refused", conversation_id, reason=str(refusal))
        return Sent("refused")
    except UnknownOutcome as unknown:
        outside.observer.happened("in_doubt", conversation_id, reason=str(unknown), reply_id=outbox.reply_id)
        if unknown.told_later:
            return InDoubt()
        match await resolved(conversation_id, channel, outbox, index, outside):
            case "sent":
                return None
            case GiveUp() as held:
                return held
            case None:
                return not_now(conversation_id, row, lease, Transient(str(unknown)), outside)
    return None


def not_now(conversation_id: str, row: Row, lease: Lease, fault: Transient, outside: Outside) -> NotNow | GiveUp:
    """Decide what follows a refusal: another try after a pause, or an operator where it has gone on for too long."""
    outbox = row.outbox
    assert outbox is not None
    outside.observer.happened("misconfigured" if fault.ours else "send_delayed", conversation_id, reason=str(fault))
    tries = lease.token - outbox.token + 1
    age_ms = outside.clock.now_ms() - outbox.committed_at_ms
    if tries > outside.timing.max_sends or age_ms > outside.timing.outbox_max_age_ms:
        return GiveUp(f"refused {tries} times in {age_ms // 1000} s, last: {fault}")
    return NotNow(max(outside.timing.attempt_pause_ms(tries), fault.retry_after_ms or 0))


async def call_a_person(conversation_id: str, lease: Lease, outbox: Outbox, outside: Outside) -> NotNow | None:
    """Tell whoever is on duty, where the bot calls for that; None where there is nothing left to try.

    Before `finish`, so that a crash tells twice, and never not at all.
    """
    if not outbox.handoff:
        return None
    try:
        await outside.notifier.call(conversation_id, outbox.handoff)
    except Permanent as fault:  # topic or permission are wrong
        outside.observer.happened("handoff_unheard", conversation_id, reason=str(fault))
        outside.observer.happened("misconfigured", conversation_id, reason=str(fault))
    except Transient as fault:
        tries = lease.token - outbox.token + 1
        if tries <= outside.timing.max_sends:
            outside.observer.happened("handoff_delayed", conversation_id, reason=str(fault))
            return NotNow(max(outside.timing.attempt_pause_ms(tries), fault.retry_after_ms or 0))
        outside.observer.happened("handoff_unheard", conversation_id, reason=str(fault))
    else:
        outside.observer.happened("handed_off", conversation_id)
    return None


async def call_later(
    conversation_id: str, lease: Lease, outbox: Outbox, delivery: str, again: NotNow, outside: Outside
) -> Row:
    """Leave a turn whose reply is done with, and nobody was told: whoever resumes finds nothing to send twice."""
    now_ms = outside.clock.now_ms()
    if delivery == "sent":
        progress = await outside.store.progress(conversation_id, lease, len(outbox.parts), now_ms)
        if isinstance(progress, Lost):
            return progress.row
    return (await outside.store.release_refused(conversation_id, lease, now_ms + again.retry_after_ms)).row


async def end(conversation_id: str, row: Row, lease: Lease, outbox: Outbox, delivery: str, outside: Outside) -> Row:
    """Write history and state from the outbox, then finish. A repeat writes neither again.

    Where the conversation was erased meanwhile, all of it is taken back.
    """
    now_ms = outside.clock.now_ms()
    stored = row.outbox is not None and row.outbox.stored
    turn = TurnRecord(
        row.answered,
        outbox.token,
        outbox.committed_at_ms,
        outbox.messages,
        said="" if stored else outbox.said,
        delivery=delivery,
        failed=outbox.failed,
        reply_id=outbox.reply_id,
        stored=stored,
    )
    await outside.store.put_turn(conversation_id, turn, now_ms)
    if outbox.state is not None:
        await outside.store.put_state(conversation_id, outbox.state, row.answered, now_ms)
    finished = await outside.store.finish(conversation_id, lease)
    if isinstance(finished, Owing):
        owed_since_ms = finished.row.pending[0].arrived_at_ms
        finished_owing = await outside.store.finish_owing(conversation_id, lease, owed_since_ms)
        return finished_owing.row
    if gone(finished.row, lease.token, outbox.messages[-1].id):
        written = Written(
            outbox.reply_id,
            turn=turn.key,
            state=None if outbox.state is None else (turn.answered, outbox.state),
            held=turn.answered if delivery == "held" else None,
            texts=(outbox.reply_id,),
        )
        await outside.store.take_back(conversation_id, written)
    return finished.row
