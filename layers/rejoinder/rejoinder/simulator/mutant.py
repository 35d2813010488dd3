"""What a mutant is: the protocol without one of its rules, and the checker that must notice."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from rejoinder.simulator.bound import Bound
from rejoinder.simulator.stage import Stage

Part = tuple[Any, str, Any]
"""A module or class, the name of a rule in it, and what stands in its place."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """The protocol without one of its rules.

    Attributes:
        name: of the test.
        rule: what is switched off.
        bound: where it shows.
        killer: the checker that catches it.
        parts: what is put in the place of what.
        stage: changes to the stage of the bound.
    """

    name: str
    rule: str
    bound: Bound
    killer: str
    parts: tuple[Part, ...] = ()
    stage: Callable[[Stage], Stage] = field(default=lambda stage: stage)

    @contextmanager
    def applied(self) -> Iterator[Stage]:
        """Switch the rule off for a while; gives the stage to explore."""
        with ExitStack() as stack:
            for where, name, other in self.parts:
                stack.enter_context(replaced(where, name, other))
            yield self.stage(Stage(self.bound.timing, self.bound.policy))


@contextmanager
def replaced(where: Any, name: str, other: Any) -> Iterator[None]:
    """Put something in the place of an attribute for a while."""
    original = vars(where)[name]
    setattr(where, name, other)
    try:
        yield
    finally:
        setattr(where, name, original)
