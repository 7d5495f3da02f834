"""Workers on one ledger that are killed again and again: all is done, each effect is there once, and in order."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import select

from evals._crew import Crew, Order, effects, fill
from evals._servers import ChromaServer
from remegraph import MemoryKit
from remegraph.storage.tables import jobs

pytestmark = [pytest.mark.slow, pytest.mark.requirement("X3", "X9")]

WORKERS, KILLS, USERS, EACH = 4, 15, 12, 3
BLOCKS = KILLS // EACH
LEASE = 5.0
SEED = 9
PATIENCE = 120
"""Seconds that a test waits before it fails; none waits so long where all is well."""


@pytest.fixture(params=["sqlite", "postgresql", "procrastinate"])
def order(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Order]:
    """SQLite and the embedded index; PostgreSQL and a Chroma server, with either queue."""
    home = str(tmp_path / "home")
    if request.param == "sqlite":
        yield Order(home=home, latency=0.2, lease=LEASE)
        return
    url = request.getfixturevalue("postgres_url")
    server = ChromaServer(tmp_path)
    with server.running():
        order = Order(home=home, ledger_url=url, chroma_url=server.url, latency=0.2, lease=LEASE)
        yield replace(order, queue="procrastinate") if request.param == "procrastinate" else order


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    pause = Event()
    while not true():
        assert time.monotonic() < end, "it takes too long"
        pause.wait(0.02)


def held_by(kit: MemoryKit, pid: int) -> set[int]:
    """The jobs that a process holds, as far as the ledger knows."""
    mine = (jobs.c.state == "running", jobs.c.owner.startswith(f"process {pid} "))
    with kit._open_parts().archive.database.read() as connection:
        return set(connection.execute(select(jobs.c.id).where(*mine)).scalars())


def kill_at_work(crew: Crew, kit: MemoryKit, rng: random.Random) -> int:
    """Kill a worker that has something to do, as long as anybody has; return which process it was."""
    until(lambda: any(held_by(kit, pid) for pid in crew.workers) or not kit.admin.jobs())
    busy = [number for number, pid in enumerate(crew.workers) if held_by(kit, pid)]
    victim = rng.choice(busy or range(WORKERS))
    pid = crew.workers[victim]
    crew.kill(victim)
    return pid


def test_workers_that_are_killed_lose_nothing_and_do_nothing_twice(
    order: Order, figure: Callable[[str, str | float], None]
) -> None:
    """Machines go, containers are moved: whoever talked is remembered all the same, once, in the order of the talk."""
    rng = random.Random(SEED)
    with ExitStack() as opened:
        crew = opened.enter_context(Crew(order))
        crew.hire(WORKERS)
        kit = opened.enter_context(order.open())
        dead, died, at_work = 0, 0.0, 0
        for number in range(KILLS):
            if number % EACH == 0:
                fill(kit, USERS, number // EACH)
            dead = kill_at_work(crew, kit, rng)
            died, at_work = time.monotonic(), at_work + bool(held_by(kit, dead))
            crew.hire(1)
        until(lambda: not held_by(kit, dead))
        leases = (time.monotonic() - died) / LEASE
        until(lambda: not kit.admin.jobs())
        assert crew.dismiss() == [0] * WORKERS
        assert effects(kit, USERS, BLOCKS) == {}, f"seed {SEED}"
    with order.open() as kit:  # on SQLite, the index is free again only now
        kit._open_parts().projection.sync()
        assert kit.admin.verify().differences == ()
    told = (
        f"{at_work} of {KILLS} killed at work, seed {SEED}: all done, once, in order; taken over in {leases:.1f} leases"
    )
    figure(f"bar 13: workers, {order.queue}", told)
