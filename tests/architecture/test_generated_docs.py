"""Generated pages say what the code says."""

import re
import runpy
from pathlib import Path

from rejoinder.observe.happenings import HAPPENINGS
from stack import resources

ROOT = Path(__file__).parents[2]


def test_the_table_of_transitions_is_fresh() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "transition_table.py"))
    page = (ROOT / "docs" / "protocol.md").read_text()
    assert script["written"](page) == page, "run `make docs`"


def test_what_the_model_sees_is_what_the_page_shows() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "prompting_examples.py"))
    page = (ROOT / "docs" / "prompting.md").read_text()
    assert script["written"](page) == page, "run `make docs`"


def test_every_transition_is_in_the_table() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text()
    for name in ("record", "claim", "resume", "commit", "commit_partial", "finish", "release_refused"):
        assert f"| `{name}` |" in page


def test_operators_find_every_happening_and_every_alarm() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE))
    assert rows == HAPPENINGS
    for alarm in resources("AWS::CloudWatch::Alarm"):
        assert f"`{alarm}`" in page
