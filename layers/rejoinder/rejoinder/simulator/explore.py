"""Go through every interleaving of a few messages with bounded faults; visit each state once.

A state is the row, the items beside it, who is in mid-air and where, which wake-ups are armed, which delayed copies of
writes are under way, and what faults may still happen. From each state every single thing that can happen next is done:
a call is performed, an invocation dies, a wake-up comes, a message comes, time passes to the next instant at which
anything differs. Breadth first, so that a counterexample is a shortest one.

Everything is interned: a state is a tuple of small numbers, and the real code (transitions, use cases, checkers) runs
once for each combination that it has not seen. States are recognised by a 64-bit hash.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

from rejoinder.simulator.afterwards import BrokenAt
from rejoinder.simulator.bound import Bound
from rejoinder.simulator.branches import Branches
from rejoinder.simulator.checkers import Broken
from rejoinder.simulator.shifting import NOW_MS
from rejoinder.simulator.stage import Stage
from rejoinder.simulator.state import State
from rejoinder.simulator.words import row_in_words


@dataclass(frozen=True, slots=True)
class Result:
    """What an exploration found.

    Attributes:
        bound: what was explored.
        states: how many different states there are; so far, where it stopped early.
        edges: how many things happened in them.
        seconds: how long it took.
        broken: the promise that was broken; None where every one was kept in every state.
        history: how it came to that, one line for each thing that happened.
        complete: every state was visited.
    """

    bound: Bound
    states: int
    edges: int
    seconds: float
    broken: Broken | None = None
    history: tuple[str, ...] = ()
    complete: bool = True

    def __str__(self) -> str:
        speed = self.states / max(self.seconds, 1e-9)
        head = (
            f"{self.bound}: {self.states:,} states, {self.edges:,} steps, {self.seconds:.1f} s, {speed:,.0f} states/s"
        )
        if self.broken is None:
            return head + (", nothing broken" if self.complete else ", stopped before the end, nothing broken so far")
        lines = [head, *self.history, f"BROKEN {self.broken}"]
        return "\n".join([*lines, f"again: python -m rejoinder.simulator.prove {self.bound}"])


def explore(
    bound: Bound,
    stage: Stage | None = None,
    *,
    max_states: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Explore a bound.

    Args:
        bound: what may happen.
        stage: the use cases; None for the real ones under the bound's settings.
        max_states: stop after so many, without a verdict.
        progress: told, now and then, how many states are visited and how many wait.
    """
    return Explorer(bound, Branches(bound, stage or Stage(bound.timing, bound.policy))).run(max_states, progress)


@dataclass(slots=True)
class Explorer:
    """One exploration."""

    bound: Bound
    branches: Branches

    def run(self, max_states: int | None, progress: Callable[[int, int], None] | None) -> Result:
        """Visit every state, or up to the first broken promise."""
        started = perf_counter()
        first = self.branches.beginning()
        came_from: dict[int, int] = {hash(first): 0}
        waiting = deque([first])
        edges = visited = 0
        while waiting:
            state = waiting.popleft()
            here = hash(state)
            visited += 1
            if progress is not None and visited % 20_000 == 0:
                progress(visited, len(waiting))
            try:
                for _, following in self.branches.following(state):
                    edges += 1
                    key = hash(following)
                    if key not in came_from:
                        came_from[key] = here
                        waiting.append(following)
            except BrokenAt as found:
                history = self.history(came_from, here, found.broken)
                return Result(
                    self.bound, visited, edges, perf_counter() - started, found.broken, history, complete=False
                )
            if max_states is not None and visited >= max_states:
                return Result(self.bound, visited, edges, perf_counter() - started, complete=not waiting)
        return Result(self.bound, visited, edges, perf_counter() - started)

    def history(self, came_from: dict[int, int], last: int, broken: Broken) -> tuple[str, ...]:
        """Tell how a state was reached, by doing it again with words."""
        trail = [last]
        while came_from[trail[-1]]:
            trail.append(came_from[trail[-1]])
        self.branches.describe = True
        lines: list[str] = []
        state = self.branches.beginning()
        for key in reversed(trail[:-1]):
            said, state = next((said, s) for said, s in self.branches.following(state) if hash(s) == key)
            lines += self.told(len(lines), said, state)
        with suppress(BrokenAt):
            deque(self.branches.following(state), maxlen=0)
        lines.append(f"then    {self.branches.moves.last_said}: {broken.checker}")
        return tuple(lines)

    def told(self, number: int, said: str, state: State) -> list[str]:
        """One line for what happened, with the row after it."""
        return [f"{number + 1:>4}    {said:<60} {row_in_words(self.branches.moves.rows[state.row], NOW_MS)}"]
