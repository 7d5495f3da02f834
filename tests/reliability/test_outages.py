"""Model, embedder or index down for a while, then back."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from conftest import Figure
from remegraph import MemoryKit, RecallPolicy, Scope, Settings, SummaryPolicy
from remegraph.errors import ModelUnavailableError, VectorIndexError
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.ledger.schema import jobs
from remegraph.models import Progress
from remegraph.testing import FaultyChatModel, FrozenClock, InMemoryVectorIndex, ModelCall
from tests import talk
from tests.talk import ANN, NOON, create, digest, proposal, said

if TYPE_CHECKING:
    from remegraph.ports import Embedder, Vectors

USERS = [Scope(user=name, agent="remy") for name in ("ann", "bob", "eve", "zoe")]
HOUR = timedelta(hours=1)
PATIENCE = 60
"""Seconds that a test waits for a thread before it fails; none waits so long where all is well."""


def open_kit(
    home: Path,
    model: FaultyChatModel | None = None,
    *,
    clock: FrozenClock | None = None,
    embedder: Embedder | None = None,
    index: InMemoryVectorIndex | None = None,
) -> MemoryKit:
    urls = talk.urls_of(home)
    policy = SummaryPolicy(backoff=0, longest_wait=0, retries=1, reviser="rules")
    return MemoryKit.open(
        settings=Settings(home=home, summary=policy, **urls),
        model=model,
        embedder=embedder or HashedEmbedder(),
        index=index or (None if urls else InMemoryVectorIndex()),
        clock=clock or FrozenClock(NOON),
    )


def queue(kit: MemoryKit) -> list[tuple[str, int, str]]:
    """State, attempts and reason of every job."""
    with kit.context.parts().archive.database.read() as connection:
        rows = connection.execute(select(jobs.c.state, jobs.c.attempts, jobs.c.reason))
        return [(row.state, row.attempts, row.reason) for row in rows]


@pytest.mark.slow
@pytest.mark.requirement("X3", "X8", "X9")
def test_a_model_that_is_down_for_a_thousand_messages_costs_time_only(
    tmp_path: Path, setup: str, figure: Figure
) -> None:
    """Providers have bad days; agents talk on, remember in words, and catch up in order afterwards."""
    clock = FrozenClock(NOON)
    model = FaultyChatModel(
        script={"DigestAnswer": digest(), "ProposalAnswer": proposal()}, faults=("timeout", "500", "429", "cut stream")
    )
    with open_kit(tmp_path, model, clock=clock) as kit:
        added = tries = 0
        for number in range(100):
            scope = USERS[number % len(USERS)]
            batch = [
                said(f"I love hiking on mountain {number} on day {at}.", minutes=10 * number + at) for at in range(10)
            ]
            added += kit.add_messages(batch, scope=scope).added
            if number % 10 == 9:
                tries += 1
                clock.move(HOUR)
                with pytest.raises(ModelUnavailableError):
                    kit.drain()
                found = kit.recall(f"Which mountain on day 3 was {number}?", scope=scope, depth="messages")
                assert str(number) in found.messages[0].text
        assert added == 1000
        assert len(model.calls) == 2 * tries  # one question, one retry
        assert all(state == "waiting" for state, _, _ in queue(kit))
        assert any("did not answer" in reason for _, _, reason in queue(kit))
        waiting = [work for scope in USERS for work in kit.work.list(scope=scope)]
        assert any("did not answer" in work.reason and work.attempts for work in waiting)

        model.heal()
        clock.move(24 * HOUR)
        down = len(model.calls)
        objects: list[int] = []

        def watch(progress: Progress) -> None:
            if progress.done % 5 == 0:  # it goes through all that other tests left in memory, too
                gc.collect()
                objects.append(len(gc.get_objects()))

        report = kit.drain(progress=watch)

        figure(
            "bar 12: model down for 1,000 messages",
            f"{setup}: {added} acknowledged, {down} calls while down, {len(model.calls) - down} calls for {len(report.blocks)} blocks after",
        )
        assert report.pending == 0
        assert all(state == "done" for state, _, _ in queue(kit))
        for scope in USERS:
            assert kit.work.list(scope=scope) == ()
            blocks = kit.context.parts().archive.blocks([scope.partition()])
            assert sum(block.last_seq - block.first_seq + 1 for block in blocks) >= 240  # the open tail waits
        digested = [call for call in model.calls[down:] if call.schema == "DigestAnswer"]
        assert len(digested) == len(report.blocks)
        assert all(one < other for one, other in pairwise(_numbers(digested)) if one % 4 == other % 4)
        assert objects[-1] < 1.1 * objects[len(objects) // 4], objects


def _numbers(calls: Sequence[ModelCall]) -> list[int]:
    """The first mountain that each call is about; they were told round robin to four users."""
    return [int(call.text.split("on mountain ", 1)[1].split(" ", 1)[0]) for call in calls]


class SwitchedEmbedder(HashedEmbedder):
    """An embedder that can be out of reach."""

    down = False

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed, or do not answer."""
        if self.down:
            raise ModelUnavailableError("The embedder did not answer.")
        return super().embed(texts)


class SwitchedIndex(InMemoryVectorIndex):
    """An index whose server can be out of reach."""

    down = False

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write, or fail."""
        if self.down:
            raise VectorIndexError("The server is gone.")
        super().upsert(collection, ids, shelves, vectors)


@pytest.mark.requirement("X2", "X3")
@pytest.mark.parametrize("part", ["embedder", "index"])
def test_without_vectors_memories_are_made_and_found_by_their_words(tmp_path: Path, part: str) -> None:
    """An embedder or a Chroma server that is down must stop neither learning nor recall, and is said so."""
    embedder, index = SwitchedEmbedder(), SwitchedIndex()
    model = FaultyChatModel(
        script={
            "DigestAnswer": digest("personal:Ann"),
            "ProposalAnswer": proposal(create("Ann loves hiking.", 1, "I love hiking")),
        },
        rate=0,
    )
    with open_kit(tmp_path, model, embedder=embedder, index=index) as kit:
        switch = embedder if part == "embedder" else index
        switch.down = True
        kit.add_messages([said("I love hiking in the hills.")], scope=ANN)
        report = kit.summarize(scope=ANN, close=True)

        assert report.created == 1
        assert report.degraded
        found = kit.recall("Who loves hiking?", scope=ANN)
        assert [hit.text for hit in found.memories] == ["Ann loves hiking."]
        assert bool(found.degraded) == (part == "embedder")  # the vectors are in SQL, if there are any
        assert {each.problem for each in kit.admin.verify().differences} >= {"pending"}

        switch.down = False
        report = kit.summarize(scope=ANN)

        assert report.degraded == ()
        found = kit.recall("Who loves hiking?", scope=ANN)
        assert "dense" in found.memories[0].contributions
        assert kit.admin.verify().healthy


class HangingIndex(InMemoryVectorIndex):
    """An index that answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.free = Event()
        self.free.set()

    def _wait(self) -> None:
        assert self.free.wait(PATIENCE)

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write in the end."""
        self._wait()
        super().upsert(collection, ids, shelves, vectors)

    def query(self, collection: str, shelves: Sequence[str] | None, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """Answer in the end."""
        self._wait()
        return super().query(collection, shelves, vector, k)


@pytest.mark.impatient
@pytest.mark.requirement("R15", "X3")
def test_an_index_that_hangs_holds_up_neither_recall_nor_save(tmp_path: Path) -> None:
    """All that it knows stands in the ledger, too; what it has not taken yet comes in once it goes on."""
    index = HangingIndex()
    recall = RecallPolicy(exact_limit=0, index_timeout=1)
    settings = Settings(home=tmp_path, recall=recall)
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=index) as kit:
        kit.save("tea", "Ann loves green tea.", scope=ANN)
        assert kit.recall("Who loves tea?", scope=ANN).index == "chroma"
        index.free.clear()
        for number in range(3):
            saved = kit.save(f"hill {number}", f"Ann walked up hill number {number}.", scope=ANN)
            assert saved.outcome == "new"
            found = kit.recall(f"hill number {number}", scope=ANN, depth="blocks")
            assert found.memories[0].text == f"Ann walked up hill number {number}."
            assert "dense" in found.memories[0].contributions
            assert (found.index, len(found.degraded)) == ("sql", 1)
            assert found.degraded[0].startswith("index: The vector index did not answer in time")
        assert kit.context.health.stats()["recalls_degraded"] == 3
        index.free.set()
        assert kit.admin.verify().healthy, "it looks once all is in"
        kit.context.parts().projection._searches._look_at = 0.0  # the rest is over
        until(lambda: kit.recall("Who loves tea?", scope=ANN).index == "chroma")


def until(true: Callable[[], bool]) -> None:
    end, pause = time.monotonic() + PATIENCE, Event()
    while not true():
        assert time.monotonic() < end
        pause.wait(0.02)


@pytest.mark.requirement("X2")
def test_an_index_that_is_gone_is_reported_and_made_anew(tmp_path: Path) -> None:
    """Verification must say what is broken, not break on it."""
    index = InMemoryVectorIndex()
    with open_kit(tmp_path, index=index) as kit:
        kit.add_messages([said("I love hiking in the hills.")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        for name in index.collections():
            index.drop(name)

        assert {each.problem for each in kit.admin.verify().differences} == {"missing"}

        kit.admin.rebuild()
        assert kit.admin.verify().healthy
