"""What every command shares: exit codes, how it fails, and how it writes times and JSON."""

import json
import sys
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

OK = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3


class CommandFailed(Exception):  # noqa: N818  # named by what happened
    """A command cannot do what it was asked for.

    Attributes:
        code: what the program exits with.
    """

    def __init__(self, reason: str, code: int = FAILED) -> None:
        super().__init__(reason)
        self.code = code


def answer(args: Namespace, content: Any, text: str) -> None:
    """Write the command's result to standard output: as JSON where that was asked for, else as text."""
    print(json.dumps(content, ensure_ascii=False, indent=2) if args.json else text, flush=True)


def say(line: str) -> None:
    """Write a line for the person at the terminal, with the time of day, to standard error."""
    sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {line}\n")  # in one piece: threads write side by side
    sys.stderr.flush()


def instant(at_ms: int, now_ms: int) -> str:
    """Write an instant in UTC, and how far it is from now: `2026-09-21 14:13:20 UTC (12 s ago)`."""
    away_ms = at_ms - now_ms
    distance = f"in {span(away_ms)}" if away_ms > 0 else f"{span(-away_ms)} ago"
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC ({distance})"


def span(length_ms: int) -> str:
    """Write a length of time by its two biggest units: `1.5 s`, `2 min 5 s`, `3 h 10 min`, `4 d 2 h`."""
    if length_ms < 60_000:
        return f"{length_ms / 1_000:.1f} s"
    seconds = length_ms // 1_000
    for big, small, name, smaller in ((86_400, 3_600, "d", "h"), (3_600, 60, "h", "min"), (60, 1, "min", "s")):
        if seconds >= big:
            return f"{seconds // big} {name} {seconds % big // small} {smaller}"
    raise AssertionError(length_ms)


def counted(count: int, one: str, many: str) -> str:
    """Write a number with its noun."""
    return f"{count} {one if count == 1 else many}"
