"""What every run of the tests prints. Not beside the cases: with xdist, only this file is loaded in front."""

import pytest

from cases import summary


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
