"""What somebody must mend in the deployment is `misconfigured` wherever it is met; what passes has its own name."""

from dataclasses import dataclass, field, replace
from typing import NoReturn

import pytest

from fakes import START_MS, World, message
from rejoinder.ports import Transient
from rejoinder.protocol.wakeups import ForReceived, WakeUp
from rejoinder.run import run
from rejoinder.stores.memory import MemoryStore
from rejoinder.sweep import sweep
from rejoinder.wakeups.memory import MemoryWakeUps

DENIED = Transient("SQS: AccessDenied", ours=True)
BUSY = Transient("SQS: ThrottlingException")


@dataclass(slots=True)
class Refusing(MemoryWakeUps):
    """Lanes that refuse to arm, or to guarantee, the next so many times."""

    arms: list[Transient] = field(default_factory=list)
    guarantees: list[Transient] = field(default_factory=list)

    async def arm(self, wake_up: WakeUp) -> None:
        if self.arms:
            raise self.arms.pop()
        await MemoryWakeUps.arm(self, wake_up)

    async def guarantee(self, wake_up: WakeUp) -> None:
        if self.guarantees:
            raise self.guarantees.pop()
        await MemoryWakeUps.guarantee(self, wake_up)


@dataclass(slots=True)
class RefusingStore(MemoryStore):
    """A store that cannot be asked for a claim."""

    fault: Transient = BUSY

    async def claim(self, conversation_id: str, owner: str, now_ms: int) -> NoReturn:
        raise self.fault


def with_lanes(lanes: Refusing) -> World:
    world = World()
    world.wake_ups = lanes
    world.outside = replace(world.outside, wake_ups=lanes)
    world.ingest = replace(world.ingest, wake_ups=lanes)
    return world


@pytest.mark.parametrize(("fault", "told"), [(DENIED, "misconfigured"), (BUSY, "unavailable")])
def test_a_webhook_that_cannot_be_armed(fault: Transient, told: str) -> None:
    world = with_lanes(Refusing(arms=[fault]))
    assert world.write("a").status == 503
    assert [happening.what for happening in world.seen.happenings] == [told]


@pytest.mark.parametrize(("fault", "told"), [(DENIED, "misconfigured"), (BUSY, "guarantee_failed")])
def test_a_window_that_the_second_lane_does_not_guarantee(fault: Transient, told: str) -> None:
    world = with_lanes(Refusing(guarantees=[fault]))
    assert world.write("a").status == 200
    assert world.seen.count(told) == 1


@pytest.mark.parametrize(("fault", "told"), [(DENIED, "misconfigured"), (BUSY, "expiry_unarmed")])
def test_a_crash_that_nobody_would_be_woken_for(fault: Transient, told: str) -> None:
    lanes = Refusing()
    world = with_lanes(lanes)
    world.write("a")
    lanes.arms.append(fault)
    world.settle()
    assert (world.seen.count(told), world.channel.texts) == (1, ["re: a"])


@pytest.mark.parametrize(("fault", "told"), [(DENIED, "misconfigured"), (BUSY, "unavailable")])
def test_a_table_that_refuses_the_generator(fault: Transient, told: str) -> None:
    world = World()
    world.outside = replace(world.outside, store=RefusingStore(world.timing, fault=fault))
    world.wake(WakeUp("lines:shop:ana", ForReceived(1), START_MS, START_MS))
    assert [happening.what for happening in world.seen.happenings] == [told]


@pytest.mark.parametrize(("fault", "told"), [(DENIED, "misconfigured"), (BUSY, "unavailable")])
def test_a_lane_that_refuses_the_sweep(fault: Transient, told: str) -> None:
    world = World()
    run(world.store.record("lines:shop:ana", message("a"), START_MS))
    world.clock.ms += 600_000
    lanes = Refusing(arms=[fault])
    run(sweep(world.store, lanes, world.clock, world.seen, lambda _: world.timing, world.clock.ms + 1_000))
    assert [happening.what for happening in world.seen.happenings] == [told, "swept"]
