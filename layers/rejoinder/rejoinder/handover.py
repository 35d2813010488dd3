"""Use case: a person takes a conversation, answers in it, and gives it back.

The wake-up for a pause's end is armed before the pause is set, as a message's is before it is recorded: a crash in
between leaves a wake-up for nothing, and the other order a conversation that nobody wakes.
"""

from dataclasses import dataclass, replace

from rejoinder.ports import Clock, Observer, OnResume, Store, Transient, WakeUps
from rejoinder.protocol.conversation import Outbox, Row, TurnRecord, take_reply
from rejoinder.protocol.identity import reply_id
from rejoinder.protocol.outcomes import Handled
from rejoinder.protocol.timing import LONGEST_PAUSE_MS, Timing
from rejoinder.protocol.wakeups import ForReceived, WakeUp, for_row

SETTLE_TRIES = 3

LOOKED_BACK = 10
"""Turns in which a redelivery is looked for: of what a person said, and of an edit."""


@dataclass(frozen=True, slots=True)
class Handover:
    """What the use case needs.

    Attributes:
        on_resume: whether what is pending when a pause is ended by hand is answered, or counts as handled.
    """

    store: Store
    wake_ups: WakeUps
    clock: Clock
    observer: Observer
    timing: Timing
    on_resume: OnResume = "answer"

    async def pause(self, conversation_id: str, until_ms: int) -> Row:
        """Keep the bot still until a time (epoch ms); a reply in the making is thrown away at its commit.

        A longer pause that somebody else has set stays. One over `LONGEST_PAUSE_MS` is cut to that.

        Raises:
            Transient: nothing was set, or the store cannot be asked; try again.
        """
        now_ms = self.clock.now_ms()
        until_ms = min(max(until_ms, now_ms), now_ms + LONGEST_PAUSE_MS)
        await self.wake_ups.arm(WakeUp(conversation_id, ForReceived(0), now_ms, until_ms))
        paused = await self.store.pause(conversation_id, until_ms, now_ms)
        self.observer.happened("paused", conversation_id, until_ms=paused.row.paused_until_ms)
        return paused.row

    async def resume(self, conversation_id: str) -> Row:
        """Give the conversation back to the bot, which answers what is pending, unless `on_resume` is `handled`.

        Raises:
            Transient: the store cannot be asked; or the bot may answer again, and no wake-up could be armed for that:
                what is pending waits for the pause's own end, for the sweep, or for the next message.
        """
        if self.on_resume == "handled":
            await self.settle(conversation_id, "")
        continued = await self.store.unpause(conversation_id)
        self.observer.happened("continued", conversation_id, pending=len(continued.row.pending))
        if continued.row.owes:
            await self.wake_ups.arm(for_row(conversation_id, continued.row, self.clock.now_ms(), self.timing))
        return continued.row

    async def answered_by_person(self, conversation_id: str, said: str, said_at_ms: int, until_ms: int) -> str:
        """Take a person's own message on our side: a pause, everything pending is handled, and the history has it.

        Returns:
            `handled`, or `duplicate` where the same was taken before.

        Raises:
            Transient: try again; a repeat does no harm.
        """
        if await self.in_history(conversation_id, said, said_at_ms):
            return "duplicate"  # of long ago, perhaps: it must not pause the bot again
        row = await self.pause(conversation_id, until_ms)
        if row.outbox is not None and row.outbox.handled and row.outbox.committed_at_ms == said_at_ms:
            return "duplicate"
        if await self.in_history(conversation_id, said, said_at_ms):  # since the first look
            return "duplicate"
        if row.pending:
            if await self.settle(conversation_id, said, said_at_ms):
                return "handled"
            if await self.in_history(conversation_id, said, said_at_ms):  # by a write of ours whose answer was lost
                return "handled"
        record = TurnRecord(row.answered, row.lease_token, said_at_ms, (), said=said, delivery="handled")
        await self.store.put_turn(conversation_id, record, self.clock.now_ms())
        return "handled"

    async def in_history(self, conversation_id: str, said: str, said_at_ms: int) -> bool:
        """Whether a person's words are in the history, as they were said then.

        Raises:
            Transient: the store cannot be asked.
        """
        turns = await self.store.history(conversation_id, LOOKED_BACK, self.clock.now_ms())
        return any(turn.delivery == "handled" and (turn.at_ms, turn.said) == (said_at_ms, said) for turn in turns)

    async def settle(self, conversation_id: str, said: str, said_at_ms: int | None = None) -> bool:
        """Count everything pending as handled by a person; False where nothing is pending, or nothing can be settled.

        The wake-up that writes it into the history is armed before. There is one outbox: where a reply waits in it for
        the pause's end, what is pending waits as well.

        Raises:
            Transient: somebody is at work on the conversation, or the store cannot be asked.
        """
        for _ in range(SETTLE_TRIES):
            row = await self.store.read(conversation_id)
            now_ms = self.clock.now_ms()
            if not row.pending or row.paused_until_ms is None:
                return row.outbox is not None and row.outbox.handled and row.outbox.committed_at_ms == said_at_ms
            outbox = Outbox(
                reply_id(conversation_id, told_apart(row, said, said_at_ms)),
                (),
                row.pending,
                said=said,
                token=row.lease_token,
                committed_at_ms=now_ms if said_at_ms is None else said_at_ms,
                handled=True,
            )
            outbox, content = take_reply(outbox)
            if content is not None:
                await self.store.put_text(conversation_id, outbox.reply_id, content, now_ms)
            await self.wake_ups.arm(replace(for_row(conversation_id, row, now_ms, self.timing), due_at_ms=now_ms))
            settled = await self.store.settle(conversation_id, row, outbox, now_ms)
            if isinstance(settled, Handled):
                self.observer.happened("handled", conversation_id, messages=len(row.pending))
                return True
            if settled.row.held_at(now_ms):
                break
            if settled.row.outbox is not None:
                if not settled.row.delivers_in_pause:
                    return False
                break
        raise Transient("somebody is at work on the conversation")


def told_apart(row: Row, said: str, said_at_ms: int | None) -> str:
    """Write what tells a settlement apart from any other of the same messages: a flood's has no words, a person's has.

    Each recognises its own repeated write by it, and nobody else's.
    """
    return f"a person's, {row.answered} to {row.received}, token {row.lease_token}, {said_at_ms}: {said}"
