"""Run a use case to its end where its ports do their work without suspending, as they do in Lambda."""

from collections.abc import Coroutine
from typing import Any


def run[T](use_case: Coroutine[Any, Any, T]) -> T:
    """Run a use case whose ports return without suspending, and give its result.

    No event loop is needed, nor imported: an `await` of something that never suspends is a plain call.

    Raises:
        RuntimeError: a port suspended; such a port belongs under the simulator.
    """
    try:
        use_case.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    use_case.close()
    raise RuntimeError("a port suspended; only the simulator's ports may do so")
