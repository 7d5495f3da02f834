"""Procrastinate over PostgreSQL: it brings work in the transaction that causes it, and the ledger decides who does it."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any, Self

import psycopg
import pytest
from procrastinate.jobs import Job
from procrastinate.manager import JobManager

from remegraph.errors import LedgerUnavailableError, SetupError
from remegraph.ledger import jobs
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.procrastinate_queue import Procrastinate
from remegraph.ports import Deliver
from remegraph.settings import CapturePolicy, Settings
from tests.ledger.conftest import ANN, BOB, Ledger

pytestmark = pytest.mark.requirement("X9")

PATIENCE = 60
"""Seconds that a test waits before it fails; none waits so long where all is well."""
POLICY = CapturePolicy(lease=3, poll=0.5)


@pytest.fixture
def ledger(postgres_url: str) -> Iterator[Ledger]:
    """A ledger on a database of its own."""
    opened = Ledger(postgres_url.replace("+psycopg", ""))
    yield opened
    opened.archive.close()


@pytest.fixture
def courier(ledger: Ledger) -> Procrastinate:
    """Procrastinate in that database."""
    return Procrastinate(ledger.archive.database, lambda: ledger.now, jobs.Stamps(Settings()))


def deliveries(ledger: Ledger) -> list[tuple[str, str]]:
    """What procrastinate has to bring: status and arguments."""
    with psycopg.connect(ledger.url) as connection:
        found = connection.execute("SELECT status::text, args ->> 'kind' FROM procrastinate_jobs ORDER BY id")
        return [(str(status), str(kind)) for status, kind in found]


class Working:
    """A worker in another thread: `heard` has the jobs that were brought."""

    def __init__(self, courier: Procrastinate, deliver: Deliver | None = None) -> None:
        self.heard: Queue[int] = Queue()
        self.stop = Event()
        self._deliver = deliver
        self.thread = Thread(
            target=courier.work,
            args=(self._note,),
            kwargs={"concurrency": 2, "policy": POLICY, "stop": self.stop, "alive": self.stop.is_set},
        )

    def _note(self, kind: str, job_id: int) -> datetime | None:
        again = self._deliver(kind, job_id) if self._deliver else None
        self.heard.put(job_id)
        return again

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@pytest.mark.usefixtures("courier")
def test_work_is_announced_in_the_transaction_that_causes_it_or_not_at_all(ledger: Ledger) -> None:
    """A message that was rolled back must call nobody, and one that is there must never wait for a call that was lost."""
    database = ledger.archive.database

    def enqueued(*, fails: bool) -> None:
        with database.write() as connection:
            number = partition_rows.ensure(connection, [ANN])[ANN]
            jobs.enqueue(connection, {"summarize": 0}, number)
            if fails:
                raise KeyError

    with pytest.raises(KeyError):
        enqueued(fails=True)
    assert deliveries(ledger) == []
    enqueued(fails=False)
    enqueued(fails=False)  # told already: one delivery does for both
    assert deliveries(ledger) == [("todo", "summarize")]
    ledger.say(BOB, "hello", asleep=True)
    assert len(deliveries(ledger)) == 1  # what sleeps calls nobody


def log_of(url: str) -> str:
    """What the server has logged so far of deliveries."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
    lines = (Path(row[0]) / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(line for line in lines if "procrastinate" in line)


@pytest.mark.usefixtures("courier")
def test_what_is_told_already_leaves_no_error_in_the_log_of_the_server(ledger: Ledger) -> None:
    """Whoever watches the log is called for each: it was half of a thousand turns."""
    before = log_of(ledger.url)
    for _ in range(3):
        with ledger.archive.database.write() as connection:
            number = partition_rows.ensure(connection, [ANN])[ANN]
            jobs.enqueue(connection, {"summarize": 0}, number)
    assert deliveries(ledger) == [("todo", "summarize")]
    assert log_of(ledger.url) == before


@pytest.mark.slow
def test_the_jobs_of_a_dead_worker_go_to_others_as_soon_as_somebody_says_so(
    ledger: Ledger, courier: Procrastinate
) -> None:
    """A machine that is gone for good need not be waited for, however long its lease and its heartbeat are."""
    ledger.say(ANN, "hello")
    queue = ledger.archive.queue
    held = queue.claim("summarize", "web-1/42/a", 10_000)
    assert held is not None
    with psycopg.connect(ledger.url) as connection:
        connection.execute("INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (77)")
        connection.execute("UPDATE procrastinate_jobs SET status = 'doing', worker_id = 77")
    assert queue.release("web") == ()
    (call,) = queue.release("web-1")
    courier.again([call])
    with Working(courier) as working:
        assert working.heard.get(timeout=PATIENCE) == held.job_id == call.job_id


@pytest.mark.slow
def test_a_job_is_brought_once_and_again_when_it_is_due_again(ledger: Ledger, courier: Procrastinate) -> None:
    """What fails waits for its next try, and needs no worker that looks again and again."""
    ledger.say(ANN, "hello")
    queue, tried = ledger.archive.queue, list[bool]()

    def deliver(kind: str, job_id: int) -> datetime | None:
        job = queue.claim(kind, "worker", 60, job_id=job_id)
        if job is None:  # a sweep may have rung, too
            return None
        tried.append(queue.finish(job, "done" if tried else "retry"))
        again = queue.next_due(kind, job_id)
        ledger.wait(1)
        return again

    with Working(courier, deliver) as working:
        assert working.heard.get(timeout=PATIENCE) == working.heard.get(timeout=PATIENCE)
    assert tried == [True, True]
    assert queue.depth().waiting == 0


@pytest.mark.slow
def test_what_a_dead_worker_held_is_brought_to_another_once_its_lease_is_over(
    ledger: Ledger, courier: Procrastinate
) -> None:
    """Its delivery died with it, and would hold back every other one of the same user."""
    ledger.say(ANN, "hello")
    held = ledger.archive.queue.claim("summarize", "dead", 3)
    assert held is not None
    with psycopg.connect(ledger.url) as connection:
        connection.execute(
            "INSERT INTO procrastinate_workers (id, last_heartbeat) OVERRIDING SYSTEM VALUE VALUES (77, '2000-01-01')"
        )
        connection.execute("UPDATE procrastinate_jobs SET status = 'doing', worker_id = 77")
    ledger.wait(3)
    with Working(courier) as working:
        assert working.heard.get(timeout=PATIENCE) == held.job_id


@pytest.mark.slow
def test_what_was_enqueued_before_procrastinate_came_is_brought_too(ledger: Ledger) -> None:
    """The queue can be changed in a running system: nothing that waits is left behind."""
    ledger.say(ANN, "hello")
    with Working(Procrastinate(ledger.archive.database, lambda: ledger.now, jobs.Stamps(Settings()))) as working:
        assert working.heard.get(timeout=PATIENCE)


@pytest.mark.slow
def test_a_delivery_that_somebody_else_removed_first_stops_no_worker(
    ledger: Ledger, courier: Procrastinate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two workers that find the same dead one, the second must go on as if nothing were."""
    ghost = Job(id=10**9, queue="remegraph", lock=None, queueing_lock=None, task_name="remegraph")

    really = JobManager.get_stalled_jobs

    async def stalled(manager: JobManager, **options: Any) -> list[Job]:
        return [*await really(manager, **options), ghost]

    monkeypatch.setattr(JobManager, "get_stalled_jobs", stalled)
    ledger.say(ANN, "hello")
    with Working(courier) as working:
        assert working.heard.get(timeout=PATIENCE)
        ledger.say(BOB, "hello")
        assert working.heard.get(timeout=PATIENCE)


@pytest.mark.slow
@pytest.mark.parametrize("at_hand", [False, True])
def test_an_outage_is_no_traceback_in_the_log_but_at_debug(
    at_hand: bool,
    ledger: Ledger,
    courier: Procrastinate,
    postgres_server: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever works is told of it in one line; a hundred of somebody else's library hide it."""
    caplog.set_level(logging.DEBUG)
    name, heard, cut = ledger.archive.database.engine.url.database, Queue[int](), Event()

    def deliver(_: str, job_id: int) -> None:
        heard.put(job_id)
        if at_hand:
            assert cut.wait(PATIENCE)
            raise LedgerUnavailableError("The ledger is away.")

    given: dict[str, Any] = {"concurrency": 1, "policy": POLICY, "stop": Event(), "alive": str}
    with psycopg.connect(postgres_server, autocommit=True) as owner, ThreadPoolExecutor(1) as pool:
        working = pool.submit(courier.work, deliver, **given)
        ledger.say(ANN, "hello")
        heard.get(timeout=PATIENCE)
        owner.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        cut.set()
        with pytest.raises(SetupError, match="goes on by itself"):
            working.result(PATIENCE)
        owner.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    gc.collect()  # what a task failed of that nobody asked is told when it goes
    theirs = [record for record in caplog.records if record.name.startswith(("procrastinate", "psycopg", "asyncio"))]
    assert [record.getMessage() for record in theirs if record.levelno >= logging.WARNING] == []
    assert not at_hand or [record for record in theirs if record.exc_info], "it is there for whoever looks for it"
