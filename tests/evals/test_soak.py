"""The soak, shortened: that it kills, restarts, forgets and maintains, and that nothing is lost by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Figure
from tests.evals.test_evals import figures


@pytest.mark.slow
@pytest.mark.requirement("X2", "X3")
def test_a_short_soak_loses_nothing_and_leaves_no_difference(tmp_path: Path, figure: Figure) -> None:
    """Processes that work on one home are restarted and killed all day long; nobody tidies up after them."""
    command = [sys.executable, "-m", "evals", "soak", "--messages", "1200", "--figure", str(tmp_path / "soak")]
    run = subprocess.run(
        command, check=False, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = figures(run.stdout)
    did = ("memories forgotten", "runs of maintenance", "processes killed", "kits closed and opened")
    assert [name for name in did if found[name][0] < 1] == []
    must = ("of these lost", "messages recorded twice", "of these live again", "differences in the end")
    assert {name: found[name] for name in must} == dict.fromkeys(must, (0, "PASS"))
    assert (tmp_path / "soak.svg").exists()
    figure("kills in a short soak", found["processes killed"][0])
