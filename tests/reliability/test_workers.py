"""Workers on one ledger that are killed again and again: all is done, each effect is there once, and in order."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import select

from evals._crew import FACTS, Crew, Order, effects, fill
from evals._servers import ChromaServer
from remegraph import MemoryKit, Scope
from remegraph.ledger.schema import jobs

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
        yield Order(home=home, latency=0.2, lease=LEASE, concurrency=8)
        return
    url = request.getfixturevalue("postgres_url")
    server = ChromaServer(tmp_path)
    with server.running():
        order = Order(home=home, ledger_url=url, chroma_url=server.url, latency=0.2, lease=LEASE, concurrency=8)
        yield replace(order, queue="procrastinate") if request.param == "procrastinate" else order


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    pause = Event()
    while not true():
        assert time.monotonic() < end, "it takes too long"
        pause.wait(0.02)


def held_by(kit: MemoryKit, pid: int) -> set[int]:
    """The jobs that a process holds, as far as the ledger knows."""
    mine = (jobs.c.state == "running", jobs.c.owner.contains(f"/{pid}/"))
    with kit.context.parts().archive.database.read() as connection:
        return set(connection.execute(select(jobs.c.id).where(*mine)).scalars())


def kill_at_work(crew: Crew, kit: MemoryKit, rng: random.Random, workers: int = WORKERS) -> int:
    """Kill a worker that has something to do, as long as anybody has; return which process it was."""
    until(lambda: any(held_by(kit, pid) for pid in crew.workers) or not kit.admin.jobs())
    busy = [number for number, pid in enumerate(crew.workers) if held_by(kit, pid)]
    victim = rng.choice(busy or range(workers))
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
        kit.context.parts().projection.sync()
        assert kit.admin.verify().differences == ()
    told = (
        f"{at_work} of {KILLS} killed at work, seed {SEED}: all done, once, in order; taken over in {leases:.1f} leases"
    )
    figure(f"bar 13: workers, {order.queue}", told)


def test_what_a_killed_worker_held_is_taken_over_on_its_machine_long_before_its_lease_ends(order: Order) -> None:
    """Its death is certain there: nobody waits for a lease of an hour, nor for procrastinate to miss its heartbeat."""
    with Crew(order := replace(order, lease=3600.0)) as crew, order.open() as kit:
        crew.hire(1)
        fill(kit, USERS, 0)
        dead = kill_at_work(crew, kit, random.Random(SEED), workers=1)
        crew.hire(1)
        until(lambda: not (held_by(kit, dead) or kit.admin.jobs()))
        assert crew.dismiss() == [0]
        assert effects(kit, USERS, 1) == {}


def test_a_service_that_is_killed_with_eight_users_at_work_loses_nothing_and_does_nothing_twice(
    tmp_path: Path, figure: Callable[[str, str | float], None]
) -> None:
    """What works beside the answers is a service's own threads: they die with it, wherever each of them is."""
    rng = random.Random(SEED)
    order = Order(home=str(tmp_path), latency=0.2, lease=2.0, concurrency=8, background=True)
    most = 0
    with order.open() as kit, Crew(order) as crew:
        for number in range(20):
            if number % 4 == 0:
                fill(kit, 10, number // 4)
            crew.hire(1)
            until(lambda: len(held_by(kit, crew.workers[0])) > 1 or not kit.admin.jobs())
            Event().wait(rng.uniform(0, 0.6))  # when it is killed, not what is waited for
            most = max(most, len(held_by(kit, crew.workers[0])))
            crew.kill(0)
        crew.hire(1)
        until(lambda: not kit.admin.jobs())
        assert crew.dismiss() == [0]
        assert effects(kit, 10, 5) == {}, f"seed {SEED}"
        assert most > 4
    figure(
        "bar 13: a service's own threads", f"20 kills, up to {most} jobs at work, seed {SEED}: all done, once, in order"
    )


def test_on_workers_too_who_talks_much_holds_up_nobody(order: Order) -> None:
    """With two jobs at once and two users whose blocks wait, a third one's turn comes after the blocks at hand."""
    stop = Event()
    with replace(order, concurrency=2).open() as kit, ThreadPoolExecutor(1) as pool:
        working = pool.submit(kit.work.serve, stop)
        try:
            fill(kit, 2, *range(6))
            until(lambda: kit.admin.health().queue.running == 2)
            third = Scope(user="third")
            said = next(iter(FACTS))
            kit.capture(
                [{"role": "user", "name": "Ann", "content": said}, {"role": "assistant", "content": "Noted."}],
                scope=third,
            )
            before = kit.admin.stats()["blocks_pending"]
            until(lambda: bool(kit.memories(scope=third)))
            assert int(before) - int(kit.admin.stats()["blocks_pending"]) <= 6
            until(lambda: not kit.admin.jobs())
        finally:
            stop.set()
        working.result()
        assert effects(kit, 2, 6) == {}
