"""Maintenance in the background: a job of the durable queue, after the summaries and never in front of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from queue import Queue
from threading import Event
from typing import Any

import pytest

from remegraph import CapturePolicy, LifecyclePolicy, MemoryKit, Scope, Settings
from remegraph.kit.summarization import Summarization
from remegraph.models import Maintenance
from remegraph.retention.maintenance import Fading
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.talk import ANN, EACH_TURN, NOON

pytestmark = pytest.mark.requirement("F5")

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
PATIENCE = 60
"""Seconds that a test waits for the background before it fails."""


class Tended:
    """A kit that maintains itself every week, whose background can be waited for."""

    def __init__(self, home: Path, every: timedelta | None = WEEK, concurrency: int = 8) -> None:
        self.clock = FrozenClock(NOON)
        self.kit = MemoryKit.open(
            settings=Settings(
                home=home,
                capture=CapturePolicy(poll=0.01, concurrency=concurrency),
                agent=EACH_TURN.evolve(lifecycle=LifecyclePolicy(every=every)),
            ),
            model=None,
            embedder=None,
            index=InMemoryVectorIndex(),
            clock=self.clock,
        )
        self.outcomes: Queue[tuple[str, str]] = Queue()
        jobs: Any = self.kit.context.parts().jobs
        finish = jobs.finish

        def told(job: Any, outcome: Any, reason: str = "", **more: Any) -> bool:
            finished: bool = finish(job, outcome, reason, **more)
            self.outcomes.put((job.kind, outcome))
            return finished

        jobs.finish = told

    def turn(self, number: int = 0) -> None:
        """Talk for one turn."""
        talk = [("user", f"I have a cat called Felix {number}."), ("assistant", "Noted.")]
        given = [{"id": f"{role}{number}", "role": role, "content": text} for role, text in talk]
        self.kit.capture(given, scope=ANN)

    def done(self, many: int) -> list[tuple[str, str]]:
        """Wait for so many jobs, and tell what became of them."""
        return [self.outcomes.get(timeout=PATIENCE) for _ in range(many)]

    def faded(self) -> None:
        """Let a memory fade that maintenance would archive."""
        self.kit.save("cat", "Ann has a grey cat.", scope=ANN, importance=0.1)
        self.clock.move(400 * DAY)

    def statuses(self) -> dict[str, str]:
        """The status of each memory."""
        return {memory.content: memory.status for memory in self.kit.memories(scope=ANN)}


@pytest.fixture
def tended(tmp_path: Path) -> Iterator[Tended]:
    """An empty kit."""
    made = Tended(tmp_path)
    yield made
    made.kit.close()


def test_it_runs_when_a_session_begins_and_then_as_often_as_the_settings_say(tended: Tended) -> None:
    """Nobody needs a cron job; and a session is not slowed down by a run that was done yesterday."""
    tended.faded()
    tended.turn()
    assert tended.done(2) == [("summarize", "done"), ("maintain", "done")]
    assert tended.statuses()["Ann has a grey cat."] == "archived"
    tended.clock.move(DAY)
    tended.turn(1)
    assert tended.done(1) == [("summarize", "done")]
    tended.clock.move(WEEK)
    tended.turn(2)
    ended: list[tuple[str, str]] = []
    while len(ended) < 2:  # it was due before the turn, and may have given way to it
        ended += [each for each in tended.done(1) if each[1] != "back"]
    assert sorted(ended) == [("maintain", "done"), ("summarize", "done")]
    assert tended.outcomes.empty()


@pytest.mark.parametrize("concurrency", [1, 8])
def test_it_gives_way_to_what_is_said_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrency: int
) -> None:
    """What was just said is learned at once, however much there is to tidy; then the tidying goes on.

    Where a thread is free, it does so beside the tidying.
    """
    tended, fade = Tended(tmp_path, concurrency=concurrency), Fading.fade

    def interrupted(self: Fading, *given: Any) -> Maintenance:
        monkeypatch.setattr(Fading, "fade", fade)
        tended.turn(1)
        while concurrency > 1 and tended.kit.admin.stats()["blocks_pending"]:
            Event().wait(0.001)
        return fade(self, *given)

    monkeypatch.setattr(Fading, "fade", interrupted)
    tended.faded()
    tended.turn()
    in_between = [("maintain", "back")] if concurrency == 1 else []
    learned, tidied = ("summarize", "done"), ("maintain", "done")
    assert tended.done(3 + len(in_between)) == [learned, *in_between, learned, tidied]
    assert tended.statuses()["Ann has a grey cat."] == "archived"
    tended.kit.close()


def test_it_waits_for_what_is_being_learned_of_the_same_user(tended: Tended, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many threads are free: what is tidied beside its writers would be tidied twice."""
    begun, free, summarize = Event(), Event(), Summarization.run

    def slow(self: Summarization, *given: Any) -> Any:
        begun.set()
        assert free.wait(PATIENCE)
        return summarize(self, *given)

    monkeypatch.setattr(Summarization, "run", slow)
    tended.turn()
    assert begun.wait(PATIENCE)
    jobs = tended.kit.context.parts().jobs
    assert jobs.claim("maintain", "other", 60, after=["summarize"]) is None
    free.set()
    assert tended.done(2) == [("summarize", "done"), ("maintain", "done")]


def test_a_job_that_was_killed_is_done_by_whoever_comes_next(tended: Tended, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment in the middle of it costs nothing: the queue is durable, and what is done is not done again."""
    tended.faded()
    tended.kit.context.parts().jobs.enqueue("maintain", ANN.partition())

    def killed(*_: object) -> Maintenance:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Fading, "archive_faded", killed)
        with pytest.raises(KeyboardInterrupt):
            tended.kit.drain()
    assert tended.done(2)[-1] == ("maintain", "back")
    assert tended.statuses() == {"Ann has a grey cat.": "active"}
    with monkeypatch.context() as patched:  # a process that is killed gives nothing back: its lease runs out
        jobs: Any = tended.kit.context.parts().jobs
        assert jobs.claim("maintain", "a dead process", 60) is not None
    tended.clock.move(timedelta(seconds=61))
    tended.kit.drain()
    assert tended.statuses() == {"Ann has a grey cat.": "archived"}


def test_without_a_period_nothing_runs_by_itself(tmp_path: Path) -> None:
    """The default forgets nothing behind anybody's back, and what another setting left in the queue is let go."""
    tended = Tended(tmp_path, every=None)
    tended.faded()
    tended.turn()
    assert tended.done(1) == [("summarize", "done")]
    tended.kit.context.parts().jobs.enqueue("maintain", ANN.partition())
    tended.kit.drain()
    assert tended.done(1) == [("maintain", "done")]
    assert tended.statuses()["Ann has a grey cat."] == "active"
    tended.kit.close()


def test_what_belongs_to_other_users_is_left_alone(tended: Tended) -> None:
    """A job is for the library that it stands for."""
    bob = Scope(user="bob", agent="remy")
    tended.kit.save("tea", "Bob likes sencha tea.", scope=bob, importance=0.1)
    tended.faded()
    tended.kit.context.parts().jobs.enqueue("maintain", ANN.partition())
    tended.kit.drain()
    assert [memory.status for memory in tended.kit.memories(scope=bob)] == ["active"]
    assert tended.statuses() == {"Ann has a grey cat.": "archived"}
