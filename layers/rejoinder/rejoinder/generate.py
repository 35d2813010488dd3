"""Use case: a wake-up is a hint to look.

Whoever looks takes the lease if there is something to do, does it, and arms the wake-up that must follow, however this
one ended.
"""

from dataclasses import dataclass

from rejoinder.attempt import attempt
from rejoinder.deliver import deliver
from rejoinder.ports import Outside, Transient
from rejoinder.protocol import wakeups
from rejoinder.protocol.conversation import Lease, Row
from rejoinder.protocol.outcomes import Claimed, NotDue, Undelivered
from rejoinder.protocol.wakeups import DeadLetter, WakeUp


@dataclass(frozen=True, slots=True)
class Ending:
    """How the handling of a wake-up ended: with the row that its last write returned."""

    row: Row
    not_due: bool = False


async def generate(wake_up: WakeUp, deadline_ms: int, outside: Outside) -> None:
    """Handle one wake-up.

    Args:
        wake_up: the hint.
        deadline_ms: when the bot must have answered (epoch); committing and sending come after it.
        outside: the world.

    Raises:
        Transient: not even the following wake-up could be armed; the lane must bring this one again.
    """
    try:
        ending = await look(wake_up, deadline_ms, outside)
    except Transient as fault:
        outside.observer.happened(
            "misconfigured" if fault.ours else "unavailable", wake_up.conversation_id, reason=str(fault)
        )
        following: WakeUp | DeadLetter | None = wakeups.after_fault(wake_up, outside.clock.now_ms(), outside.timing)
    else:
        following = wakeups.following(
            wake_up, ending.row, outside.clock.now_ms(), outside.timing, not_due=ending.not_due
        )
    match following:
        case WakeUp():
            await outside.wake_ups.arm(following)
        case DeadLetter(spent):
            outside.observer.happened("dead_lettered", wake_up.conversation_id, attempt=spent.attempt)
            await outside.wake_ups.bury(spent)
        case None:
            pass


async def look(wake_up: WakeUp, deadline_ms: int, outside: Outside) -> Ending:
    """Claim, or resume, and do what there is to do.

    Raises:
        Transient: the store cannot be asked.
    """
    conversation_id = wake_up.conversation_id
    owner = outside.ids.fresh()  # for this handling alone: a request's or a message's id would come back on a retry
    answer = await outside.store.claim(conversation_id, owner, outside.clock.now_ms())
    if isinstance(answer, Claimed):
        lease = Lease(owner, answer.row.lease_token)
        outside.observer.happened("claimed", conversation_id, token=lease.token, pending=len(answer.row.pending))
        await arm_expiry(conversation_id, answer.row, outside)
        return Ending(await attempt(conversation_id, answer.row, lease, deadline_ms, outside))
    if isinstance(answer, Undelivered):
        resumed = await outside.store.resume(conversation_id, owner, outside.clock.now_ms())
        if not isinstance(resumed, Claimed):
            return Ending(resumed.row, not_due=isinstance(resumed, NotDue))
        lease = Lease(owner, resumed.row.lease_token)
        outside.observer.happened("resumed", conversation_id, token=lease.token)
        await arm_expiry(conversation_id, resumed.row, outside)
        return Ending(await deliver(conversation_id, resumed.row, lease, outside, fresh=False))
    outside.observer.happened("looked", conversation_id, found=type(answer).__name__)
    return Ending(answer.row, not_due=isinstance(answer, NotDue))


async def arm_expiry(conversation_id: str, row: Row, outside: Outside) -> None:
    """Arm the wake-up for my own lease's expiry, so that my crash is noticed then, and not when the queue says so."""
    try:
        await outside.wake_ups.arm(wakeups.at_expiry(conversation_id, row, outside.clock.now_ms()))
    except Transient as fault:  # the wake-up that is being handled comes again if I crash, only later
        outside.observer.happened(
            "misconfigured" if fault.ours else "expiry_unarmed", conversation_id, reason=str(fault)
        )
