"""What every run of the tests shares. The summary is here since with xdist only this file is loaded first."""

import functools

import botocore.loaders
import pytest
from hypothesis import HealthCheck, settings

from cases import summary

# a machine under load is slow, and that is no fault of the code: time is never what a test asserts
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# botocore reads its description of a service anew for each session, and nearly every test has a session of its own
botocore.loaders.create_loader = functools.cache(botocore.loaders.create_loader)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, or one process works on it when the others have nothing left to do."""
    items.sort(key=lambda item: item.get_closest_marker("longest") is None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how the field cases stand, where any were played."""

    def played(*outcomes: str) -> set[str]:
        reports = [report for outcome in outcomes for report in terminalreporter.stats.get(outcome, [])]
        return summary.played(getattr(report, "nodeid", "") for report in reports)

    passed, failed = played("passed"), played("failed", "error")
    if passed | failed:
        terminalreporter.section("field cases")
        for line in summary.lines(passed, failed):
            terminalreporter.line(line)
