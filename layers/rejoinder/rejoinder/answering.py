"""Let the bot answer a turn, and meanwhile say that the holder lives, that somebody is typing, and to wait a moment.

Typing is best effort and changes nothing. The line that asks for patience is a message, so the right to send it is
taken on the row first: whatever happens then, nobody sends it a second time for the same burst.
"""

import json
from typing import Literal

from rejoinder.ports import (
    BotFailed,
    Channel,
    Fault,
    Grant,
    Outdated,
    Outside,
    Replied,
    Reply,
    Text,
    Transient,
    Turn,
    Work,
)
from rejoinder.protocol.conversation import Lease, Message, Row, TurnRecord
from rejoinder.protocol.identity import reply_id
from rejoinder.protocol.outcomes import Lost, Promised

RENEWAL_RETRY_MS = 1_000
"""A renewal that did not get through is tried again this soon: the lease has two thirds of its length left."""

TYPING_MARGIN_MS = 500
"""Typing is asked for anew this long before it would vanish: the request takes its time."""

Errand = Literal["renew", "typing", "moment"]
"""What there is to do while a bot is at work."""


async def answer(
    conversation_id: str,
    row: Row,
    lease: Lease,
    messages: tuple[Message, ...],
    history: tuple[TurnRecord, ...],
    channel: Channel | None,
    deadline_ms: int,
    outside: Outside,
) -> Replied | BotFailed | Outdated | Lost:
    """Run the bot, renewing the lease, until it answers, fails, or its time is over."""
    if channel is None or says_nothing(conversation_id, row, outside):
        return Replied(Reply())
    turn = await begun(conversation_id, row, lease, messages, history, deadline_ms, outside)
    await channel.typing(row.pending[-1])
    work = await outside.bot.start(turn)
    due_ms = errands(channel, outside)
    while True:
        errand = min(due_ms, key=due_ms.__getitem__)
        result = await work.wait(min(due_ms[errand], deadline_ms))
        if result is not None:
            return result
        if outside.clock.now_ms() >= deadline_ms:
            return BotFailed("no answer in time", tokens=await work.cancel())
        match errand:
            case "renew":
                renewed = await renew(conversation_id, lease, work, outside)
                if isinstance(renewed, Lost):
                    return renewed
                due_ms["renew"] = renewed
            case "moment":
                del due_ms["moment"]
                await ask_for_a_moment(conversation_id, lease, row.pending[-1], channel, outside)
                if "typing" in due_ms:  # a message has ended it
                    due_ms["typing"] = outside.clock.now_ms()
            case "typing":
                await channel.typing(row.pending[-1])
                due_ms["typing"] = outside.clock.now_ms() + typing_each_ms(channel.typing_ms or 0)


async def begun(
    conversation_id: str,
    row: Row,
    lease: Lease,
    messages: tuple[Message, ...],
    history: tuple[TurnRecord, ...],
    deadline_ms: int,
    outside: Outside,
) -> Turn:
    """Put together what the bot is given."""
    return Turn(
        conversation_id,
        tuple(message for message in messages if message.is_for_the_bot),
        history,
        json.loads(await outside.store.state(conversation_id, outside.clock.now_ms()) or "{}"),
        deadline_ms=deadline_ms,
        attempt=row.attempts,
        overflowed=row.overflowed,
        # at the bound on superseding the reply is sent all the same
        grant=Grant(
            lease,
            row.pending[0].id,
            None if row.superseded >= outside.timing.max_superseded else row.received,
            len(row.pending),
        ),
    )


def says_nothing(conversation_id: str, row: Row, outside: Outside) -> bool:
    """Whether the bot is not asked: the author has opted out, or said only STOP and START, which are the provider's."""
    if row.opted_out_at_ms is None and any(message.is_for_the_bot for message in row.pending):
        return False
    outside.observer.happened("not_asked", conversation_id, messages=len(row.pending))
    return True


def errands(channel: Channel, outside: Outside) -> dict[Errand, int]:
    """When each thing is to be done for the first time (epoch ms)."""
    now_ms = outside.clock.now_ms()
    due_ms: dict[Errand, int] = {"renew": now_ms + outside.timing.renew_ms}
    if channel.typing_ms is not None:
        due_ms["typing"] = now_ms + typing_each_ms(channel.typing_ms)
    if outside.policy.moment:
        due_ms["moment"] = now_ms + outside.policy.moment_ms
    return due_ms


def typing_each_ms(shown_ms: int) -> int:
    """How often to ask for typing, so that it never vanishes; not more than once a second."""
    return max(shown_ms - TYPING_MARGIN_MS, 1_000)


async def renew(conversation_id: str, lease: Lease, work: Work, outside: Outside) -> int | Lost:
    """Say that the holder lives; answers when to say so again."""
    now_ms = outside.clock.now_ms()
    try:
        renewed = await outside.store.renew(conversation_id, lease, now_ms)
    except Transient as fault:
        outside.observer.happened("renewal_failed", conversation_id, reason=str(fault))
        return now_ms + RENEWAL_RETRY_MS
    if isinstance(renewed, Lost):
        account(conversation_id, tokens := await work.cancel(), tokens, outside)
        return renewed
    return now_ms + outside.timing.renew_ms


async def ask_for_a_moment(conversation_id: str, lease: Lease, to: Message, channel: Channel, outside: Outside) -> None:
    """Say that the reply takes a moment, if nobody has. Whatever goes wrong, it counts as said.

    The right is taken anew before each part: the row that it returns says whether anything is wanted any more.
    """
    line_id = reply_id(conversation_id, f"a moment, {lease.owner}")
    try:
        for index, part in enumerate(channel.render(Reply((Text(outside.policy.moment),)), to)):
            promised = await outside.store.promise(conversation_id, lease)
            if not isinstance(promised, Promised) or promised.row.opted_out_at_ms is not None:
                return
            await channel.send(part, line_id, index)
    except Fault as fault:
        outside.observer.happened("moment_unsaid", conversation_id, reason=str(fault))
    else:
        outside.observer.happened("moment_said", conversation_id)


def account(conversation_id: str, tokens: int, in_vain: int, outside: Outside) -> None:
    """Count what an attempt has cost, and how much of that for nothing; what is not known is not counted."""
    if tokens:
        outside.observer.happened("spent", conversation_id, tokens=tokens)
    if in_vain:
        outside.observer.happened("spent_in_vain", conversation_id, tokens_in_vain=in_vain)
