"""The reference store: the pure transitions, applied to rows in memory. For tests, simulator and `rejoinder dev`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from rejoinder.protocol import amending, effects, erasing, pausing, promising, transitions
from rejoinder.protocol.conversation import (
    Held,
    Lease,
    Message,
    Outbox,
    Row,
    TurnRecord,
    content_keys,
    with_contents,
)
from rejoinder.protocol.effects import (
    Begun,
    Changed,
    Doubtful,
    Effect,
    Ended,
    Happened,
    Known,
    TakenOver,
    UnderWay,
    Withdrawn,
)
from rejoinder.protocol.erasing import Written
from rejoinder.protocol.outcomes import (
    Amended,
    Answered,
    Claimed,
    Committed,
    Continued,
    Done,
    Duplicate,
    Erased,
    Finished,
    Full,
    Halted,
    Handled,
    Lost,
    NotDue,
    Overflowed,
    Overruled,
    Owing,
    Paused,
    Promised,
    Recorded,
    Released,
    Renewed,
    Room,
    Settled,
    Superseded,
    Unamended,
    Undelivered,
    Unerased,
    Unpromised,
    Unsettled,
)
from rejoinder.protocol.outcomes import Held as HeldByAnother
from rejoinder.protocol.timing import Timing


@dataclass(frozen=True, slots=True)
class Kept[T]:
    """An item beside the row, and until when it is kept."""

    value: T
    answered: int
    expires_at_s: int

    def within(self, now_ms: int) -> bool:
        """Whether the item is still within its retention."""
        return now_ms < self.expires_at_s * 1_000


type Item = Kept[str] | Kept[TurnRecord] | Kept[Held] | Kept[Effect]


@dataclass(slots=True)
class MemoryStore:
    """Implements `ports.Store`. One step at a time: whoever shares it among threads holds a mutex of its own.

    Attributes:
        timing: the settings of the protocol.
        rows: the row of each conversation.
        items: everything beside the rows, by conversation and the item's key.
    """

    timing: Timing
    rows: dict[str, Row] = field(default_factory=dict)
    items: dict[tuple[str, str], Item] = field(default_factory=dict)

    def _apply[A: Answered](self, conversation_id: str, transition: Callable[[Row], A]) -> A:
        outcome = transition(self.rows.get(conversation_id, Row()))
        if isinstance(outcome, Done) and not outcome.repeated:
            self.rows[conversation_id] = outcome.row
            if isinstance(outcome, Erased):
                del self.rows[conversation_id]
        return outcome

    async def record(
        self, conversation_id: str, message: Message, now_ms: int
    ) -> Recorded | Duplicate | Full | Overruled:
        """See `transitions.record`."""
        return self._apply(
            conversation_id, lambda row: transitions.record(row, conversation_id, message, now_ms, self.timing)
        )

    async def amend(self, conversation_id: str, index: int, edit: Message) -> Amended | Unamended:
        """See `amending.amend`."""
        return self._apply(conversation_id, lambda row: amending.amend(row, index, edit))

    async def overflow(self, conversation_id: str, message: Message) -> Overflowed | Overruled | Room:
        """See `transitions.overflow`."""
        return self._apply(conversation_id, lambda row: transitions.overflow(row, message, self.timing))

    async def claim(
        self, conversation_id: str, owner: str, now_ms: int
    ) -> Claimed | NotDue | HeldByAnother | Paused | Settled | Undelivered:
        """See `transitions.claim`."""
        return self._apply(conversation_id, lambda row: transitions.claim(row, owner, now_ms, self.timing))

    async def resume(
        self, conversation_id: str, owner: str, now_ms: int
    ) -> Claimed | NotDue | HeldByAnother | Paused | Settled:
        """See `transitions.resume`."""
        return self._apply(conversation_id, lambda row: transitions.resume(row, owner, now_ms, self.timing))

    async def renew(self, conversation_id: str, lease: Lease, now_ms: int) -> Renewed | Lost:
        """See `transitions.renew`."""
        return self._apply(conversation_id, lambda row: transitions.renew(row, lease, now_ms, self.timing))

    async def commit(
        self, conversation_id: str, lease: Lease, claimed: Row, outbox: Outbox, now_ms: int
    ) -> Committed | Superseded | Paused | Lost:
        """See `transitions.commit`."""
        return self._apply(
            conversation_id,
            lambda row: transitions.commit(
                row, lease, claimed.answered, claimed.overflowed, outbox, now_ms, self.timing
            ),
        )

    async def commit_partial(
        self, conversation_id: str, lease: Lease, claimed: Row, outbox: Outbox, now_ms: int
    ) -> Committed | Paused | Lost:
        """See `transitions.commit_partial`."""
        return self._apply(
            conversation_id,
            lambda row: transitions.commit_partial(
                row, lease, claimed.answered, claimed.overflowed, outbox, now_ms, self.timing
            ),
        )

    async def progress(self, conversation_id: str, lease: Lease, sent: int, now_ms: int) -> Renewed | Lost:
        """See `transitions.progress`."""
        return self._apply(conversation_id, lambda row: transitions.progress(row, lease, sent, now_ms, self.timing))

    async def finish(self, conversation_id: str, lease: Lease) -> Finished | Owing | Lost:
        """See `transitions.finish`."""
        return self._apply(conversation_id, lambda row: transitions.finish(row, lease))

    async def finish_owing(self, conversation_id: str, lease: Lease, owed_since_ms: int) -> Finished | Lost:
        """See `transitions.finish_owing`."""
        return self._apply(conversation_id, lambda row: transitions.finish_owing(row, lease, owed_since_ms))

    async def release_superseded(self, conversation_id: str, lease: Lease) -> Released | Lost:
        """See `transitions.release_superseded`."""
        return self._apply(conversation_id, lambda row: transitions.release_superseded(row, lease))

    async def release_failed(self, conversation_id: str, lease: Lease, retry_at_ms: int) -> Released | Lost:
        """See `transitions.release_failed`."""
        return self._apply(conversation_id, lambda row: transitions.release_failed(row, lease, retry_at_ms))

    async def release_refused(self, conversation_id: str, lease: Lease, retry_at_ms: int) -> Released | Lost:
        """See `transitions.release_refused`."""
        return self._apply(conversation_id, lambda row: transitions.release_refused(row, lease, retry_at_ms))

    async def promise(self, conversation_id: str, lease: Lease) -> Promised | Unpromised | Lost:
        """See `promising.promise`."""
        return self._apply(conversation_id, lambda row: promising.promise(row, lease))

    async def pause(self, conversation_id: str, until_ms: int, now_ms: int) -> Halted:
        """See `pausing.pause`."""
        return self._apply(conversation_id, lambda row: pausing.pause(row, until_ms, now_ms, self.timing))

    async def unpause(self, conversation_id: str) -> Continued:
        """See `pausing.unpause`."""
        return self._apply(conversation_id, pausing.unpause)

    async def settle(self, conversation_id: str, read: Row, outbox: Outbox, now_ms: int) -> Handled | Unsettled:
        """See `pausing.settle`."""
        return self._apply(conversation_id, lambda row: pausing.settle(row, read, outbox, now_ms, self.timing))

    async def read(self, conversation_id: str) -> Row:
        """Read the row."""
        return self.rows.get(conversation_id, Row())

    async def put_text(self, conversation_id: str, key: str, content: str, now_ms: int, *, anew: bool = False) -> None:
        """Keep a long content; unless `anew`, what is there stays."""
        item = self._kept(content, 0, now_ms)
        if anew:
            self.items[conversation_id, f"TEXT#{key}"] = item
        else:
            self._put_newer((conversation_id, f"TEXT#{key}"), item, now_ms)

    async def texts(self, conversation_id: str, keys: Sequence[str], now_ms: int) -> dict[str, str]:
        """Read contents by key."""
        found = {key: self.items.get((conversation_id, f"TEXT#{key}")) for key in keys}
        return {
            key: kept.value
            for key, kept in found.items()
            if kept is not None and isinstance(kept.value, str) and kept.within(now_ms)
        }

    async def put_turn(self, conversation_id: str, turn: TurnRecord, now_ms: int) -> bool:
        """Write `TURN#<answered>`; False where it is there already."""
        key = (conversation_id, f"TURN#{turn.key}")
        return self._put_newer(key, self._kept(turn, turn.answered, now_ms), now_ms)

    async def put_state(self, conversation_id: str, state: str, answered: int, now_ms: int) -> bool:
        """Write `STATE`; False where the stored one is from the same or a higher `answered`."""
        return self._put_newer((conversation_id, "STATE"), self._kept(state, answered, now_ms), now_ms)

    def _put_newer(self, key: tuple[str, str], item: Kept[str] | Kept[TurnRecord], now_ms: int) -> bool:
        stored = self.items.get(key)
        if stored is not None and stored.answered >= item.answered and stored.within(now_ms):
            return False
        self.items[key] = item
        return True

    def _kept[T](self, value: T, answered: int, now_ms: int) -> Kept[T]:
        return Kept(value, answered, transitions.expiry_s(now_ms, self.timing))

    async def state(self, conversation_id: str, now_ms: int) -> str | None:
        """Read `STATE`."""
        kept = self.items.get((conversation_id, "STATE"))
        if kept is None or not isinstance(kept.value, str) or not kept.within(now_ms):
            return None
        return kept.value

    async def history(self, conversation_id: str, limit: int, now_ms: int) -> tuple[TurnRecord, ...]:
        """Read the last turns with their long contents."""
        turns = [kept.value for kept in self._items(conversation_id, "TURN#") if kept.within(now_ms)]
        records = [turn for turn in turns if isinstance(turn, TurnRecord)][-limit:] if limit > 0 else []
        return tuple([await self._whole(conversation_id, record, now_ms) for record in records])

    async def _whole(self, conversation_id: str, turn: TurnRecord, now_ms: int) -> TurnRecord:
        texts = await self.texts(conversation_id, content_keys(turn), now_ms)
        return with_contents(turn, texts)

    async def was_answered(self, conversation_id: str, message_id: bytes, since_ms: int) -> bool:
        """Look a message up in the turns since a time."""
        turns = [kept.value for kept in self._items(conversation_id, "TURN#")]
        return any(
            message.id == message_id
            for turn in turns
            if isinstance(turn, TurnRecord) and turn.at_ms >= since_ms
            for message in turn.messages
        )

    async def put_held(self, conversation_id: str, held: Held, now_ms: int) -> None:
        """Keep a reply for an operator."""
        key = (conversation_id, f"HELD#{held.answered:012d}")
        self.items[key] = self._kept(held, held.answered, now_ms)

    async def held(self, conversation_id: str, now_ms: int) -> tuple[Held, ...]:
        """Read the replies that wait for an operator."""
        kept = [item.value for item in self._items(conversation_id, "HELD#") if item.within(now_ms)]
        return tuple(value for value in kept if isinstance(value, Held))

    async def take_held(self, conversation_id: str, answered: int, now_ms: int) -> Held | None:
        """Take a reply that waits for an operator; None where there is none."""
        kept = self.items.pop((conversation_id, f"HELD#{answered:012d}"), None)
        return kept.value if kept is not None and isinstance(kept.value, Held) and kept.within(now_ms) else None

    async def tell_sent(self, conversation_id: str, answered: int, now_ms: int) -> bool:
        """Correct the turn of a held reply that is sent now."""
        kept = self.items.get((conversation_id, f"TURN#{answered:012d}"))
        if kept is None or not isinstance(kept.value, TurnRecord) or not kept.within(now_ms):
            return False
        if kept.value.delivery != "held":
            return False
        told = Kept(replace(kept.value, delivery="sent"), kept.answered, kept.expires_at_s)
        self.items[conversation_id, f"TURN#{answered:012d}"] = told
        return True

    async def begin_effect(
        self, conversation_id: str, key: str, name: str, by: str, now_ms: int, over: str | None = None
    ) -> Begun | Happened | UnderWay | Doubtful:
        """See `effects.begin`."""
        kept = self.items.get((conversation_id, f"EFFECT#{key}"))
        stands = self._effect(conversation_id, key) if kept is not None and kept.within(now_ms) else Effect()
        answer = effects.begin(stands, name, by, now_ms, self.timing, over)
        return self._keep_effect(conversation_id, key, answer, transitions.expiry_s(now_ms, self.timing))

    async def end_effect(self, conversation_id: str, key: str, by: str, result: str, now_ms: int) -> Ended | TakenOver:
        """See `effects.end`."""
        answer = effects.end(self._effect(conversation_id, key), by, result)
        return self._keep_effect(conversation_id, key, answer, transitions.expiry_s(now_ms, self.timing))

    async def withdraw_effect(self, conversation_id: str, key: str, by: str, before: Effect) -> Withdrawn | TakenOver:
        """See `effects.withdraw`."""
        kept = self.items.get((conversation_id, f"EFFECT#{key}"))
        answer = effects.withdraw(self._effect(conversation_id, key), by, before)
        return self._keep_effect(conversation_id, key, answer, 0 if kept is None else kept.expires_at_s)

    def _effect(self, conversation_id: str, key: str) -> Effect:
        kept = self.items.get((conversation_id, f"EFFECT#{key}"))
        return kept.value if kept is not None and isinstance(kept.value, Effect) else Effect()

    def _keep_effect[A: Known](self, conversation_id: str, key: str, answer: A, expires_at_s: int) -> A:
        if isinstance(answer, Changed) and not answer.repeated:
            self.items[conversation_id, f"EFFECT#{key}"] = Kept(answer.effect, 0, expires_at_s)
        return answer

    async def open_effects(self, conversation_id: str, now_ms: int) -> tuple[Effect, ...]:
        """Read the effects that were begun and not ended."""
        kept = [item.value for item in self._items(conversation_id, "EFFECT#") if item.within(now_ms)]
        begun = [each for each in kept if isinstance(each, Effect) and each.begun_by and each.result is None]
        return tuple(sorted(begun, key=lambda effect: effect.begun_at_ms))

    def _items(self, conversation_id: str, prefix: str) -> list[Item]:
        keys = sorted(key for key in self.items if key[0] == conversation_id and key[1].startswith(prefix))
        return [self.items[key] for key in keys]

    async def owed(self, before_ms: int, limit: int) -> Sequence[str]:
        """List the conversations that have owed something since before the given time, the oldest."""
        owed = [
            (row.owed_since_ms, conversation_id)
            for conversation_id, row in self.rows.items()
            if row.owed_since_ms is not None and row.owed_since_ms < before_ms
        ]
        return [conversation_id for _, conversation_id in sorted(owed)[:limit]]

    async def seize(self, conversation_id: str, owner: str, now_ms: int) -> Claimed | HeldByAnother:
        """See `erasing.seize`."""
        return self._apply(conversation_id, lambda row: erasing.seize(row, owner, now_ms, self.timing))

    async def clear(self, conversation_id: str) -> int:
        """Delete every item of the conversation but its row."""
        return self._delete(conversation_id, "")

    async def erase(self, conversation_id: str, lease: Lease, seized: Row) -> Erased | Unerased:
        """See `erasing.erase`."""
        return self._apply(conversation_id, lambda row: erasing.erase(row, lease, seized))

    async def take_back(self, conversation_id: str, written: Written) -> None:
        """Delete what was written beside a row that is gone."""
        state = self.items.get((conversation_id, "STATE"))
        if state is not None and (state.answered, state.value) == written.state:
            del self.items[conversation_id, "STATE"]
        if written.effects_of is not None:
            self._delete(conversation_id, f"EFFECT#{written.effects_of.hex()}#")
        turn = self.items.get((conversation_id, f"TURN#{written.turn}"))
        if turn is not None and isinstance(turn.value, TurnRecord) and turn.value.reply_id == written.reply_id:
            del self.items[conversation_id, f"TURN#{written.turn}"]
        held = self.items.get((conversation_id, f"HELD#{written.held or 0:012d}"))
        if held is not None and isinstance(held.value, Held) and held.value.outbox.reply_id == written.reply_id:
            del self.items[conversation_id, f"HELD#{written.held:012d}"]
        for key in written.texts:
            self.items.pop((conversation_id, f"TEXT#{key}"), None)

    def _delete(self, conversation_id: str, prefix: str) -> int:
        keys = [key for key in self.items if key[0] == conversation_id and key[1].startswith(prefix)]
        for key in keys:
            del self.items[key]
        return len(keys)
