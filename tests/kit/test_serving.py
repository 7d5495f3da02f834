"""A process that only works: it does what waits, says how much does, and leaves nothing behind when it is stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any

import pytest

from remegraph import InputError, MemoryKit, Scope, SetupError
from remegraph.errors import LedgerUnavailableError, ModelUnavailableError, VectorIndexError
from remegraph.kit import OpenOptions
from remegraph.kit import background as worker_module
from remegraph.ledger.jobs import JobQueue
from remegraph.models import SummaryReport
from remegraph.ports import Job, Outcome
from remegraph.settings import CapturePolicy, Settings, SummaryPolicy
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ModelCall, ScriptedChatModel, SequentialIds
from tests.talk import ANN, EACH_TURN, NOON, digest

pytestmark = pytest.mark.requirement("X9")

PATIENCE = 60
"""Seconds that a test waits for a thread before it fails; none waits so long where all is well."""


def opened(home: Path, script: Any = None, **capture: Any) -> MemoryKit:
    policy = CapturePolicy(**{"background": False, "poll": 0.01, **capture})
    return MemoryKit.open(
        settings=Settings(
            home=home, agent=EACH_TURN, capture=policy, summary=SummaryPolicy(backoff=0, retries=0, attention=0)
        ),
        model=None if script is None else ScriptedChatModel(script={"DigestAnswer": script}),
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds()),
    )


def turn(kit: MemoryKit, number: int = 0, scope: Scope = ANN) -> bool:
    """Talk for one turn; return whether a block was made of it."""
    talk = [("user", f"I live in town {number}."), ("assistant", "Noted.")]
    given = [{"id": f"{role}{number}", "role": role, "content": text} for role, text in talk]
    return bool(kit.capture(given, scope=scope).blocks)


@contextmanager
def serving(kit: MemoryKit, concurrency: int = 1, stop: Event | None = None) -> Iterator[Event]:
    """A kit that works in another thread, until it is told to stop."""
    stop = stop or Event()
    thread = Thread(target=kit.work.serve, args=(stop,), kwargs={"concurrency": concurrency})
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_who_leaves_the_work_to_workers_starts_none(tmp_path: Path) -> None:
    """A web server that answers people must not summarise between two answers: workers are there for that."""
    with opened(tmp_path) as kit:
        assert turn(kit)
        assert not kit.context.background._threads
        assert [(job.kind, job.partition, job.state) for job in kit.admin.jobs()] == [
            ("summarize", ANN.partition(), "waiting")
        ]


def test_a_worker_does_what_waits_and_what_comes_in_and_stops_when_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the only one that ever works: what waited before it began counts as much as what comes."""
    with opened(tmp_path, digest()) as kit:
        outcomes: Queue[str] = Queue()
        queue = kit.context.parts().jobs
        finish = queue.finish

        def told(job: Job, outcome: Outcome, reason: str = "") -> bool:
            finished = finish(job, outcome, reason)
            outcomes.put(outcome)
            return finished

        monkeypatch.setattr(queue, "finish", told)
        turn(kit)
        with serving(kit, concurrency=2):
            assert outcomes.get(timeout=PATIENCE) == "done"
            turn(kit, 1, Scope(user="bob", agent="remy"))
            assert outcomes.get(timeout=PATIENCE) == "done"
        assert kit.admin.jobs() == ()
        assert kit.admin.health().queue.running == 0


def test_a_worker_goes_on_bringing_in_what_waits_for_the_index_however_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker lives for weeks: one odd answer of a host's own embedder must not cost all vectors from then on."""
    stop, tried = Event(), list[str]()

    def sync() -> int:
        tried.append("again")
        if len(tried) == 3:
            stop.set()
        raise ZeroDivisionError("a defect of the host's")

    with opened(tmp_path) as kit:
        monkeypatch.setattr(worker_module, "_KEEP", 0.001)
        monkeypatch.setattr(kit.context.parts().projection, "sync", sync)
        worker_module._keep_index(kit.context.parts(), kit.context.health, stop, [])
        assert kit.context.health.stats()["background_failures"] == 3


def test_a_worker_that_is_stopped_finishes_its_block_and_gives_the_job_back(tmp_path: Path) -> None:
    """A deployment stops workers every day: nothing is done twice for it, and nothing waits for a lease."""
    begun, told = Event(), Event()

    def answer(_: ModelCall) -> dict[str, Any]:
        begun.set()
        assert told.wait(PATIENCE)
        return digest()

    with opened(tmp_path, answer) as kit:
        turn(kit, 0)
        turn(kit, 1)
        with serving(kit) as stop:
            assert begun.wait(PATIENCE)
            stop.set()
            told.set()
        assert [(job.state, job.attempts) for job in kit.admin.jobs()] == [("waiting", 0)]
        assert kit.admin.stats()["blocks_pending"] == 1


class Unheard(Event):
    """Is set, and who waits for it has not woken yet: threads do so when the interpreter lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.woken = Event()

    def wait(self, timeout: float | None = None) -> bool:
        found = super().wait(timeout)
        return self.woken.wait(PATIENCE) if timeout is None else found


def test_a_worker_that_is_stopped_begins_no_block_however_late_the_stop_is_heard(tmp_path: Path) -> None:
    """A model's call may take a minute, and an orchestrator waits for two."""
    stop, asked = Unheard(), Queue[str]()

    def answer(call: ModelCall) -> dict[str, Any]:
        asked.put(call.messages[-1].text)
        stop.set()
        return digest()

    with opened(tmp_path, answer) as kit:
        turn(kit, 0)
        turn(kit, 1)
        with serving(kit, stop=stop):
            asked.get(timeout=PATIENCE)
            while any(job.state == "running" for job in kit.admin.jobs()):
                Event().wait(0.01)
            stop.woken.set()
        assert asked.empty()
        assert kit.admin.stats()["blocks_pending"] == 1


def test_a_job_that_fails_too_often_gives_up_and_is_taken_up_again_when_asked(tmp_path: Path) -> None:
    """What never works must not be tried for ever, and must not be forgotten either."""
    with opened(tmp_path, OSError("no such disk"), max_attempts=1) as kit:
        turn(kit)
        with pytest.raises(ModelUnavailableError):
            kit.drain()
        (dead,) = kit.admin.jobs("dead")
        report = kit.admin.health()
        assert "no such disk" in dead.reason
        assert "Workers retry" not in dead.reason, "it is not retried"
        assert (report.queue.dead, report.queue.reason, report.healthy) == (1, dead.reason, True)
        assert kit.drain() == SummaryReport()
        assert kit.admin.requeue() == 1
        assert [(job.state, job.attempts) for job in kit.admin.jobs()] == [("waiting", 0)]
        with pytest.raises(InputError, match="no state 'lost'"):
            kit.admin.jobs("lost")  # type: ignore[arg-type]  # what a caller without types may give


def test_health_tells_how_long_work_waits_and_whether_the_index_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a load balancer and an alarm ask every few seconds."""
    with opened(tmp_path) as kit:
        turn(kit)
        clock = kit.context.clock
        assert isinstance(clock, FrozenClock)
        clock.move(timedelta(seconds=90))
        found = kit.admin.health()
        assert (found.ledger, found.index, found.healthy) == ("sqlite", "chroma", True)
        assert (found.queue.waiting, found.queue.overdue_seconds) == (1, 90)

        def refused(*_: object) -> None:
            raise VectorIndexError("connection refused")

        monkeypatch.setattr(kit.context.parts().projection._index, "ids", refused)
        found = kit.admin.health()
        assert (found.index, found.healthy, found.degraded, kit.admin.ready()) == ("down", True, True, True)


def test_what_is_summarised_when_asked_is_never_overdue(tmp_path: Path) -> None:
    """A script that adds and summarises needs no worker: nothing may say for ever that one is missing."""
    clock = FrozenClock(NOON)
    with MemoryKit.open(
        settings=Settings(home=tmp_path, capture=CapturePolicy(background=False)),
        model=None,
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=clock,
    ) as kit:
        kit.add_messages([{"role": "user", "content": "I live in Lisbon."}], scope=ANN)
        turn(kit, 1)
        assert {job.kind for job in kit.admin.jobs()} == {"cut", "summarize"}
        kit.summarize(scope=ANN, close=True)
        assert kit.admin.jobs() == ()
        turn(kit, 2)
        clock.move(timedelta(days=1))
        assert kit.admin.health().queue.overdue_seconds > 0, "this one no one has summarised"
        assert len(kit.drain().blocks) == 1


def test_what_is_said_during_the_last_look_of_a_summary_keeps_its_job(tmp_path: Path) -> None:
    """The summary finds nothing left, a turn comes in, and the summary ends: the turn must not be forgotten."""
    with opened(tmp_path) as kit:
        turn(kit)
        loop = kit._summarization.loop(ANN)
        next(loop)
        turn(kit, 1)
        with pytest.raises(StopIteration):
            loop.send({"block": None})
        assert [(job.kind, job.state) for job in kit.admin.jobs()] == [("summarize", "waiting")]


def test_when_too_much_waits_blocks_grow_and_nothing_is_refused(tmp_path: Path) -> None:
    """A crowd that talks faster than workers learn costs fewer calls for each turn, and never a message."""
    with opened(tmp_path, max_waiting=2) as kit:
        users = [Scope(user=f"user{number}", agent="remy") for number in range(3)]
        assert [turn(kit, 0, user) for user in users] == [True, True, False]
        assert kit.admin.stats()["messages"] == 6


def test_several_processes_on_postgresql_work_by_procrastinate_unless_told_otherwise(
    tmp_path: Path, postgres_url: str
) -> None:
    """Who installed the extra for workers means it; a setting that is easily forgotten would cost polling and errors."""
    settings = Settings(home=tmp_path, ledger_url=postgres_url, journal_key="of all processes here")
    for queue, courier in ((None, True), ("ledger", False)):
        with MemoryKit.open(
            settings=settings.evolve(queue=queue), model=None, embedder=None, index=InMemoryVectorIndex()
        ) as kit:
            assert (kit.context.parts().courier is not None) is courier
    with MemoryKit.open(tmp_path, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        assert kit.context.parts().courier is None


def test_the_jobs_of_a_dead_worker_are_released_by_the_name_of_its_machine(tmp_path: Path) -> None:
    """Its lease may have minutes left, and whoever talked waits; the name is the one that the list of jobs shows."""
    with opened(tmp_path, digest()) as kit:
        turn(kit)
        jobs = kit.context.parts().jobs
        assert jobs.claim("summarize", "web-1/42/a", 10_000) is not None
        assert [job.worker for job in kit.admin.jobs("running")] == ["web-1/42/a"]
        assert kit.admin.release("web") == kit.admin.release("web-1/4") == 0
        assert kit.admin.release("web-1") == 1
        assert [(job.state, job.worker, job.attempts) for job in kit.admin.jobs() if job.kind == "summarize"] == [
            ("waiting", "", 0)
        ]
        assert kit.drain().blocks


def test_the_ledgers_own_queue_is_all_there_is_on_sqlite(tmp_path: Path) -> None:
    """A setting that cannot be meant is refused at the door, with what to do."""
    with pytest.raises(SetupError, match="Procrastinate needs PostgreSQL"):
        MemoryKit.open(settings=Settings(home=tmp_path, queue="procrastinate"), model=None, embedder=None)


class _Down:
    """A courier that fails five times, but listens before the third, and then has its worker stopped."""

    def __init__(self) -> None:
        self.tries = 0

    def work(self, _deliver: object, *, stop: Event, alive: Callable[[], object], **_: object) -> None:
        """Fail."""
        self.tries += 1
        if self.tries == 3:
            alive()
        if self.tries == 5:
            stop.set()
        raise SetupError(f"The server is down: try {self.tries}.")


class _Away:
    """A ledger that does not answer the first times that it is asked for work, then does once, and then does not."""

    def __init__(self, jobs: JobQueue, stop: Event) -> None:
        self._ready, self._stop, self.asked = jobs.ready, stop, 0

    def __call__(self, kinds: Sequence[str], *, asleep: bool) -> frozenset[str]:
        """Answer, or fail."""
        self.asked += 1
        if self.asked == 4:
            return self._ready(kinds, asleep=asleep)
        if self.asked == 8:
            self._stop.set()
        raise LedgerUnavailableError(f"The ledger does not answer: {self.asked}.")


def test_an_outage_of_the_ledger_is_told_when_it_begins_and_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker looks for work each second: an hour of outage was 3,600 lines, and its end none."""
    caplog.set_level("INFO", "remegraph")
    with opened(tmp_path) as kit:
        jobs, stop = kit.context.parts().jobs, Event()
        monkeypatch.setattr(jobs, "ready", _Away(jobs, stop))
        kit.work.serve(stop, concurrency=1)
        assert kit.admin.stats()["background_failures"] == 7, "each is counted"
    told = [record.getMessage() for record in caplog.records if "ledger" in record.getMessage()]
    assert [re.sub(r".*does not answer: (\d).*", r"\1", each) for each in told] == [
        "1",
        "The ledger answers again.",
        "5",
    ]


def test_an_outage_is_told_once_and_the_next_one_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A line for each try of a night hides what else went wrong; none for a second outage hides that.

    The first failure of each is left out: it may come late, when the jobs at hand have waited the outage out.
    """
    monkeypatch.setattr("remegraph.kit.components.courier_of", lambda *_: _Down())
    policy = CapturePolicy(poll=0.01)
    with MemoryKit.open(settings=Settings(home=tmp_path, capture=policy), model=None, embedder=None) as kit:
        kit.work.serve(Event(), concurrency=1)
    told = [record.getMessage() for record in caplog.records if "is down" in record.getMessage()]
    assert [each.partition("try ")[2][:1] for each in told] == ["2", "4"]
