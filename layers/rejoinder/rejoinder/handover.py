"""Use case: a person takes a conversation, answers in it, and gives it back.

The wake-up for a pause's end is armed before the pause is set, as a message's is before it is recorded: a crash in
between leaves a wake-up for nothing, and the other order a conversation that nobody wakes.
"""

from dataclasses import dataclass, replace

from rejoinder.beside import drop_if_gone, keep_words
from rejoinder.ports import Clock, Observer, OnResume, Store, Transient, WakeUps
from rejoinder.protocol.conversation import Outbox, Row, TurnRecord, take_reply, with_reply
from rejoinder.protocol.erasing import Written
from rejoinder.protocol.identity import reply_id
from rejoinder.protocol.outcomes import Handled, Unsettled
from rejoinder.protocol.pausing import written_before
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

        A longer pause that somebody else has set stays. One over `LONGEST_PAUSE_MS` is cut to that, and one whose end
        is past is none.

        Raises:
            Transient: nothing was set, or the store cannot be asked; try again.
        """
        now_ms = self.clock.now_ms()
        if until_ms <= now_ms:
            return await self.store.read(conversation_id)
        until_ms = min(until_ms, now_ms + LONGEST_PAUSE_MS)
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
            await self.settle(conversation_id)
        continued = await self.store.unpause(conversation_id)
        self.observer.happened("continued", conversation_id, pending=len(continued.row.pending))
        if continued.row.owes:
            await self.wake_ups.arm(for_row(conversation_id, continued.row, self.clock.now_ms(), self.timing))
        return continued.row

    async def answered_by_person(self, conversation_id: str, said: str, said_at_ms: int, pause_ms: int) -> str:
        """Take a person's own message on our side: a pause, what was written before it is handled, the history has it.

        All of it counts from when it was said, and not from when it came: what comes late may be no reason for a pause
        any more, and answers nothing that was written since. Where a reply is in the outbox there is no place for what
        the person has answered: then the words go into the history alone, and say up to where they answer. Whoever
        claims next leaves that to them (`pausing.answered_in`).

        Returns:
            `handled`, or `duplicate` where the same was taken before.

        Raises:
            Transient: try again; a repeat does no harm.
        """
        if await self.in_history(conversation_id, said, said_at_ms):
            return "duplicate"
        await self.pause(conversation_id, min(said_at_ms, self.clock.now_ms()) + pause_ms)
        settled = await self._settle(conversation_id, said, said_at_ms)
        if isinstance(settled, Handled):
            return "duplicate" if settled.repeated else "handled"
        if await self.in_history(conversation_id, said, said_at_ms):  # since the first look, or by a lost write of ours
            return "duplicate"
        row = settled.row
        up_to = row.answered + len(written_before(row.pending, said_at_ms))
        record = TurnRecord(up_to, row.lease_token, said_at_ms, (), said=said, delivery="handled")
        await keep_words(self.store, conversation_id, row, record, self.clock.now_ms())
        self.observer.happened("handled", conversation_id, messages=up_to - row.answered)
        return "handled"

    async def in_history(self, conversation_id: str, said: str, said_at_ms: int) -> bool:
        """Whether a person's words are in the history, as they were said then.

        Raises:
            Transient: the store cannot be asked.
        """
        turns = await self.store.history(conversation_id, LOOKED_BACK, self.clock.now_ms())
        return any(turn.delivery == "handled" and (turn.at_ms, turn.said) == (said_at_ms, said) for turn in turns)

    async def settle(self, conversation_id: str) -> bool:
        """Count everything pending as handled by a person; False where nothing is pending, or nothing can be settled.

        There is one outbox: where a reply waits in it for the pause's end, what is pending waits as well.

        Raises:
            Transient: a reply is just being delivered, or the store cannot be asked.
        """
        settled = await self._settle(conversation_id, "", None)
        row = settled.row
        if isinstance(settled, Handled):
            return True
        if not row.pending or row.paused_until_ms is None:
            return False
        if row.outbox is None or row.delivers_in_pause or row.held_at(self.clock.now_ms()):
            raise Transient("somebody is at work on the conversation")
        return False

    async def _settle(self, conversation_id: str, said: str, said_at_ms: int | None) -> Handled | Unsettled:
        """Settle what a person has answered: all that was written before `said_at_ms`, where that is given.

        The wake-up that writes it into the history is armed before. A row that moves meanwhile is read again.
        """
        for _ in range(SETTLE_TRIES):
            row = await self.store.read(conversation_id)
            if said_at_ms is not None and await self._has(conversation_id, row.outbox, said, said_at_ms):
                return Handled(row, repeated=True)
            answers = row.pending if said_at_ms is None else written_before(row.pending, said_at_ms)
            if not answers or row.paused_until_ms is None or row.outbox is not None:
                return Unsettled(row)
            now_ms = self.clock.now_ms()
            outbox, content = take_reply(
                Outbox(
                    reply_id(conversation_id, told_apart(row, said, said_at_ms)),
                    (),
                    answers,
                    said=said,
                    token=row.lease_token,
                    committed_at_ms=now_ms if said_at_ms is None else said_at_ms,
                    handled=True,
                )
            )
            if content is not None:
                await self.store.put_text(conversation_id, outbox.reply_id, content, now_ms)
            await self.wake_ups.arm(replace(for_row(conversation_id, row, now_ms, self.timing), due_at_ms=now_ms))
            settled = await self.store.settle(conversation_id, row, outbox, now_ms)
            if isinstance(settled, Handled):
                self.observer.happened("handled", conversation_id, messages=len(answers))
                return replace(settled, repeated=False)
            if content is not None:
                written = Written(texts=(outbox.reply_id,))
                await drop_if_gone(self.store, conversation_id, settled.row, written, row.lease_token)
        return settled

    async def _has(self, conversation_id: str, outbox: Outbox | None, said: str, said_at_ms: int) -> bool:
        """Whether the outbox is what a person has said, as they said it then.

        Raises:
            Transient: the store cannot be asked.
        """
        if outbox is None or not outbox.handled or outbox.committed_at_ms != said_at_ms:
            return False
        if outbox.stored:
            contents = await self.store.texts(conversation_id, [outbox.reply_id], self.clock.now_ms())
            outbox = with_reply(outbox, contents[outbox.reply_id]) if outbox.reply_id in contents else outbox
        return outbox.said == said


def told_apart(row: Row, said: str, said_at_ms: int | None) -> str:
    """Write what tells a settlement apart from any other of the same messages: a flood's has no words, a person's has.

    Each recognises its own repeated write by it, and nobody else's.
    """
    return f"a person's, {row.answered} to {row.received}, token {row.lease_token}, {said_at_ms}: {said}"
