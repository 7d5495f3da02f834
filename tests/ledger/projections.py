"""A ledger with memories and blocks for the tests of the vector projection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from remegraph.errors import ModelUnavailableError, VectorIndexError
from remegraph.ledger.archive import Archive
from remegraph.ledger.index.chroma import ChromaIndex, persistent
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.ledger.journal import KeyRing
from remegraph.models import (
    BlockSummary,
    ChangeSet,
    Cut,
    Memory,
    MemoryChange,
    Message,
    Partition,
    Shelf,
    Status,
    Topic,
)
from remegraph.testing import InMemoryVectorIndex
from tests.ledger.conftest import KEY

if TYPE_CHECKING:
    from remegraph.ports import Embedder, Vectors

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
ANN = Partition(tenant="t", user="ann")
BEN = Partition(tenant="t", user="ben")
TOPIC = Topic(type="personal", target_name="ann")


class Ledger:
    """An archive with short words for what these tests do to it."""

    def __init__(self, url: str) -> None:
        self.archive = Archive.open(url, keys=KeyRing([KEY]), clock=lambda: NOW, new_id=lambda: uuid4().hex)
        self.database = self.archive.database

    def remember(self, partition: Partition, texts: Mapping[str, str]) -> None:
        """Create memories by id, or give them another text."""
        heads = self._heads(partition, texts)
        self._commit(
            partition,
            [
                heads[name].evolve(version=heads[name].version + 1, content=text, when_to_use="")
                if name in heads
                else Memory(
                    memory_id=name, partition=partition, topic=TOPIC, content=text, said_at=NOW, recorded_at=NOW
                )
                for name, text in texts.items()
            ],
        )

    def move(self, partition: Partition, names: Sequence[str], status: Status) -> None:
        """Change the status of memories."""
        heads = self._heads(partition, names)
        self._commit(partition, [head.evolve(version=head.version + 1, status=status) for head in heads.values()])

    def summarise(self, partition: Partition, summaries: Sequence[str]) -> list[str]:
        """Add a block for each summary; return their labels."""
        added = self.archive.messages([partition])
        last = len(added)
        messages = [
            Message(message_id=uuid4().hex, role="user", content=text, time=NOW + timedelta(minutes=last + number))
            for number, text in enumerate(summaries)
        ]
        self.archive.add_messages(partition, messages, NOW)
        labels: list[str] = []
        for text in summaries:
            cut = Cut(thread="main", after_seq=last, first_seq=last + 1, last_seq=last + 1)
            (block,) = self.archive.add_blocks(partition, [cut], "1")
            last += 1
            labels.append(block.block_id)
            summary = BlockSummary(
                block_id=block.block_id,
                partition=partition,
                start_time=block.start_time,
                end_time=block.end_time,
                summary=text,
            )
            self.archive.commit(
                ChangeSet(operation_id=uuid4().hex, actor="test", recorded_at=NOW, summaries=(summary,))
            )
        return labels

    def _heads(self, partition: Partition, names: Mapping[str, str] | Sequence[str]) -> dict[str, Memory]:
        return {memory.memory_id: memory for memory in self.archive.memories([partition], ids=list(names))}

    def _commit(self, partition: Partition, memories: Sequence[Memory]) -> None:
        self.archive.commit(
            ChangeSet(
                operation_id=uuid4().hex,
                actor="test",
                recorded_at=NOW,
                at_home=True,
                shelves=(Shelf(partition=partition, topic=TOPIC),),
                changes=tuple(
                    MemoryChange(memory=memory, expected_version=memory.version - 1, action="test")
                    for memory in memories
                ),
            )
        )


class CountingEmbedder:
    """Hashed n-grams that note what they embed, and fail when told to."""

    semantic = False

    def __init__(self, name: str = "counting", dimension: int = 64) -> None:
        self.name = name
        self.dimension = dimension
        self.texts: list[str] = []
        self.down = False
        self.answer: Vectors | None = None
        """What it answers instead, one row for each text."""
        self.lasts = -1
        """Calls until it goes down; never, where negative."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed, unless it is told to fail or to answer otherwise."""
        if self.lasts == 0:
            self.down = True
        self.lasts -= 1
        if self.down:
            raise ModelUnavailableError("The embedder does not answer.")
        self.texts.extend(texts)
        if self.answer is not None:
            return np.repeat(self.answer, len(texts), axis=0)
        return HashedEmbedder(self.dimension).embed(texts)


class FailingIndex(InMemoryVectorIndex):
    """An index that does half of what it is asked for and then fails, as often as told."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise VectorIndexError("The index failed.")

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write all, or half and fail."""
        half = len(ids) // 2 if self.failures else len(ids)
        super().upsert(collection, ids[:half], shelves[:half], vectors[:half])
        self._fail()

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove, then perhaps fail."""
        super().delete(collection, ids)
        self._fail()

    def drop(self, collection: str) -> None:
        """Drop, then perhaps fail."""
        super().drop(collection)
        self._fail()

    def query(self, collection: str, shelves: Sequence[str] | None, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """Fail, or answer."""
        self._fail()
        return super().query(collection, shelves, vector, k)


class LossyIndex(InMemoryVectorIndex):
    """An index where no search leads to some records until they are written often enough, as in a graph of ways."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: dict[str, int] = {}
        """How often a record has to be written until a search finds it, by its last name."""
        self.takes: dict[str, str] = {}
        """Whose writing takes which record's ways, once."""

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write all, and lead to what was written often enough."""
        super().upsert(collection, ids, shelves, vectors)
        for name in map(_last, ids):
            self.lost[name] = max(0, self.lost.get(name, 0) - 1)
            if taken := self.takes.pop(name, None):
                self.lost[taken] = 1

    def query(self, collection: str, shelves: Sequence[str] | None, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """Answer without what no search leads to."""
        everything = len(self.ids(collection))
        hits = super().query(collection, shelves, vector, everything)
        return [hit for hit in hits if not self.lost.get(_last(hit[0]))][:k]

    def unreached(self, collection: str, ids: Sequence[str], vectors: Vectors) -> list[str]:
        """Return what no search leads to."""
        missed = set(super().unreached(collection, ids, vectors))
        return [name for name in ids if name in missed or self.lost.get(_last(name))]


def _last(name: str) -> str:
    return name.rpartition(":")[2]


def chroma(folder: Path) -> ChromaIndex:
    """Chroma, embedded in a folder."""
    return ChromaIndex(lambda: persistent(folder / "chroma"))


def asked(embedder: Embedder, text: str) -> Vectors:
    """The vector of a question."""
    vector: Vectors = embedder.embed([text])[0]
    return vector


__all__ = [
    "ANN",
    "BEN",
    "NOW",
    "CountingEmbedder",
    "FailingIndex",
    "Ledger",
    "LossyIndex",
    "asked",
    "chroma",
]
