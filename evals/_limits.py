"""What the engines below could do at best: raw SQLite, raw full text, raw vector search, raw Chroma upserts."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import chromadb
import numpy as np
from chromadb.api.collection_configuration import CreateHNSWConfiguration
from chromadb.config import Settings as ChromaSettings
from numpy.typing import NDArray

from remegraph.ledger.index.chroma import SPACE
from remegraph.ledger.index.placement import CAPACITY, RESERVED
from remegraph.text.tokens import query_tokens

__all__ = ["RawBucket", "RawCommits", "RawLedger", "raw_ledger"]

_BATCH = 1_000


class RawCommits:
    """One-row transactions on SQLite as durable as the ledger's.

    Args:
        folder: Where the file goes.
    """

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "raw.sqlite", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")

    def commit(self, body: str) -> None:
        """Write a row and make it durable."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("INSERT INTO rows (body) VALUES (?)", (body,))
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


@contextmanager
def raw_ledger(ledger: Path) -> Iterator[RawLedger]:
    """Give a connection of its own to a ledger.

    Args:
        ledger: An SQLite file.
    """
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection:
        yield RawLedger(connection)


class RawLedger:
    """The ledger's tables asked with nothing around: no statistics of one's own, no check of status, no records.

    Args:
        connection: To a ledger.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers: dict[str, int] = dict(connection.execute('SELECT "user", id FROM partitions'))

    def full_text(self, user: str, question: str) -> int:
        """Return how many of the best 20 messages of one user FTS5 finds, ranked by its own bm25."""
        words = " OR ".join(f'"{token}"' for token in query_tokens(question))
        place = f'"_{self._numbers[user]}_message"'
        rows = self._connection.execute(
            "SELECT texts.record_id FROM texts_fts JOIN texts ON texts.id = texts_fts.rowid"
            " WHERE texts_fts MATCH ? ORDER BY bm25(texts_fts) LIMIT 20",
            (f"{place} AND ({words})",),
        )
        return len(rows.fetchall())

    def nearest(self, user: str, vector: NDArray[np.float32]) -> int:
        """Return how many of the ten nearest vectors of one user there are, by looking at all of them."""
        rows = self._connection.execute(
            "SELECT record_id, vector FROM vectors WHERE partition_id = ? AND kind = 'memory'", (self._numbers[user],)
        ).fetchall()
        found = np.frombuffer(b"".join(blob for _, blob in rows), dtype="<f4").reshape(len(rows), -1) @ vector
        return len(np.argsort(-found)[:10])


class RawBucket:
    """One Chroma collection as large as the library makes them, filled in batches; every user has an equal share.

    Args:
        folder: Where its files go.
        vectors: What it holds; of more than fit, the first.
        shelf: Vectors of one user.
    """

    def __init__(self, folder: Path, vectors: NDArray[np.float32], shelf: int) -> None:
        settings = ChromaSettings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(str(folder / "raw"), settings)
        kept = vectors[:CAPACITY]
        self._shelves = max(1, len(kept) // shelf)
        self._bucket = self._filled("bucket", {"space": "cosine"}, kept)
        held = kept[: CAPACITY * shelf // max(shelf, RESERVED)]
        self.plain_upserts = self._rate("as-it-comes", {"space": "cosine"}, held)
        """Per second of the processor, into a collection as large as the library makes them of such shelves."""
        self.upserts = self._rate("as-ours", SPACE, held)
        """The same, set as the library sets it."""

    def _rate(self, name: str, space: CreateHNSWConfiguration, vectors: NDArray[np.float32]) -> float:
        began = time.process_time()
        self._filled(name, space, vectors)
        return len(vectors) / (time.process_time() - began)

    def _filled(self, name: str, space: CreateHNSWConfiguration, vectors: NDArray[np.float32]) -> chromadb.Collection:
        made = self._client.create_collection(name, embedding_function=None, configuration={"hnsw": space})
        for first in range(0, len(vectors), _BATCH):
            part = vectors[first : first + _BATCH]
            rows = range(first, first + len(part))
            made.upsert(
                ids=[str(row) for row in rows],
                embeddings=part,
                metadatas=[{"shelf": row % self._shelves} for row in rows],
            )
        return made

    def query(self, number: int, vector: NDArray[np.float32]) -> int:
        """Return how many of the ten nearest of one shelf were found."""
        found = self._bucket.query(
            query_embeddings=vector[np.newaxis],
            n_results=10,
            where={"shelf": number % self._shelves},
            include=["distances"],
        )
        return len(found["ids"][0])
