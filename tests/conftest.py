"""What all tests share: the order in which they begin, and where garbage is looked for.

What tests report (``record_property("report", line)``) is printed after the results.
"""

import gc

import pytest

# Circuits are elaborated into very many objects, of which nearly none are garbage so early.
gc.set_threshold(10_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with those that are given most time, so that no worker is left with one in the end."""
    items.sort(key=_seconds_given, reverse=True)


@pytest.fixture(scope="module", autouse=True)
def _left_out_of_collections() -> None:
    """What is there before a file's tests stays: it is not looked at when they ask for garbage."""
    gc.collect()
    gc.freeze()


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


def _seconds_given(item: pytest.Item) -> float:
    """What a test says for itself, if that is more than all are given."""
    given = float(item.config.getini("timeout"))
    marker = item.get_closest_marker("timeout")
    return max(given, marker.args[0]) if marker else given
