"""A memory that was open when its process forked: the child is refused at once, and the parent never notices."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Figure

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("X3", "X5"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]

PATIENCE = 60
AT_ONCE = 2


@pytest.fixture(params=["sqlite", "servers"])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The settings of a kit in files, and of one on PostgreSQL and a Chroma server."""
    home = {"home": str(tmp_path / "home")}
    if request.param == "sqlite":
        return home
    urls = {"ledger_url": "postgres_url", "chroma_url": "chroma_url"}
    return home | {name: request.getfixturevalue(fixture) for name, fixture in urls.items()}


def preloaded(given: dict[str, Any], how: str) -> list[dict[str, Any]]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.reliability.preloaded", json.dumps(given), how],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as master:
        try:
            told, _ = master.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(master.pid, signal.SIGKILL)  # its children, too
            raise
    assert master.returncode == 0
    return [json.loads(line) for line in told.splitlines()]


@pytest.mark.parametrize("how", ["idle", "busy"])
def test_what_was_open_before_a_fork_refuses_the_child_with_the_cure_and_serves_the_parent(
    given: dict[str, Any], how: str, figure: Figure
) -> None:
    """`gunicorn --preload` does this: connections of two processes in one socket answer each other's questions."""
    *children, master = preloaded(given, how)
    on_servers = "ledger_url" in given
    for told in children:
        assert told["inherited"]["refused"] == "SetupError"
        assert "after the fork" in told["inherited"]["cure"]
        assert told["inherited"]["seconds"] < AT_ONCE
        if on_servers:
            assert told["own"]["returned"] > 0
        else:  # what is written past SQLite's locks is lost
            assert "before the fork" in told["own"]["cure"]
    assert master["codes"] == [0, 0, 0]
    assert master["found"] > 0
    assert sorted(master["said"]) == sorted(
        f"I am {name} and I love tea."
        for name in ("master", "again", *(f"child{number}" for number in range(3 * on_servers)))
    )
    assert master["index"] == "chroma"
    figure("bar 26: forks", f"{'servers' if on_servers else 'sqlite'}, {how}: 3 of 3 refused, the parent served")
