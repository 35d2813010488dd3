"""Use case: each five minutes, arm what is overdue, and report how old the oldest unanswered message is.

Correctness does not rest on it: operators do.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rejoinder.ports import Clock, Observer, Store, Transient, WakeUps
from rejoinder.protocol import wakeups
from rejoinder.protocol.timing import CLOCK_MARGIN_MS, Timing
from rejoinder.protocol.wakeups import next_look_ms

GRACE_MS = 60_000
"""What is overdue by less is left to its own wake-ups: a schedule may be a minute late."""

MOST = 5_000
"""Conversations that one sweep looks at, the oldest: a read and a wake-up take about 10 ms, and it has a minute."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found.

    Attributes:
        owing: conversations that have owed something for longer than the grace.
        armed: those that got a wake-up now.
        oldest_ms: the age of the oldest thing owed; 0 where nothing is.
    """

    owing: int
    armed: int
    oldest_ms: int


async def sweep(
    store: Store,
    wake_ups: WakeUps,
    clock: Clock,
    observer: Observer,
    timing_of: Callable[[str], Timing],
    stop_at_ms: int,
) -> Swept:
    """Arm a wake-up for what is overdue, the oldest first. Reads the index, then each row that it names.

    Args:
        store: the table.
        wake_ups: the lanes.
        clock: time.
        observer: where the oldest age is reported.
        timing_of: the settings of a conversation.
        stop_at_ms: when the function's time is over. What is left then, or beyond `MOST`, is told as `sweep_cut_short`,
            and has its own wake-ups still.

    Raises:
        Transient: the store cannot be asked at all.
    """
    now_ms = clock.now_ms()
    owing = armed = oldest_ms = 0
    for looked, conversation_id in enumerate(await store.owed(now_ms - GRACE_MS, MOST + 1)):
        if looked == MOST or clock.now_ms() >= stop_at_ms:
            reason = f"more than {MOST} are overdue" if looked == MOST else "out of time"
            observer.happened("sweep_cut_short", looked=looked, owing=owing, armed=armed, reason=reason)
            break
        row = await store.read(conversation_id)
        if not row.owes or row.owed_since_ms is None or row.paused_at(now_ms):
            continue
        owing += 1
        oldest_ms = max(oldest_ms, now_ms - row.owed_since_ms)
        if next_look_ms(row, now_ms, timing_of(conversation_id)) > now_ms + CLOCK_MARGIN_MS:
            continue
        try:
            await wake_ups.arm(wakeups.for_row(conversation_id, row, now_ms, timing_of(conversation_id)))
            armed += 1
        except Transient as fault:
            observer.happened("misconfigured" if fault.ours else "unavailable", conversation_id, reason=str(fault))
    observer.happened("swept", owing=owing, armed=armed, oldest_ms=oldest_ms)
    return Swept(owing, armed, oldest_ms)
