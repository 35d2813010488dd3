"""The sweep: what is overdue gets a wake-up, the oldest first, within what one sweep can do."""

from dataclasses import dataclass

from fakes import START_MS, ManualClock, message
from rejoinder.observe.memory import MemoryObserver
from rejoinder.protocol.timing import Timing
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore
from rejoinder.sweep import GRACE_MS, MOST, Swept, sweep
from rejoinder.wakeups.memory import MemoryWakeUps

TIMING = Timing()
NOW_MS = START_MS + 600_000
AN_HOUR_MS = 3_600_000


@dataclass(slots=True)
class SlowWakeUps(MemoryWakeUps):
    """Each takes a second of the clock."""

    clock: ManualClock | None = None

    async def arm(self, wake_up: WakeUp) -> None:
        await MemoryWakeUps.arm(self, wake_up)
        if self.clock is not None:
            self.clock.ms += 1_000


def owing(count: int, since_ms: int = START_MS) -> MemoryStore:
    """So many conversations with one message each, a millisecond apart; the last one's is the oldest."""
    store = MemoryStore(TIMING)
    for number in range(count):
        at_ms = since_ms + count - number
        run(store.record(f"lines:shop:{number}", message("m-1", at_ms), at_ms))
    return store


def swept(store: MemoryStore, wake_ups: MemoryWakeUps, seen: MemoryObserver, stop_after_ms: int = AN_HOUR_MS) -> Swept:
    clock = ManualClock(NOW_MS)
    if isinstance(wake_ups, SlowWakeUps):
        wake_ups.clock = clock
    return run(sweep(store, wake_ups, clock, seen, lambda _: TIMING, NOW_MS + stop_after_ms))


def cut_short(seen: MemoryObserver) -> list[dict[str, str | int | None]]:
    return [happening.fields for happening in seen.happenings if happening.what == "sweep_cut_short"]


def test_what_is_overdue_is_armed_at_once() -> None:
    store, wake_ups, seen = owing(3), MemoryWakeUps(), MemoryObserver()
    assert swept(store, wake_ups, seen) == Swept(owing=3, armed=3, oldest_ms=NOW_MS - START_MS - 1)
    assert {wake_up.due_at_ms for wake_up in wake_ups.armed} == {NOW_MS}
    assert cut_short(seen) == []


def test_what_is_owed_for_less_than_the_grace_is_left_to_its_own_wake_ups() -> None:
    store, wake_ups, seen = owing(1, NOW_MS - GRACE_MS), MemoryWakeUps(), MemoryObserver()
    assert swept(store, wake_ups, seen) == Swept(0, 0, 0)
    assert wake_ups.armed == []


def test_a_sweep_that_runs_out_of_time_has_armed_the_oldest_and_says_so() -> None:
    store, wake_ups, seen = owing(5), SlowWakeUps(), MemoryObserver()
    assert swept(store, wake_ups, seen, stop_after_ms=2_000).armed == 2
    assert [wake_up.conversation_id for wake_up in wake_ups.armed] == ["lines:shop:4", "lines:shop:3"]
    assert cut_short(seen) == [{"looked": 2, "owing": 2, "armed": 2, "reason": "out of time"}]
    assert seen.count("swept") == 1, "the oldest age is reported all the same"


def test_more_than_one_sweep_looks_at_is_said() -> None:
    """As many as it looks at are no more than it can do; one more is."""
    store, wake_ups, seen = owing(MOST), MemoryWakeUps(), MemoryObserver()
    assert swept(store, wake_ups, seen).armed == MOST
    assert cut_short(seen) == []
    run(store.record("lines:shop:young", message("m-1", NOW_MS - AN_HOUR_MS), NOW_MS - GRACE_MS - 1))
    wake_ups = MemoryWakeUps()
    assert swept(store, wake_ups, seen).armed == MOST
    (said,) = cut_short(seen)
    assert (said["looked"], said["reason"]) == (MOST, f"more than {MOST} are overdue")
    assert all(wake_up.conversation_id != "lines:shop:young" for wake_up in wake_ups.armed)


def test_a_paused_conversation_owes_nobody_s_attention() -> None:
    store, wake_ups, seen = owing(2), MemoryWakeUps(), MemoryObserver()
    run(store.pause("lines:shop:0", NOW_MS + AN_HOUR_MS, NOW_MS))
    assert swept(store, wake_ups, seen) == Swept(owing=1, armed=1, oldest_ms=NOW_MS - START_MS - 1)
