"""One attempt at a reply, under the lease: turn, bot, commit. It ends with a delivery, or gives the lease back."""

from dataclasses import replace

from rejoinder.answering import account, answer
from rejoinder.deliver import deliver
from rejoinder.ports import (
    BotFailed,
    Channel,
    Outdated,
    Outside,
    Permanent,
    Replied,
    Reply,
    Text,
    Transient,
)
from rejoinder.protocol.conversation import (
    MAX_CONTENT_BYTES,
    Lease,
    Message,
    Outbox,
    Row,
    in_reading_order,
    take_reply,
    with_content,
)
from rejoinder.protocol.erasing import Written, gone
from rejoinder.protocol.identity import reply_id
from rejoinder.protocol.outcomes import Committed, Lost, Paused, Released, Superseded
from rejoinder.protocol.pausing import answered_in
from rejoinder.protocol.transitions import mine
from rejoinder.protocol.wakeups import ForReceived, WakeUp


async def attempt(conversation_id: str, row: Row, lease: Lease, deadline_ms: int, outside: Outside) -> Row:
    """Generate one reply to everything that the claimed row has pending, commit it, deliver it.

    Returns:
        The row as the last write returned it.

    Raises:
        Transient: the store cannot be asked; the lease is left to run out.
    """
    try:
        committed = await generate_and_commit(conversation_id, row, lease, deadline_ms, outside)
    except Transient as fault:
        now = await give_back_unsent(conversation_id, row, lease, fault, outside)
    else:
        if isinstance(committed, Committed):
            return await deliver(conversation_id, committed.row, lease, outside, fresh=True)
        now = committed.row
    if gone(now, lease.token, row.pending[-1].id):
        unsent = reply_id(conversation_id, lease.owner)
        await outside.store.take_back(conversation_id, Written(texts=(unsent,), effects_of=row.pending[0].id))
    return now


async def generate_and_commit(
    conversation_id: str, row: Row, lease: Lease, deadline_ms: int, outside: Outside
) -> Committed | Released | Lost:
    """Bring the attempt to its commit, or give the lease back. Nothing is sent here."""
    turns = max(outside.policy.history_turns, 1)  # the last one may say what a person has answered
    history = await outside.store.history(conversation_id, turns, outside.clock.now_ms())
    if history and (messages := answered_in(history[-1], row)):
        outbox = Outbox(
            reply_id(conversation_id, lease.owner),
            (),
            messages,
            token=lease.token,
            committed_at_ms=history[-1].at_ms,
            handled=True,
        )
        return await commit(conversation_id, row, lease, outbox, outside)
    channel, messages = await prepare(conversation_id, row, outside)
    result: Replied | BotFailed | Outdated | Lost
    if row.attempts > outside.timing.max_attempts:  # earlier holders crashed: not once more
        result = BotFailed("every attempt crashed or timed out")
    else:
        history = history if outside.policy.history_turns else ()
        result = await answer(conversation_id, row, lease, messages, history, channel, deadline_ms, outside)
    if isinstance(result, Lost):
        outside.observer.happened("lost", conversation_id, token=lease.token, at="generation")
        return result
    answered = False
    try:
        ended = await conclude(conversation_id, row, lease, result, channel, messages[-1], outside)
        answered = isinstance(ended, Committed) and ended.row.outbox is not None and not ended.row.outbox.failed
    finally:
        in_vain = result.in_vain if answered and isinstance(result, Replied) else result.tokens
        account(conversation_id, result.tokens, in_vain, outside)
    return ended


async def conclude(
    conversation_id: str,
    row: Row,
    lease: Lease,
    result: Replied | BotFailed | Outdated,
    channel: Channel | None,
    to: Message,
    outside: Outside,
) -> Committed | Released | Lost:
    """Commit what the bot has answered, or the fallback reply, or give the lease back."""
    if isinstance(result, Outdated):
        return await give_back_superseded(conversation_id, row, lease, outside)
    outbox = rendered(conversation_id, result, row, lease, channel, to, outside)
    if isinstance(outbox, BotFailed):
        outside.observer.happened("attempt_failed", conversation_id, attempt=row.attempts, reason=outbox.reason)
        if outbox.ours:
            outside.observer.happened("misconfigured", conversation_id, reason=outbox.reason)
        if row.attempts < outside.timing.max_attempts and not outbox.final:
            return await give_back_failed(conversation_id, row, lease, outbox, outside)
        outside.observer.happened("fallback", conversation_id, attempts=row.attempts)
        outbox = fallback(conversation_id, row, lease, channel, to, outside)
    return await commit(conversation_id, row, lease, outbox, outside)


async def prepare(conversation_id: str, row: Row, outside: Outside) -> tuple[Channel | None, tuple[Message, ...]]:
    """Find the account to answer through (None: it is gone), and put the pending messages in reading order."""
    keys = [message.text_key for message in row.pending if message.stored]
    texts = await outside.store.texts(conversation_id, keys, outside.clock.now_ms()) if keys else {}
    messages = in_reading_order(
        tuple(
            with_content(message, texts.get(message.text_key)) if message.stored else message for message in row.pending
        )
    )
    try:
        return await outside.channels.channel(conversation_id.partition(":")[0], row.pending[-1].via), messages
    except Permanent as gone:
        outside.observer.happened("account_gone", conversation_id, reason=str(gone))
        return None, messages


def rendered(
    conversation_id: str,
    result: Replied | BotFailed,
    row: Row,
    lease: Lease,
    channel: Channel | None,
    to: Message,
    outside: Outside,
) -> Outbox | BotFailed:
    """Write the bot's answer as the outbox to commit; what the channel cannot show at all is a failed attempt."""
    if isinstance(result, BotFailed):
        return result
    to = result.absorbed[-1] if result.absorbed else to
    try:
        parts = channel.render(result.reply, to) if channel is not None and result.reply.parts else ()
    except Permanent as unshowable:
        return BotFailed(f"the reply cannot be shown: {unshowable}")
    now_ms = outside.clock.now_ms()
    outbox = Outbox(
        reply_id(conversation_id, lease.owner),
        parts,
        (*row.pending, *result.absorbed),
        said=result.reply.text,
        state=result.state,
        token=lease.token,
        committed_at_ms=now_ms,
        failed=channel is None,
        handoff=result.handoff,
        pause_until_ms=now_ms + outside.policy.pause_ms if result.handoff else None,
    )
    _, content = take_reply(outbox)
    if content is not None and (length := len(content.encode())) > MAX_CONTENT_BYTES:
        return BotFailed(f"reply and state have {length} bytes as they are stored; at most {MAX_CONTENT_BYTES} fit")
    return outbox


def fallback(
    conversation_id: str, row: Row, lease: Lease, channel: Channel | None, to: Message, outside: Outside
) -> Outbox:
    """The outbox of the fallback reply, or of silence: the conversation goes on."""
    said = outside.policy.fallback
    reply = Replied(Reply((Text(said),)) if said else Reply())
    outbox = rendered(conversation_id, reply, row, lease, channel, to, outside)
    if isinstance(outbox, BotFailed):
        outbox = rendered(conversation_id, Replied(Reply()), row, lease, None, to, outside)
    assert isinstance(outbox, Outbox)  # silence renders on every channel
    return replace(outbox, failed=True)


async def commit(
    conversation_id: str, row: Row, lease: Lease, outbox: Outbox, outside: Outside
) -> Committed | Released | Lost:
    """Recheck and commit in one write; a reply that is outdated by then leaves no trace.

    What a person has answered needs no recheck: whatever is newer stays pending.
    """
    outbox, content = take_reply(outbox)
    if content is not None:
        await outside.store.put_text(conversation_id, outbox.reply_id, content, outside.clock.now_ms())
    now_ms = outside.clock.now_ms()
    if outbox.pause_until_ms is not None:  # a pause's end is armed before the pause is set
        await outside.wake_ups.arm(WakeUp(conversation_id, ForReceived(0), now_ms, outbox.pause_until_ms))
    write = outside.store.commit_partial if outbox.handled else outside.store.commit
    committed = await write(conversation_id, lease, row, outbox, now_ms)
    if isinstance(committed, Superseded) and row.superseded >= outside.timing.max_superseded:
        # who never stops typing is answered too; the newer messages stay pending
        committed = await outside.store.commit_partial(conversation_id, lease, row, outbox, now_ms)
    match committed:
        case Committed():
            outside.observer.happened(
                "committed", conversation_id, token=lease.token, messages=len(outbox.messages), failed=outbox.failed
            )
        case Lost():
            outside.observer.happened("lost", conversation_id, token=lease.token, at="commit")
        case Superseded():
            return await give_back_superseded(conversation_id, row, lease, outside)
        case Paused():
            outside.observer.happened("withheld", conversation_id, token=lease.token)
            return await outside.store.release_superseded(conversation_id, lease)
    return committed


async def give_back_superseded(conversation_id: str, row: Row, lease: Lease, outside: Outside) -> Released | Lost:
    """Release because a newer message outdated the reply, which leaves no trace."""
    outside.observer.happened("superseded", conversation_id, token=lease.token, in_a_row=row.superseded + 1)
    return await outside.store.release_superseded(conversation_id, lease)


async def give_back_failed(
    conversation_id: str, row: Row, lease: Lease, failed: BotFailed, outside: Outside
) -> Released | Lost:
    """Release after a failed attempt, until the next has a chance."""
    pause_ms = max(outside.timing.attempt_pause_ms(row.attempts, failed.retry_after_ms or 0), failed.in_doubt_ms)
    return await outside.store.release_failed(conversation_id, lease, outside.clock.now_ms() + pause_ms)


async def give_back_unsent(conversation_id: str, row: Row, lease: Lease, fault: Transient, outside: Outside) -> Row:
    """Release after the store failed in mid-attempt, before anything was sent.

    A commit whose answer was lost may have happened. Then the outbox is there and nothing of it was sent: released as
    refused, it is safe to send. If it did not happen there is no outbox to release, and the attempt has failed.
    """
    outside.observer.happened("attempt_failed", conversation_id, attempt=row.attempts, reason=str(fault))
    retry_at_ms = outside.clock.now_ms() + outside.timing.attempt_pause_ms(row.attempts)
    released = await outside.store.release_refused(conversation_id, lease, retry_at_ms)
    if isinstance(released, Lost) and mine(released.row, lease):
        return (await outside.store.release_failed(conversation_id, lease, retry_at_ms)).row
    return released.row
