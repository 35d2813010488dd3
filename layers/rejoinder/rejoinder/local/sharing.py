"""Share ports in memory among threads: one call at a time, and somebody is told of each."""

import threading
from collections.abc import Callable
from typing import Any

After = Callable[[str, tuple[Any, ...], Any], None]
"""Told `(method, args, answer)` after each call, still inside the mutex: so in the order of the decisions."""


class OneAtATime:
    """Stands for a port whose calls never suspend, and lets one thread in at a time.

    With it the memory store decides as DynamoDB does: each write alone, in some order.
    """

    def __init__(self, port: object, mutex: threading.Condition, after: After) -> None:
        self._port = port
        self._mutex = mutex
        self._after = after

    def __getattr__(self, method: str) -> Any:
        """The port's method, made alone."""
        call = getattr(self._port, method)

        async def alone(*args: Any, **kwargs: Any) -> Any:
            with self._mutex:
                answer = await call(*args, **kwargs)
                self._after(method, args, answer)
            return answer

        return alone
