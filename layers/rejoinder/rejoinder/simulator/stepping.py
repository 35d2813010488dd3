"""Stop a use case at each of its port calls, and let any other actor go next.

A use case is a coroutine, and does everything to the world through `await port.method(...)`. Over a `SteppedPort` such
an await hands the call to whoever drives the coroutine. The driver performs it when it likes, or raises a fault in its
place, or never comes back, which is a crash.
"""

from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """What a use case waits for: `port.method(*args, **kwargs)`.

    `about` is what the port was made for, such as the turn of a running bot.
    """

    port: str
    method: str
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()
    about: Any = None

    def __await__(self) -> Generator["Call", Any, Any]:
        """Hand the call to the driver; its answer is the value of the await."""
        return (yield self)

    async def perform(self, port: object) -> Any:
        """Make the call on the real port."""
        return await getattr(port, self.method)(*self.args, **dict(self.kwargs))


@dataclass(frozen=True, slots=True)
class SteppedPort:
    """Stands for any port; each of its methods is a step. `about` goes with each call."""

    name: str
    about: Any = None

    def __getattr__(self, method: str) -> Any:
        """A method that hands its call over."""

        async def step(*args: Any, **kwargs: Any) -> Any:
            return await Call(self.name, method, args, tuple(sorted(kwargs.items())), self.about)

        return step


@dataclass(slots=True)
class Actor:
    """One invocation in progress.

    Attributes:
        name: for histories.
        use_case: the coroutine.
        waits_for: the call that it has made and that nobody has answered yet; None once it has ended.
        result: what it returned.
        failure: what it raised.
    """

    name: str
    use_case: Coroutine[Call, Any, Any]
    waits_for: Call | None = None
    result: Any = None
    failure: BaseException | None = field(default=None)

    def begin(self) -> "Actor":
        """Run to the first call."""
        return self.answer(None)

    def answer(self, value: Any) -> "Actor":
        """Answer the call that it waits for, and run to the next."""
        return self._go(lambda: self.use_case.send(value))

    def fail(self, fault: BaseException) -> "Actor":
        """Raise a fault in place of the call's answer, and run to the next."""
        return self._go(lambda: self.use_case.throw(fault))

    def _go(self, advance: Any) -> "Actor":
        try:
            self.waits_for = advance()
        except StopIteration as end:
            self.waits_for, self.result = None, end.value
        except Exception as failure:  # noqa: BLE001  # whatever it raised is the invocation's failure
            self.waits_for, self.failure = None, failure
        return self
