"""The field cases, each played on the real use cases, channels and lanes in virtual time (README.md)."""

import ast
from pathlib import Path

import pytest

from cases import summary
from cases.catalog import Case, all_cases
from cases.runner import play, variants
from cases.stage import Variant
from cases.status import OWN_TESTS, POLICIES, OwnTest

PLAYED = [
    pytest.param(case, variant, id=f"{case.id}-{variant}")
    for case in all_cases().values()
    for variant in variants(case)
]


@pytest.mark.parametrize(("case", "variant"), PLAYED)
def test_case(case: Case, variant: Variant) -> None:
    """What the record expects, nothing lost and nothing doubled."""
    play(case, variant)


def test_every_case_is_accounted_for() -> None:
    """100 records, each with one status; no table names a case that there is not, or two of them the same."""
    assert len(all_cases()) == 100
    tables = [POLICIES.keys(), OWN_TESTS.keys()]
    named = [case_id for table in tables for case_id in table]
    assert len(set(named)) == len(named)
    assert set(named) <= all_cases().keys()


def test_own_tests_exist() -> None:
    """Each case that a test of its own decides names one that is there."""
    for own in OWN_TESTS.values():
        assert isinstance(own, OwnTest)
        module, _, function = own.test.partition("::")
        tree = ast.parse(Path(__file__).with_name(module).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, own.test


def test_the_summary_counts_each_case_once() -> None:
    """A case of several variants passes as a whole or not at all, and is never counted twice."""
    where = "tests/cases/test_field_cases.py::test_case"
    passed = summary.played([f"{where}[FC-142-both]", f"{where}[FC-142-queue]", f"{where}[FC-143-both]", "other::test"])
    failed = summary.played([f"{where}[FC-142-scheduler]"])
    first, *rest = summary.lines(passed, failed)
    assert first == "field cases: 0 passed, 1 by policy, 1 FAILED (FC-142)"
    assert [line.split()[2] for line in rest if line.startswith("  by policy")] == [f"{name}:" for name in POLICIES]
