"""The field cases as they were gathered (README.md beside this file), read once, shorthands expanded."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).with_name("field-cases.jsonl")


@dataclass(frozen=True, slots=True)
class Case:
    """One record: what happened to somebody, as steps on a time-line, and what should come of it."""

    id: str
    area: str
    channel: str
    symptom: str
    source_url: str
    config: dict[str, Any]
    steps: tuple[dict[str, Any], ...]
    expect: dict[str, Any]


@cache
def all_cases() -> dict[str, Case]:
    """Every case by its id, in the order of the file."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines()
    return {case.id: case for case in map(_case, lines)}


def _case(line: str) -> Case:
    record = expanded(json.loads(line))
    return Case(
        record["id"],
        record["area"],
        record["channel"],
        record["symptom"],
        record["source_url"],
        record["input"]["config"],
        tuple(record["input"]["steps"]),
        record["expect"],
    )


def expanded(value: Any) -> Any:
    """Expand `{"$repeat": [text, n]}` and `{"$concat": [...]}`, at any depth."""
    match value:
        case {"$repeat": [str(text), int(times)]}:
            return text * times
        case {"$concat": list(parts)}:
            return "".join(expanded(part) for part in parts)
        case dict():
            return {name: expanded(inner) for name, inner in value.items()}
        case list():
            return [expanded(inner) for inner in value]
        case _:
            return value
