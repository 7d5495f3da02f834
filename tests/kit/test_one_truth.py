"""One truth about settings: service and worker read one file, and a worker with others leaves the work alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread

import pytest

from remegraph import MemoryKit, Scope, Settings
from remegraph.testing import InMemoryVectorIndex
from tests.talk import SHARED_KEY

pytestmark = pytest.mark.requirement("X9", "F9")

PATIENCE = 60
"""Seconds that a test waits before it fails; none waits so long where all is well."""
ANN = Scope(user="ann", agent="remy")
FILE = """
[capture]
background = false
poll = 0.05

[agents.remy.extraction]
mode = "tool-call"
trigger = "per-turn"
"""
OTHERS = """
[capture]
background = false
poll = 0.05

[agent.extraction]
trigger = "per-turn"
"""
PAUSES = """
[capture]
background = false
poll = 0.05

[agent.extraction]
idle = 2
"""
TURN = [
    {"id": "1", "role": "user", "content": "I live in Lisbon."},
    {"id": "2", "role": "assistant", "content": "Noted."},
]


@pytest.fixture(params=["sqlite", "postgresql", "procrastinate"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, str]:
    """The environment of all processes on one ledger, with either queue."""
    home = {"REMEGRAPH_HOME": str(tmp_path), "REMEGRAPH_JOURNAL_KEY": SHARED_KEY}
    if request.param == "sqlite":
        return home
    url = {"REMEGRAPH_LEDGER_URL": request.getfixturevalue("postgres_url")}
    return home | url | ({"REMEGRAPH_QUEUE": "procrastinate"} if request.param == "procrastinate" else {})


@pytest.fixture
def opened(place: Mapping[str, str], tmp_path: Path) -> Callable[[str], MemoryKit]:
    """Opens a kit as a settings file says."""

    def opened(told: str) -> MemoryKit:
        path = tmp_path / "remegraph.toml"
        path.write_text(told, encoding="utf-8")
        settings = Settings.from_file(path, place)
        return MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex())

    return opened


@contextmanager
def serving(kit: MemoryKit) -> Iterator[None]:
    """A kit that works in another thread."""
    stop = Event()
    thread = Thread(target=kit.work.serve, args=(stop,), kwargs={"concurrency": 2})
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def until(true: Callable[[], object]) -> None:
    end, pause = time.monotonic() + PATIENCE, Event()
    while not true():
        assert time.monotonic() < end, "it takes too long"
        pause.wait(0.02)


def test_a_worker_with_other_settings_leaves_the_work_says_so_and_counts_it(
    opened: Callable[[str], MemoryKit], caplog: pytest.LogCaptureFixture
) -> None:
    """Else it learns by its own lights what the service was told not to learn, and nobody notices."""
    with opened(FILE) as service, caplog.at_level(logging.WARNING):
        service.capture(TURN, scope=ANN)
        assert service.admin.health().queue.foreign == 0
        with opened(OTHERS) as worker:
            with serving(worker):
                until(lambda: worker.context.health.stats()["jobs_foreign"] == 1)
                worker.capture([{**TURN[0], "id": "b"}, {**TURN[1], "id": "c"}], scope=Scope(user="bob"))
                until(lambda: [job.foreign for job in worker.admin.jobs()] == [True])
            assert worker.admin.health().queue.foreign == 1
            assert any("other settings" in each for each in worker.drain().degraded)
            assert worker.memories(scope=ANN) == ()
        assert len([each for each in caplog.records if "other settings" in each.getMessage()]) == 1
        assert [job.state for job in service.admin.jobs()] == ["waiting"]


def test_what_was_made_with_former_settings_is_taken_over_on_demand(opened: Callable[[str], MemoryKit]) -> None:
    """Settings change; what waited for the old ones must not wait for ever, nor be done by others unasked."""
    with opened(FILE) as before:
        before.capture(TURN, scope=ANN)
    with opened(OTHERS) as after:
        assert after.admin.requeue() == 0
        after.drain()
        assert [job.foreign for job in after.admin.jobs()] == [True]
        assert after.admin.requeue("foreign") == 1
        after.drain()
        assert after.admin.jobs() == ()
        assert len(after.memories(scope=ANN)) == 1


def test_a_worker_with_the_same_file_does_the_work(opened: Callable[[str], MemoryKit]) -> None:
    """What the service is told, the worker is told: nothing is learned where the agent saves by itself."""
    with opened(FILE) as service:
        service.capture(TURN, scope=ANN)
        with opened(FILE) as worker, serving(worker):
            until(lambda: not service.admin.jobs())
        assert service.work.list(scope=ANN, states=["pending"]) == ()
        assert service.memories(scope=ANN) == ()
        assert service.sources.blocks(scope=ANN)


@pytest.mark.slow
def test_a_worker_wakes_for_a_pause_by_either_queue(opened: Callable[[str], MemoryKit]) -> None:
    """What was said last is learned though nobody speaks again, and only once nobody has for a while."""
    with opened(PAUSES) as service:
        assert service.capture(TURN, scope=ANN).blocks == ()
        (job,) = (job for job in service.admin.jobs() if job.kind == "cut")
        with opened(PAUSES) as worker, serving(worker):
            until(lambda: bool(service.memories(scope=ANN)))
            until(lambda: not service.admin.jobs())
        assert len(service.sources.blocks(scope=ANN)) == 1
        assert job.due_at is not None
        (row, *_) = service.context.parts().archive.recorded(ANN.partition()).values()
        assert job.due_at - row.recorded_at == timedelta(seconds=2)
