"""Generated pages say what the code says."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_transitions_is_fresh() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "transition_table.py"))
    page = (ROOT / "docs" / "protocol.md").read_text()
    assert script["written"](page) == page, "run `make docs`"


def test_every_transition_is_in_the_table() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text()
    for name in ("record", "claim", "resume", "commit", "commit_partial", "finish", "release_refused"):
        assert f"| `{name}` |" in page
