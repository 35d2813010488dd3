"""An observer that remembers: for tests, the simulator and the playground."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened."""

    what: str
    conversation_id: str
    fields: dict[str, str | int | None]


@dataclass(slots=True)
class MemoryObserver:
    """Implements `ports.Observer`."""

    happenings: list[Happening] = field(default_factory=list)

    def happened(self, what: str, conversation_id: str = "", **fields: str | int | None) -> None:
        """Remember it."""
        self.happenings.append(Happening(what, conversation_id, fields))

    def count(self, what: str) -> int:
        """How often it happened."""
        return sum(happening.what == what for happening in self.happenings)
