"""The vectors of the ledger, projected into an index that may be thrown away at any time.

Chroma proposes, SQL disposes: the index names candidates, and SQL, which holds every vector too, says which of them
are live and how near they are. What the index has not seen yet is in the dirty set and searched in SQL as well. So
the answer is the same with the index, while it is being built, and without it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from remegraph.deadlines import Patience
from remegraph.errors import ModelError, VectorIndexError
from remegraph.models import IndexState, Mismatch, Partition
from remegraph.ports import Embedder, Nearest, RecordKind, VectorIndex
from remegraph.storage import embedders, interning, meanings, shelves, vectors
from remegraph.storage.breaker import Background, TimedCalls
from remegraph.storage.database import EVERYBODY, Database
from remegraph.storage.embedded import units
from remegraph.storage.indexer import Advance, Indexer, key_of, shelf_name
from remegraph.storage.vectors import KINDS, Key
from remegraph.storage.verification import differences
from remegraph.telemetry import SILENT, Telemetry, event

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from remegraph.ports import Vectors

__all__ = ["VectorProjection"]

_log = logging.getLogger(__name__)

_FETCH = 100  # candidates that the index is asked for at least: asking for more widens its search, too
_WIDEN = 4
_WIDEST = 4_000  # beyond so many, reading all vectors from SQL is the better search


_SHARE = (
    0.5  # of a search's patience, that a write looks on while the index follows: a sound one takes a tenth of a second
)
_GRACE = 5.0  # seconds that closing leaves to what is under way
_PATIENT = 120.0  # seconds that an examination leaves to it

_NOWHERE = "remegraph-nowhere"
"""A collection that nobody makes."""


@dataclass(frozen=True, slots=True)
class _Search:
    """What is looked for, and where."""

    embedder_id: int
    partitions: Mapping[int, Partition]
    kind: str
    vector: Vectors
    k: int
    allowed: frozenset[str] | None

    def size(self, connection: Connection) -> int:
        """Return how many vectors there are to look at, at most."""
        held = vectors.count(connection, self.embedder_id, self.partitions, self.kind)
        return held if self.allowed is None else min(held, len(self.allowed))

    def homes(self, connection: Connection) -> dict[str, list[str] | None]:
        """Return the collections to ask, with the names of the shelves in each, or none where that is all of it."""
        wanted: dict[str, set[shelves.Shelf]] = defaultdict(set)
        for shelf, home in shelves.homes(connection, self.embedder_id, self.partitions).items():
            if shelf[1] == self.kind:
                wanted[home].add(shelf)
        held = shelves.inhabitants(connection, wanted)
        return {
            home: None if some == held[home] else [shelf_name(*shelf) for shelf in sorted(some)]
            for home, some in wanted.items()
        }

    def dirty(self, connection: Connection) -> set[Key]:
        """Return what the index may not know yet."""
        return vectors.dirty_keys(connection, self.partitions, self.kind)

    def exact(self, connection: Connection) -> list[Nearest]:
        """Look at all vectors."""
        return self.records(self._nearest(connection, self.k, self.allowed))

    def ranked(self, connection: Connection, candidates: Iterable[Key]) -> list[tuple[Key, float]]:
        """Return those of the candidates that are live and allowed, best first."""
        names = {key.record_id for key in candidates}
        names = names if self.allowed is None else names & self.allowed
        return self._nearest(connection, len(names) * len(self.partitions), names)

    def records(self, hits: Iterable[tuple[Key, float]]) -> list[Nearest]:
        """Return hits as records."""
        return [Nearest(self.partitions[key.partition_id], key.record_id, similarity) for key, similarity in hits]

    def _nearest(self, connection: Connection, k: int, only: Iterable[str] | None) -> list[tuple[Key, float]]:
        return vectors.nearest(
            connection, self.embedder_id, self.partitions, self.kind, vector=self.vector, k=k, only=only
        )


class VectorProjection:
    """A `Projection` over SQL and a vector index.

    Safe to share between threads. Of processes that share a PostgreSQL ledger, one at a time brings changes into the
    index; the others leave theirs to it, or to the next `sync`.

    Args:
        database: The ledger.
        index: The vector index, which `close` closes; none where another process owns it.
        embedder: The ledger's embedder; `open` checks that it is.
        exact_limit: Up to so many vectors are searched one by one, in SQL.
        timeout: Seconds that a search waits for the index; a write looks on half as long while it follows.
        telemetry: Told of each sync.
    """

    def __init__(
        self,
        database: Database,
        index: VectorIndex | None,
        embedder: Embedder,
        *,
        exact_limit: int = 5_000,
        timeout: float = 30.0,
        telemetry: Telemetry = SILENT,
    ) -> None:
        self._database = database
        self._index = index
        self._embedder = embedder
        self._exact_limit = exact_limit
        self._timeout = timeout
        self._telemetry = telemetry
        self._indexer = Indexer(database, index)
        self._searches = TimedCalls(timeout)
        self._following = Background(self.sync, timeout * _SHARE)
        self.failure: VectorIndexError | None = None
        """How the index failed a search; none since it answers again."""

    @classmethod
    def open(
        cls,
        database: Database,
        index: VectorIndex | None,
        embedder: Embedder,
        *,
        exact_limit: int = 5_000,
        timeout: float = 30.0,
        reindex: bool = False,
        telemetry: Telemetry = SILENT,
    ) -> Self:
        """Open the vectors of a ledger; the first embedder that it is opened with is recorded as the ledger's.

        Args:
            database: The ledger.
            index: The vector index, which `close` closes; none where another process owns it.
            embedder: The embedder.
            exact_limit: Up to so many vectors are searched one by one, in SQL.
            timeout: Seconds that a search waits for the index; a write looks on half as long while it follows.
            reindex: Open with another embedder than the ledger's, too. Until `reindex` is done, whatever needs vectors
                raises `EmbedderMismatchError`.
            telemetry: Told of each sync.

        Raises:
            EmbedderMismatchError: The ledger's vectors come from another embedder.
        """
        with database.read() as connection:
            known = embedders.current(connection) is not None
        if not known:
            with database.write([EVERYBODY]) as connection:
                if embedders.current(connection) is None:
                    embedders.make_current(connection, embedders.number_of(connection, embedder))
        if not reindex:
            with database.read() as connection:
                embedders.require(connection, embedder)
        return cls(database, index, embedder, exact_limit=exact_limit, timeout=timeout, telemetry=telemetry)

    def is_current(self) -> bool:
        """Return whether the vectors that are searched come from this embedder."""
        with self._database.read() as connection:
            known = embedders.current(connection)
        return known is not None and (known.name, known.dimension) == (self._embedder.name, self._embedder.dimension)

    def nearest(
        self,
        partitions: Sequence[Partition],
        kind: RecordKind,
        vector: Vectors,
        k: int,
        allowed: Sequence[str] | None = None,
        *,
        patience: Patience | None = None,
    ) -> tuple[Sequence[Nearest], IndexState]:
        """Return the k nearest live records, best first, and where they were searched.

        Few vectors are looked at one by one, in SQL. For many, the index names candidates, ever more until k of them
        are live and allowed; dirty records are always candidates. Where the index fails, or takes too long, all is
        looked at in SQL.

        Args:
            partitions: Where to look.
            kind: memory, block or item; messages have no vectors.
            vector: The vector asked for, shape (dimension,).
            k: How many.
            allowed: Only these records.
            patience: How long to wait for the index; a search's own unless given.

        Raises:
            EmbedderMismatchError: The ledger has another embedder by now.
            DimensionError: The vector has another length, or numbers that are not finite.
        """
        unit = units(np.asarray(vector)[np.newaxis], 1, self._embedder)[0]
        with self._database.read() as connection:
            embedder_id = embedders.require(connection, self._embedder)
            known = interning.known(connection, partitions)
            search = _Search(embedder_id, known, kind, unit, k, None if allowed is None else frozenset(allowed))
            if k < 1 or kind not in KINDS or not known:
                return (), "none"
            if self._index is None:
                return search.exact(connection), "sql"
            if search.size(connection) <= self._exact_limit:
                return search.exact(connection), "exact"
            homes, dirty = search.homes(connection), search.dirty(connection)
        ask, patience = partial(self._by_index, self._index, search, homes, dirty), patience or Patience(self._timeout)
        try:
            hits = self._searches.ask(ask, patience)
            self.failure = None
        except VectorIndexError as error:
            if self.failure is None:  # once, not at every search
                _log.warning(
                    "The vector index failed, SQL is searched instead: %s", error, extra=event("index.failed", error)
                )
            self.failure = error
            hits = None
            if not patience.left:
                self._following.hurry()
        if hits is not None:
            return hits, "chroma"
        with self._database.read() as connection:
            return search.exact(connection), "sql"

    def _by_index(
        self, index: VectorIndex, search: _Search, homes: Mapping[str, Sequence[str] | None], dirty: set[Key]
    ) -> list[Nearest] | None:
        """Return the k nearest; none where there are too many candidates to name."""
        fetch = max(_FETCH, _WIDEN * search.k)
        while fetch <= _WIDEST and len(dirty) <= _WIDEST:
            named: set[Key] = set()
            exhausted = True
            for home, names in homes.items():
                found = index.query(home, names, search.vector, fetch)
                named.update(key_of(name) for name, _ in found)
                exhausted = exhausted and len(found) < fetch
            with self._indexer.read() as connection:
                # Dirty now or when we began: what changed under the index while it was asked is among them.
                dirty |= search.dirty(connection)
                hits = search.ranked(connection, named | dirty)
            if exhausted or sum(key in named and key not in dirty for key, _ in hits) >= search.k:
                return search.records(hits[: search.k])
            fetch *= _WIDEN
        return None

    def sync(self) -> int:
        """Apply the dirty set to the index, batch by batch; return how many records were applied.

        Texts without a vector are embedded first. Without an index that is all: the marks stay for its owner. Where
        another process does it now, nothing is done here.

        Raises:
            ModelUnavailableError: The embedder did not answer. All that did not need it was applied, the rest stays
                marked.
            DimensionError: It gave vectors of another length, or not finite ones. Likewise.
            VectorIndexError: The index failed. The marks stay, and the next call repeats what was under way.
            EmbedderMismatchError: The ledger has another embedder by now.
        """
        with self._telemetry.operation("sync") as told:
            applied = self._indexer.sync(self._embedder)
            told["remegraph.vectors.written"] = applied
            return applied

    def follow(self) -> None:
        """Bring the index up to date in the background; look on for a moment, as most times that is enough.

        What is marked and has no vector gets one first: the search in SQL needs it, which knows what the index does not.

        Raises:
            ModelUnavailableError: See `sync`.
            DimensionError: See `sync`.
            VectorIndexError: The index failed; where it still works, it failed the last time.
            EmbedderMismatchError: See `sync`.
        """
        if self._index is None:
            self.sync()
            return
        try:
            self._indexer.embed_marked(self._embedder)
        except ModelError:
            with suppress(ModelError, VectorIndexError):
                self._following.ask()  # what needs no embedding is applied
            raise
        self._following.ask()

    def lag(self) -> int:
        """Return how many records the index may not know yet."""
        with self._database.read() as connection:
            return vectors.pending(connection)

    def embed_messages(self, partition: Partition) -> int:
        """Embed the messages of a partition that have no vector yet; return how many there were.

        Only an embedder that knows meaning makes vectors of messages. They stay in SQL.

        Raises:
            ModelUnavailableError: The embedder did not answer; what it has made is kept.
            DimensionError: It gave vectors of another length, or not finite ones. Likewise.
            EmbedderMismatchError: The ledger has another embedder by now.
        """
        if not self._embedder.semantic:
            return 0
        with self._database.read() as connection:
            embedder_id = embedders.require(connection, self._embedder)
            numbers = interning.known(connection, [partition])
        return self._indexer.embed_messages(self._embedder, embedder_id, numbers)

    def cosines(self, partition: Partition, vector: Vectors, message_ids: Sequence[str]) -> NDArray[np.float64]:
        """Return the cosine of a unit vector with each of these messages; 0 of those that have no vector yet.

        Raises:
            EmbedderMismatchError: The ledger has another embedder by now.
        """
        with self._database.read() as connection:
            embedder_id = embedders.require(connection, self._embedder)
            for partition_id in interning.known(connection, [partition]):
                return meanings.cosines(connection, embedder_id, partition_id, vector, message_ids)
        return np.zeros(len(message_ids))  # erased meanwhile

    def meanings(self, partition: Partition, memory_ids: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the unit vectors of those of these memories that have one, by id; see `Projection.meanings`.

        Raises:
            EmbedderMismatchError: The ledger has another embedder by now.
        """
        if not self._embedder.semantic:
            return {}
        with self._database.read() as connection:
            embedder_id = embedders.require(connection, self._embedder)
            numbers = interning.known(connection, [partition])
            keys = [Key(number, "memory", memory_id) for number in numbers for memory_id in memory_ids]
            found, rows = vectors.read(connection, embedder_id, keys)
        return {key.record_id: row for key, row in zip(found, rows, strict=True)}

    def verify(self, sample: int = 1_000) -> tuple[int, tuple[Mismatch, ...]]:
        """Compare the index with the ledger; return how many vectors were compared, and all differences.

        The files of the index are sound; no record is dirty; every live record has a vector of its current text; each
        collection holds those of its live records and no others; and recall, asked for a vector, finds its record, in
        the index or in SQL.

        Args:
            sample: How many vectors are searched for at most, evenly spread; all else is compared in full.

        Raises:
            VectorIndexError: The index failed.
            EmbedderMismatchError: The ledger has another embedder by now.
        """
        self._following.settle(_PATIENT)
        return differences(self._database, self._index, self._embedder, sample, exact_limit=self._exact_limit)

    def rebuild(self, progress: Advance | None = None) -> int:
        """Make the index anew from the ledger's vectors; return how many records were written.

        Only what has no vector yet is embedded. May be stopped at any time: recall goes on, and `sync` finishes it.

        Args:
            progress: Told how many records are done, and of how many.

        Raises:
            IndexOwnedError: Another process owns the index.
            VectorIndexError: The index failed.
        """
        return self._indexer.rebuild(self._embedder, progress)

    def forget(self, names: Sequence[str], partition_ids: Sequence[int], memory_ids: Sequence[str]) -> tuple[int, bool]:
        """Make collections anew without what was erased, and clear the files of the index of what was in them.

        Args:
            names: The collections.
            partition_ids: What was erased whole.
            memory_ids: The memories that were erased.

        Returns:
            How many records of these a look still found, and whether the files are ours to clear.

        Raises:
            IndexOwnedError: Another process owns the index.
            VectorIndexError: The index failed.
        """
        if not names:
            return 0, True
        return self._indexer.forget(self._embedder, names, partition_ids, memory_ids)

    def reindex(self, embedder: Embedder, progress: Advance | None = None) -> int:
        """Embed everything with another embedder, then change over to it; return how many records were written.

        Until the change the old vectors serve. May be stopped at any time: called again, it goes on where it was.

        Args:
            embedder: The new embedder.
            progress: Told how many records are embedded, and of how many.

        Raises:
            IndexOwnedError: Another process owns the index.
            ModelUnavailableError: The embedder did not answer; nothing has changed for recall.
            DimensionError: It gave vectors of another length than it says, or not finite ones. Likewise.
        """
        written = self._indexer.reindex(embedder, progress)
        self._embedder = embedder
        return written

    def ping(self) -> None:
        """Ask the index for nothing, to hear whether it answers.

        Raises:
            VectorIndexError: It does not.
            SetupError: Its server cannot be reached.
        """
        if self._index is not None:
            self._index.ids(_NOWHERE)

    def close(self) -> None:
        """Close the index, once what is under way is done, or after some seconds: then the marks stay."""
        self._following.settle(_GRACE)
        self._indexer.close()
        if self._index is not None:
            self._index.close()
