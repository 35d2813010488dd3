"""Wake-ups in memory: for `rejoinder dev`, the simulator and tests. Whoever drives it asks for what is due."""

from dataclasses import dataclass, field

from rejoinder.protocol.wakeups import WakeUp


@dataclass(slots=True)
class MemoryWakeUps:
    """Implements `ports.WakeUps`; nothing is woken until somebody calls `take_due`.

    Attributes:
        armed: what is promised and has not come yet, in the order of arming.
        buried: the dead-letter queue.
    """

    armed: list[WakeUp] = field(default_factory=list)
    buried: list[WakeUp] = field(default_factory=list)

    async def arm(self, wake_up: WakeUp) -> None:
        """Promise the wake-up."""
        self.armed.append(wake_up)

    async def guarantee(self, wake_up: WakeUp) -> None:
        """Promise it a second time, as another service would."""
        self.armed.append(wake_up)

    async def bury(self, wake_up: WakeUp) -> None:
        """Put it into the dead-letter queue."""
        self.buried.append(wake_up)

    def next_due_ms(self) -> int | None:
        """When the next wake-up is due; None where none is armed."""
        return min((wake_up.due_at_ms for wake_up in self.armed), default=None)

    def take_due(self, now_ms: int) -> list[WakeUp]:
        """Remove and return what is due, earliest first."""
        due = sorted((w for w in self.armed if w.due_at_ms <= now_ms), key=lambda wake_up: wake_up.due_at_ms)
        for wake_up in due:
            self.armed.remove(wake_up)
        return due
