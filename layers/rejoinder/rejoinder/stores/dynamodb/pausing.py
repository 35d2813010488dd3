"""A person takes a conversation, and gives it back: expressions like the others, for `protocol/pausing.py`."""

from dataclasses import replace

from pynamodb.expressions.condition import Condition

from rejoinder.protocol.conversation import Lease, Outbox, Row
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.transitions import expiry_s
from rejoinder.stores.dynamodb.expressions import Write, cover, unhold
from rejoinder.stores.dynamodb.schema import RowItem, WholeNumber


def pause(until_ms: int, now_ms: int, timing: Timing) -> Write:
    """PAUSE: see `pausing.pause`."""
    return Write(
        "PAUSE",
        # not paused, or for less long
        RowItem.paused_until_ms.does_not_exist() | (RowItem.paused_until_ms < until_ms),
        [
            RowItem.paused_until_ms.set(until_ms),
            RowItem.received.set(RowItem.received | 0),  # else no comparison with them ever holds
            RowItem.answered.set(RowItem.answered | 0),
            RowItem.expires_at_s.set(expiry_s(now_ms, timing)),
        ],
    )


def unpause() -> Write:
    """UNPAUSE: see `pausing.unpause`."""
    return Write("UNPAUSE", RowItem.paused_until_ms.exists(), [RowItem.paused_until_ms.remove()])


def settle(read: Row, outbox: Outbox, now_ms: int, timing: Timing) -> Write:
    """SETTLE: see `pausing.settle`."""
    lease = Lease("", read.lease_token)
    covering = cover(lease, replace(read, overflowed=0), outbox, now_ms, timing)
    # `received` is as it was read: then the caller knows whether anything is left
    closing = [RowItem.window_opened_at_ms.remove()] if len(outbox.messages) == len(read.pending) else []
    return Write(
        "SETTLE",
        # a person has the conversation
        RowItem.paused_until_ms.exists()
        # nothing is to be delivered; who generates loses its lease
        & RowItem.outbox.does_not_exist()
        # what is settled is what was read
        & (RowItem.received == read.received)
        & (RowItem.answered == read.answered)
        & still(RowItem.lease_token, read.lease_token)
        & still(RowItem.amended, read.amended),
        [*covering, *unhold(), *closing],
    )


def still(counter: WholeNumber, read: int) -> Condition:
    """Whether a counter is where it was read; one that was never counted up is absent."""
    unmoved: Condition = counter == read
    return unmoved if read else unmoved | counter.does_not_exist()
