"""Make a failing random run small: one conversation, as few messages and faults as still break the same promise."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from rejoinder.simulator.plan import Plan, script
from rejoinder.simulator.runs import Run
from rejoinder.simulator.talks import BrokenRun


def failure(plan: Plan) -> BrokenRun | None:
    """Play a plan; the promise that it breaks, if any."""
    try:
        Run(plan).play()
    except BrokenRun as broken:
        return broken
    return None


def shrunk(broken: BrokenRun) -> BrokenRun:
    """Leave out whatever is not needed to break the same promise: conversations, then messages, then faults."""

    def still(plan: Plan) -> BrokenRun | None:
        found = failure(plan)
        return found if found is not None and found.broken.checker == broken.broken.checker else None

    smaller = still(replace(broken.plan, only=frozenset({broken.conversation}))) or broken
    size = 0
    while size != len(str(smaller.plan)):  # a fault less may make a message needless, and the other way round
        size = len(str(smaller.plan))
        messages = sorted({(one.conversation, one.message) for one in script(smaller.plan, broken.conversation)})
        smaller = least(smaller, messages, lambda plan, left_out: still(replace(plan, without=plan.without | left_out)))
        faults = fired(smaller)
        smaller = least(smaller, faults, lambda plan, left_out: still(replace(plan, spared=plan.spared | left_out)))
    return smaller


def fired(broken: BrokenRun) -> list[tuple[int, int, int]]:
    """The faults that happened before a plan broke its promise."""
    run = Run(broken.plan)
    with suppress(BrokenRun):
        run.play()
    return list(run.talks[broken.conversation].fired)


def least[T](broken: BrokenRun, parts: list[T], attempt: Callable[[Plan, frozenset[T]], BrokenRun | None]) -> BrokenRun:
    """Leave out parts, half of them first, then fewer and fewer at a time, as long as the run still fails."""
    size = max(len(parts) // 2, 1)
    while parts and size:
        place = 0
        while place < len(parts):
            found = attempt(broken.plan, frozenset(parts[place : place + size]))
            if found is None:
                place += size
            else:
                broken = found
                del parts[place : place + size]
        size //= 2
    return broken


def history(plan: Plan) -> list[str]:
    """Play a plan and tell it, one line for each thing that happened, with the row after it."""
    lines: list[str] = []
    try:
        Run(plan, write=lines.append).play()
    except BrokenRun as broken:
        lines.append(f"BROKEN {broken.broken}")
    return lines
