"""Figures of the reliability tests, shown at the end of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from statistics import median

import pytest

Figure = Callable[[str, str | float], None]

_MARK = "figure: "


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """Note a figure under a heading: a text is counted, of numbers the range is shown.

    It travels with the report of the test, so that it arrives from other processes (pytest-xdist), too.
    """
    return lambda heading, told: record_property(_MARK + heading, told)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the figures."""
    noted: dict[str, list[object]] = defaultdict(list)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, told in report.user_properties:
                    if name.startswith(_MARK):
                        noted[name.removeprefix(_MARK)].append(told)
    for heading, values in sorted(noted.items()):
        terminalreporter.write_line(f"{heading}: {_summary(values)}")


def _summary(values: list[object]) -> str:
    numbers = [value for value in values if isinstance(value, float)]
    if numbers:
        return f"{min(numbers):.1f} to {max(numbers):.1f}, median {median(numbers):.1f}, of {len(numbers)}"
    counts = Counter(str(value) for value in values)
    return ", ".join(text if counts[text] == 1 else f"{counts[text]} x {text}" for text in sorted(counts))
