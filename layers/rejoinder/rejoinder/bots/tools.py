"""Tools: a typed function that a model may call. Its signature and docstring say how, and what it is for."""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any, Literal, Protocol, get_type_hints, overload

from rejoinder.bots.model import Call, Result, ToolSpec
from rejoinder.bots.schema import KNOWN, Field, WrongArgument, described, object_schema, read_object, shape_of
from rejoinder.ports import Fault, Turn
from rejoinder.protocol.unicode import valid

MAX_RESULT_LENGTH = 20_000
"""A longer result is cut, with a marker: it is read again in every further round."""

CUT_MARKER = "\n[cut: the rest of the result is too long]"

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every API takes as a tool's name."""


@dataclass(frozen=True, slots=True)
class Effect:
    """How a tool that does something beyond the conversation goes through `turn.once`; see `ports.Once`.

    Attributes:
        check: takes what the tool takes, and is given all of it, by name: what the model left out by its default.
    """

    in_doubt: Literal["hold", "retry"] = "hold"
    check: Callable[..., Any] | None = None
    refused: tuple[type[Exception], ...] = ()


@dataclass(frozen=True, slots=True)
class Tool[**P, R]:
    """A function that a model may call; called by anybody else, it is the function.

    Attributes:
        function: as it was written.
        spec: what the model is told.
        parameters: by their names.
        wants_turn: the name of the parameter that is given the turn; empty: none.
        effect: None for a tool that may run as often as it likes.
        key: the arguments that tell one effect from another, each with its default.
    """

    function: Callable[P, R]
    spec: ToolSpec
    parameters: Mapping[str, Field]
    wants_turn: str = ""
    effect: Effect | None = None
    key: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.function(*args, **kwargs)

    def run(self, arguments: Mapping[str, Any], turn: Turn) -> Any:
        """Call the function as the model asks; gives its result as JSON can say it.

        Raises:
            WrongArgument: the arguments are not what it takes.
        """
        given: Any = read_object(self.parameters, dict(arguments), "")
        given |= {self.wants_turn: turn} if self.wants_turn else {}
        function: Callable[..., Any] = self.function
        if (effect := self.effect) is None:
            return as_json(function(**given))
        check = effect.check
        asked = inspect.signature(function).bind(**given)
        asked.apply_defaults()
        return turn.once(
            self.spec.name,
            key_of({**self.key, **{name: given[name] for name in self.key if name in given}}),
            lambda: as_json(function(**given)),
            in_doubt=effect.in_doubt,
            check=None if check is None else lambda: as_json(check(**asked.arguments)),
            refused=effect.refused,
        )


class Decorator(Protocol):
    """Makes a tool of any function."""

    def __call__[**P, R](self, function: Callable[P, R], /) -> Tool[P, R]:
        """Make it."""


@overload
def tool[**P, R](function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    effect: bool = False,
    key: tuple[str, ...] | None = None,
    in_doubt: Literal["hold", "retry"] = "hold",
    refused: tuple[type[Exception], ...] = (),
) -> Decorator: ...
@overload
def tool[**P, R](
    *,
    effect: Literal[True],
    check: Callable[P, R | None],
    key: tuple[str, ...] | None = None,
    in_doubt: Literal["hold", "retry"] = "hold",
    refused: tuple[type[Exception], ...] = (),
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: bool = False,
    key: tuple[str, ...] | None = None,
    in_doubt: Literal["hold", "retry"] = "hold",
    check: Callable[..., Any] | None = None,
    refused: tuple[type[Exception], ...] = (),
) -> Any:
    """Make a tool of a function with annotated parameters and a Google docstring.

    A parameter that is annotated `Turn` is given the turn, and the model does not see it. Whatever the function raises
    is told to the model, which may try otherwise; only a `Fault` ends the attempt.

    Args:
        function: where the decorator is written without parentheses.
        effect: it does something beyond the conversation (books, charges, sends), which must happen once although a
            turn may be generated again: it goes through `turn.once`, and what the function is given is the key.
        key: of an effect: the names of those arguments alone that tell one from another within a turn; with `()` there
            is one in a turn. What a model may word in another way, when it is asked again, is better left out.
        in_doubt: of an effect: see `ports.Once`.
        check: likewise; takes what the tool takes, and is given its defaults too.
        refused: likewise; the model is told of these.

    Raises:
        TypeError: the signature cannot be told to a model, there is no docstring, or `check` takes something else.
    """
    if not effect and (key, in_doubt, check, refused) != (None, "hold", None, ()):
        raise TypeError("key, in_doubt, check and refused are of an effect; write @tool(effect=True, …)")
    policy = Effect(in_doubt, check, refused) if effect else None
    return (lambda given: _made(given, policy, key)) if function is None else _made(function, policy, key)


def _made(function: Callable[..., Any], effect: Effect | None, key: tuple[str, ...] | None) -> Tool[..., Any]:
    name = getattr(function, "__name__", "")
    if not _NAME.fullmatch(name):
        raise TypeError(f"tool {name!r}: a tool's name is made of 1 to 64 letters, digits, `_` and `-`")
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"tool {name}: it is async; a tool is a plain function")
    description, about = described(function.__doc__ or "")
    if not description:
        raise TypeError(f"tool {name} has no docstring; the model reads there what it is for")
    hints = get_type_hints(function)
    parameters: dict[str, Field] = {}
    wants_turn = ""
    for parameter in inspect.signature(function).parameters.values():
        where = f"tool {name}: parameter {parameter.name} is"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{where} {parameter.kind.description}; a tool's parameters are passed by name")
        if parameter.name not in hints:
            raise TypeError(f"{where} not annotated; a tool takes {KNOWN}")
        if hints[parameter.name] is Turn:
            wants_turn = parameter.name
            continue
        try:
            shape = shape_of(hints[parameter.name])
        except TypeError as error:
            raise TypeError(f"{where} {error}") from None
        required = parameter.default is parameter.empty
        parameters[parameter.name] = Field(shape, required, about.get(parameter.name, ""))
    if effect is not None and effect.check is not None:
        _takes(effect.check, name, inspect.signature(function).parameters)
    spec = ToolSpec(name, description, object_schema(parameters))
    told_apart = {} if effect is None else _defaults(function, name, parameters if key is None else key, parameters)
    return Tool(function, spec, parameters, wants_turn, effect, told_apart)


def _takes(check: Callable[..., Any], tool_name: str, names: Iterable[str]) -> None:
    """See that a check takes what its tool takes: that is found when the bot is loaded, and not when it is in doubt.

    Raises:
        TypeError: it does not.
    """
    given = list(names)
    try:
        inspect.signature(check).bind(**dict.fromkeys(given))
    except TypeError as error:
        raise TypeError(f"tool {tool_name}: its check is given {', '.join(given) or 'nothing'}, and {error}") from None


def _defaults(
    function: Callable[..., Any], tool_name: str, names: Iterable[str], known: Iterable[str]
) -> dict[str, Any]:
    """Find the arguments of an effect's key, each with its default: None where it has none, since it is given then.

    Raises:
        TypeError: there is no such argument, or its default is no JSON.
    """
    signature = inspect.signature(function).parameters
    defaults: dict[str, Any] = {}
    for name in names:
        if name not in known:
            raise TypeError(f"tool {tool_name}: key names {name!r}; its arguments are {', '.join(known) or 'none'}")
        default = signature[name].default
        defaults[name] = None if default is inspect.Parameter.empty else default
        try:
            key_of(defaults)
        except TypeError:
            raise TypeError(
                f"tool {tool_name}: parameter {name} has a default that is no JSON (a {type(default).__name__}); give "
                "it another, or leave it out of the effect's key (key=…)"
            ) from None
    return defaults


def key_of(arguments: Mapping[str, Any]) -> Any:
    """Write arguments as an effect's key: JSON, in which 9 and 9.0 are one number.

    Raises:
        TypeError: they hold something else.
    """
    return json.loads(json.dumps(as_json(arguments)), parse_float=_number)


def _number(written: str) -> int | float:
    number = float(written)
    return int(number) if number.is_integer() else number


def use(tools: Mapping[str, Tool[..., Any]], call: Call, turn: Turn) -> Result:
    """Do what a model asks for. What goes wrong is a result, too: the model reads it, and may try otherwise.

    Raises:
        Fault: the tool's own, which ends the attempt.
    """
    if call.arguments is None:
        return Result(call, call.fault, failed=True)
    if (found := tools.get(call.name)) is None:
        return Result(call, f"there is no tool {call.name!r}; there are {', '.join(tools) or 'none'}", failed=True)
    try:
        return Result(call, written(found.run(call.arguments, turn)))
    except Fault:
        raise
    except WrongArgument as wrong:
        return Result(call, f"{wrong}; call again with what the tool takes", failed=True)
    except Exception as error:  # noqa: BLE001  # whatever it is, the model can deal with it better than the attempt
        return Result(call, cut(valid(f"{type(error).__name__}: {error}")), failed=True)


def as_json(value: Any) -> Any:
    """Make of a result what JSON can say: dataclasses as objects, enums as their values, "inf" and "nan" as texts.

    Raises:
        TypeError: it holds something else.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return as_json(asdict(value))
    match value:
        case Enum():
            return value.value
        case Mapping():
            return {str(as_json(name)): as_json(inner) for name, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [as_json(inner) for inner in value]
        case float() if not isfinite(value):
            return str(value)
        case str() | int() | float() | None:
            return value
    raise TypeError(
        f"the result holds a {type(value).__name__}; a tool returns what JSON can say, dataclasses or enums"
    )


def written(result: Any) -> str:
    """Write a result for the model: a text as it is, anything else as JSON; what is blank says that it is done."""
    text = valid(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False))
    return cut(text) if text.strip() and result is not None else "done"


def cut(text: str) -> str:
    """Bound a text for the model."""
    return text if len(text) <= MAX_RESULT_LENGTH else text[:MAX_RESULT_LENGTH] + CUT_MARKER
