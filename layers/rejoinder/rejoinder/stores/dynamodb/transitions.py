"""Every transition of the row as one call: a conditional write, whose answer carries the row either way.

Where the condition does not hold, the returned old row is shown to the pure transition of the same name. It says why
not, and recognises one's own earlier write whose answer was lost.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rejoinder.protocol import amending, erasing, pausing, promising, transitions
from rejoinder.protocol.conversation import (
    Lease,
    Message,
    Outbox,
    Row,
)
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
from rejoinder.stores.dynamodb import erasing as erasers
from rejoinder.stores.dynamodb import expressions
from rejoinder.stores.dynamodb import pausing as people
from rejoinder.stores.dynamodb.expressions import Write
from rejoinder.stores.dynamodb.schema import (
    ROW,
    row_of,
)
from rejoinder.stores.dynamodb.table import Decision, Table


class StoreDisagrees(RuntimeError):  # noqa: N818  # named by what happened
    """A condition refused what the pure transition would have done: a bug, in one of the two."""


@dataclass(frozen=True, slots=True)
class Transitions:
    """The part of `ports.Store` that decides: every transition of the row.

    Attributes:
        table: where.
        timing: the settings of the protocol.
    """

    table: Table
    timing: Timing

    def _write[D: Done, A: Answered](
        self, conversation_id: str, write: Write, done: type[D], judge: Callable[[Row], A]
    ) -> D | A:
        """Make one write; `judge`, the pure transition, says why where it does not happen."""
        return self._judged(conversation_id, write.name, self.table.update(conversation_id, ROW, write), done, judge)

    def _judged[D: Done, A: Answered](
        self, conversation_id: str, name: str, decision: Decision, done: type[D], judge: Callable[[Row], A]
    ) -> D | A:
        row = row_of(decision.item)
        if decision.happened:
            return done(row)
        outcome = judge(row)
        if isinstance(outcome, Done) and not outcome.repeated:
            raise StoreDisagrees(
                f"{name} of {conversation_id}: the condition does not hold for a row at received {row.received}, "
                f"answered {row.answered}, token {row.lease_token}, but the transition does; make the two agree"
            )
        return outcome

    async def record(
        self, conversation_id: str, message: Message, now_ms: int
    ) -> Recorded | Duplicate | Full | Overruled:
        """See `transitions.record`."""
        return self._write(
            conversation_id,
            expressions.record(conversation_id, message, now_ms, self.timing),
            Recorded,
            lambda row: transitions.record(row, conversation_id, message, now_ms, self.timing),
        )

    async def amend(self, conversation_id: str, index: int, edit: Message) -> Amended | Unamended:
        """See `amending.amend`."""
        return self._write(
            conversation_id,
            expressions.amend(index, edit),
            Amended,
            lambda row: amending.amend(row, index, edit),
        )

    async def overflow(self, conversation_id: str, message: Message) -> Overflowed | Overruled | Room:
        """See `transitions.overflow`."""
        return self._write(
            conversation_id,
            expressions.overflow(message, self.timing),
            Overflowed,
            lambda row: transitions.overflow(row, message, self.timing),
        )

    async def claim(
        self, conversation_id: str, owner: str, now_ms: int
    ) -> Claimed | NotDue | HeldByAnother | Paused | Settled | Undelivered:
        """See `transitions.claim`."""
        return self._write(
            conversation_id,
            expressions.claim(owner, now_ms, self.timing),
            Claimed,
            lambda row: transitions.claim(row, owner, now_ms, self.timing),
        )

    async def resume(
        self, conversation_id: str, owner: str, now_ms: int
    ) -> Claimed | NotDue | HeldByAnother | Paused | Settled:
        """See `transitions.resume`."""
        return self._write(
            conversation_id,
            expressions.resume(owner, now_ms, self.timing),
            Claimed,
            lambda row: transitions.resume(row, owner, now_ms, self.timing),
        )

    async def renew(self, conversation_id: str, lease: Lease, now_ms: int) -> Renewed | Lost:
        """See `transitions.renew`."""
        return self._write(
            conversation_id,
            expressions.renew(lease, now_ms, self.timing),
            Renewed,
            lambda row: transitions.renew(row, lease, now_ms, self.timing),
        )

    async def commit(
        self, conversation_id: str, lease: Lease, claimed: Row, outbox: Outbox, now_ms: int
    ) -> Committed | Superseded | Paused | Lost:
        """See `transitions.commit`."""
        return self._write(
            conversation_id,
            expressions.commit(lease, claimed, outbox, now_ms, self.timing),
            Committed,
            lambda row: transitions.commit(
                row, lease, claimed.answered, claimed.overflowed, outbox, now_ms, self.timing
            ),
        )

    async def commit_partial(
        self, conversation_id: str, lease: Lease, claimed: Row, outbox: Outbox, now_ms: int
    ) -> Committed | Paused | Lost:
        """See `transitions.commit_partial`."""
        return self._write(
            conversation_id,
            expressions.commit_partial(lease, claimed, outbox, now_ms, self.timing),
            Committed,
            lambda row: transitions.commit_partial(
                row, lease, claimed.answered, claimed.overflowed, outbox, now_ms, self.timing
            ),
        )

    async def progress(self, conversation_id: str, lease: Lease, sent: int, now_ms: int) -> Renewed | Lost:
        """See `transitions.progress`."""
        return self._write(
            conversation_id,
            expressions.progress(lease, sent, now_ms, self.timing),
            Renewed,
            lambda row: transitions.progress(row, lease, sent, now_ms, self.timing),
        )

    async def finish(self, conversation_id: str, lease: Lease) -> Finished | Owing | Lost:
        """See `transitions.finish`."""
        return self._write(
            conversation_id, expressions.finish(lease), Finished, lambda row: transitions.finish(row, lease)
        )

    async def finish_owing(self, conversation_id: str, lease: Lease, owed_since_ms: int) -> Finished | Lost:
        """See `transitions.finish_owing`."""
        return self._write(
            conversation_id,
            expressions.finish_owing(lease, owed_since_ms),
            Finished,
            lambda row: transitions.finish_owing(row, lease, owed_since_ms),
        )

    async def release_superseded(self, conversation_id: str, lease: Lease) -> Released | Lost:
        """See `transitions.release_superseded`."""
        return self._write(
            conversation_id,
            expressions.release_superseded(lease),
            Released,
            lambda row: transitions.release_superseded(row, lease),
        )

    async def release_failed(self, conversation_id: str, lease: Lease, retry_at_ms: int) -> Released | Lost:
        """See `transitions.release_failed`."""
        return self._write(
            conversation_id,
            expressions.release_failed(lease, retry_at_ms),
            Released,
            lambda row: transitions.release_failed(row, lease, retry_at_ms),
        )

    async def release_refused(self, conversation_id: str, lease: Lease, retry_at_ms: int) -> Released | Lost:
        """See `transitions.release_refused`."""
        return self._write(
            conversation_id,
            expressions.release_refused(lease, retry_at_ms),
            Released,
            lambda row: transitions.release_refused(row, lease, retry_at_ms),
        )

    async def promise(self, conversation_id: str, lease: Lease) -> Promised | Unpromised | Lost:
        """See `promising.promise`."""
        return self._write(
            conversation_id, expressions.promise(lease), Promised, lambda row: promising.promise(row, lease)
        )

    async def pause(self, conversation_id: str, until_ms: int, now_ms: int) -> Halted:
        """See `pausing.pause`."""
        return self._write(
            conversation_id,
            people.pause(until_ms, now_ms, self.timing),
            Halted,
            lambda row: pausing.pause(row, until_ms, now_ms, self.timing),
        )

    async def unpause(self, conversation_id: str) -> Continued:
        """See `pausing.unpause`."""
        return self._write(conversation_id, people.unpause(), Continued, pausing.unpause)

    async def settle(self, conversation_id: str, read: Row, outbox: Outbox, now_ms: int) -> Handled | Unsettled:
        """See `pausing.settle`."""
        return self._write(
            conversation_id,
            people.settle(read, outbox, now_ms, self.timing),
            Handled,
            lambda row: pausing.settle(row, read, outbox, now_ms, self.timing),
        )

    async def seize(self, conversation_id: str, owner: str, now_ms: int) -> Claimed | HeldByAnother:
        """See `erasing.seize`."""
        return self._write(
            conversation_id,
            erasers.seize(owner, now_ms, self.timing),
            Claimed,
            lambda row: erasing.seize(row, owner, now_ms, self.timing),
        )

    async def erase(self, conversation_id: str, lease: Lease, seized: Row) -> Erased | Unerased:
        """See `erasing.erase`."""
        decision = self.table.delete(conversation_id, ROW, erasers.erased(lease, seized))
        return self._judged(conversation_id, "ERASE", decision, Erased, lambda row: erasing.erase(row, lease, seized))
