"""Read what came from outside: the proof, the JSON and its fields. Every refusal names the field and the limit."""

import hmac
import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from rejoinder.ports import Malformed, Permanent, Request
from rejoinder.protocol.conversation import Attachment

MAX_DEPTH = 64
"""No channel nests deeper; a megabyte of brackets would end in a RecursionError."""

MAX_INTEGER = 2**53
"""Ids above it do not survive other readers of JSON (RFC 8259, section 6)."""

MAX_ID_BYTES = 512
MAX_NAME_BYTES = 512
MAX_REF_BYTES = 4_096

_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
"""A string without an end is one, too: each of its escaped quotes would else begin the search for an end again."""


def same(given: str, expected: str) -> bool:
    """Compare in constant time; the given one may hold any character, lone surrogates too."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass"))


def require_json(request: Request) -> None:
    """Check the content type.

    Raises:
        Malformed: 415, not JSON.
    """
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != "application/json":
        raise Malformed(f"content-type is {given[:100]!r}; this channel takes application/json", status=415)


def read_object(body: bytes) -> dict[str, Any]:
    """Read a body that must be one JSON object.

    Raises:
        Malformed: not UTF-8, not JSON, nested too deeply, or not an object.
    """
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and too_deep(body):
        raise Malformed(f"JSON nested more than {MAX_DEPTH} deep")
    try:
        content = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise Malformed(f"body is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise Malformed(f"body is not JSON ({error.msg} at character {error.pos})") from None
    except ValueError:  # an integer of thousands of digits
        raise Malformed("body holds a number that cannot be read") from None
    if not isinstance(content, dict):
        raise Malformed("body is JSON, but not an object")
    return content


def too_deep(body: bytes) -> bool:
    """Whether JSON is nested more than `MAX_DEPTH` deep, brackets in strings aside."""
    level = 0
    for found in _STRING_OR_BRACKET.finditer(body):
        token = found[0]
        if token in b"[{":
            level += 1
            if level > MAX_DEPTH:
                return True
        elif token in b"]}":
            level -= 1
    return False


def _refuse_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is not JSON (RFC 8259, section 6)")


def text_field(source: Mapping[str, Any], name: str, *, max_bytes: int | None = None) -> str:
    """Read an optional text; absent and null are empty.

    Raises:
        Malformed: not a text, or too long.
    """
    value = source.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed(f"{name} is a {kind(value)}; a string is needed")
    if max_bytes is not None and len(value) * 4 > max_bytes:
        length = len(value.encode("utf-8", "surrogatepass"))
        if length > max_bytes:
            raise Malformed(f"{name} has {length} bytes; at most {max_bytes} are taken")
    return value


def id_field(source: Mapping[str, Any], name: str, *, max_bytes: int = MAX_ID_BYTES) -> str:
    """Read a required id: a text, or an integer, which is the same id written without quotes.

    Raises:
        Malformed: absent, empty, of another kind, or too long.
    """
    value = source.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(integer_field(source, name))
    text = text_field(source, name, max_bytes=max_bytes)
    if not text.strip():
        raise Malformed(f"{name} is missing; every message needs one")
    if "\0" in text:
        raise Malformed(f"{name} holds a NUL, which would not come back")
    return text


def integer_field(source: Mapping[str, Any], name: str) -> int:
    """Read a required integer.

    Raises:
        Malformed: absent, of another kind, or out of bounds.
    """
    value = source.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed(f"{name} is a {kind(value)}; an integer is needed")
    if abs(value) > MAX_INTEGER:
        raise Malformed(f"{name} is out of bounds; at most 2^53 either way")
    return value


def size_field(source: Mapping[str, Any], name: str) -> int:
    """Read an optional size in bytes; 0 where it is absent or makes no sense."""
    value = source.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value <= MAX_INTEGER else 0  # false for NaN and infinity


def object_field(source: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Read a required object.

    Raises:
        Malformed: absent, or of another kind.
    """
    value = source.get(name)
    if not isinstance(value, dict):
        raise Malformed(f"{name} is a {kind(value)}; an object is needed")
    return value


def objects_field(source: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Read a required list of objects.

    Raises:
        Malformed: absent, or not a list of objects.
    """
    value = source.get(name)
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise Malformed(f"{name} is a {kind(value)}; a list of objects is needed")
    return value


def coordinates(source: Mapping[str, Any]) -> str:
    """Read `latitude` and `longitude`, and write them as in a geo URI (RFC 5870): no number with a fraction is kept.

    Raises:
        Malformed: one is absent, or no number of degrees.
    """
    degrees = (source.get("latitude"), source.get("longitude"))
    if not all(
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 180 for value in degrees
    ):
        raise Malformed("location has no latitude and longitude in degrees")
    return ",".join(f"{value:.6f}".rstrip("0").rstrip(".") for value in degrees)


def payload_of(payload: str, text: str) -> tuple[Attachment, ...]:
    """Keep what a button that was pressed means, where its text does not say it already."""
    return (Attachment("payload", payload, "button"),) if payload not in {"", text} else ()


def kind(value: object) -> str:
    """Name a JSON value's kind for a reason; never the value."""
    match value:
        case None:
            return "null or missing value"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "list"
        case _:
            return "object"


def require_fields(channel: str, via: str, fields: Mapping[str, str], needed: Mapping[str, str]) -> None:
    """Check an account's fields, naming every missing one with where to find it.

    Raises:
        Permanent: at least one is missing or blank.
    """
    missing = [name for name in needed if not fields.get(name, "").strip()]
    if missing:
        explained = "; ".join(f"{name}: {needed[name]}" for name in missing)
        raise Permanent(f"channel {channel}, account {via}: missing {', '.join(missing)} ({explained})")
