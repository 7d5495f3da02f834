"""A change of the embedder while the kit serves: nobody waits, nothing is embedded twice, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from remegraph import MemoryKit
from remegraph.errors import ModelUnavailableError
from remegraph.kit import OpenOptions
from remegraph.ledger.index import indexer
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.talk import ANN, NOON, open_kit, said

TEXTS = ["I live in Lisbon.", "I love hiking.", "I work as a baker."]


class Slow(HashedEmbedder):
    """A new embedder that waits, before it embeds what is remembered, until a test lets it go on."""

    def __init__(self) -> None:
        super().__init__(64)
        self.name = "slow"
        self.go_on = Event()
        self.texts: list[str] = []
        self.after: Callable[[], None] = lambda: None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any(text.startswith("Ann: ") for text in texts):
            self.go_on.wait()
            self.texts += texts
            self.after()
        return super().embed(texts)


def told(home: Path) -> None:
    """A ledger of another embedder."""
    with open_kit(home) as kit:
        kit.add_messages([said(text, minutes=600 * at) for at, text in enumerate(TEXTS)], scope=ANN)
        kit.summarize(scope=ANN, close=True)


def changed(home: Path, embedder: HashedEmbedder, reindex: Literal["background"] | bool = "background") -> MemoryKit:
    return MemoryKit.open(
        home,
        model=None,
        embedder=embedder,
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
        options=OpenOptions(reindex=reindex),
    )


async def test_recall_goes_on_by_words_until_the_new_vectors_are_there(tmp_path: Path) -> None:
    """Embedding a large ledger anew takes hours: an agent without memory for hours is no agent."""
    told(tmp_path)
    slow = Slow()
    with changed(tmp_path, slow) as kit:
        assert kit._reindexing is not None
        try:
            recall = kit.recall("Lisbon", scope=ANN, depth="messages")
            later = await kit.arecall("Lisbon", scope=ANN)
            saved = kit.save("tea", "Cats sleep.", scope=ANN)
        finally:
            slow.go_on.set()
        assert [hit.text for hit in recall.memories] == [f"Ann: {TEXTS[0]}"]
        assert [hit.text for hit in later.memories] == [f"Ann: {TEXTS[0]}"]
        assert recall.degraded[0].startswith("vectors: The ledger's vectors come from hashed")
        assert (saved.outcome, len(saved.degraded)) == ("new", 1)

        kit._reindexing.wait()
        recall = kit.recall("Lisbon", scope=ANN)
        assert recall.degraded == ()
        assert recall.memories[0].contributions.keys() == {"text", "dense"}
        kit.admin.rebuild()
        assert kit.admin.verify().healthy
    with changed(tmp_path, slow) as kit:
        assert kit._reindexing is None  # it is done


def test_a_kit_that_closes_stops_it_and_the_next_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deploy in the middle of it must neither wait for hours nor pay twice."""
    told(tmp_path)
    monkeypatch.setattr(indexer, "_BATCH", 1)
    first, second = Slow(), Slow()
    second.go_on.set()
    with changed(tmp_path, first) as kit:
        reindexing = kit._reindexing
        assert reindexing is not None
        first.after = lambda: setattr(reindexing, "_closed", True)  # as `close` does, while the batch is at hand
        first.go_on.set()
        reindexing.wait()
        assert kit.recall("Lisbon", scope=ANN).degraded
    with changed(tmp_path, second) as kit:
        assert kit._reindexing is not None
        kit._reindexing.wait()
        assert kit.recall("Lisbon", scope=ANN).degraded == ()
    assert len(first.texts) == 1
    assert not set(first.texts) & set(second.texts)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ModelUnavailableError("It does not answer."), "It does not answer."),
        (ZeroDivisionError("x"), "ZeroDivisionError"),
    ],
)
def test_a_new_embedder_that_fails_is_told_and_recall_goes_on(tmp_path: Path, error: Exception, reason: str) -> None:
    """Nobody waits for it, so nobody sees it fail, unless it is told where operators look, however it fails."""

    def fail() -> None:
        raise error

    told(tmp_path)
    slow = Slow()
    slow.after = fail
    slow.go_on.set()
    with changed(tmp_path, slow) as kit:
        assert kit._reindexing is not None
        kit._reindexing.wait()
        assert reason in str(kit.admin.stats()["background_failure"])
        assert kit.recall("Lisbon", scope=ANN).memories
