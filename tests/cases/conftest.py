"""The field cases in pytest's summary: how many passed, which differ by policy, which are left to a later issue."""

from collections import defaultdict

import pytest

from cases.catalog import all_cases
from cases.status import Later, Policy, status_of


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the count of those that were played, where any were."""
    played: dict[str, set[str]] = defaultdict(set)
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            _, found, parameters = getattr(report, "nodeid", "").partition("test_field_cases.py::test_case[")
            if found:
                played[outcome].add(parameters[: len("FC-000")])
    failed = played["failed"] | played["error"]
    passed = played["passed"] - failed
    if not passed | failed:
        return
    statuses = {case_id: status_of(case_id) for case_id in all_cases()}
    policies = {case_id: status for case_id, status in statuses.items() if isinstance(status, Policy)}
    later: dict[str, list[str]] = defaultdict(list)
    for case_id, status in statuses.items():
        if isinstance(status, Later):
            later[status.issue].append(case_id)
    left = "; ".join(f"{issue}: {' '.join(ids)}" for issue, ids in sorted(later.items()))
    terminalreporter.section("field cases")
    terminalreporter.line(
        f"field cases: {len(passed - policies.keys())} passed, {len(passed & policies.keys())} by policy, "
        f"{sum(map(len, later.values()))} left to a later issue ({left})"
        + (f", {len(failed)} FAILED ({' '.join(sorted(failed))})" if failed else "")
    )
    if config.get_verbosity() > 0:
        for case_id, policy in policies.items():
            terminalreporter.line(f"  {case_id}: {policy.reason}")
