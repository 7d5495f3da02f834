"""Figures of the reliability tests, shown at the end of a run."""

from __future__ import annotations

from collections import Counter

import pytest

_KEY = pytest.StashKey[dict[str, Counter[str]]]()


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> dict[str, Counter[str]]:
    """Counts by heading; shown in the summary of the run."""
    return pytestconfig.stash.setdefault(_KEY, {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the figures."""
    for heading, counts in sorted(config.stash.get(_KEY, {}).items()):
        told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        terminalreporter.write_line(f"{heading}: {told}")
