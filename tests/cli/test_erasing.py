"""`remegraph erase`: asks, erases, shows the receipt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.requirement("X7")


def test_erase_asks_first_then_shows_what_went_and_what_is_not_covered(run: Run, chat: Path) -> None:
    """Whoever has to answer for an erasure needs its receipt on paper, and no slip of the hand."""
    assert run("ingest", str(chat), "--user", "ann").exit_code == 0
    assert run("erase", "--user", "ann", "--person").exit_code == 1, "nobody said yes"
    assert "Lisbon" in run("messages", "--user", "ann").output
    shown = run("erase", "--user", "ann", "--person", "--yes")
    assert shown.exit_code == 0, shown.output
    assert "Erased; 0 left." in shown.output
    assert "Not covered: backups" in shown.output
    assert "Lisbon" not in run("messages", "--user", "ann").output
    again = run("erase", "--user", "ann", "--person", "--yes", "--json")
    assert again.exit_code == 1
    assert json.loads(again.stdout)["error"]["type"] == "NotFoundError"
    resumed = run("erase", "--resume", "--json")
    assert json.loads(resumed.stdout) == []
