"""The background runner: it does what captures leave, outlives what goes wrong, and holds no process back."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from remegraph import AgentMemorySettings, CapturePolicy, ExtractionPolicy, MemoryKit, Scope, Settings, SummaryPolicy
from remegraph.models import SummaryReport
from remegraph.storage.jobs import SqlJobQueue, Stamps
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ModelCall, ScriptedChatModel, SequentialIds
from tests.talk import ANN, NOON, digest

pytestmark = pytest.mark.requirement("F2")

BOB = Scope(user="bob", agent="remy")
PATIENCE = 60
"""Seconds that a test waits for a thread before it fails; none waits so long where all is well."""

QUIET = {"DigestAnswer": digest()}
"""A model that finds nothing worth remembering."""


class Watched:
    """A kit whose background can be waited for."""

    def __init__(self, home: Path, script: Mapping[str, Any] | None = None, **extraction: Any) -> None:
        self.clock = FrozenClock(NOON)
        self.model = ScriptedChatModel(script=dict(script or QUIET))
        self.kit = MemoryKit.open(
            settings=Settings(
                home=home,
                summary=SummaryPolicy(backoff=0, retries=0, attention=0),
                capture=CapturePolicy(poll=0.01),
                agent=AgentMemorySettings(extraction=ExtractionPolicy(**extraction)),
            ),
            model=self.model,
            embedder=None,
            index=InMemoryVectorIndex(),
            clock=self.clock,
            new_id=SequentialIds(),
        )
        self.outcomes: Queue[str] = Queue()
        self.renewals: Queue[bool] = Queue()
        jobs = self.kit._open_parts().jobs
        finish, renew = jobs.finish, jobs.renew

        def told(job: Any, outcome: Any, reason: str = "") -> bool:
            finished = finish(job, outcome, reason)
            self.outcomes.put(outcome)
            return finished

        def held(job: Any, lease_seconds: float) -> bool:
            renewed = renew(job, lease_seconds)
            self.renewals.put(renewed)
            return renewed

        for name, method in (("finish", told), ("renew", held)):
            setattr(jobs, name, method)

    def turn(self, number: int = 0, scope: Scope = ANN, thread: str = "main") -> None:
        """Talk for one turn."""
        ids = [f"{thread}-{role}{number}" for role in ("h", "a")]
        talk = [("user", f"I live in town {number}."), ("assistant", "Noted.")]
        given = [{"id": one, "role": role, "content": text} for one, (role, text) in zip(ids, talk, strict=True)]
        self.kit.capture(given, scope=scope, thread=thread)

    def next(self) -> str:
        """Wait until a job is finished, and tell how."""
        return self.outcomes.get(timeout=PATIENCE)


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Any]:
    """Opens watched kits on one home, and closes them."""
    made: list[Watched] = []

    def open_(script: Mapping[str, Any] | None = None, **extraction: Any) -> Watched:
        made.append(Watched(tmp_path, script, **extraction))
        return made[-1]

    yield open_
    for watched in made:
        watched.kit.close()


def runners(of_others: Collection[threading.Thread] = ()) -> list[threading.Thread]:
    """The runners of this process, but for those of kits that other tests have left open."""
    found = (thread for thread in threading.enumerate() if thread.name == "remegraph-runner")
    return [thread for thread in found if thread not in of_others]


def test_no_thread_runs_before_there_is_work_and_one_runs_then(homes: Any) -> None:
    """A kit that only reads, or is only asked, costs no thread; one that works costs one, and none once it is closed."""
    others = runners()
    asked, watched = homes(trigger="manual"), homes()
    asked.turn()
    watched.kit.recall("Lisbon", scope=ANN)
    assert runners(others) == []
    for number in range(3):
        watched.turn(number)
    assert [thread.daemon for thread in runners(others)] == [True]
    watched.kit.close()
    watched.kit.close()
    assert runners(others) == []


def test_what_is_captured_is_learned_without_anybody_asking(homes: Any) -> None:
    """A chat loop must not have to know when to summarise."""
    watched = homes()
    watched.turn()
    assert watched.next() == "done"
    assert len(watched.kit.blocks(scope=ANN)) == 1
    watched.turn(1)
    assert watched.next() == "done"
    assert len(watched.kit.blocks(scope=ANN)) == 2


def test_no_wake_up_is_lost_however_captures_come(homes: Any) -> None:
    """A turn that comes just when the runner goes to sleep must not wait for the next one."""
    watched = homes()

    def talk(name: str) -> None:
        for number in range(3):
            watched.turn(number, thread=name)

    talkers = [threading.Thread(target=talk, args=(f"t{number}",)) for number in range(4)]
    for talker in talkers:
        talker.start()
    for talker in talkers:
        talker.join()
    while watched.kit.admin.stats()["blocks_pending"]:
        assert watched.next() == "done"
    assert len(watched.kit.blocks(scope=ANN)) == 12


def test_an_outage_costs_one_call_and_loses_nothing(homes: Any) -> None:
    """A model that is down is not hammered, and what was said is learned when it is back."""
    watched = homes({"DigestAnswer": [TimeoutError("down"), *[digest()] * 9]})
    watched.turn()
    assert watched.next() == "retry"
    watched.turn(1)  # wakes the runner, which finds the job not due
    with watched.kit._runner.aside():
        stats = watched.kit.admin.stats()
    assert (stats["background_failures"], stats["jobs_waiting"], stats["blocks_pending"]) == (1, 1, 2)
    assert "ModelUnavailableError" in str(stats["background_failure"])
    assert len(watched.model.calls) == 1
    watched.clock.move(timedelta(seconds=2))
    assert watched.next() == "done"
    assert watched.kit.admin.stats()["blocks_pending"] == 0


def test_a_defect_is_told_and_the_runner_lives_on(homes: Any) -> None:
    """A background that dies silently is found out weeks later, by its users."""

    def broken(call: ModelCall) -> Any:
        if "town 7" in call.text:
            raise KeyError("defect")
        return digest()

    watched = homes({"DigestAnswer": broken})
    watched.turn(7)
    assert watched.next() == "retry"
    watched.turn(1, scope=BOB)
    assert watched.next() == "done"
    stats = watched.kit.admin.stats()
    assert (stats["background_failures"], stats["jobs_waiting"]) == (1, 1)
    assert "defect" in str(stats["background_failure"])
    assert "defect" in watched.kit.drain().degraded[0]


def test_a_queue_that_fails_is_asked_again(homes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger's server may restart; the runner must find it again without a new capture."""
    watched = homes()
    jobs = watched.kit._open_parts().jobs
    failed = threading.Event()

    def down(*_: Any, **__: Any) -> None:
        monkeypatch.undo()
        failed.set()
        raise ConnectionError("no ledger")

    monkeypatch.setattr(jobs, "claim", down)
    watched.turn()
    assert failed.wait(PATIENCE)
    assert watched.next() == "done"
    assert watched.kit.admin.stats()["background_failures"] == 1


class Gate:
    """Holds the first call of a model until it is opened."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, _: ModelCall) -> Any:
        self.reached.set()
        assert self.open.wait(PATIENCE)
        return digest()


def test_closing_ends_the_block_at_hand_and_leaves_the_rest_for_later(homes: Any) -> None:
    """A service that is shut down must neither lose a paid block nor wait for a hundred."""
    gate = Gate()
    watched = homes({"DigestAnswer": gate})
    watched.turn()
    assert gate.reached.wait(PATIENCE)
    watched.turn(1)
    closing = threading.Thread(target=watched.kit.close)
    closing.start()
    while not watched.kit._runner._closed:
        threading.Event().wait(0.001)
    gate.open.set()
    closing.join(PATIENCE)
    assert (len(watched.model.calls), watched.next()) == (1, "back")
    again = homes()
    assert len(again.kit.drain().blocks) == 1
    assert len(again.kit.blocks(scope=ANN)) == 2


def test_draining_takes_over_from_the_runner(homes: Any) -> None:
    """After `drain` a script may read what was learned: nothing waits, nothing runs, nothing was done twice."""
    gate = Gate()
    watched = homes({"DigestAnswer": gate})
    watched.turn()
    assert gate.reached.wait(PATIENCE)
    for number in range(1, 4):
        watched.turn(number)
    reports: list[SummaryReport] = []
    draining = threading.Thread(target=lambda: reports.append(watched.kit.drain()))
    draining.start()
    while not watched.kit._runner._asides:
        threading.Event().wait(0.001)
    gate.open.set()
    draining.join(PATIENCE)
    stats = watched.kit.admin.stats()
    assert [stats[name] for name in ("jobs_waiting", "jobs_running", "jobs_asleep", "blocks_pending")] == [0, 0, 0, 0]
    assert len(watched.kit.blocks(scope=ANN)) == len(watched.model.calls) == 4
    assert len(reports[0].blocks) == 3
    watched.turn(9)
    while watched.kit.admin.stats()["blocks_pending"]:
        watched.next()


def test_a_job_that_another_worker_took_over_is_left_to_it(homes: Any) -> None:
    """A worker that slept through its lease must not do what another does already."""
    gate = Gate()
    watched = homes({"DigestAnswer": gate})
    watched.turn()
    assert gate.reached.wait(PATIENCE)
    watched.turn(1)
    late = FrozenClock(NOON + timedelta(hours=1))
    other = SqlJobQueue(watched.kit._open_parts().archive.database, late, Stamps(watched.kit.settings))
    job = other.claim("summarize", "other", 60)
    assert job is not None
    gate.open.set()
    assert [watched.renewals.get(timeout=PATIENCE) for _ in range(2)] == [True, False]
    with watched.kit._runner.aside():
        assert len(watched.model.calls) == 1
    assert watched.outcomes.empty()
    assert other.finish(job, "done")


def test_jobs_that_sleep_are_left_asleep(homes: Any) -> None:
    """Beside an agent that learns by itself, one that is asked stays asked only."""
    watched = homes()
    watched.kit.settings = watched.kit.settings.evolve(
        agents={"olaf": AgentMemorySettings(extraction=ExtractionPolicy(trigger="manual"))}
    )
    olaf = Scope(user="ann", agent="olaf")
    watched.turn(scope=olaf)
    watched.turn(1)
    assert watched.next() == "done"
    assert watched.kit.admin.stats()["jobs_asleep"] == 1


# ------------------------------------------------------------------------------------------------ processes

SCRIPT = """
import threading
from remegraph import MemoryKit, Scope, Settings, SummaryPolicy
from remegraph.testing import ScriptedChatModel
called = threading.Event()
def never_answers(call):
    called.set()
    threading.Event().wait()
model = {model}
settings = Settings(home={home!r}, summary=SummaryPolicy(attention=0))
kit = MemoryKit.open(settings=settings, model=model, embedder=None)
talk = [{{"role": "user", "content": "I live in Lisbon."}}, {{"role": "assistant", "content": "Noted."}}]
print(kit.capture(talk, scope=Scope(user="ann")).waiting)
assert model is None or called.wait(30)
"""


@pytest.mark.parametrize("model", ["None", 'ScriptedChatModel(script={"DigestAnswer": never_answers})'])
@pytest.mark.slow
def test_a_script_that_forgets_to_close_ends_and_its_work_is_done_next_time(tmp_path: Path, model: str) -> None:
    """A notebook, a cron job, a crash: nobody calls `close`, not even while a model never answers."""
    script = SCRIPT.format(model=model, home=str(tmp_path))
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "True\n", "")
    settings = Settings(home=tmp_path, summary=SummaryPolicy(attention=0))
    with MemoryKit.open(settings=settings, model=None, embedder=None) as kit:
        kit.drain()
        assert kit.recall("Lisbon", scope=Scope(user="ann")).memories
        assert kit.admin.stats()["jobs_running"] == 0
