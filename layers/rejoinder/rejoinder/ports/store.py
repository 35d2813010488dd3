"""The table, as the use cases know it."""

from collections.abc import Sequence
from typing import Protocol

from rejoinder.protocol.conversation import Held, Lease, Message, Outbox, Row, TurnRecord
from rejoinder.protocol.effects import Begun, Doubtful, Effect, Ended, Happened, TakenOver, UnderWay, Withdrawn
from rejoinder.protocol.erasing import Written
from rejoinder.protocol.outcomes import (
    Amended,
    Claimed,
    Committed,
    Continued,
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


class Store(Protocol):
    """The table. Each transition is one conditional write, and answers with the row as of its decision.

    Every method raises `Transient` where the table cannot be reached, or refuses for its load; the write may have been
    applied all the same, and is recognised when it is repeated.
    """

    async def record(
        self, conversation_id: str, message: Message, now_ms: int
    ) -> Recorded | Duplicate | Full | Overruled:
        """See `transitions.record`."""

    async def amend(self, conversation_id: str, index: int, edit: Message) -> Amended | Unamended:
        """See `amending.amend`."""

    async def overflow(self, conversation_id: str, message: Message) -> Overflowed | Overruled | Room:
        """See `transitions.overflow`."""

    async def claim(
        self, conversation_id: str, owner: str, now_ms: int
    ) -> Claimed | NotDue | HeldByAnother | Paused | Settled | Undelivered:
        """See `transitions.claim`."""

    async def resume(
        self, conversation_id: str, owner: str, now_ms: int
    ) -> Claimed | NotDue | HeldByAnother | Paused | Settled:
        """See `transitions.resume`."""

    async def renew(self, conversation_id: str, lease: Lease, now_ms: int) -> Renewed | Lost:
        """See `transitions.renew`."""

    async def commit(
        self, conversation_id: str, lease: Lease, claimed: Row, outbox: Outbox, now_ms: int
    ) -> Committed | Superseded | Paused | Lost:
        """See `transitions.commit`; `claimed` is the row that the caller's claim returned."""

    async def commit_partial(
        self, conversation_id: str, lease: Lease, claimed: Row, outbox: Outbox, now_ms: int
    ) -> Committed | Paused | Lost:
        """See `transitions.commit_partial`."""

    async def progress(self, conversation_id: str, lease: Lease, sent: int, now_ms: int) -> Renewed | Lost:
        """See `transitions.progress`."""

    async def finish(self, conversation_id: str, lease: Lease) -> Finished | Owing | Lost:
        """See `transitions.finish`."""

    async def finish_owing(self, conversation_id: str, lease: Lease, owed_since_ms: int) -> Finished | Lost:
        """See `transitions.finish_owing`."""

    async def release_superseded(self, conversation_id: str, lease: Lease) -> Released | Lost:
        """See `transitions.release_superseded`."""

    async def release_failed(self, conversation_id: str, lease: Lease, retry_at_ms: int) -> Released | Lost:
        """See `transitions.release_failed`."""

    async def release_refused(self, conversation_id: str, lease: Lease, retry_at_ms: int) -> Released | Lost:
        """See `transitions.release_refused`."""

    async def promise(self, conversation_id: str, lease: Lease) -> Promised | Unpromised | Lost:
        """See `promising.promise`."""

    async def pause(self, conversation_id: str, until_ms: int, now_ms: int) -> Halted:
        """See `pausing.pause`."""

    async def unpause(self, conversation_id: str) -> Continued:
        """See `pausing.unpause`."""

    async def settle(self, conversation_id: str, read: Row, outbox: Outbox, now_ms: int) -> Handled | Unsettled:
        """See `pausing.settle`."""

    async def read(self, conversation_id: str) -> Row:
        """Read the row, strongly consistent; an absent one reads as `Row()`."""

    async def put_text(self, conversation_id: str, key: str, content: str, now_ms: int, *, anew: bool = False) -> None:
        """Keep a long content as the item `TEXT#<key>`.

        What is kept there already stays for its retention, since rows and turns may refer to it: a redelivery, whatever
        it says, changes nothing of what was answered. Only `anew` replaces it.
        """

    async def texts(self, conversation_id: str, keys: Sequence[str], now_ms: int) -> dict[str, str]:
        """Read contents by key; what is absent or past its retention is left out."""

    async def put_turn(self, conversation_id: str, turn: TurnRecord, now_ms: int) -> bool:
        """Write `TURN#<answered>`; False where it is there already."""

    async def put_state(self, conversation_id: str, state: str, answered: int, now_ms: int) -> bool:
        """Write `STATE`; False where the stored one is from the same or a higher `answered`."""

    async def state(self, conversation_id: str, now_ms: int) -> str | None:
        """Read `STATE`, a JSON document; None where there is none within its retention."""

    async def history(self, conversation_id: str, limit: int, now_ms: int) -> tuple[TurnRecord, ...]:
        """Read the last `limit` turns within their retention, oldest first, each whole and in reading order."""

    async def was_answered(self, conversation_id: str, message_id: bytes, since_ms: int) -> bool:
        """Look a message up in the turns since a time."""

    async def put_held(self, conversation_id: str, held: Held, now_ms: int) -> None:
        """Keep a reply for an operator as the item `HELD#<answered>`."""

    async def held(self, conversation_id: str, now_ms: int) -> tuple[Held, ...]:
        """Read the replies that wait for an operator, oldest first."""

    async def take_held(self, conversation_id: str, answered: int, now_ms: int) -> Held | None:
        """Take `HELD#<answered>` out: of any number who do, one gets it. None where there is none within retention.

        A try that is repeated after a lost answer gets None too: what was taken so is with nobody.
        """

    async def tell_sent(self, conversation_id: str, answered: int, now_ms: int) -> bool:
        """Correct `TURN#<answered>`, whose reply was held and is sent now; False where it says anything else."""

    async def begin_effect(
        self, conversation_id: str, key: str, name: str, by: str, now_ms: int, over: str | None = None
    ) -> Begun | Happened | UnderWay | Doubtful:
        """See `effects.begin`; `key` is `effects.effect_key`."""

    async def end_effect(self, conversation_id: str, key: str, by: str, result: str, now_ms: int) -> Ended | TakenOver:
        """See `effects.end`."""

    async def withdraw_effect(self, conversation_id: str, key: str, by: str, before: Effect) -> Withdrawn | TakenOver:
        """See `effects.withdraw`."""

    async def open_effects(self, conversation_id: str, now_ms: int) -> tuple[Effect, ...]:
        """Read the effects that were begun and not ended, the oldest first."""

    async def owed(self, before_ms: int, limit: int) -> Sequence[str]:
        """List the conversations that have owed something since before the given time, from the index `owed`.

        The oldest first, and of more than `limit` only those; what it reads is bounded by that, too.
        """

    async def seize(self, conversation_id: str, owner: str, now_ms: int) -> Claimed | HeldByAnother:
        """See `erasing.seize`."""

    async def clear(self, conversation_id: str) -> int:
        """Delete every item of the conversation but its row; answers how many there were."""

    async def erase(self, conversation_id: str, lease: Lease, seized: Row) -> Erased | Unerased:
        """See `erasing.erase`; `seized` is the row that the caller's `seize` returned."""

    async def take_back(self, conversation_id: str, written: Written) -> None:
        """Delete what the caller wrote beside a row that is gone, and no state of another watermark."""
