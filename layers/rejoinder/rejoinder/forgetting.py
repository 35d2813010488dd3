"""Use case: everything that is kept of a conversation is deleted.

The row goes last: until then it says that somebody is at work, and who writes beside it meanwhile sees that.
"""

from dataclasses import dataclass

from rejoinder.ports import Ids, Store, Transient
from rejoinder.protocol.conversation import Lease, Row
from rejoinder.protocol.erasing import ERASER
from rejoinder.protocol.outcomes import Erased, Held

FORGET_TRIES = 10
"""Each but the first because a message came in the second that it takes, or because it took longer than a lease."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Nothing is left.

    Attributes:
        items: how many there were, the row included.
    """

    items: int


@dataclass(frozen=True, slots=True)
class InUse:
    """Somebody is at work on the conversation, and nothing was deleted.

    Attributes:
        until_ms: when their lease runs out (epoch), unless they renew it.
    """

    until_ms: int


async def forget(store: Store, ids: Ids, conversation_id: str, now_ms: int) -> Forgotten | InUse:
    """Delete every item of a conversation, if nobody is at work on it; what comes meanwhile goes with it.

    Raises:
        Transient: the store cannot be asked, or messages come faster than they can be deleted. Some items may be left,
            and the lease with them; a repeat deletes the rest.
    """
    owner = f"{ERASER}{ids.fresh()}"
    items = int(await store.read(conversation_id) != Row())
    for _ in range(FORGET_TRIES):
        seized = await store.seize(conversation_id, owner, now_ms)
        if isinstance(seized, Held):
            return InUse(seized.until_ms)
        items += await store.clear(conversation_id)
        lease = Lease(owner, seized.row.lease_token)
        if isinstance(await store.erase(conversation_id, lease, seized.row), Erased):
            return Forgotten(items)
    raise Transient(f"{conversation_id} was written to {FORGET_TRIES} times while it was deleted")
