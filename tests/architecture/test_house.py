"""The rules of the house that a machine can hold: imports, sizes, names, and what must stand in no file."""

import ast
import logging
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from rejoinder.observe.happenings import HAPPENINGS
from stack import ROOT

PACKAGE = ROOT / "layers" / "rejoinder" / "rejoinder"
CODE = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "functions").rglob("*.py"), *(ROOT / "examples").rglob("*.py")])

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
NOT_USED = {"lock", "session", "job", "handle", "process", "manager", "utils", "helpers", "data", "info"}
"""Words that mean everything (architecture.md, "Names")."""

THEIRS = {"handle_error"}
"""Methods of the standard library's base classes."""


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def definitions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_import_contracts_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == 0


def test_functions_know_wiring_and_use_cases_and_no_adapter() -> None:
    """They are no package, so import-linter does not see them."""
    allowed = {
        "wiring",
        "ingest",
        "generate",
        "sweep",
        "settings",
        "observe",
        "gateway",
        "notifications",
        "ports",
        "run",
    }
    for path in (ROOT / "functions").rglob("*.py"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                assert all(not name.name.startswith(("rejoinder", "boto", "pynamodb")) for name in node.names)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rejoinder"):
                parts = node.module.split(".")
                known = {parts[1]} if len(parts) > 1 else {name.name for name in node.names}
                assert known <= allowed, f"{shown(path)} imports {known - allowed}"


def test_modules_and_functions_are_short() -> None:
    long = [
        f"{shown(path)} has {lines} lines"
        for path in CODE
        if (lines := len(path.read_text().splitlines())) >= MAX_MODULE_LINES
    ]
    for path in CODE:
        for node in definitions(path):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if not isinstance(node, ast.ClassDef) and lines >= MAX_FUNCTION_LINES:
                long.append(f"{shown(path)}: {node.name} has {lines} lines")
    assert long == []


def test_the_functions_apps_are_a_page_at_most() -> None:
    for path in (ROOT / "functions").rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 60, shown(path)


def test_nothing_is_called_by_a_word_that_means_everything() -> None:
    named = [(shown(path), path.stem) for path in CODE]
    named += [(shown(path), node.name) for path in CODE for node in definitions(path)]
    words = [
        (where, name)
        for where, name in named
        if NOT_USED & {word.lower() for word in re.split(r"_|(?<=[a-z])(?=[A-Z])", name)} and name not in THEIRS
    ]
    assert words == []


def test_no_module_of_the_hot_path_imports_asyncio() -> None:
    for path in (PACKAGE / "ingest.py", PACKAGE / "generate.py", PACKAGE / "run.py", PACKAGE / "wiring.py"):
        assert "import asyncio" not in path.read_text()


def committed() -> list[Path]:
    """What is ours: the bot is its owner's, who may write it as they like."""
    ours = ["git", "ls-files", "--", ":(exclude)layers/bot"]
    listed = subprocess.run(ours, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.splitlines() if (path := ROOT / name).is_file()]


def test_no_file_promises_anything_for_later_or_names_this_machine() -> None:
    later = ["TO" + "DO", "FIX" + "ME", "XX" + "X"]
    here = ["/wo" + "rk/", "/ro" + "ot/", "py" + "pi.org", "index" + "-url"]
    pattern = re.compile("|".join([*(rf"\b{word}\b" for word in later), *(re.escape(word) for word in here)]))
    found = []
    for path in committed():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue  # a picture
        if path.suffix != ".jsonl":  # field cases are quoted from elsewhere
            found += [f"{shown(path)}: {match[0]}" for match in pattern.finditer(text)]
    assert found == []


def happenings() -> Iterator[tuple[str, ast.Call]]:
    """Every `….happened("name", …)` of the package and the functions."""
    for path in CODE:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "happened":
                first = node.args[0]
                names = [value.value for value in ast.walk(first) if isinstance(value, ast.Constant)]
                for name in names:
                    if isinstance(name, str):
                        yield name, node


def test_everything_that_happens_has_its_fixed_name() -> None:
    """A happening that is not in the table would be an error in the log, and its alarm would watch nothing."""
    assert {name for name, _ in happenings()} == HAPPENINGS.keys()


def test_no_field_of_a_happening_is_one_of_the_log_record_s_own() -> None:
    """The logging package raises for such a field, and an observer never fails."""
    record = logging.LogRecord("name", logging.INFO, "path", 1, "message", (), None)
    own = set(vars(record)) | {"message", "asctime", "level", "timestamp", "service", "request_id"}
    for name, call in happenings():
        assert not own & {keyword.arg for keyword in call.keywords}, name
