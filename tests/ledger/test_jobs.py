"""The durable queue: one job per kind and partition, a lease, and a fence."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from conftest import Figure
from remegraph.ledger.jobs import JobQueue, Stamps
from remegraph.models import Cut
from remegraph.ports import Job
from remegraph.settings import Settings
from tests.ledger.conftest import ANN, BOB, Ledger

pytestmark = pytest.mark.requirement("X3")


@pytest.fixture
def queue(ledger: Ledger) -> JobQueue:
    """The ledger's queue."""
    return ledger.archive.queue


def claimed(queue: JobQueue, owner: str = "worker", lease: float = 60) -> Job:
    job = queue.claim("summarize", owner, lease)
    assert job is not None
    return job


def test_recording_messages_leaves_one_job(ledger: Ledger, queue: JobQueue) -> None:
    """The work is queued in the transaction that causes it, once, however much is said."""
    ledger.say(ANN, "one")
    messages = ledger.say(ANN, "two")
    job = claimed(queue)
    assert (job.kind, job.partition, job.attempts) == ("summarize", ANN, 1)
    assert queue.claim("summarize", "other", 60) is None
    assert queue.claim("other kind", "other", 60) is None
    assert queue.finish(job, "done")
    ledger.archive.add_messages(ANN, messages, ledger.now)  # nothing new: no work
    assert queue.claim("summarize", "worker", 60) is None


def test_what_comes_in_while_a_job_runs_leads_to_another_run(ledger: Ledger, queue: JobQueue) -> None:
    """A message said during the summary must not wait for the next one."""
    ledger.say(ANN, "one")
    job = claimed(queue)
    ledger.say(ANN, "two")
    assert queue.claim("summarize", "other", 60) is None
    assert queue.finish(job, "done")
    again = claimed(queue)
    assert (again.partition, again.attempts) == (ANN, 1)
    assert queue.finish(again, "done")
    assert queue.claim("summarize", "worker", 60) is None


def test_a_lease_that_runs_out_gives_the_job_to_another(ledger: Ledger, queue: JobQueue) -> None:
    """A worker that died holds nothing up; one that only slept finds its fence too old."""
    queue.enqueue("summarize", ANN)
    lost = claimed(queue, "sleeper", 10)
    ledger.wait(9)
    assert queue.claim("summarize", "other", 10) is None
    ledger.wait(1)
    job = claimed(queue, "other", 10)
    assert (job.job_id, job.attempts) == (lost.job_id, 2)
    assert job.fence > lost.fence
    assert not queue.finish(lost, "done")
    assert queue.finish(job, "done")
    assert not queue.finish(job, "done")


def test_a_retry_waits_twice_as_long_each_time(ledger: Ledger, queue: JobQueue) -> None:
    """A model that is down is not hammered."""
    queue.enqueue("summarize", ANN)
    for delay in (1, 2, 4):
        assert queue.finish(claimed(queue), "retry", "model is down")
        ledger.wait(delay - 0.5)
        assert queue.claim("summarize", "worker", 60) is None
        ledger.wait(0.5)
    assert claimed(queue).attempts == 4


def test_a_dead_job_lives_again_when_there_is_new_work(ledger: Ledger, queue: JobQueue) -> None:
    """Given up means until something changes, not for ever."""
    queue.enqueue("summarize", ANN)
    assert queue.finish(claimed(queue), "dead", "gave up")
    ledger.wait(10_000)
    assert queue.claim("summarize", "worker", 60) is None
    ledger.say(ANN, "hello")
    assert queue.depth().reason == "", "this has not failed, nor did a limit refuse it"
    assert claimed(queue).attempts == 1


def test_the_oldest_job_comes_first(ledger: Ledger, queue: JobQueue) -> None:
    """Nobody starves."""
    ledger.say(BOB, "hello")
    ledger.wait(1)
    ledger.say(ANN, "hello")
    assert [claimed(queue).partition, claimed(queue).partition] == [BOB, ANN]


def test_workers_at_once_take_different_jobs(ledger: Ledger, queue: JobQueue) -> None:
    """Eight workers, five jobs: each is taken once."""
    homes = [ANN.evolve(user=f"user{number}") for number in range(5)]
    for home in homes:
        queue.enqueue("summarize", home)
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda number: queue.claim("summarize", f"w{number}", 60), range(8)))
    assert sorted(job.partition.user or "" for job in jobs if job) == [home.user for home in homes]
    assert ledger.archive.counts()["jobs"] == 5


def test_a_lease_is_renewed_by_its_holder_only(ledger: Ledger, queue: JobQueue) -> None:
    """A job of many blocks outlives its lease; a worker that lost it learns so before it goes on."""
    queue.enqueue("summarize", ANN)
    job = claimed(queue, "first", 10)
    ledger.wait(9)
    assert queue.renew(job, 10)
    ledger.wait(9)
    assert queue.claim("summarize", "other", 10) is None
    ledger.wait(1)
    taken = claimed(queue, "other", 10)
    assert not queue.renew(job, 10)
    assert queue.finish(taken, "done")
    assert not queue.renew(taken, 10)


@pytest.mark.slow
def test_a_hundred_workers_that_slept_past_their_lease_are_refused(
    ledger: Ledger, queue: JobQueue, figure: Figure
) -> None:
    """A laptop wakes up, a container is thawed: each believes that it still holds its job."""
    refused = 0
    for _ in range(100):
        queue.enqueue("summarize", ANN)
        zombie = claimed(queue, "sleeper", 10)
        ledger.wait(10)
        holder = claimed(queue, "other", 10)
        refused += not queue.finish(zombie, "done") and not queue.renew(zombie, 10)
        assert queue.finish(holder, "done")
    assert refused == 100
    figure(f"bar 14: zombies on {ledger.url.partition(':')[0]}", f"{refused} of 100 refused by their fence")


def test_a_job_that_sleeps_is_taken_when_asked_for_or_woken(ledger: Ledger, queue: JobQueue) -> None:
    """What is done when asked only must not be done by whoever comes by."""
    ledger.say(ANN, "one", asleep=True)
    ledger.wait(10_000)
    assert queue.claim("summarize", "worker", 60) is None
    assert queue.next_due("summarize") is None
    asked = queue.claim("summarize", "worker", 60, asleep=True)
    assert asked is not None
    assert queue.finish(asked, "retry", "model is down")
    assert [(job.state, job.due_at, job.reason) for job in queue.waiting("summarize")] == [
        ("asleep", None, "model is down")
    ]
    queue.enqueue("summarize", ANN)
    assert claimed(queue).partition == ANN


def test_a_sleeping_request_wakes_nobody_and_delays_nobody(ledger: Ledger, queue: JobQueue) -> None:
    """A message that asks for nothing by itself must neither hurry a job nor put it to sleep."""
    queue.enqueue("summarize", ANN)
    assert queue.finish(claimed(queue), "retry", "model is down")
    ledger.say(ANN, "one", asleep=True)
    assert queue.claim("summarize", "worker", 60) is None
    ledger.wait(1)
    job = claimed(queue)
    ledger.say(ANN, "two", asleep=True)
    assert queue.finish(job, "back")
    assert claimed(queue).attempts == 2  # what nobody tried does not count


def test_a_crashed_worker_leaves_a_sleeping_job_asleep(ledger: Ledger, queue: JobQueue) -> None:
    """Asked for once and crashed: still nobody else's business."""
    ledger.say(ANN, "one", asleep=True)
    assert queue.claim("summarize", "crashes", 60, asleep=True)
    ledger.wait(60)
    assert queue.claim("summarize", "worker", 60) is None
    assert queue.claim("summarize", "worker", 60, asleep=True)


def test_a_job_whose_work_was_done_without_it_is_settled_unless_more_came_or_a_worker_has_it(
    ledger: Ledger, queue: JobQueue
) -> None:
    """Who did the work must not be alarmed about it for ever, and must not lose what came in while they worked."""
    ledger.say(ANN, "one")
    ledger.say(BOB, "one", asleep=True)
    for partition in (ANN, BOB):
        seen = queue.unheld(["summarize"], partition)
        ledger.say(partition, "two", asleep=partition == BOB)
        queue.settle(seen)
        assert queue.unheld(["summarize"], partition), "more was asked for since"
    queue.settle(queue.unheld(["summarize"], BOB))
    assert [job.partition for job in queue.waiting("summarize")] == [ANN]
    seen = queue.unheld(["summarize"], ANN)
    job = claimed(queue)
    queue.settle(seen)
    assert queue.unheld(["summarize"], ANN) == [], "a worker holds it"
    assert queue.finish(job, "dead", "model is down")
    queue.settle(seen)
    assert [each.state for each in queue.waiting("summarize")] == ["dead"], "another run was begun since"
    queue.settle(queue.unheld(["summarize"], ANN))
    assert queue.waiting("summarize") == ()
    ledger.say(ANN, "three")
    assert claimed(queue).attempts == 1


def test_what_a_limit_refused_is_due_again_where_limits_allow_it_unless_it_was_taken(
    ledger: Ledger, queue: JobQueue
) -> None:
    """A limit may be raised before its day is over; a delay after a failure is another thing, and ends by itself."""
    for partition in (ANN, BOB):
        ledger.say(partition, "one")
    tomorrow = ledger.now + timedelta(days=1)
    first, second = claimed(queue), claimed(queue)
    assert queue.finish(first, "done", "It is used up.", again=tomorrow)
    assert queue.finish(second, "retry", "model is down")
    ((job_id, partition),) = queue.refused(["summarize"]).items()
    assert (job_id, partition) == (first.job_id, first.partition)
    queue.hasten([first.job_id, second.job_id])
    assert [job.reason for job in queue.waiting("summarize")] == ["", "model is down"]
    assert queue.refused(["summarize"]) == {}
    assert claimed(queue).job_id == first.job_id
    queue.hasten([first.job_id])
    assert queue.claim("summarize", "other", 60) is None


def test_what_sleeps_is_never_overdue_even_where_it_was_asked_for_and_its_worker_died(
    ledger: Ledger, queue: JobQueue
) -> None:
    """No worker takes it, so no alarm about it would ever end."""
    ledger.say(ANN, "one", asleep=True)
    ledger.wait(10_000)
    assert queue.depth().overdue_seconds == 0
    assert queue.claim("summarize", "crashes", 60, asleep=True)
    ledger.wait(10_000)
    assert queue.depth().overdue_seconds == 0


def test_the_next_job_is_told_by_its_time(ledger: Ledger, queue: JobQueue) -> None:
    """Who waits for work sleeps until then, not a little at a time."""
    assert queue.next_due("summarize") is None
    queue.enqueue("summarize", ANN)
    assert queue.next_due("summarize") == ledger.now
    assert queue.finish(claimed(queue), "retry")
    assert queue.next_due("summarize") == ledger.now + timedelta(seconds=1)
    ledger.wait(1)
    job = claimed(queue, lease=30)
    assert queue.next_due("summarize") == ledger.now + timedelta(seconds=30)
    assert queue.finish(job, "dead", "gave up")
    assert queue.next_due("summarize") is None
    assert [(job.partition, job.state) for job in queue.waiting("summarize")] == [(ANN, "dead")]


def test_blocks_and_their_job_are_one_decision(ledger: Ledger, queue: JobQueue) -> None:
    """A crash must not leave a block that nobody is called for."""
    ledger.say(ANN, "one", asleep=True)
    (tail,) = ledger.archive.tails(ANN, thread="main")
    assert ledger.archive.tails(ANN, thread="other") == ()
    cut = Cut(thread="main", after_seq=0, first_seq=1, last_seq=1)
    assert len(tail.messages) == 1
    assert len(ledger.archive.add_blocks(ANN, [cut], "1", enqueue=True)) == 1
    assert [ledger.archive.pending(*asked) for asked in (("1",), ("2",), ("1", [ANN]), ("1", [BOB]))] == [1, 0, 1, 0]
    job = claimed(queue)
    assert queue.finish(job, "done")
    assert ledger.archive.add_blocks(ANN, [cut], "1", enqueue=True) == ()  # came too late: no work
    assert queue.claim("summarize", "worker", 60) is None


WRITES: list[dict[str, Any]] = [
    {"agent": {"extraction": {"mode": "tool-call"}}},
    {"agent": {"extraction": {"prompt_template": "Write {{block}}."}}},
    {"agent": {"extraction": {"model_id": "openai:gpt-5-mini"}}},
    {"agent": {"usage": "knowledge"}},
    {"agent": {"library": "shared"}},
    {"agent": {"lifecycle": {"half_life": 3}}},
    {"agents": {"remy": {"extraction": {"mode": "ghostwriter"}}}},
    {"slicing": {"max_messages": 3}},
    {"summary": {"recipe": "2"}},
    {"summary": {"attention": 0.5}},
    {"perception": {"reads": ["image"]}},
    {"redact": ["email"]},
    {"trust_boundary": "agent"},
    {"tools": {"last": 9}},
]
"""What decides what is learned, or how it lives on."""

TRIES: list[dict[str, Any]] = [
    {"home": "elsewhere", "ledger_url": "postgresql://db/x", "model": "openai:gpt-5-mini", "queue": "procrastinate"},
    {"journal_key": "a key of sixteen and more", "opentelemetry": True},
    {"summary": {"timeout": 5, "retries": 9, "max_concurrency": 1}},
    {"capture": {"lease": 9}, "recall": {"k": 3}, "sharing": {"quorum": 3}, "tools": {"heard": False}},
    {"agent": {"retrieval": {"k": 3}, "extraction": {"trigger": "session-end", "min_turns": 3}}},
    {"agents": {"other": {"extraction": {"mode": "tool-call"}}}},
    {"perception": {"max_bytes": 5}},
    {"slicing": {"max_messages": 24}, "agents": {"remy": {}}},
]
"""What decides where, when and how hard it is tried, or says what holds anyway."""


def test_the_stamp_of_a_job_tells_what_decides_how_it_is_written_and_nothing_else() -> None:
    """Too little, and a worker learns what it should not; too much, and work waits for no reason."""
    usual = Stamps(Settings()).of("remy")
    assert len({usual, *(Stamps(Settings.model_validate(each)).of("remy") for each in WRITES)}) == len(WRITES) + 1
    assert {Stamps(Settings.model_validate(each)).of("remy") for each in TRIES} == {usual}


@pytest.mark.slow
def test_the_stamp_is_the_same_in_every_process() -> None:
    """Sets have another order in each process; what is written must not depend on that."""
    code = (
        "from remegraph import Settings; from remegraph.ledger.jobs import Stamps;"
        "print(Stamps(Settings(redact={'email', 'card', 'phone', 'url'})).of(None))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1
