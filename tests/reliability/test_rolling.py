"""A release replaces the one before it, process by process, while people talk: no turn is refused, and none is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import Any

import pytest

from conftest import Figure
from remegraph import MemoryKit
from remegraph.kit.admin.doctor import migrate
from remegraph.testing import InMemoryVectorIndex
from tests.reliability.host import ROOT
from tests.reliability.released import WIDER, wider
from tests.reliability.rolling import settings_of

pytestmark = [pytest.mark.slow, pytest.mark.requirement("X3", "X9")]

PROCESSES, WORKERS, USERS, TURNS = 4, 2, 50, 2
THINKING = 5.0
"""Seconds for which a user says nothing after each turn."""
PATIENCE = 300
"""Seconds that a test waits before it fails; none waits so long where all is well."""


class Process:
    """One of a release, as `tests.reliability.rolling` has it."""

    def __init__(self, release: str, role: str, url: str, home: Path) -> None:
        command = [sys.executable, "-m", "tests.reliability.rolling", release, role, url, str(home)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
        self._run = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lock = Lock()
        self._leaves = False

    def heard(self) -> dict[str, Any]:
        """The next line that it says."""
        assert self._run.stdout is not None
        told: dict[str, Any] = json.loads(self._run.stdout.readline())
        return told

    def ask(self, **turn: object) -> dict[str, Any] | None:
        """What it answers to a turn; nothing where it is about to leave, and takes none."""
        with self._lock:
            if self._leaves:
                return None
            assert self._run.stdin is not None
            self._run.stdin.write(f"{json.dumps(turn)}\n")
            self._run.stdin.flush()
            return self.heard()

    def dismiss(self) -> int:
        """Have it end after the turn at hand; return its exit code."""
        with self._lock:
            self._leaves = True
        assert self._run.stdin is not None
        self._run.stdin.close()
        return self._run.wait(PATIENCE)

    def terminate(self) -> int:
        """Tell it to stop, as orchestrators do; return its exit code."""
        self._run.send_signal(signal.SIGTERM)
        return self._run.wait(PATIENCE)

    def kill(self) -> None:
        """Leave nothing behind, however the test ends."""
        self._run.kill()
        self._run.wait(PATIENCE)
        for pipe in (self._run.stdin, self._run.stdout):
            assert pipe is not None
            pipe.close()


class Deployment:
    """Services behind a door that sends each turn to one of them, and workers."""

    def __init__(self, url: str, home: Path, opened: ExitStack) -> None:
        self._url, self._home, self._opened = url, home, opened
        self.services: list[Process] = []
        self.workers: list[Process] = []
        self.turns = 0
        self.refused: list[str] = []
        self._count = Lock()

    def start(self, release: str, role: str) -> Process:
        """Start a process, and wait until it is ready."""
        started = Process(release, role, self._url, self._home)
        self._opened.callback(started.kill)
        assert started.heard() == {"ready": True}
        (self.services if role == "service" else self.workers).append(started)
        return started

    def talk(self, user: str, over: Event) -> None:
        """Talk until the upgrade is over, and for a while at least."""
        rng, number = random.Random(user), 0
        while number < TURNS or not over.is_set():
            answer = None
            while answer is None:
                answer = rng.choice(self.services).ask(id=f"{user} {number}", user=user, number=number)
            with self._count:
                self.turns += 1
                if answer.get("added") != 2:
                    self.refused.append(str(answer))
            number += 1
            over.wait(THINKING)

    def replace(self) -> list[int]:
        """Replace all processes, one by one; return the exit codes of those that went."""
        codes = []
        for old in tuple(self.services):
            self.start("new", "service")
            self.services.remove(old)
            codes.append(old.dismiss())
        for old in tuple(self.workers):
            self.start("new", "worker")
            self.workers.remove(old)
            codes.append(old.terminate())
        return codes


def until(true: Callable[[], object]) -> None:
    end, pause = time.monotonic() + PATIENCE, Event()
    while not true():
        assert time.monotonic() < end, "it takes too long"
        pause.wait(0.1)


@contextmanager
def talking(deployment: Deployment) -> Iterator[None]:
    over = Event()
    with ThreadPoolExecutor(USERS) as pool:
        done = [pool.submit(deployment.talk, f"user{number}", over) for number in range(USERS)]
        try:
            yield
        finally:
            over.set()
        for each in done:
            each.result(PATIENCE)


def test_a_rolling_upgrade_loses_no_turn_and_refuses_none(
    app_url: str, postgres_url: str, tmp_path: Path, figure: Figure
) -> None:
    """Releases come by day: the ledger is migrated first, and half of the processes are of the old release for a while."""
    migrate(settings_of(postgres_url, str(tmp_path)), apply=True)
    with ExitStack() as opened:
        deployment = Deployment(app_url, tmp_path, opened)
        for role, count in (("service", PROCESSES), ("worker", WORKERS)):
            for _ in range(count):
                deployment.start("old", role)
        with talking(deployment):
            until(lambda: deployment.turns > USERS // 2)
            job = Process("new", "migrate", postgres_url, tmp_path)
            opened.callback(job.kill)
            assert job.heard() == {"steps": [WIDER]}
            between = deployment.turns
            until(lambda: deployment.turns > between + USERS // 2)
            codes = deployment.replace()
        assert deployment.refused == []
        assert codes == [0] * (PROCESSES + WORKERS)
        with (
            wider(),
            MemoryKit.open(
                settings=settings_of(app_url, str(tmp_path)), model=None, embedder=None, index=InMemoryVectorIndex()
            ) as kit,
        ):
            until(lambda: not kit.admin.jobs())
            assert [worker.terminate() for worker in deployment.workers] == [0] * WORKERS
            stats = kit.admin.stats()
            assert (stats["messages"], stats["blocks_pending"]) == (2 * deployment.turns, 0)
            kit.admin.rebuild()
            assert kit.admin.verify().differences == ()
    figure(
        f"rolling upgrade, {USERS} users, {PROCESSES} processes, {WORKERS} workers",
        f"{deployment.turns} turns: 0 refused, {stats['messages']} of {2 * deployment.turns} messages, each once",
    )
