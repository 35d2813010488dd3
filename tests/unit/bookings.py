"""The other side of a bot's effects, and attempts at one turn: what their tests share."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes import CONVERSATION, CountedIds, World
from rejoinder.effects import Effects
from rejoinder.ports import (
    Grant,
    Turn,
)
from rejoinder.protocol.conversation import Lease
from rejoinder.protocol.outcomes import Claimed
from rejoinder.run import run


@dataclass(slots=True)
class Bookings:
    """The other side: what was really booked, and what the next calls meet."""

    made: list[str] = field(default_factory=list)
    meets: list[Exception] = field(default_factory=list)

    def book(self, what: str = "table") -> dict[str, Any]:
        if self.meets:
            raise self.meets.pop(0)
        self.made.append(what)
        return {"number": len(self.made), "seats": (2, 3)}


@dataclass(slots=True)
class Attempts:
    """Attempts at the turn of one message, each with a lease of its own, as after a crash of the one before."""

    world: World
    effects: Effects
    bookings: Bookings = field(default_factory=Bookings)

    def claim(self) -> Turn:
        """The next attempt's turn, once the lease of the one before has run out."""
        self.world.clock.ms = max(self.world.clock.ms, self.world.row.lease_expires_at_ms or 0) + 1
        owner = f"holder-{self.world.row.lease_token + 1}"
        claimed = run(self.world.store.claim(CONVERSATION, owner, self.world.clock.ms))
        assert isinstance(claimed, Claimed)
        row = claimed.row
        grant = Grant(Lease(owner, row.lease_token), row.pending[0].id, row.received, len(row.pending))
        turn = Turn(CONVERSATION, row.pending, grant=grant)
        turn.once = self.effects.once_in(turn)
        return turn

    def happened(self, what: str) -> int:
        return self.world.seen.count(what)


def attempts_at_one() -> Attempts:
    """A message that is due, and nobody who has answered it yet."""
    world = World()
    world.write("a")
    world.clock.ms += world.timing.debounce_ms
    return Attempts(world, Effects(world.store, world.clock, CountedIds(), world.seen, world.timing))


RESULT = {"number": 1, "seats": [2, 3]}
"""As it comes back from JSON, in the first attempt too."""


def crash(attempts: Attempts, *, after: bool) -> None:
    """The holder dies in the midst of it: before, or after, the other side has done it."""

    def die() -> None:
        if after:
            attempts.bookings.book()
        raise SystemExit

    with pytest.raises(SystemExit):
        attempts.claim().once("book", 7, die)
