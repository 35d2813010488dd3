"""A conversation is erased: expressions like the others, for `protocol/erasing.py`."""

from pynamodb.expressions.condition import Condition

from rejoinder.protocol.conversation import Lease, Row
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.transitions import expiry_s
from rejoinder.stores.dynamodb.expressions import Write, grant, lease_free, mine
from rejoinder.stores.dynamodb.pausing import still
from rejoinder.stores.dynamodb.schema import RowItem


def seize(owner: str, now_ms: int, timing: Timing) -> Write:
    """SEIZE: see `erasing.seize`."""
    return Write(
        "SEIZE",
        lease_free(owner, now_ms),
        [
            *grant(owner, now_ms, timing),
            RowItem.received.set(RowItem.received | 0),  # else no comparison with them ever holds
            RowItem.answered.set(RowItem.answered | 0),
            RowItem.expires_at_s.set(RowItem.expires_at_s | expiry_s(now_ms, timing)),
        ],
    )


def erased(lease: Lease, seized: Row) -> Condition:
    """ERASE, a DeleteItem: see `erasing.erase`."""
    condition: Condition = (
        mine(lease)
        # nothing came since, whose long contents would be left
        & (RowItem.received == seized.received)
        & still(RowItem.overflowed, seized.overflowed)
    )
    return condition
