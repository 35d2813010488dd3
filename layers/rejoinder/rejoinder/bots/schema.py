"""JSON schema of a tool's parameters from their annotations, and the way back: what a model wrote as what they say.

A `Shape` is both at once, so that nothing can be promised to the model that is not checked.
"""

import inspect
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

KNOWN = "str, int, float, bool, list[…], dict[str, …], Literal, Enum, … | None, or a dataclass of these"

_SECTION = re.compile(r"(Args|Arguments|Attributes|Example|Examples|Note|Notes|Raises|Returns|Yields):\s*")
_DESCRIBED = re.compile(r"(?P<name>\w+)(?: \([^)]*\))?: *(?P<text>.*)")


class WrongArgument(Exception):  # noqa: N818  # what it says is for the model
    """What the model wrote is not what the tool takes."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One annotation.

    Attributes:
        schema: for the model.
        read: makes of parsed JSON what the function gets; is told where it stands, and raises `WrongArgument`.
    """

    schema: Mapping[str, Any]
    read: Callable[[Any, str], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter, or one field of a dataclass."""

    shape: Shape
    required: bool
    description: str = ""


def shape_of(annotation: Any) -> Shape:
    """Find the shape of an annotation.

    Raises:
        TypeError: it has none.
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if origin is Literal:
        return _one_of({value: value for value in inner})
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _one_of({member.value: member for member in annotation})
    if origin in (Union, types.UnionType) and len(inner) == 2 and type(None) in inner:
        return _optional(shape_of(next(one for one in inner if one is not type(None))))
    if annotation is list or origin is list:
        return _list(shape_of(inner[0])) if inner else _PLAIN_LIST
    if annotation is dict or (origin is dict and inner[0] is str):
        return _dict(shape_of(inner[1])) if inner else _PLAIN_DICT
    if isinstance(annotation, type) and is_dataclass(annotation):
        return _dataclass(annotation)
    raise TypeError(f"annotated {inspect.formatannotation(annotation)}; a tool takes {KNOWN}")


def object_schema(named: Mapping[str, Field]) -> dict[str, Any]:
    """The schema of an object with these fields and no other."""
    properties = {
        name: {**field.shape.schema} | ({"description": field.description} if field.description else {})
        for name, field in named.items()
    }
    required = [name for name, field in named.items() if field.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def read_object(named: Mapping[str, Field], written: Any, where: str) -> dict[str, Any]:
    """Read an object with these fields.

    Raises:
        WrongArgument: it is none, lacks one, or has another.
    """
    if not isinstance(written, dict):
        raise WrongArgument(f"{where or 'the arguments'} must be an object, not {_json_type(written)}")
    dot = f"{where}." if where else ""
    if unknown := written.keys() - named.keys():
        raise WrongArgument(f"there is no {dot}{min(unknown)}; there are {', '.join(named) or 'no parameters'}")
    if missing := [name for name, field in named.items() if field.required and name not in written]:
        raise WrongArgument(f"{dot}{missing[0]} is missing")
    return {name: named[name].shape.read(value, f"{dot}{name}") for name, value in written.items()}


def described(docstring: str) -> tuple[str, dict[str, str]]:
    """Read a Google docstring: what it says before the first section, and of each parameter or attribute."""
    said: list[str] = []
    about: dict[str, str] = {}
    section, indent, name = "", 0, ""
    for line in inspect.cleandoc(docstring).splitlines():
        if found := _SECTION.fullmatch(line):
            section, indent, name = found[1], 0, ""
        elif not section:
            said.append(line)
        elif section in {"Args", "Arguments", "Attributes"} and line.strip():
            depth = len(line) - len(line.lstrip())
            indent = indent or depth
            if depth == indent and (entry := _DESCRIBED.fullmatch(line.strip())):
                name = entry["name"]
                about[name] = entry["text"]
            elif name:
                about[name] = f"{about[name]} {line.strip()}".strip()
    return "\n".join(said).strip(), about


def _plain(kind: type, schema: str, *also: type) -> Shape:
    def read(written: Any, where: str) -> Any:
        fits = isinstance(written, (kind, *also)) and (kind is bool or not isinstance(written, bool))
        if not fits:
            raise WrongArgument(f"{where} must be {_NAMED[schema]}, not {_json_type(written)}")
        return written

    return Shape({"type": schema}, read)


def _read_int(written: Any, where: str) -> int:
    if isinstance(written, float) and written.is_integer():  # JSON has one kind of number, and models write 3.0
        written = int(written)
    if not isinstance(written, int) or isinstance(written, bool):
        raise WrongArgument(f"{where} must be a whole number, not {_json_type(written)}")
    return written


def _read_float(written: Any, where: str) -> float:
    return float(_NUMBER.read(written, where))


def _one_of(meaning: Mapping[Any, Any]) -> Shape:
    allowed = ", ".join(map(repr, meaning))
    kinds = {type(value) for value in meaning}
    if not kinds <= {str, int}:
        raise TypeError(f"of the values {allowed}; a tool takes values that are str or int")

    def read(written: Any, where: str) -> Any:
        if not isinstance(written, str | int) or isinstance(written, bool) or written not in meaning:
            raise WrongArgument(f"{where} must be one of {allowed}, not {written!r}")
        return meaning[written]

    kind = {frozenset({str}): {"type": "string"}, frozenset({int}): {"type": "integer"}}.get(frozenset(kinds), {})
    return Shape({**kind, "enum": list(meaning)}, read)


def _optional(shape: Shape) -> Shape:
    """The schema says nothing of null: a model leaves such a parameter out, and not every API takes two types."""
    return Shape(shape.schema, lambda written, where: None if written is None else shape.read(written, where))


def _list(items: Shape) -> Shape:
    def read(written: Any, where: str) -> list[Any]:
        values: list[Any] = _PLAIN_LIST.read(written, where)
        return [items.read(value, f"{where}[{index}]") for index, value in enumerate(values)]

    return Shape({"type": "array", "items": items.schema}, read)


def _dict(values: Shape) -> Shape:
    def read(written: Any, where: str) -> dict[str, Any]:
        entries: dict[str, Any] = _PLAIN_DICT.read(written, where)
        return {name: values.read(value, f"{where}.{name}") for name, value in entries.items()}

    return Shape({"type": "object", "additionalProperties": values.schema}, read)


def _dataclass(kind: type) -> Shape:
    hints = get_type_hints(kind)
    _, about = described(kind.__doc__ or "")
    named = {}
    for entry in fields(kind):
        try:
            shape = shape_of(hints[entry.name])
        except TypeError as error:
            raise TypeError(f"{kind.__name__}, whose field {entry.name} is {error}") from None
        required = entry.default is MISSING and entry.default_factory is MISSING
        named[entry.name] = Field(shape, required, about.get(entry.name, ""))
    return Shape(object_schema(named), lambda written, where: kind(**read_object(named, written, where)))


def _json_type(written: Any) -> str:
    match written:
        case None:
            return "null"
        case bool():
            return f"a boolean ({str(written).lower()})"
        case int() | float():
            return f"a number ({written})"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


_NAMED = {
    "string": "a string",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
}
_NUMBER = _plain(float, "number", int)
_PLAIN: dict[Any, Shape] = {
    str: _plain(str, "string"),
    int: Shape({"type": "integer"}, _read_int),
    float: Shape(_NUMBER.schema, _read_float),
    bool: _plain(bool, "boolean"),
}
_PLAIN_LIST = _plain(list, "array")
_PLAIN_DICT = _plain(dict, "object")
