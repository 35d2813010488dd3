"""A bot that says what it was told to say: for tests, development and simulation."""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from rejoinder.ports import Reply, Turn


def bot(
    replies: Sequence[Reply | str | None] = (),
    *,
    latency_ms: int = 0,
    failures: Mapping[int, Exception] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Callable[[Turn], Reply | str | None]:
    """Make a function that answers by a script.

    Args:
        replies: what the first call, the second, … returns; the last one goes on. Without any, an answer names every
            message of the turn.
        latency_ms: how long each call takes.
        failures: what to raise, by the number of the call, from 1. A failing call uses up no reply.
        sleep: waits so many seconds.
    """
    calls, answers = count(1), count()

    def reply(turn: Turn) -> Reply | str | None:
        call = next(calls)
        sleep(latency_ms / 1000)
        if failures is not None and call in failures:
            raise failures[call]
        if not replies:
            return echo(turn)
        return replies[min(next(answers), len(replies) - 1)]

    return reply


def echo(turn: Turn) -> str:
    """Name every message of the turn, so that a reader sees which ones a reply covers."""
    named = [
        message.text or ", ".join(f"[{attached.kind}]" for attached in message.attachments) for message in turn.messages
    ]
    return f"I have read {len(named)}: " + " | ".join(named)
