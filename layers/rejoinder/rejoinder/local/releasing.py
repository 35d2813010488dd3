"""Send a held reply by hand, or drop it: what `rejoinder held` does, at the desk and in `rejoinder dev`.

A reply is taken out of its item before anything is done with it, so that two people cannot send it twice. What the
channel refuses is put back. Whoever stops in between leaves it with nobody: never sent twice comes first here too, and
its text is still in the history.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from rejoinder.deliver import known
from rejoinder.ports import Channel, Channels, Permanent, Store, Transient, UnknownOutcome
from rejoinder.protocol.conversation import Held


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended.

    Attributes:
        outcome: `sent`, `dropped`, `absent` (nothing is held there, or somebody else has just taken it), `refused`, or
            `in doubt` (a part may have been sent).
        parts: how many of the reply's parts are known to be sent.
        of: how many there are.
        reason: why it was not sent.
        held: whether something of it is held still.
    """

    outcome: Literal["sent", "dropped", "absent", "refused", "in doubt"]
    parts: int = 0
    of: int = 0
    reason: str = ""
    held: bool = False

    def view(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


async def drop(store: Store, conversation_id: str, answered: int, now_ms: int) -> Ended:
    """Drop a reply.

    Raises:
        Transient: the table cannot be reached; it may be dropped all the same.
    """
    held = await store.take_held(conversation_id, answered, now_ms)
    if held is None:
        return Ended("absent")
    return Ended("dropped", held.outbox.sent, len(held.outbox.parts))


async def send(
    store: Store, channels: Channels, conversation_id: str, answered: int, now_ms: int, first: int | None = None
) -> Ended:
    """Send a reply from the first part that is not known to be sent, through the account that it was written for.

    Args:
        store: where it is held.
        channels: the deployment's accounts.
        conversation_id: encoded.
        answered: which.
        now_ms: epoch milliseconds.
        first: begin with this part, counted from 0; None: with the one that could not be sent, unless it has turned
            out meanwhile that it was.

    Raises:
        Transient: the table cannot be reached; nothing was sent, and it may be held by nobody.
    """
    waiting = next((each for each in await store.held(conversation_id, now_ms) if each.answered == answered), None)
    if waiting is None:
        return Ended("absent")
    channel = await _sendable(store, channels, conversation_id, waiting, first)
    if isinstance(channel, Ended):
        return channel
    held = await store.take_held(conversation_id, answered, now_ms)
    if held is None:
        return Ended("absent")
    outbox = held.outbox
    begin = outbox.sent if first is None else first
    if first is None and await known(conversation_id, channel, outbox, begin, store, now_ms):
        begin += 1
    for index in range(begin, len(outbox.parts)):
        try:
            await channel.send(outbox.parts[index], outbox.reply_id, index)
        except (Transient, Permanent) as refusal:
            return await _back(store, conversation_id, held, index, f"refused: {refusal}", now_ms)
        except UnknownOutcome as unknown:
            reason = f"in doubt, part {index + 1} of {len(outbox.parts)} sent by hand: {unknown}"
            if index + 1 == len(outbox.parts):
                return Ended("in doubt", index, len(outbox.parts), reason)
            rest = await _back(store, conversation_id, held, index + 1, reason, now_ms)
            return replace(rest, outcome="in doubt", parts=index)
    return await _told(store, conversation_id, answered, len(outbox.parts), now_ms)


async def _told(store: Store, conversation_id: str, answered: int, count: int, now_ms: int) -> Ended:
    """Tell the history, so that the bot knows what it has said."""
    ended = Ended("sent", count, count)
    try:
        await store.tell_sent(conversation_id, answered, now_ms)
    except Transient as fault:
        return replace(ended, reason=f"the history still says that it is held: {fault}")
    return ended


async def _sendable(
    store: Store, channels: Channels, conversation_id: str, held: Held, first: int | None
) -> Channel | Ended:
    """Find the account, and what speaks against sending; nothing is taken yet."""
    count = len(held.outbox.parts)
    refused = Ended("refused", held.outbox.sent, count, held=True)
    if held.outbox.stored:
        return replace(refused, reason="its text is past its retention; drop it")
    if first is not None and not 0 <= first < count:
        return replace(refused, reason=f"it has {count} parts, and no part {first + 1}")
    row = await store.read(conversation_id)
    if row.opted_out_at_ms is not None:
        return replace(refused, reason="the author has opted out (STOP); drop it")
    if row.outbox is not None and row.outbox.reply_id == held.outbox.reply_id:
        # whoever held it has stopped before its turn ended: who resumes holds it once more
        return replace(refused, reason="its turn has not ended yet; try again in a minute")
    try:
        return await channels.channel(conversation_id.partition(":")[0], held.outbox.via)
    except (Permanent, Transient) as fault:
        return replace(refused, reason=str(fault))


async def _back(store: Store, conversation_id: str, held: Held, sent: int, reason: str, now_ms: int) -> Ended:
    """Put back what was not sent."""
    ended = Ended("refused", sent, len(held.outbox.parts), reason, held=True)
    left = replace(held, outbox=replace(held.outbox, sent=sent), reason=reason)
    try:
        await store.put_held(conversation_id, left, now_ms)
    except Transient as fault:
        return replace(ended, reason=f"{reason}; and it could not be put back: {fault}", held=False)
    return ended
