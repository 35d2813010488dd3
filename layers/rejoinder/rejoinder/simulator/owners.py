"""The names that invocations draw in an exploration, and where a value mentions them."""

from typing import Any

from rejoinder.protocol.identity import reply_id
from rejoinder.simulator.desk import CONVERSATION

OWNERS = tuple(f"g{number}" for number in range(1, 40))

_NAMES = (
    {owner: owner for owner in OWNERS}
    | {reply_id(CONVERSATION, owner): owner for owner in OWNERS}
    | {reply_id(CONVERSATION, f"a moment, {owner}"): owner for owner in OWNERS}
)


def owners_in(value: Any) -> frozenset[str]:
    """Every owner that a frozen value mentions, by name or by the reply that it committed."""
    if isinstance(value, str):
        return frozenset({_NAMES[value]}) if value in _NAMES else frozenset()
    if isinstance(value, tuple | frozenset):
        return frozenset().union(*map(owners_in, value))
    if hasattr(value, "__dataclass_fields__"):
        return frozenset().union(*(owners_in(getattr(value, name)) for name in value.__dataclass_fields__))
    return frozenset()
