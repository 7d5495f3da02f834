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
from sqlalchemy import update

from remegraph import AgentMemorySettings, CapturePolicy, ExtractionPolicy, MemoryKit, Scope, Settings, SummaryPolicy
from remegraph.kit import OpenOptions
from remegraph.ledger.jobs import JobQueue, Stamps
from remegraph.ledger.schema import jobs as jobs_table
from remegraph.models import SummaryReport
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

    def __init__(
        self,
        home: Path,
        script: Mapping[str, Any] | None = None,
        capture: Mapping[str, Any] | None = None,
        most_calls: int = 8,
        **extraction: Any,
    ) -> None:
        self.clock = FrozenClock(NOON)
        self.model = ScriptedChatModel(script=dict(script or QUIET))
        self.kit = MemoryKit.open(
            settings=Settings(
                home=home,
                summary=SummaryPolicy(backoff=0, retries=0, attention=0, max_concurrency=most_calls),
                capture=CapturePolicy(**{"poll": 0.01, **(capture or {})}),
                agent=AgentMemorySettings(extraction=ExtractionPolicy(**{"trigger": "per-turn"} | extraction)),
            ),
            model=self.model,
            embedder=None,
            index=InMemoryVectorIndex(),
            clock=self.clock,
            options=OpenOptions(new_id=SequentialIds()),
        )
        self.outcomes: Queue[str] = Queue()
        self.renewals: Queue[bool] = Queue()
        jobs = self.kit.context.parts().jobs
        finish, renew = jobs.finish, jobs.renew

        def told(job: Any, outcome: Any, reason: str = "", **more: Any) -> bool:
            finished: bool = finish(job, outcome, reason, **more)
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

    def open_(script: Mapping[str, Any] | None = None, **options: Any) -> Watched:
        made.append(Watched(tmp_path, script, **options))
        return made[-1]

    yield open_
    for watched in made:
        watched.kit.close()


def runners(of_others: Collection[threading.Thread] = ()) -> list[threading.Thread]:
    """The runners of this process, but for those of kits that other tests have left open."""
    found = (thread for thread in threading.enumerate() if thread.name == "remegraph-runner")
    return [thread for thread in found if thread not in of_others]


def test_no_thread_runs_before_there_is_work_and_no_more_than_it_takes_then(homes: Any) -> None:
    """A kit that only reads costs no thread; one that works for a user one that works and one that looks; closed, none."""
    others = runners()
    asked, watched = homes(trigger="manual"), homes()
    asked.turn()
    watched.kit.recall("Lisbon", scope=ANN)
    assert runners(others) == []
    for number in range(3):
        watched.turn(number)
    assert [thread.daemon for thread in runners(others)] in ([True], [True, True])
    watched.kit.close()
    watched.kit.close()
    assert runners(others) == []


def test_what_is_captured_is_learned_without_anybody_asking(homes: Any) -> None:
    """A chat loop must not have to know when to summarise."""
    watched = homes()
    watched.turn()
    assert watched.next() == "done"
    assert len(watched.kit.sources.blocks(scope=ANN)) == 1
    watched.turn(1)
    assert watched.next() == "done"
    assert len(watched.kit.sources.blocks(scope=ANN)) == 2


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
    assert len(watched.kit.sources.blocks(scope=ANN)) == 12


def test_an_outage_costs_one_call_and_loses_nothing(homes: Any) -> None:
    """A model that is down is not hammered, and what was said is learned when it is back."""
    watched = homes({"DigestAnswer": [TimeoutError("down"), *[digest()] * 9]})
    watched.turn()
    assert watched.next() == "retry"
    watched.turn(1)  # wakes the runner, which finds the job not due
    with watched.kit.context.background.aside():
        stats = watched.kit.admin.stats()
    assert (stats["background_failures"], stats["jobs_later"], stats["blocks_pending"]) == (1, 1, 2)
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
    assert (stats["background_failures"], stats["jobs_later"]) == (1, 1)
    assert "defect" in str(stats["background_failure"])
    assert "defect" in watched.kit.drain().degraded[0]


def test_a_queue_that_fails_is_asked_again(homes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger's server may restart; the runner must find it again without a new capture."""
    watched = homes()
    jobs = watched.kit.context.parts().jobs
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
    while not watched.kit.context.background._closed:
        threading.Event().wait(0.001)
    gate.open.set()
    closing.join(PATIENCE)
    assert (len(watched.model.calls), watched.next()) == (1, "back")
    again = homes()
    assert len(again.kit.drain().blocks) == 1
    assert len(again.kit.sources.blocks(scope=ANN)) == 2


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
    while not watched.kit.context.background._asides:
        threading.Event().wait(0.001)
    gate.open.set()
    draining.join(PATIENCE)
    stats = watched.kit.admin.stats()
    assert [stats[name] for name in ("jobs_waiting", "jobs_running", "jobs_asleep", "blocks_pending")] == [0, 0, 0, 0]
    assert len(watched.kit.sources.blocks(scope=ANN)) == len(watched.model.calls) == 4
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
    other = JobQueue(watched.kit.context.parts().archive.database, late, Stamps(watched.kit.settings))
    job = other.claim("summarize", "other", 60)
    assert job is not None
    gate.open.set()
    assert [watched.renewals.get(timeout=PATIENCE) for _ in range(2)] == [True, False]
    with watched.kit.context.background.aside():
        assert len(watched.model.calls) == 1
    assert watched.outcomes.empty()
    assert other.finish(job, "done")


def test_jobs_that_sleep_are_left_asleep(homes: Any) -> None:
    """Beside an agent that learns by itself, one that is asked stays asked only."""
    watched = homes()
    watched.kit.context.settings = watched.kit.settings.evolve(
        agents={"olaf": AgentMemorySettings(extraction=ExtractionPolicy(trigger="manual"))}
    )
    olaf = Scope(user="ann", agent="olaf")
    watched.turn(scope=olaf)
    watched.turn(1)
    assert watched.next() == "done"
    assert watched.kit.admin.stats()["jobs_asleep"] == 1


# ------------------------------------------------------------------------------------------- users side by side

USERS = [Scope(user=f"user {number}", agent="remy") for number in range(6)]


class Roads:
    """A model at which each town has a road of its own, closed until it is opened; and what went along, in order.

    Args:
        closed: The towns whose roads are closed; all others are open.
    """

    def __init__(self, *closed: int) -> None:
        self.passed: Queue[int] = Queue()
        """Towns, as their calls begin."""
        self.order: list[int] = []
        """The same."""
        self._open = {town: threading.Event() for town in closed}

    def __call__(self, call: ModelCall) -> Any:
        town = int(call.text.rpartition("I live in town ")[2].partition(".")[0])
        self.order.append(town)
        self.passed.put(town)
        if town in self._open:
            assert self._open[town].wait(PATIENCE)
        return digest()

    def open(self, *towns: int) -> None:
        """Let calls end."""
        for town in towns or self._open:
            self._open[town].set()

    def next(self, many: int = 1) -> list[int]:
        """Wait until so many calls begin; return their towns, in order of number."""
        return sorted(self.passed.get(timeout=PATIENCE) for _ in range(many))


@pytest.mark.requirement("X20")
def test_users_who_speak_at_once_are_learned_side_by_side(homes: Any) -> None:
    """Nobody waits for the model calls of others, up to as many as the settings say."""
    roads = Roads(*range(6))
    watched = homes({"DigestAnswer": roads}, capture={"concurrency": 4})
    for number, user in enumerate(USERS):
        watched.turn(number, scope=user)
    assert len(set(roads.next(4))) == 4  # all of them are under way, and none has ended
    assert roads.passed.empty()
    assert watched.kit.admin.stats()["jobs_running"] == 4
    roads.open()
    assert [watched.next() for _ in USERS] == ["done"] * 6
    assert watched.model.most_at_once == 4


def test_the_blocks_of_one_user_are_learned_one_by_one_in_their_order(homes: Any) -> None:
    """What was said first is learned first, or what is true now would be taken back by what was true before."""
    roads = Roads(0)
    watched = homes({"DigestAnswer": roads}, capture={"concurrency": 8})
    watched.turn(0)
    assert roads.next() == [0]
    for number in range(1, 5):
        watched.turn(number)
    watched.turn(9, scope=BOB)
    assert roads.next() == [9]  # all is free but what is Ann's
    assert watched.next() == "done"
    assert roads.passed.empty()
    roads.open()
    while watched.kit.admin.stats()["blocks_pending"]:
        watched.next()
    assert roads.order == [0, 9, 1, 2, 3, 4]


def test_who_talks_much_lets_others_have_their_turn(homes: Any) -> None:
    """Of two who talk for hours, the blocks that wait hold up a third one for a block, and not until all are done."""
    roads = Roads(0)
    watched = homes({"DigestAnswer": roads}, capture={"concurrency": 1})
    watched.turn(0)
    assert roads.next() == [0]
    for number in range(1, 4):
        watched.turn(number)
    for number in (10, 11):
        watched.turn(number, scope=BOB)
    watched.turn(20, scope=USERS[0])
    roads.open()
    while watched.kit.admin.stats()["blocks_pending"]:
        watched.next()
    assert roads.order == [0, 10, 20, 1, 11, 2, 3]
    assert watched.kit.admin.jobs() == ()


def test_who_talks_alone_is_learned_from_in_one_go(homes: Any) -> None:
    """A turn that nobody waits for costs nothing: the job is claimed once."""
    roads = Roads(0)
    watched = homes({"DigestAnswer": roads}, capture={"concurrency": 2})
    watched.turn(0)
    assert roads.next() == [0]
    for number in range(1, 5):
        watched.turn(number)
    roads.open()
    assert watched.next() == "done"
    assert roads.order == [0, 1, 2, 3, 4]


def test_no_more_model_calls_are_made_at_once_than_the_settings_say(homes: Any) -> None:
    """What a provider allows is one number, however many users are learned from, and topics of each."""
    roads = Roads(*range(6))
    watched = homes({"DigestAnswer": roads}, most_calls=3)
    for number, user in enumerate(USERS):
        watched.turn(number, scope=user)
    roads.next(3)
    while watched.kit.admin.stats()["jobs_running"] < 6:
        threading.Event().wait(0.001)
    assert roads.passed.empty()
    roads.open()
    assert [watched.next() for _ in USERS] == ["done"] * 6
    assert watched.model.most_at_once == 3


def test_the_users_of_a_team_are_learned_one_after_the_other(tmp_path: Path) -> None:
    """They write into one memory: of those who did not see each other's words, all but one would be in conflict."""
    settings = Settings(
        home=tmp_path,
        trust_boundary="agent",
        summary=SummaryPolicy(attention=0),
        agent=AgentMemorySettings(extraction=ExtractionPolicy(trigger="per-turn")),
    )
    roads = Roads(*range(6))
    model = ScriptedChatModel(script={"DigestAnswer": roads})
    with MemoryKit.open(settings=settings, model=model, embedder=None, index=InMemoryVectorIndex()) as kit:
        for number, user in enumerate(USERS):
            talk = [
                {"role": "user", "content": f"I live in town {number}."},
                {"role": "assistant", "content": "Noted."},
            ]
            kit.capture(talk, scope=user)
        roads.open()
        roads.next(6)
        assert model.most_at_once == 1


def test_a_model_that_fails_for_one_user_holds_up_no_other(homes: Any) -> None:
    """The pause after a failure is for whoever failed: the others do not even notice."""

    def answer(call: ModelCall) -> Any:
        return TimeoutError("down") if "town 7" in call.text else digest()

    watched = homes({"DigestAnswer": answer}, capture={"concurrency": 2, "poll": PATIENCE})
    watched.turn(7)
    assert watched.next() == "retry"
    for number, user in enumerate(USERS):
        watched.turn(number, scope=user)
    assert [watched.next() for _ in USERS] == ["done"] * 6
    stats = watched.kit.admin.stats()
    assert (stats["background_failures"], stats["blocks_pending"]) == (1, 1)
    assert "ModelUnavailableError" in str(stats["background_failure"])


def test_a_model_that_is_down_for_all_is_asked_once_by_each_thread_and_pause(homes: Any) -> None:
    """More threads must not hammer a provider that is in trouble: each waits before it tries the next user."""
    watched = homes({"DigestAnswer": TimeoutError("down")}, capture={"concurrency": 2, "poll": PATIENCE})
    for number, user in enumerate(USERS):
        watched.turn(number, scope=user)
    assert [watched.next() for _ in range(2)] == ["retry"] * 2
    watched.kit.close()
    assert len(watched.model.calls) == 2


def test_closing_ends_all_blocks_at_hand_and_gives_back_all_the_rest(homes: Any) -> None:
    """However many are at work: what was paid for is kept, nothing waits for a lease, and nothing is lost."""
    roads = Roads(0, 1, 2)
    watched = homes({"DigestAnswer": roads}, capture={"concurrency": 3})
    for number, user in enumerate(USERS[:4]):
        watched.turn(number, scope=user)
    under_way = roads.next(3)
    for number, user in enumerate(USERS[:4]):
        watched.turn(10 + number, scope=user)
    closing = threading.Thread(target=watched.kit.close)
    closing.start()
    while not watched.kit.context.background._closed:
        threading.Event().wait(0.001)
    roads.open()
    closing.join(PATIENCE)
    assert len(watched.model.calls) == 3
    assert sorted(roads.order) == under_way
    again = homes()
    assert [(job.state, job.attempts) for job in again.kit.admin.jobs()] == [("waiting", 0)] * 4
    assert len(again.kit.drain().blocks) == 5
    assert [len(again.kit.sources.blocks(scope=user)) for user in USERS[:4]] == [2] * 4


def test_draining_waits_for_all_that_are_at_work(homes: Any) -> None:
    """Once it returns, nothing of this kit runs: not the last of eight either."""
    roads = Roads(0, 1, 2)
    watched = homes({"DigestAnswer": roads}, capture={"concurrency": 3})
    for number, user in enumerate(USERS):
        watched.turn(number, scope=user)
    roads.next(3)
    reports: list[SummaryReport] = []
    draining = threading.Thread(target=lambda: reports.append(watched.kit.drain()))
    draining.start()
    while not watched.kit.context.background._asides:
        threading.Event().wait(0.001)
    roads.open(0, 1)
    assert [watched.next() for _ in range(2)] == ["done"] * 2
    assert draining.is_alive()
    assert reports == []
    roads.open(2)
    draining.join(PATIENCE)
    assert len(reports[0].blocks) == 3
    stats = watched.kit.admin.stats()
    assert [stats[name] for name in ("jobs_waiting", "jobs_running", "blocks_pending")] == [0, 0, 0]


def test_of_many_jobs_at_work_one_that_is_lost_costs_the_others_nothing(homes: Any) -> None:
    """Its new holder does it; whoever held it leaves it, and all else goes on."""
    roads = Roads(0, 1, 2)
    watched = homes({"DigestAnswer": roads}, capture={"concurrency": 3})
    for number, user in enumerate(USERS[:3]):
        watched.turn(number, scope=user)
    roads.next(3)
    for number, user in enumerate(USERS[:3]):
        watched.turn(10 + number, scope=user)
    archive = watched.kit.context.parts().archive
    with archive.database.write() as connection:
        lost = jobs_table.c.id == connection.execute(jobs_table.select().limit(1)).one().id
        connection.execute(update(jobs_table).where(lost).values(lease_until=0))
    job = JobQueue(archive.database, watched.clock, Stamps(watched.kit.settings)).claim("summarize", "other", 60)
    assert job is not None
    roads.open()
    assert [watched.next() for _ in range(2)] == ["done"] * 2
    pending = [archive.pending("1", [user.partition()]) for user in USERS[:3]]
    assert sorted(pending) == [0, 0, 1]
    assert pending[[user.partition() for user in USERS].index(job.partition)] == 1


# ------------------------------------------------------------------------------------------------ processes

SCRIPT = """
import threading
from remegraph import AgentMemorySettings, ExtractionPolicy, MemoryKit, Scope, Settings, SummaryPolicy
from remegraph.testing import ScriptedChatModel
called = threading.Semaphore(0)
def never_answers(call):
    called.release()
    threading.Event().wait()
model = {model}
each_turn = AgentMemorySettings(extraction=ExtractionPolicy(trigger="per-turn"))
settings = Settings(home={home!r}, summary=SummaryPolicy(attention=0), agent=each_turn)
kit = MemoryKit.open(settings=settings, model=model, embedder=None)
talk = [{{"role": "user", "content": "I live in Lisbon."}}, {{"role": "assistant", "content": "Noted."}}]
print([kit.capture(talk, scope=Scope(user=name)).waiting for name in ("ann", "ben", "cem")])
assert model is None or all(called.acquire(timeout=30) for _ in range(3))
"""


@pytest.mark.parametrize("model", ["None", 'ScriptedChatModel(script={"DigestAnswer": never_answers})'])
@pytest.mark.slow
def test_a_script_that_forgets_to_close_ends_and_its_work_is_done_next_time(tmp_path: Path, model: str) -> None:
    """A notebook, a cron job, a crash: nobody calls `close`, not even while a model never answers."""
    script = SCRIPT.format(model=model, home=str(tmp_path))
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "[True, True, True]\n", "")
    settings = Settings(home=tmp_path, summary=SummaryPolicy(attention=0))
    with MemoryKit.open(settings=settings, model=None, embedder=None) as kit:
        assert kit.admin.stats()["jobs_running"] == 0
        kit.drain()
        assert all(kit.recall("Lisbon", scope=Scope(user=name)).memories for name in ("ann", "ben", "cem"))
