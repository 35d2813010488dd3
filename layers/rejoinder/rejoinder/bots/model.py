"""What goes to a model and what comes back, in no API's own words: what the adapters translate from and to."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, Protocol

from rejoinder.ports import Media, Transient
from rejoinder.protocol.unicode import valid, valid_throughout


@dataclass(frozen=True, slots=True)
class Entry:
    """What one side said, before the model is asked.

    Attributes:
        content: never blank.
        images: for a model that takes them, each of a type of `ports.PICTURES`; the content calls them `[image 1]`,
            `[image 2]`, …
    """

    role: Literal["user", "assistant"]
    content: str
    images: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it.

    Attributes:
        parameters: JSON schema of an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model asks for.

    Attributes:
        arguments: None where what came is not a JSON object; `fault` says so, for the model to read.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] | None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a tool call.

    Attributes:
        content: never blank.
    """

    call: Call
    content: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a model, in valid Unicode: an API may cut a character in two, and no other takes a half of one.

    Attributes:
        ended: `whole`; `cut` off at the longest answer; or `withheld` by a content filter, or refused by the model.
        own: the answer as its API wants it back in the next round (it may hold more than text and calls).
    """

    text: str
    calls: tuple[Call, ...] = ()
    ended: Literal["whole", "cut", "withheld"] = "whole"
    own: Any = None


@dataclass(frozen=True, slots=True)
class Round:
    """An answer that asked for tools, and what became of its calls, in their order."""

    completion: Completion
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """All that a model is told.

    Attributes:
        entries: user and assistant by turns; the first and the last are the user's.
        rounds: what has happened since the last entry.
    """

    system: str
    entries: tuple[Entry, ...]
    tools: tuple[ToolSpec, ...] = ()
    rounds: tuple[Round, ...] = ()


@dataclass(slots=True)
class Usage:
    """What one call has used up; it grows while the answer comes, so that of one that is cut something is known too.

    Attributes:
        asked: tokens of the question, as the API tells; None: it has not.
        answered: tokens of the answer, likewise.
        written_bytes: of the answer so far.
    """

    asked: int | None = None
    answered: int | None = None
    written_bytes: int = 0

    def wrote(self, piece: str) -> None:
        """Count a piece of the answer."""
        self.written_bytes += len(piece.encode("utf-8", "replace"))

    def told(self, about: object, asked: Sequence[str], answered: str) -> None:
        """Take what an API tells; what is no count is left out, since an answer is worth more than its price.

        Args:
            about: its object of counts.
            asked: the names of the counts that make the question, together.
            answered: the name of the count of the answer.
        """
        if not isinstance(about, Mapping):
            return
        counts = [count for name in asked if type(count := about.get(name)) is int and count >= 0]
        if counts:
            self.asked = sum(counts)
        if type(count := about.get(answered)) is int and count >= 0:
            self.answered = count


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms a model is asked.

    Attributes:
        total_ms: until the answer is complete.
        silence_ms: the longest that the other side may say nothing.
        check: called with each piece that comes; raises where the answer is not wanted any more.
        secret: gives a key by its reference; what is none comes back as it is.
        usage: told by the adapter what the call costs.
    """

    total_ms: int
    silence_ms: int
    check: Callable[[], None]
    secret: Callable[[str], str]
    usage: Usage = field(default_factory=Usage)


class Model(Protocol):
    """A model behind its API. It translates, and neither waits nor tries again."""

    @property
    def images(self) -> bool:
        """Whether it takes images."""

    def ask(self, question: Question, terms: Terms) -> Completion:
        """Make one call.

        Raises:
            Transient: it may work later; `ours` where key, address or model are wrong.
            Permanent: it never will, as it was asked.
            UnknownOutcome: the answer did not come, or not to its end.
        """


def read_call(call_id: str, name: str, written: str) -> Call:
    """Read a tool call whose arguments came as text; none at all are an empty object, as some models write it.

    Python reads numbers that JSON has not, and writes them again; no server would read them.
    """
    call_id, name = valid(call_id), valid(name)
    try:
        arguments = valid_throughout(json.loads(written or "{}", parse_constant=_finite, parse_float=_finite))
    except (ValueError, RecursionError) as error:
        return Call(call_id, name, None, f"the arguments are not valid JSON ({error}); call again with valid JSON")
    if not isinstance(arguments, dict):
        return Call(call_id, name, None, f"the arguments are a {type(arguments).__name__}; they must be a JSON object")
    return Call(call_id, name, arguments)


def _finite(written: str) -> float:
    """Read a number.

    Raises:
        ValueError: it is none, or greater than any that can be written again.
    """
    if not isfinite(number := float(written)):
        raise ValueError("a number is not finite")
    return number


@contextmanager
def well_formed() -> Iterator[None]:
    """Read what a server sent; what has not its API's form is a fault of the server's.

    Raises:
        Transient: it has not.
    """
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        raise another_form("JSON of another form") from None


def another_form(what: str) -> Transient:
    """The fault of a server whose answer is none of its API's."""
    return Transient(f"the model's server answered with {what}")
