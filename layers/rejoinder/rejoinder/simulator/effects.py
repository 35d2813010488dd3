"""Go through every way in which a turn with an effect can go: crashes at each step, second attempts, and who is late.

Breadth first, so that a counterexample is a shortest one; each state is visited once. The checkers are named like their
promises; `tests/simulation/test_effects.py` explores the real code, and mutants of it that they must catch.
"""

from collections import Counter, deque
from dataclasses import dataclass

from rejoinder.protocol.effects import Effect
from rejoinder.simulator.booking import BOOKED, FALLBACK, Generator, Rules
from rejoinder.simulator.effects_world import Faults, State, World


@dataclass(frozen=True, slots=True)
class Found:
    """What an exploration came to.

    Attributes:
        states: how many were visited.
        endings: every way in which it can end: what was said, and how many bookings were made.
        broken: the checker whose promise was broken, and what it saw; empty where all were kept.
        history: how it came to that, one line for each thing that happened.
    """

    states: int
    endings: frozenset[tuple[tuple[str, ...], int]] = frozenset()
    broken: str = ""
    history: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.states:,} states", *self.history, self.broken or "nothing broken"])


def explore(rules: Rules, faults: Faults) -> Found:
    """Visit every state, or up to the first broken promise.

    Args:
        rules: the real code, or a mutant of it.
        faults: what may happen.
    """
    world = World(rules, faults)
    first = world.beginning()
    came_from: dict[State, tuple[State, str] | None] = {first: None}
    waiting = deque([first])
    endings: set[tuple[tuple[str, ...], int]] = set()
    while waiting:
        state = waiting.popleft()
        stuck = state.row.owes
        for said, following in world.following(state):
            stuck = False
            if following not in came_from:
                came_from[following] = state, said
                waiting.append(following)
                if broken := broken_promise(following, rules, faults):
                    return Found(len(came_from), frozenset(endings), broken, history(came_from, following))
        if stuck:
            broken = "nobody_is_left_waiting: nothing more can happen"
            return Found(len(came_from), frozenset(endings), broken, history(came_from, state))
        if not state.row.owes and not any(isinstance(acting, Generator) for acting in state.acting):
            endings.add((state.said, len(state.deeds)))
    return Found(len(came_from), frozenset(endings))


def history(came_from: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    """Tell how a state was reached."""
    lines: list[str] = []
    while (step := came_from[state]) is not None:
        before, said = step
        lines.append(said)
        state = before
    return tuple(reversed(lines))


def broken_promise(state: State, rules: Rules, faults: Faults) -> str:
    """Run every checker; empty where each promise is kept."""
    return (
        booked_once(state, rules)
        or doomed_do_nothing(state)
        or only_what_is_true_is_said(state)
        or no_booking_is_forgotten(state)
        or (not state.row.owes and fallback_only_in_doubt(state, rules, faults))
        or ""
    )


def booked_once(state: State, rules: Rules) -> str:
    """A turn books at most once, whatever happens; unless it says itself that it may be twice, after a doubt."""
    if rules.policy == "retry":
        return ""
    for first, times in Counter(deed.first for deed in state.deeds).items():
        if times > 1:
            return f"booked_once: {times} bookings for the turn that begins with {first.hex()}"
    return ""


def doomed_do_nothing(state: State) -> str:
    """Nobody books who began to look when its reply could not be committed any more."""
    for deed in state.deeds:
        if deed.by in state.doomed:
            return f"doomed_do_nothing: {deed.by} booked"
    return ""


def only_what_is_true_is_said(state: State) -> str:
    """No reply tells of a booking that was not made."""
    for said in state.said:
        if said.startswith(BOOKED) and not 0 < int(said.removeprefix(BOOKED).split()[0]) <= len(state.deeds):
            return f"only_what_is_true_is_said: {said!r} after {len(state.deeds)} bookings"
    return ""


def no_booking_is_forgotten(state: State) -> str:
    """Every booking that was made is on record, or is seen to be in doubt."""
    begun = [
        kept.value for _, kept in state.items if isinstance(kept.value, Effect) and kept.value.begun_by is not None
    ]
    turns = {deed.first for deed in state.deeds}
    if len(begun) < len(turns):
        return f"no_booking_is_forgotten: {len(turns)} turns booked, and {len(begun)} effects are begun"
    return ""


def fallback_only_in_doubt(state: State, rules: Rules, faults: Faults) -> str:
    """At rest: the fallback was said only where something went wrong, and nobody can settle it."""
    if not any(said.startswith(FALLBACK) for said in state.said):
        return ""
    happened = faults.harmful - state.left.harmful
    if not happened:
        return "fallback_only_in_doubt: nothing went wrong"
    if rules.policy != "hold" and happened < rules.timing.max_attempts - 1:
        return "fallback_only_in_doubt: it could be settled, and there were attempts left"
    return ""
