"""An example as somebody deploys it: the files that docs/models.md names, copied, and its constants edited."""

import importlib.util
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from rejoinder.ports import Turn
from stack import ROOT

ROW = re.compile(r"^\| (\[.*?) \|", re.MULTILINE)
"""A row of the table of examples: its first column links to all of its files."""

LINK = re.compile(r"\(\.\./examples/([\w.]+)\)")


def files_of_each() -> dict[str, list[str]]:
    """The files of each example, by its name."""
    table = (ROOT / "docs" / "models.md").read_text().partition("\n## Examples\n")[2]
    rows = [LINK.findall(row) for row in ROW.findall(table)]
    return {Path(files[0]).stem: files for files in rows}


def deployed(name: str, layer: Path, **constants: object) -> Callable[[Turn], object]:
    """Copy an example into an empty folder, edit its constants, and load it from there.

    Args:
        name: the example's.
        layer: the folder.
        constants: what stands in the place of the values at the top of its module.
    """
    for file in files_of_each()[name]:
        shutil.copy(ROOT / "examples" / file, layer)
    path = layer / f"{name}.py"
    source = path.read_text()
    for constant, value in constants.items():
        source, edited = re.subn(rf"^{constant} = .*$", f"{constant} = {value!r}", source, flags=re.MULTILINE)
        assert edited == 1, f"{name}.py has no constant {constant}"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    reply: Callable[[Turn], object] = module.reply
    return reply
