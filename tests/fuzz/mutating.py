"""Changes that keep JSON what it is: a fuzzer that changes bytes alone rarely gets past the parser.

JSON in a string (Amazon SNS's messages, WhatsApp's entries in them, what a queue brings) is opened as well.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from fuzz.targets import SEPARATOR

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**53 + 1, -(10**20), 1e300, "", " ", "\0", "0", "\ud83d", "x" * 600, "é:/%#+",
    [], {}, [[]], [None], {"": ""}, "{}", "[]",
)  # fmt: skip
"""Values of every kind, and at the edges of their kinds."""

DEEPEST = 6
"""Containers within containers that a change goes down."""


def mutated(content: bytes, seed: int, longest: int) -> bytes | None:
    """Change one place of the JSON that an input begins with; None where it is none, or would be too long.

    Args:
        content: the input.
        seed: what decides; the same one makes the same change.
        longest: bytes.
    """
    body, separator, rest = content.partition(SEPARATOR)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list):
        return None
    random = Random(seed)  # noqa: S311  # a test's
    changed(value, random, 0)
    written = json.dumps(value, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    made = written + separator + rest
    return made if len(made) <= longest else None


def changed(value: dict[str, Any] | list[Any], random: Random, depth: int) -> None:
    """Change one place of a container, or of one within it."""
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    container: Any = value
    if not keys:
        container.update(hologram=1) if isinstance(container, dict) else container.append(random.choice(ODD))
        return
    key = random.choice(keys)
    within = opened(container[key])
    if within is not None and depth < DEEPEST and random.random() < 0.8:
        inner, close = within
        changed(inner, random, depth + 1)
        container[key] = close(inner)
        return
    match random.randrange(5):
        case 0:
            del container[key]
        case 1:
            container[key] = [container[key]]
        case 2:
            container[key] = container[random.choice(keys)]
        case _:
            container[key] = random.choice(ODD)


def opened(value: Any) -> tuple[dict[str, Any] | list[Any], Callable[[Any], Any]] | None:
    """A container, and how what was changed in it is put back; None for anything else."""
    if isinstance(value, dict | list):
        return value, lambda inner: inner
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            return json.loads(value), json.dumps
        except (ValueError, RecursionError):
            return None
    return None
