"""Prints what tests report (``record_property("report", line)``) after the results."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [
        str(value)
        for report in terminalreporter.stats.get("passed", [])
        for name, value in report.user_properties
        if name == "report"
    ]
    if lines:
        terminalreporter.section("reports")
    for line in sorted(lines):
        terminalreporter.line(line)
