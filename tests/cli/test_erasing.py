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


def test_a_person_with_a_part_named_beside_is_refused_and_nothing_goes(run: Run, chat: Path) -> None:
    """Whoever names a thread means the thread: one word too many must not cost everything that a person ever said."""
    assert run("ingest", str(chat), "--user", "ann").exit_code == 0
    for part in (["--thread", "main"], ["--message", "m1"], ["--memory", "m1"]):
        refused = run("erase", "--user", "ann", "--person", *part, "--yes")
        assert refused.exit_code == 1, refused.output
    assert "Lisbon" in run("messages", "--user", "ann").output


def test_a_memory_is_erased_by_the_beginning_of_its_id_as_lists_show_it(run: Run, chat: Path) -> None:
    """Lists show eight characters of an id: what is seen there can be typed."""
    assert run("ingest", str(chat), "--user", "ann").exit_code == 0
    found = json.loads(run("memories", "--user", "ann", "--json").stdout)
    erased = run("erase", "--user", "ann", "--memory", found[0]["memory_id"][:8], "--yes")
    assert erased.exit_code == 0, erased.output
    left = json.loads(run("memories", "--user", "ann", "--json").stdout)
    assert found[0]["memory_id"] not in {each["memory_id"] for each in left}
