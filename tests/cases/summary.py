"""The field cases as lines of pytest's summary: how many passed, and which differ by policy."""

from collections.abc import Iterable

from cases.catalog import all_cases
from cases.status import Policy, status_of

TEST = "test_field_cases.py::test_case["


def played(node_ids: Iterable[str]) -> set[str]:
    """The cases among the tests with these node ids; a case is played in one or more variants."""
    return {node_id.partition(TEST)[2][: len("FC-000")] for node_id in node_ids if TEST in node_id}


def lines(passed: set[str], failed: set[str]) -> list[str]:
    """Write the summary.

    Args:
        passed: the cases of which at least one variant passed.
        failed: those of which at least one variant failed.
    """
    statuses = {case_id: status_of(case_id) for case_id in all_cases()}
    policies = {case_id: status for case_id, status in statuses.items() if isinstance(status, Policy)}
    whole = passed - failed
    counts = [
        f"{len(whole - policies.keys())} passed",
        f"{len(whole & policies.keys())} by policy",
    ]
    if failed:
        counts.append(f"{len(failed)} FAILED ({' '.join(sorted(failed))})")
    return [
        f"field cases: {', '.join(counts)}",
        *(f"  by policy, {case_id}: {policy.reason}" for case_id, policy in policies.items()),
    ]
