"""What a lane delivers becomes one run of the generator's use case, within the time that the invocation has left."""

import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from rejoinder.generate import generate
from rejoinder.ports import Clock, Observer, Outside, Transient
from rejoinder.run import run
from rejoinder.wakeups.codec import UnreadableWakeUpError, decode


@dataclass(frozen=True, slots=True)
class Waking:
    """Handles one delivery: the body of a queue's message, or Scheduler's event, which is the body itself.

    Attributes:
        outside: the world, as a conversation's account has it.
        observer: for what belongs to no conversation.
        clock: time.
        bury_unreadable: sends what is no wake-up to the dead-letter queue.
        generation_ms: how long a bot may take.
        send_budget_ms: kept of the invocation's time for committing and sending.
    """

    outside: Callable[[str], Outside]
    observer: Observer
    clock: Clock
    bury_unreadable: Callable[[str], Coroutine[Any, Any, None]]
    generation_ms: int
    send_budget_ms: int

    def __call__(self, body: object, remaining_ms: int) -> None:
        """Handle it to its end.

        Args:
            body: text, or what Lambda made of it.
            remaining_ms: what is left of the invocation.

        Raises:
            Transient: the lane must bring it again.
        """
        try:
            wake_up = decode(body)
        except UnreadableWakeUpError as fault:
            self.observer.happened("unreadable", reason=str(fault))
            run(self.bury_unreadable(body if isinstance(body, str) else json.dumps(body, default=repr)))
            return
        time_ms = min(self.generation_ms, remaining_ms - self.send_budget_ms)
        if time_ms <= 0:  # a later one of a batch: to begin it would count as a failed attempt
            raise Transient(f"{remaining_ms} ms are left, and {self.send_budget_ms} are kept for the send")
        run(generate(wake_up, self.clock.now_ms() + time_ms, self.outside(wake_up.conversation_id)))
