"""A tool: what the model is told of a function, how its arguments are read, what comes back to it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import message
from rejoinder.bots.model import Call, Result, read_call
from rejoinder.bots.tools import CUT_MARKER, MAX_RESULT_LENGTH, Tool, tool, use
from rejoinder.ports import EffectInDoubt, Permanent, Transient, Turn


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Floor(IntEnum):
    GROUND = 0
    FIRST = 1


@dataclass
class Guest:
    """Somebody who comes.

    Attributes:
        name: as it is on the
            passport.
        child: under 12.
    """

    name: str
    child: bool = False
    wishes: list[str] = field(default_factory=list)


def turn(**changes: Any) -> Turn:
    return Turn("webhook:shop:c-1", (message("hello"),), **changes)


def called(used: Tool[..., Any], arguments: object, given_turn: Turn | None = None) -> Result:
    call = read_call("c1", used.spec.name, json.dumps(arguments))
    return use({used.spec.name: used}, call, given_turn or turn())


# --- what the model is told -------------------------------------------------------------------------------------------


def test_signature_and_docstring_become_the_schema() -> None:
    @tool
    def book(  # noqa: D417  # what is not described has no description
        day: str, hours: float, table: Literal["window", "bar"], size: Size, guests: list[Guest],
        floor: Floor = Floor.GROUND, notes: dict[str, str] | None = None, quiet: bool = False, *, seats: int = 2,
    ) -> str:  # fmt: skip
        """Book a table.

        Only for days that are free.

        Args:
            day: as YYYY-MM-DD,
                in the guest's own time.
            table (str): where.
            guests: who comes.

        Returns:
            A number.
        """
        return ""

    guest = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "as it is on the passport."},
            "child": {"type": "boolean", "description": "under 12."},
            "wishes": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    assert book.spec.name == "book"
    assert book.spec.description == "Book a table.\n\nOnly for days that are free."
    assert book.spec.parameters == {
        "type": "object",
        "properties": {
            "day": {"type": "string", "description": "as YYYY-MM-DD, in the guest's own time."},
            "hours": {"type": "number"},
            "table": {"type": "string", "enum": ["window", "bar"], "description": "where."},
            "size": {"type": "string", "enum": ["s", "l"]},
            "guests": {"type": "array", "items": guest, "description": "who comes."},
            "floor": {"type": "integer", "enum": [0, 1]},
            "notes": {"type": "object", "additionalProperties": {"type": "string"}},
            "quiet": {"type": "boolean"},
            "seats": {"type": "integer"},
        },
        "required": ["day", "hours", "table", "size", "guests"],
        "additionalProperties": False,
    }


def test_the_turn_is_given_and_not_told() -> None:
    @tool
    def remember(name: str, turn: Turn) -> None:
        """Remember a name."""
        turn.state["name"] = name

    given_turn = turn()
    assert list(remember.spec.parameters["properties"]) == ["name"]
    assert called(remember, {"name": "Ana"}, given_turn).content == "done"
    assert given_turn.state == {"name": "Ana"}
    assert "turn" in called(remember, {"name": "Ana", "turn": "x"}).content


def test_a_tool_is_still_the_function() -> None:
    @tool
    def double(number: int) -> int:
        """Double it."""
        return 2 * number

    assert double(4) == double(number=4) == 8


def untyped(day) -> str:  # type: ignore[no-untyped-def]
    """Untyped."""
    return str(day)


def of_bytes(content: bytes) -> str:
    """Bytes."""
    return str(content)


def of_union(day: int | str) -> str:
    """Two types."""
    return str(day)


def of_int_keys(prices: dict[int, str]) -> str:
    """Keys that are no texts."""
    return str(prices)


def of_floats(size: Literal["s", None]) -> str:
    """A value that is neither text nor number."""
    return str(size)


def of_guests(guests: list["Stranger"]) -> str:
    """A dataclass that has something else inside."""
    return str(guests)


def positional(day: str, /) -> str:
    """Positional."""
    return day


def variable(*days: str) -> str:
    """Any number."""
    return str(days)


def undocumented(day: str) -> str:
    return day


def only_sections(day: str) -> str:
    """Args:
    day: which.
    """  # noqa: D205
    return day


async def later(day: str) -> str:
    """Later."""
    return day


@dataclass
class Stranger:
    name: str
    luggage: set[str]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (untyped, "tool untyped: parameter day is not annotated; a tool takes str, int"),
        (of_bytes, "tool of_bytes: parameter content is annotated bytes; a tool takes str, int"),
        (of_union, r"parameter day is annotated int \| str"),
        (of_int_keys, r"annotated dict\[int, str\]"),
        (of_floats, "values that are str or int"),
        (of_guests, r"parameter guests is Stranger, whose field luggage is annotated set\[str\]"),
        (positional, "passed by name"),
        (variable, "passed by name"),
        (undocumented, "tool undocumented has no docstring"),
        (only_sections, "has no docstring"),
        (later, "it is async"),
        (lambda day: day, "tool '<lambda>'"),
    ],
)
def test_what_cannot_be_told_is_refused_when_the_bot_is_loaded(function: Callable[..., Any], names: str) -> None:
    with pytest.raises(TypeError, match=names):
        tool(function)


def test_what_is_of_an_effect_is_refused_for_a_plain_tool() -> None:
    with pytest.raises(TypeError, match="effect=True"):
        tool(in_doubt="retry")


# --- how arguments are read -------------------------------------------------------------------------------------------


@tool
def show(
    text: str = "", whole: int = 0, number: float = 0, flag: bool = False, size: Size = Size.SMALL,
    floor: Floor = Floor.GROUND, place: Literal["bar", 1] = "bar", names: list[str] | None = None,
    prices: dict[str, float] | None = None, guest: Guest | None = None,
    anything: list | None = None, rest: dict | None = None,  # type: ignore[type-arg]  # bare on purpose
) -> str:  # fmt: skip
    """Show what came."""
    return repr([text, whole, number, flag, size, floor, place, names, prices, guest, anything, rest])


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"whole": 3.0}, "'', 3,"),
        ({"number": 3}, "'', 0, 3.0,"),
        ({"size": "l"}, "Size.LARGE: 'l'"),
        ({"floor": 1}, "Floor.FIRST: 1"),
        ({"place": 1}, "1, None"),
        ({"names": None}, "'bar', None, None"),
        ({"prices": {"a": 2}}, "{'a': 2.0}"),
        ({"guest": {"name": "Ana", "child": True}}, "Guest(name='Ana', child=True, wishes=[])"),
        ({"anything": [1, "a", None]}, "[1, 'a', None]"),
    ],
)
def test_arguments_come_as_the_annotations_say(arguments: object, shown: str) -> None:
    result = called(show, arguments)
    assert not result.failed
    assert shown in result.content


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"text": 5}, "text must be a string, not a number (5)"),
        ({"text": None}, "text must be a string, not null"),
        ({"whole": 3.5}, "whole must be a whole number, not a number (3.5)"),
        ({"whole": True}, "whole must be a whole number, not a boolean (true)"),
        ({"whole": "3"}, "whole must be a whole number, not a string"),
        ({"number": True}, "number must be a number, not a boolean (true)"),
        ({"flag": 1}, "flag must be a boolean, not a number (1)"),
        ({"size": "m"}, "size must be one of 's', 'l', not 'm'"),
        ({"size": ["s"]}, "size must be one of 's', 'l', not ['s']"),
        ({"floor": True}, "floor must be one of 0, 1, not True"),
        ({"names": "Ana"}, "names must be an array, not a string"),
        ({"names": ["Ana", {}]}, "names[1] must be a string, not an object"),
        ({"prices": {"a": "2"}}, "prices.a must be a number, not a string"),
        ({"guest": {"child": True}}, "guest.name is missing"),
        ({"guest": {"name": "Ana", "age": 3}}, "there is no guest.age; there are name, child, wishes"),
        ({"guest": [1]}, "guest must be an object, not an array"),
        ({"colour": "red"}, "there is no colour; there are text, whole"),
    ],
)
def test_an_argument_of_another_kind_is_told_with_its_place(arguments: object, told: str) -> None:
    result = called(show, arguments)
    assert result.failed
    assert told in result.content


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(show.parameters)), JSON, max_size=4))
def test_whatever_a_model_writes_gives_a_result(arguments: dict[str, Any]) -> None:
    result = called(show, arguments)
    assert result.content.strip()


@given(st.text(max_size=30))
def test_whatever_comes_as_arguments_gives_a_result(written: str) -> None:
    result = use({"show": show}, read_call("c1", "show", written), turn())
    assert result.content.strip()


def test_no_arguments_at_all_are_an_empty_object() -> None:
    assert read_call("c1", "show", "") == Call("c1", "show", {})


# --- what comes back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "content"),
    [
        ("text", "text"),
        (None, "done"),
        (" \0", "done"),
        (["é", 1], '["é", 1]'),
        ({Size.LARGE: Guest("Ana")}, '{"l": {"name": "Ana", "child": false, "wishes": []}}'),
        ((Size.SMALL, True, 1.5), '["s", true, 1.5]'),
        (0, "0"),
        ("a\ud83d", "a\ufffd"),
        ({"a\ud83d": ["\ud83d\ude00"]}, '{"a\ufffd": ["😀"]}'),
        ([float("nan"), float("-inf")], '["nan", "-inf"]'),
    ],
)
def test_a_result_is_told_as_text_or_json(returned: Any, content: str) -> None:
    @tool
    def give() -> Any:
        """Give it."""
        return returned

    assert called(give, {}) == Result(Call("c1", "give", {}), content)


@pytest.mark.parametrize("returned", [object(), {"a": {1j}}, b"bytes"])
def test_a_result_that_json_cannot_say_is_a_failure_that_names_it(returned: Any) -> None:
    @tool
    def give() -> Any:
        """Give it."""
        return returned

    result = called(give, {})
    assert result.failed
    assert "the result holds a" in result.content


def test_a_long_result_is_cut() -> None:
    @tool
    def give() -> str:
        """Give it."""
        return "x" * (MAX_RESULT_LENGTH + 1)

    assert called(give, {}).content == "x" * MAX_RESULT_LENGTH + CUT_MARKER


@pytest.mark.parametrize("fault", [Transient("busy"), Permanent("closed"), EffectInDoubt("may have happened")])
def test_a_fault_ends_the_attempt_and_no_other_exception_does(fault: Exception) -> None:
    @tool
    def give(*, bad: bool) -> str:
        """Give it."""
        raise fault if bad else OSError("no disk \ud83d")

    with pytest.raises(type(fault)):
        called(give, {"bad": True})
    assert called(give, {"bad": False}).content == "OSError: no disk \ufffd"
