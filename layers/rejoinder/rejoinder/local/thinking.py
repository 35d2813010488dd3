"""A bot that takes its time and can be made to crash: so that a person at the playground can get in between."""

import threading
from collections.abc import Callable

from rejoinder.ports import Bot, BotFailed, Clock, Outdated, Replied, Turn, Work


class Crashed(BaseException):
    """The generator's end in mid-generation: no use case handles it, so nothing is released and nothing is said."""


class ThinkingBot:
    """Implements `ports.Bot` over another one, which it starts after a pause.

    Args:
        bot: the other one.
        clock: time.
        began: told the conversation of each turn that begins.
        latency_ms: see below.

    Attributes:
        latency_ms: the pause of the turns that begin from now on.
    """

    def __init__(self, bot: Bot, clock: Clock, began: Callable[[str], None], latency_ms: int) -> None:
        self.latency_ms = latency_ms
        self._began = began
        self._bot = bot
        self._clock = clock
        self._changed = threading.Condition()
        self._running: list[ThinkingWork] = []

    async def start(self, turn: Turn) -> Work:
        """Begin to think."""
        work = ThinkingWork(self._bot, turn, self._clock, self._clock.now_ms() + self.latency_ms, self._changed)
        with self._changed:
            self._running = [*(other for other in self._running if not other.over), work]
        self._began(turn.conversation_id)
        return work

    def look(self) -> None:
        """Look at the clock again: for a clock that jumps."""
        with self._changed:
            self._changed.notify_all()

    def crash(self) -> int:
        """Crash every generator that is waiting for this bot; answers how many there were."""
        with self._changed:
            doomed = [work for work in self._running if not work.over]
            for work in doomed:
                work.crashed = work.over = True
            self._changed.notify_all()
        return len(doomed)


class ThinkingWork:
    """Implements `ports.Work`.

    Attributes:
        crashed: the next answer to the generator is its end.
        over: nobody waits for it any more.
    """

    def __init__(self, bot: Bot, turn: Turn, clock: Clock, ready_at_ms: int, changed: threading.Condition) -> None:
        self.crashed = False
        self.over = False
        self._bot = bot
        self._turn = turn
        self._clock = clock
        self._ready_at_ms = ready_at_ms
        self._changed = changed
        self._work: Work | None = None

    async def wait(self, until_ms: int) -> Replied | BotFailed | Outdated | None:
        """Think, then wait for the other bot.

        Raises:
            Crashed: somebody asked for it.
        """
        with self._changed:
            while not self.crashed and (left_ms := min(until_ms, self._ready_at_ms) - self._clock.now_ms()) > 0:
                self._changed.wait(left_ms / 1_000)
        result = None
        if not self.crashed and self._clock.now_ms() >= self._ready_at_ms:
            if self._work is None:
                self._work = await self._bot.start(self._turn)
            result = await self._work.wait(until_ms)
        if self.crashed:
            raise Crashed(self._turn.conversation_id)
        self.over = result is not None
        return result

    async def cancel(self) -> int:
        """Stop to think."""
        self.over = True
        return 0 if self._work is None else await self._work.cancel()
