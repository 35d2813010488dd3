"""The field cases as lines of pytest's summary: how many passed, which differ by policy, which are left for later."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from cases.catalog import all_cases
from cases.status import Later, Policy, status_of

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
    later = by_issue({case_id: status for case_id, status in statuses.items() if isinstance(status, Later)})
    whole = passed - failed
    counts = [
        f"{len(whole - policies.keys())} passed",
        f"{len(whole & policies.keys())} by policy",
        f"{sum(map(len, later.values()))} left to a later issue",
    ]
    if failed:
        counts.append(f"{len(failed)} FAILED ({' '.join(sorted(failed))})")
    return [
        f"field cases: {', '.join(counts)}",
        *(f"  left to {issue}: {' '.join(ids)}" for issue, ids in sorted(later.items())),
        *(f"  by policy, {case_id}: {policy.reason}" for case_id, policy in policies.items()),
    ]


def by_issue(later: Mapping[str, Later]) -> dict[str, list[str]]:
    """Gather what is left by the issue that it is left to."""
    gathered: dict[str, list[str]] = defaultdict(list)
    for case_id, status in later.items():
        gathered[status.issue].append(case_id)
    return gathered
