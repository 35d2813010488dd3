"""Which service brings a wake-up: the queue, the scheduler, or each as the other's guarantee (`WAKE_LANE`)."""

from dataclasses import dataclass, replace
from typing import Literal

from rejoinder.ports import Clock
from rejoinder.protocol.wakeups import WakeUp
from rejoinder.wakeups.codec import encode
from rejoinder.wakeups.scheduler import Schedules
from rejoinder.wakeups.sqs import LONGEST_DELAY_MS, Queue

Lane = Literal["both", "scheduler", "queue"]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Implements `ports.WakeUps`.

    Attributes:
        lane: `both`: the queue for every wake-up, and a schedule at each window's hard cap. `scheduler`: schedules
            alone. `queue`: the queue alone, but for what is further away than a queue can delay.
        queue: the wake-up queue.
        dead_letters: its dead-letter queue.
        schedules: the schedule group.
        clock: time.
    """

    lane: Lane
    queue: Queue
    dead_letters: Queue
    schedules: Schedules
    clock: Clock

    async def arm(self, wake_up: WakeUp) -> None:
        """Promise the wake-up; a delay that no queue can hold is a schedule in every lane."""
        delay_ms = wake_up.due_at_ms - self.clock.now_ms()
        if self.lane == "scheduler" or delay_ms > LONGEST_DELAY_MS:
            self.schedules.create(wake_up)
        else:
            self.queue.send(encode(wake_up), delay_ms)

    async def guarantee(self, wake_up: WakeUp) -> None:
        """Promise it from the scheduler too, where both lanes are on."""
        if self.lane == "both":
            self.schedules.create(wake_up)

    async def bury(self, wake_up: WakeUp) -> None:
        """Send the wake-up to the dead-letter queue; whoever sends it back gives it all its rounds again."""
        await self.bury_unreadable(encode(replace(wake_up, attempt=0)))

    async def bury_unreadable(self, body: str) -> None:
        """Send what is no wake-up there, as it came: an operator sees it, and nobody tries it for ever.

        Raises:
            Transient: it could not be sent.
        """
        self.dead_letters.send(body)
