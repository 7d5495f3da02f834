from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from remegraph import CapturePolicy, MemoryKit, Scope, Settings
from remegraph.testing import InMemoryVectorIndex

pytestmark = pytest.mark.requirement("X9")

Run = Callable[..., Result]


def talk(home: Path) -> None:
    """Say something that waits for a worker."""
    settings = Settings(home=home, capture=CapturePolicy(background=False))
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        turn = [
            {"id": "1", "role": "user", "content": "I live in Lisbon."},
            {"id": "2", "role": "assistant", "content": "Oh."},
        ]
        kit.capture(turn, scope=Scope(user="ann"))


def test_a_monitor_learns_by_the_exit_code_that_nobody_works(run: Run, tmp_path: Path) -> None:
    """What waits, for how long, and whose: before anybody complains that the agent forgot."""
    talk(tmp_path / "home")
    assert run("health").exit_code == 0
    late = run("health", "--overdue", "0", "--json")
    told = json.loads(late.stdout)
    assert (late.exit_code, told["healthy"], told["queue"]["waiting"]) == (1, False, 1)
    listed = json.loads(run("jobs", "--revive", "--json").stdout)
    assert (listed["revived"], [(job["kind"], job["state"]) for job in listed["jobs"]]) == (
        0,
        [("summarize", "waiting")],
    )
    assert "ann" in run("jobs").stdout


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_ends_well(tmp_path: Path) -> None:
    """Every deployment sends SIGTERM: an exit code other than 0 wakes somebody up."""
    talk(tmp_path / "home")
    command = [
        sys.executable,
        "-c",
        "from remegraph.cli import main; main()",
        "worker",
        "--home",
        str(tmp_path / "home"),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as worker:
        assert worker.stderr is not None
        assert worker.stderr.readline().startswith("Working")
        worker.send_signal(signal.SIGTERM)
        out, _ = worker.communicate(timeout=120)
    assert (worker.returncode, "Stopped." in out) == (0, True)
