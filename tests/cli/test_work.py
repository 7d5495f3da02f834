from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from conftest import Figure
from remegraph import CapturePolicy, MemoryKit, Scope, Settings
from remegraph.kit.background import until_signalled
from remegraph.testing import InMemoryVectorIndex, ScriptedChatModel, refusal
from tests.cli.conftest import Run
from tests.reliability.signalled import PATIENCE, Order
from tests.talk import EACH_TURN, replied, said

TRIALS = 12


def talk(home: Path) -> None:
    """Say something that waits for a worker."""
    settings = Settings(home=home, agent=EACH_TURN, capture=CapturePolicy(background=False))
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        turn = [
            {"id": "1", "role": "user", "content": "I live in Lisbon."},
            {"id": "2", "role": "assistant", "content": "Oh."},
        ]
        kit.capture(turn, scope=Scope(user="ann"))


@pytest.mark.requirement("X9")
def test_a_monitor_learns_by_the_exit_code_that_nobody_works(run: Run, tmp_path: Path) -> None:
    """What waits, for how long, and whose: before anybody complains that the agent forgot."""
    talk(tmp_path / "home")
    assert run("health").exit_code == 0
    late = run("health", "--overdue", "0", "--json")
    told = json.loads(late.stdout)
    assert (late.exit_code, told["healthy"], told["queue"]["waiting"]) == (1, False, 1)
    listed = json.loads(run("work", "jobs", "--revive", "--json").stdout)
    assert (listed["revived"], [(job["kind"], job["state"]) for job in listed["jobs"]]) == (
        0,
        [("summarize", "waiting")],
    )
    assert "ann" in run("work", "jobs").stdout
    mistyped = run("work", "release", "a-machine")
    assert mistyped.exit_code == 1
    assert "No job is held by a-machine" in mistyped.stdout


@pytest.mark.requirement("X9")
@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_ends_well(tmp_path: Path) -> None:
    """Every deployment sends SIGTERM: an exit code other than 0 wakes somebody up. And what it logs says when it was."""
    talk(tmp_path / "home")
    (tmp_path / "home" / "workers").write_text("in the way of its sign of life", encoding="utf-8")
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
        logged = worker.stderr.readline()
        assert re.match(
            r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING remegraph\.kit\.health Memory failed \(background\), ",
            logged,
        )
        worker.send_signal(signal.SIGTERM)
        out, _ = worker.communicate(timeout=120)
    assert (worker.returncode, "Stopped." in out) == (0, True)


@pytest.mark.requirement("X9")
@pytest.mark.parametrize(("signals", "code"), [(2, 0), (3, 128 + signal.SIGTERM)])
def test_a_signal_may_come_in_the_middle_of_whatever_the_main_thread_does(signals: int, code: int) -> None:
    """Also while it sets or awaits the very event that stops it, whose lock cannot be taken twice."""
    program = """
import signal, sys, threading
from remegraph.kit.background import until_signalled

with until_signalled() as stop:
    with stop._cond:
        for _ in range(int(sys.argv[1])):
            signal.raise_signal(signal.SIGTERM)
    assert stop.wait(30)
    if int(sys.argv[1]) > 2:
        threading.Event().wait(30)
signal.raise_signal(signal.SIGTERM)
"""
    run = [sys.executable, "-c", program, str(signals)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(run, env=environment, timeout=60, check=False).returncode == code


@pytest.mark.requirement("X9")
def test_a_retry_where_nothing_failed_says_that_something_did_elsewhere(run: Run, tmp_path: Path) -> None:
    """A call without `--agent` is of the user alone: "nothing failed" would end the search."""
    broken = ScriptedChatModel(script={"DigestAnswer": refusal()})
    policy = CapturePolicy(background=False)
    settings = Settings(home=tmp_path / "home", agent=EACH_TURN, capture=policy)
    with MemoryKit.open(settings=settings, model=broken, embedder=None) as kit:
        kit.capture([said("I live in Lisbon."), replied("Noted.")], scope=Scope(user="ann", agent="remy"))
        kit.summarize(scope=Scope(user="ann", agent="remy"), close=True)
    shown = run("work", "retry", "--user", "ann")
    assert shown.exit_code == 1
    assert "Nothing is recorded of this user with this agent." in shown.output
    assert "1 block of others failed: `remegraph doctor` shows whose." in shown.output


@pytest.mark.requirement("X9")
def test_what_the_doctor_tells_to_run_can_be_copied_as_it_stands(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that is torn, or has a period at its end, names an agent that is not there."""
    monkeypatch.setenv("COLUMNS", "40")
    broken = ScriptedChatModel(script={"DigestAnswer": refusal()})
    settings = Settings(home=tmp_path / "home", agent=EACH_TURN, capture=CapturePolicy(background=False))
    scopes = [Scope(user=user, agent="an agent with a name") for user in ("ann", "bob")]
    with MemoryKit.open(settings=settings, model=broken, embedder=None) as kit:
        for scope in scopes:
            kit.capture([said("I live in Lisbon."), replied("Noted.")], scope=scope)
            kit.summarize(scope=scope, close=True)
    home = ["--home", str(tmp_path / "home")]
    plain, named = (
        [shlex.split(line) for line in shown.splitlines() if line.startswith("    remegraph work retry")]
        for shown in (run("doctor").stdout, run("doctor", *home).stdout)
    )
    assert [(each[6], each[-1]) for each in plain] == [(user, "an agent with a name") for user in ("ann", "bob")]
    assert named == [[*each, *home] for each in plain]
    assert "1 block summarised" in run(*plain[0][1:]).output


def test_handlers_of_a_host_are_there_again_afterwards() -> None:
    """A host that serves for a while, in its main thread, has Ctrl-C for itself again."""
    before = signal.getsignal(signal.SIGINT)
    with until_signalled() as stop:
        assert signal.getsignal(signal.SIGINT) != before
    assert (signal.getsignal(signal.SIGINT), stop.is_set()) == (before, False)


@pytest.mark.requirement("X9")
@pytest.mark.slow
@pytest.mark.parametrize("signals", [2, 3])
def test_a_worker_that_is_told_to_stop_more_than_once_ends_too(tmp_path: Path, signals: int, figure: Figure) -> None:
    """An orchestrator and its supervisor both send SIGTERM, or a person presses Ctrl-C again: none of it may hang it."""
    talk(tmp_path / "home")
    rng = random.Random(signals)
    ended: list[tuple[int, float]] = []
    with subprocess.Popen(
        [sys.executable, "-m", "tests.reliability.signalled"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
    ) as foreman:
        assert foreman.stdin is not None
        assert foreman.stdout is not None
        for _ in range(TRIALS):
            order = Order(str(tmp_path / "home"), rng.choice((0, 0.001, 0.02, 0.3)), rng.uniform(2e-5, 4e-4), signals)
            foreman.stdin.write(json.dumps(asdict(order)) + "\n")
            foreman.stdin.flush()
            code, seconds = json.loads(foreman.stdout.readline())
            ended.append((code, seconds))
        foreman.stdin.close()
    at_once = 128 + signal.SIGTERM  # the third signal, unless the first two became one
    assert {code for code, _ in ended} <= ({0, at_once} if signals > 2 else {0}), ended
    assert max(seconds for _, seconds in ended) < PATIENCE / 2
    figure(
        f"bar 13: {signals} x SIGTERM",
        f"{len(ended)} workers: 0 hung, all ended within {max(s for _, s in ended):.1f} s",
    )
