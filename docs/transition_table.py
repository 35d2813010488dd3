"""Writes the table of transitions in docs/protocol.md from their docstrings and signatures: `make docs`."""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import get_args, get_type_hints

from rejoinder.ports import Store
from rejoinder.protocol import amending, erasing, pausing, promising, transitions

PAGE = Path(__file__).with_name("protocol.md")
BEGIN, END = "<!-- transitions: made by `make docs` -->", "<!-- end of transitions -->"


def table() -> str:
    """The table, one row per transition, in the order of the source."""
    rows = [" | ".join(["", f"`{name}`", *row_of(function), ""]).strip() for name, function in found()]
    return "\n".join(["| name | it is for | condition | effect | answers |", "|---|---|---|---|---|", *rows])


def found() -> list[tuple[str, Callable[..., object]]]:
    """Every transition, by its name."""
    return [
        (name, value)
        for module in (transitions, amending, pausing, promising, erasing)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and hasattr(Store, name)
    ]


def row_of(function: Callable[..., object]) -> list[str]:
    """Purpose, condition, effect and answers of one transition."""
    doc = inspect.cleandoc(function.__doc__ or "")
    section = re.search(r"^Transition:\n((?: +.*\n?)+)", doc, re.MULTILINE)
    if section is None:
        raise ValueError(f"{function}: its docstring has no section `Transition:`")
    text = re.sub(r"\n {8}", " ", section.group(1))
    fields = dict(line.strip().split(": ", 1) for line in textwrap.dedent(text).strip().splitlines())
    answers = get_type_hints(function)["return"]
    named = [answer.__name__ for answer in (get_args(answers) or (answers,))]
    return [doc.splitlines()[0], fields["if"], fields["then"], ", ".join(named)]


def written(page: str) -> str:
    """The page with the table as it should be."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    fresh = written(PAGE.read_text())
    if "--check" in sys.argv and fresh != PAGE.read_text():
        sys.exit("docs/protocol.md is stale: run `make docs`")
    PAGE.write_text(fresh)
