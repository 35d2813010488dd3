"""A tool that does something: it goes through `turn.once`, and one deed has one key."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from rejoinder.bots.model import Call, Result
from rejoinder.bots.tools import tool
from rejoinder.ports import Turn
from unit.test_bots_tools import Size, called, show, turn


class TakenError(Exception):
    pass


def looked_up(day: str, seats: int = 2) -> str | None:
    """What the other side knows."""
    return f"known: {day}, {seats}"


@tool(effect=True, check=looked_up, refused=(TakenError,))
def reserve(day: str, seats: int = 2) -> str:
    """Reserve a table."""
    if day == "sun":
        raise TakenError("taken")
    return f"reserved {day}, {seats}"


@dataclass
class Recorded:
    """A `turn.once` that keeps what it was called with, and does it."""

    calls: list[tuple[str, object, str, Any, tuple[type[Exception], ...]]] = field(default_factory=list)

    def __call__(
        self,
        name: str,
        key: object,
        effect: Callable[[], Any],
        *,
        in_doubt: Literal["hold", "retry"] = "hold",
        check: Callable[[], Any] | None = None,
        refused: tuple[type[Exception], ...] = (),
    ) -> Any:
        self.calls.append((name, key, in_doubt, check and check(), refused))
        return effect()


def test_an_effect_goes_through_once_with_its_name_arguments_and_policy() -> None:
    once = Recorded()
    result = called(reserve, {"day": "mon"}, turn(once=once))
    assert result.content == "reserved mon, 2"
    assert once.calls == [("reserve", {"day": "mon", "seats": 2}, "hold", "known: mon, 2", (TakenError,))]


def test_a_check_is_given_the_defaults_of_the_tool_and_not_its_own() -> None:
    seen: list[tuple[str, int, str]] = []

    def look(day: str, seats: int, note: str = "mine") -> str | None:
        seen.append((day, seats, note))
        return None

    @tool(effect=True, check=look)
    def order(day: str, seats: int = 2, note: str = "") -> str:
        """Order a table."""
        return f"{day}, {seats}: {note}"

    called(order, {"day": "mon"}, turn(once=Recorded()))
    called(order, {"day": "tue", "seats": 3.0}, turn(once=Recorded()))
    assert seen == [("mon", 2, ""), ("tue", 3, "")]


def test_a_check_that_takes_something_else_is_refused_when_the_bot_is_loaded() -> None:
    def order(day: str, turn: Turn) -> None:
        """Order a table."""

    untyped: Any = tool
    with pytest.raises(TypeError, match=r"tool order: its check is given day, turn, and .*'turn'"):
        untyped(effect=True, check=lambda day: None)(order)
    with pytest.raises(TypeError, match=r"tool order: its check is given day, turn, and .*'name'"):
        untyped(effect=True, check=lambda name, day, turn: None)(order)


@dataclass
class Party:
    """Who comes."""

    adults: int
    children: float = 0


@tool(effect=True)
def seat(turn: Turn, party: Party, hour: int, size: Size = Size.SMALL, price: float = 1) -> None:
    """Give a party a table."""


@pytest.mark.parametrize(
    "arguments",
    [
        {"hour": 9, "party": {"adults": 2}},
        {"hour": 9.0, "party": {"adults": 2.0, "children": 0}},
        {"party": {"children": 0, "adults": 2}, "price": 1.0, "hour": 9, "size": "s"},
    ],
)
def test_one_deed_has_one_key_however_its_arguments_are_spelled(arguments: dict[str, Any]) -> None:
    """The key is what the function is given: read, and with its defaults."""
    once = Recorded()
    called(seat, arguments, turn(once=once))
    ((_, key, *_),) = once.calls
    assert json.dumps(key, sort_keys=True) == (
        '{"hour": 9, "party": {"adults": 2, "children": 0}, "price": 1, "size": "s"}'
    )


@pytest.mark.parametrize(("names", "key"), [(("day",), {"day": "mon"}), ((), {})])
def test_an_effect_may_be_told_apart_by_some_of_its_arguments(names: tuple[str, ...], key: object) -> None:
    @tool(effect=True, key=names)
    def order(day: str, note: str = "") -> str:
        """Order flowers."""
        return f"{day}: {note}"

    once = Recorded()
    assert called(order, {"day": "mon", "note": "red, please"}, turn(once=once)).content == "mon: red, please"
    assert [made[1] for made in once.calls] == [key]


def test_a_key_of_no_such_parameter_is_refused_when_the_bot_is_loaded() -> None:
    with pytest.raises(TypeError, match=r"tool order: key names 'turn'; its arguments are day"):

        @tool(effect=True, key=("turn",))
        def order(day: str, turn: Turn) -> None:
            """Order flowers."""

    with pytest.raises(TypeError, match="effect=True"):
        tool(key=("day",))


def test_a_default_that_no_key_can_hold_is_refused_when_the_bot_is_loaded() -> None:
    never: Any = object()
    with pytest.raises(TypeError, match=r"tool order: parameter day has a default that is no JSON .*object"):

        @tool(effect=True)
        def order(day: str = never) -> None:
            """Order flowers."""

    @tool(effect=True, key=())
    def one_order(day: str = never) -> None:
        """Order flowers, once."""

    once = Recorded()
    assert called(one_order, {}, turn(once=once)).content == "done"
    assert [made[1] for made in once.calls] == [{}]


def test_an_effect_that_was_refused_is_told_to_the_model() -> None:
    assert called(reserve, {"day": "sun"}, turn(once=Recorded())) == Result(
        Call("c1", "reserve", {"day": "sun"}), "TakenError: taken", failed=True
    )


def test_wrong_arguments_begin_no_effect_and_a_plain_tool_is_none() -> None:
    once = Recorded()
    assert called(reserve, {"day": 1}, turn(once=once)).failed
    called(show, {}, turn(once=once))
    assert once.calls == []


def test_an_effect_may_be_repeated_in_doubt_where_it_says_so() -> None:
    @tool(effect=True, in_doubt="retry")
    def ring() -> None:
        """Ring the bell."""

    once = Recorded()
    assert called(ring, {}, turn(once=once)).content == "done"
    assert once.calls == [("ring", {}, "retry", None, ())]
