"""Values by number: what an exploration keeps of everything that occurs in it."""

from collections.abc import Hashable
from typing import Any

from rejoinder.simulator.stepping import Call
from rejoinder.stores.memory import Kept

Items = tuple[tuple[tuple[str, str], Kept[Any]], ...]

READS = frozenset({"read", "state", "history", "texts", "was_answered", "held", "owed"})
ITEM_WRITES = frozenset({"put_text", "put_turn", "put_state", "put_held"})


class Table[T: Hashable]:
    """Values by number, and their numbers by value."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self.numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        """The number of a value, which may be new."""
        found = self.numbers.get(value)
        if found is None:
            found = self.numbers[value] = len(self.values)
            self.values.append(value)
        return found

    def __getitem__(self, number: int) -> T:
        return self.values[number]


def item_key(call: Call) -> tuple[str, str] | None:
    """The item that a store call writes, where a checker looks at it."""
    match call.method:
        case "put_state":
            return call.args[0], "STATE"
        case "put_turn":
            return call.args[0], f"TURN#{call.args[1].key}"
    return None
