"""The vectors of the ledger, projected into an index that may be thrown away at any time.

The index proposes, SQL disposes: it names candidates, and SQL, which holds every vector too, says which of them
are live and how near they are. What the index has not seen yet is in the dirty set and searched in SQL as well. So
the answer is the same with the index, while it is being built, and without it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from remegraph.deadlines import Patience
from remegraph.errors import ModelError, VectorIndexError
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.database import EVERYBODY, Database
from remegraph.ledger.index import embedders, meanings, placement, vectors
from remegraph.ledger.index.breaker import Background, TimedCalls
from remegraph.ledger.index.choice import check_kept
from remegraph.ledger.index.embedders import units
from remegraph.ledger.index.indexer import Advance, Indexer, index_id, key_of, shelf_name
from remegraph.ledger.index.pgvector import PgvectorIndex
from remegraph.ledger.index.vectors import KINDS, Key
from remegraph.ledger.rows import digest
from remegraph.models import IndexState, Mismatch, Partition
from remegraph.ports import WHOLE, Embedder, Meant, Nearest, RecordKind, VectorIndex
from remegraph.telemetry import SILENT, Telemetry, event

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from remegraph.ports import Vectors

__all__ = ["UNREACHED", "VectorProjection", "differences"]

_log = logging.getLogger(__name__)

_FETCH = 100  # candidates that the index is asked for at least: asking for more widens its search, too
_WIDEN = 4
_WIDEST = 4_000  # beyond this many, reading all vectors from SQL is the better search


_SHARE = (
    0.5  # of a search's patience, that a write looks on while the index follows: a sound one takes a tenth of a second
)
_GRACE = 5.0  # seconds that closing leaves to what is under way
_PATIENT = 120.0  # seconds that an examination leaves to it

_NOWHERE = "remegraph-nowhere"
"""A collection that no one makes."""

UNREACHED = "not found by its own vector"
"""The problem of a record that the index holds and its graph, which is approximate, does not lead to."""

_PAGE = 500


@dataclass(frozen=True, slots=True)
class _Search:
    """What is looked for, and where."""

    embedder_id: int
    partitions: Mapping[int, Partition]
    kind: str
    vector: Vectors
    k: int
    allowed: frozenset[str] | None

    def size(self, held: Mapping[str, int]) -> int:
        """Return how many vectors there are to look at, at most."""
        there = held.get(self.kind, 0)
        return there if self.allowed is None else min(there, len(self.allowed))

    def homes(self, connection: Connection) -> dict[str, list[str] | None]:
        """Return the collections to ask, with the names of the shelves in each, or none where that is all of it."""
        wanted: dict[str, set[placement.Shelf]] = defaultdict(set)
        for shelf, home in placement.homes(connection, self.embedder_id, self.partitions).items():
            if shelf[1] == self.kind:
                wanted[home].add(shelf)
        held = placement.inhabitants(connection, wanted)
        return {
            home: None if some == held[home] else [shelf_name(*shelf) for shelf in sorted(some)]
            for home, some in wanted.items()
        }

    def dirty(self, connection: Connection) -> set[Key]:
        """Return what the index may not know yet."""
        return vectors.dirty_keys(connection, self.partitions, self.kind)

    def exact(self, connection: Connection, *, few: bool = False) -> list[Nearest]:
        """Look at all vectors."""
        return self.records(self._nearest(connection, self.k, self.allowed, few=few))

    def ranked(self, connection: Connection, candidates: Iterable[Key]) -> list[tuple[Key, float]]:
        """Return those of the candidates that are live and allowed, best first."""
        names = {key.record_id for key in candidates}
        names = names if self.allowed is None else names & self.allowed
        return self._nearest(connection, len(names) * len(self.partitions), names)

    def records(self, hits: Iterable[tuple[Key, float]]) -> list[Nearest]:
        """Return hits as records."""
        return [Nearest(self.partitions[key.partition_id], key.record_id, similarity) for key, similarity in hits]

    def _nearest(
        self, connection: Connection, k: int, only: Iterable[str] | None, *, few: bool = False
    ) -> list[tuple[Key, float]]:
        return vectors.nearest(
            connection, self.embedder_id, self.partitions, self.kind, vector=self.vector, k=k, only=only, few=few
        )


class VectorProjection:
    """A `Projection` over SQL and a vector index.

    Safe to share between threads. Of processes that share a PostgreSQL ledger, one at a time brings changes into the
    index; the others leave theirs to it, or to the next `sync`.

    Args:
        index: The vector index, which `close` closes; none where another process owns it.
        embedder: The ledger's embedder; `open` checks that it is.
        exact_limit: Up to so many vectors are searched one by one, in SQL.
        timeout: Seconds that a search waits for the index; a write looks on half as long while it follows.
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
        self.searched: Literal["chroma", "pgvector", "sql"] = (
            "sql" if index is None else "pgvector" if isinstance(index, PgvectorIndex) else "chroma"
        )
        """What is searched where there are many vectors."""
        self._embedder = embedder
        self._exact_limit = exact_limit
        self._timeout = timeout
        self._telemetry = telemetry
        self._indexer = Indexer(database, index)
        self._meanings = meanings.MeaningCache()
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
            index: The vector index, which `close` closes; none where another process owns it.
            exact_limit: Up to so many vectors are searched one by one, in SQL.
            timeout: Seconds that a search waits for the index; a write looks on half as long while it follows.
            reindex: Open with another embedder than the ledger's, too. Until `reindex` is done, whatever needs vectors
                raises `EmbedderMismatchError`.

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

        Records still in the dirty set are searched too, exactly. Falls back to SQL where the index fails or is late.

        Args:
            kind: memory, block or item.
            vector: A unit vector, shape (dimension,).
            allowed: Only these records; a planner chooses exact search or over-fetching.
            patience: How long to wait for the index.
        """
        unit = units(np.asarray(vector)[np.newaxis], 1, self._embedder)[0]
        with self._database.read() as connection:
            known = partition_rows.known(connection, partitions)
            asked = partial(embedders.held, embedder=self._embedder, partition_ids=list(known))
            embedder_id, held = self._database.once(("vectors", *known), asked, connection)
            search = _Search(embedder_id, known, kind, unit, k, None if allowed is None else frozenset(allowed))
            if k < 1 or kind not in KINDS or not known:
                return (), "none"
            if self._index is None:
                return search.exact(connection), "sql"
            if search.size(held) <= self._exact_limit:
                return search.exact(connection, few=True), "exact"
            homes, dirty = search.homes(connection), search.dirty(connection)
        self._database.away()
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
            return hits, self.searched
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
                check_kept(connection, index)
                # Dirty now or when we began: what changed under the index while it was asked is among them.
                dirty |= search.dirty(connection)
                hits = search.ranked(connection, named | dirty)
            if exhausted or sum(key in named and key not in dirty for key, _ in hits) >= search.k:
                return search.records(hits[: search.k])
            fetch *= _WIDEN
        return None

    def sync(self) -> int:
        """Apply the dirty set to the index; return how many records were applied."""
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
        """
        if not self._embedder.semantic:
            return 0
        with self._database.read() as connection:
            embedder_id = embedders.require(connection, self._embedder)
            numbers = partition_rows.known(connection, [partition])
        return self._indexer.embed_messages(self._embedder, embedder_id, numbers)

    def meant(self, partitions: Sequence[Partition], vector: Vectors) -> Mapping[Partition, Meant]:
        """Return how near the messages of these partitions are to a unit vector; without vectors a partition is left out."""
        embedder_id = self._database.once("embedder", partial(embedders.require, embedder=self._embedder))
        with self._database.read() as connection:
            found = {
                partition: self._meanings.get(connection, embedder_id, partition_id)
                for partition_id, partition in partition_rows.known(connection, partitions).items()
            }
        return {partition: each.near(vector) for partition, each in found.items() if each.seqs.size}

    def meanings(self, partition: Partition, memory_ids: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the unit vectors of those of these memories that have one, by id.

        Only an embedder that knows meaning adds to the words: with another, there are none.
        """
        if not self._embedder.semantic:
            return {}
        with self._database.read() as connection:
            embedder_id = embedders.require(connection, self._embedder)
            numbers = partition_rows.known(connection, [partition])
            keys = [Key(number, "memory", memory_id) for number in numbers for memory_id in memory_ids]
            found, rows = vectors.read(connection, embedder_id, keys)
        return {key.record_id: row for key, row in zip(found, rows, strict=True)}

    def verify(self, sample: int = 1_000) -> tuple[int, tuple[Mismatch, ...]]:
        """Compare the index with the ledger by ids and by hits; return vectors compared and differences."""
        self._following.settle(_PATIENT)
        return differences(self._database, self._index, self._embedder, sample, exact_limit=self._exact_limit)

    def rebuild(self, progress: Advance | None = None) -> int:
        """Rebuild the index from the ledger's vectors; return how many were written."""
        return self._indexer.rebuild(self._embedder, progress)

    def forget(self, names: Sequence[str], partition_ids: Sequence[int], memory_ids: Sequence[str]) -> tuple[int, bool]:
        """Rebuild collections without what was erased, and clear the files of the index of what was in them.

        Args:
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

        Until the change the old vectors serve. May be stopped at any time: called again, it continues where it was.

        Args:
            progress: Told how many records are embedded, and of how many.

        Raises:
            IndexOwnedError: Another process owns the index.
            ModelUnavailableError: The embedder did not answer; nothing has changed for recall.
            DimensionError: It gave vectors of another length than it says, or not finite ones.
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
            self._indexer.check()
            self._index.ids(_NOWHERE)

    def close(self) -> None:
        """Give everything back."""
        self._following.settle(_GRACE)
        self._meanings.clear()
        self._indexer.close()
        if self._index is not None:
            self._index.close()


def differences(
    database: Database,
    index: VectorIndex | None,
    embedder: Embedder,
    sample: int,
    *,
    thorough: bool = True,
    exact_limit: int = 0,
) -> tuple[int, tuple[Mismatch, ...]]:
    """Compare; see `VectorProjection.verify`. What recall finds in SQL need not be found by the index."""
    with database.read() as connection:
        embedder_id = embedders.require(connection, embedder)
        found = [Mismatch(where="dirty set", record_id=key.record_id, problem="pending") for key in _dirty(connection)]
        embedded: list[Key] = []
        for key, problem in _records(connection, embedder_id):
            if problem:
                found.append(Mismatch(where="vectors", record_id=key.record_id, problem=problem))
            else:
                embedded.append(key)
        homes = placement.homes(connection, embedder_id)
    if index is None:
        return len(embedded), tuple(found)
    damage = index.damage(thorough=thorough)
    found += [Mismatch(where=name or "index", record_id="", problem=f"damaged: {damage[name]}") for name in damage]
    if WHOLE in damage:
        return len(embedded), tuple(found)
    expected: dict[str, set[str]] = {home: set() for home in homes.values() if home not in damage}
    for key in embedded:
        if home := homes.get(key[:2]):
            expected.get(home, set()).add(index_id(key))
        else:
            found.append(Mismatch(where="collections", record_id=key.record_id, problem="missing"))
    for home, names in sorted(expected.items()):
        held = index.ids(home)
        found += [Mismatch(where=home, record_id=name, problem="missing") for name in sorted(names - held)]
        found += [Mismatch(where=home, record_id=name, problem="extra") for name in sorted(held - names)]
    used, existing = set(homes.values()), index.collections()
    found += [
        Mismatch(where=name, record_id="", problem="extra")
        for name in sorted(existing - used)
        if placement.owned(name, used)
    ]
    step = max(1, -(-len(embedded) // max(1, sample)))
    searched = expected.keys() & existing
    placed = {key: homes[key[:2]] for key in embedded[::step] if homes.get(key[:2]) in searched}
    found += _lost(database, index, embedder_id, placed, exact_limit)
    return len(embedded), tuple(found)


def _dirty(connection: Connection) -> Iterator[Key]:
    after: Key | None = None
    while page := vectors.marks(connection, after, _PAGE):
        yield from page
        after = next(reversed(page))


def _records(connection: Connection, embedder_id: int) -> Iterator[tuple[Key, str]]:
    """Yield each live record, and what is wrong with its vector."""
    for kind in KINDS:
        after: Key | None = None
        while page := vectors.live_keys(connection, kind, after, _PAGE):
            bodies = vectors.live_bodies(connection, page)
            digests = vectors.embedded_digests(connection, embedder_id, page)
            for key in page:
                made_of = digests.get(key)
                current = digest(vectors.text_of(key, bodies[key]))
                yield key, "missing" if made_of is None else "" if made_of == current else "stale"
            after = page[-1]


def _lost(
    database: Database,
    index: VectorIndex,
    embedder_id: int,
    homes: Mapping[Key, str],
    exact_limit: int,
) -> Iterator[Mismatch]:
    """Return which records recall misses: the index does not find them by their own vector."""
    by_home: dict[str, list[Key]] = defaultdict(list)
    with database.read() as connection:
        asked = placement.searched(connection, embedder_id, exact_limit)
        in_sql = vectors.unreached(connection, {key.partition_id for key in homes})
        for key, home in homes.items():
            if key[:2] in asked and key not in in_sql:
                by_home[home].append(key)
        rows = {home: vectors.read(connection, embedder_id, some) for home, some in by_home.items()}
    for home, (read, vectors_of) in sorted(rows.items()):
        for name in index.unreached(home, [index_id(key) for key in read], vectors_of):
            yield Mismatch(where=home, record_id=key_of(name).record_id, problem=UNREACHED)
