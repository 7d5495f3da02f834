"""Keeps the vector index true to the ledger: embeds what is new, applies the dirty set, rebuilds the index.

The index is given what a record is *now*, whatever happened to it before, so the order of changes does not matter and
every step can be repeated. A mark goes once its record is applied, and only if it is still the one that was seen.
Whatever moves or drops vectors in the index marks them first: should it stop half-way, the next `apply` heals it,
and until then recall finds them in SQL.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from remegraph.errors import IndexChangedError, IndexOwnedError, ModelError, ModelUnavailableError, VectorIndexError
from remegraph.failpoints import failpoint
from remegraph.ledger.database import EVERYBODY, Database
from remegraph.ledger.index import embedders, meanings, placement, vectors
from remegraph.ledger.index.choice import check_kept
from remegraph.ledger.index.vectors import KINDS, Key, mark_everything, mark_partitions, partition_ids
from remegraph.ledger.rows import chunks, digest
from remegraph.ports import WHOLE, Embedder, VectorIndex
from remegraph.telemetry import event

if TYPE_CHECKING:
    from remegraph.ports import Vectors

__all__ = ["Advance", "Indexer", "index_id", "key_of", "shelf_name"]

_log = logging.getLogger(__name__)

_SYNC = 1  # what one process at a time does
_GROWN = 0.5  # share of a collection after whose writing all of it is looked for
_TRIES = 2  # how often what no search finds is rewritten, which gives it new links
_BATCH = 500  # records that are embedded, written and applied together: as many as one statement names

Advance = Callable[[int, int], None]
"""Told how many records are done, and of how many."""


def shelf_name(partition_id: int, kind: str) -> str:
    """Return what the index knows a shelf by."""
    return f"{partition_id}:{kind}"


def index_id(key: Key) -> str:
    """Return what the index knows a record by: block ids are unique only in their partition."""
    return f"{key.partition_id}:{key.kind}:{key.record_id}"


def key_of(name: str) -> Key:
    """Return the record that `index_id` named."""
    partition_id, kind, record_id = name.split(":", 2)
    return Key(int(partition_id), kind, record_id)


@dataclass(frozen=True, slots=True)
class _Batch:
    embedder_id: int
    marks: dict[Key, str]
    bodies: dict[Key, str]
    """JSON of those that are live; the others leave the index."""
    stale: dict[Key, str] = field(default_factory=dict)
    """Texts of those that have no vector of their current text."""

    @property
    def partition_ids(self) -> set[int]:
        return {key.partition_id for key in self.marks}


class Indexer:
    """Applies the ledger's changes to the index, one caller at a time.

    Args:
        index: The index; none where another process owns it: then texts are embedded, and the marks stay.
    """

    def __init__(self, database: Database, index: VectorIndex | None) -> None:
        self._database = database
        self._index = index
        self._one_at_a_time = Lock()
        self._embedding = Lock()
        self._embedded: frozenset[str] = frozenset()  # marks whose records have a vector
        self._written: dict[str, int] = defaultdict(int)  # records, since all of a collection were looked for
        self._due: dict[str, float] = {}  # from this many on they are looked for again
        self._closed = False

    def close(self) -> None:
        """Have what is under way end before it reads the ledger again."""
        self._closed = True

    def sync(self, embedder: Embedder) -> int:
        """Apply the dirty set; see `VectorProjection.sync`.

        Where another process does so, it is left to that one: two would undo each other's work, and mark it again. What
        is marked is embedded meanwhile, so that the search in SQL finds it.
        """
        with self._one_at_a_time, self._alone() as ours:
            return self._apply(embedder, heal=True) if ours else self.embed_marked(embedder)

    def rebuild(self, embedder: Embedder, advance: Advance | None) -> int:
        """Rebuild the index; see `VectorProjection.rebuild`."""
        index = self._owned()
        with self._one_at_a_time:
            mark_everything(self._database)
            failpoint("rebuild.marked")
            self._empty(index)
            failpoint("rebuild.emptied")
            return self._apply(embedder, advance)

    def reindex(self, embedder: Embedder, advance: Advance | None) -> int:
        """Change the embedder; see `VectorProjection.reindex`."""
        index = self._owned()
        with self._database.write([EVERYBODY]) as connection:
            embedder_id = embedders.number_of(connection, embedder)
        self._embed_everything(embedder, embedder_id, advance)
        if embedder.semantic:
            self.embed_messages(embedder, embedder_id, partition_ids(self._database), advance)
        with self._one_at_a_time:
            mark_everything(self._database)
            with self._database.write([EVERYBODY]) as connection:
                embedders.make_current(connection, embedder_id)
            self._empty(index)
            with self._database.write([EVERYBODY]) as connection:
                embedders.forget_others(connection, embedder_id)
            return self._apply(embedder)

    def forget(
        self, embedder: Embedder, names: Sequence[str], partition_ids: Sequence[int], memory_ids: Sequence[str]
    ) -> tuple[int, bool]:
        """Rebuild collections; see `VectorProjection.forget`."""
        index, places, wanted = self._owned(), set(partition_ids), set(memory_ids)
        with self._one_at_a_time:
            if (down := self._heal()) is not None:
                raise down
            self._drop(index, names)
            with self._database.write([EVERYBODY]) as connection:
                placement.release_empty(connection, names)
            failpoint("erase.index_dropped")
            self._apply(embedder)
            keys = [key_of(each) for name in names for each in index.ids(name)]
            left = sum(key.partition_id in places or (key.kind == "memory" and key.record_id in wanted) for key in keys)
            return left, index.shred()  # at last: Chroma fills the space that it reserves with what was in memory

    def embed_messages(
        self, embedder: Embedder, embedder_id: int, partition_ids: Iterable[int], advance: Advance | None = None
    ) -> int:
        """Embed what messages of these partitions have no vector yet; see `VectorProjection.embed_messages`."""
        ids = list(partition_ids)
        with self._database.read() as connection:
            total = meanings.count(connection, ids) if advance is not None else 0
        done = 0
        for texts in self._messages_to_embed(embedder, embedder_id, ids):
            done += texts
            if advance is not None:
                advance(min(done, total), total)
        return done

    def _messages_to_embed(self, embedder: Embedder, embedder_id: int, partition_ids: Sequence[int]) -> Iterator[int]:
        """Embed in order of seq, and yield how many at a time; two at once do the same twice, and leave nothing out."""
        for partition_id in partition_ids:
            with self._database.read() as connection:
                seq = meanings.newest_embedded(connection, embedder_id, partition_id)
            while True:
                with self._database.read() as connection:
                    texts, seq = meanings.texts_after(connection, partition_id, seq, _BATCH)
                if not texts:
                    break
                rows = embedders.embed(self._database, embedder, embedder_id, list(texts.values()))
                with self._database.write([partition_id], derived=True) as connection:
                    there = meanings.there(connection, list(texts))  # some may have been erased meanwhile
                    same = [at for at, key in enumerate(texts) if key in there]
                    kept = {key: text for key, text in texts.items() if key in there}
                    vectors.write(connection, embedder_id, kept, rows[same])
                yield len(texts)

    # ------------------------------------------------------------------------------------------- apply

    def _apply(self, embedder: Embedder, advance: Advance | None = None, *, heal: bool = False) -> int:
        """Apply all marks, in the order of their keys, each once: those that come meanwhile are for the next call.

        What is marked is embedded even if the index fails: the search in SQL that stands in for it needs the vectors.
        Where much of a collection was written, it is looked whether a search finds all that it holds.
        """
        applied = 0
        failure: ModelError | None = None
        down = self._left() or (self._heal() if heal else None)
        touched: set[str] = set()
        with self.read() as connection:
            total = vectors.pending(connection)
        for batch in self._batches(embedder) if down is None else ():
            if not isinstance(failure, ModelUnavailableError):  # else every batch would wait for it in vain
                try:
                    self._embed(embedder, batch)
                except ModelError as error:  # what needs no embedding is still applied
                    failure = failure or error
            try:
                applied += self._apply_batch(batch, touched)
            except VectorIndexError as error:
                down = error
                break
            if advance is not None:
                advance(min(applied, total), total)
        if down is not None:
            with suppress(ModelError):  # the index fails: that is reported
                self.embed_marked(embedder)
            raise down
        if self._part(embedder, touched):
            self._apply(embedder)
        for home in sorted(touched):
            self._look_for_all(embedder, home)
        if failure is not None:
            raise failure
        return applied

    def _alone(self) -> AbstractContextManager[bool]:
        return nullcontext(enter_result=True) if self._index is None else self._database.first(_SYNC)

    def embed_marked(self, embedder: Embedder) -> int:
        """Embed what is marked and has no vector of its text, and leave the marks; return 0: nothing was applied.

        What was found embedded once is not looked at again, as long as its mark is the same: an index may be down for
        days, and this is done at every write.
        """
        seen: set[str] = set()
        after: Key | None = None
        while True:
            with self.read() as connection:
                embedder_id = embedders.require(connection, embedder)
                marks = vectors.marks(connection, after, _BATCH)
                new = {key: name for key, name in marks.items() if name not in self._embedded}
                batch = self._load(connection, embedder_id, new)
            self._embed(embedder, batch)
            seen.update(marks.values())
            if len(marks) < _BATCH:
                self._embedded = frozenset(seen)
                return 0
            after = next(reversed(marks))

    def read(self) -> AbstractContextManager[Connection]:
        """Give a snapshot of the ledger; see `Database.read`. What comes back from an index that was closed gets none."""
        if self._closed:
            raise VectorIndexError("The vector index was closed.", "Open it again.")
        return self._database.read()

    def _batches(self, embedder: Embedder) -> Iterator[_Batch]:
        after: Key | None = None
        while True:
            with self.read() as connection:
                embedder_id = embedders.require(connection, embedder)
                marks = vectors.marks(connection, after, _BATCH)
                batch = self._load(connection, embedder_id, marks)
            if marks:
                yield batch
            if len(marks) < _BATCH:
                return
            after = next(reversed(marks))  # the last in the order of the database, which has its own collation

    @staticmethod
    def _load(connection: Connection, embedder_id: int, marks: dict[Key, str]) -> _Batch:
        bodies = vectors.live_bodies(connection, list(marks))
        embedded = vectors.embedded_digests(connection, embedder_id, list(bodies))
        texts = {key: vectors.text_of(key, body) for key, body in bodies.items()}
        stale = {key: text for key, text in texts.items() if embedded.get(key) != digest(text)}
        return _Batch(embedder_id, marks, bodies, stale)

    def _embed(self, embedder: Embedder, batch: _Batch) -> None:
        """Embed what has no vector of its text, and write it where the record is still as it was read."""
        if not batch.stale:
            return
        failpoint("index.before_embed")
        with self._embedding:  # nothing twice
            rows = embedders.embed(self._database, embedder, batch.embedder_id, list(batch.stale.values()))
            with self._database.write({key.partition_id for key in batch.stale}, derived=True) as connection:
                now = vectors.live_bodies(connection, list(batch.stale))
                same = [at for at, key in enumerate(batch.stale) if now.get(key) == batch.bodies[key]]
                texts = list(batch.stale.items())
                vectors.write(connection, batch.embedder_id, dict(texts[at] for at in same), rows[same])
        failpoint("index.embedded")
        batch.stale.clear()

    def _apply_batch(self, batch: _Batch, touched: set[str]) -> int:
        """Apply a batch to the index and take its marks off; return how many records were applied."""
        if self._index is None:
            return 0
        live = [key for key in batch.bodies if key not in batch.stale]
        gone = [key for key in batch.marks if key not in batch.bodies]
        homes, found, rows = self._places(batch, live)
        by_home: dict[str, list[int]] = defaultdict(list)
        for at, key in enumerate(found):
            by_home[homes[key[:2]]].append(at)
        lost = [
            key
            for home, places in by_home.items()
            for key in self._write(self._index, home, [found[at] for at in places], rows[places])
        ]
        leaving: dict[str, list[str]] = defaultdict(list)
        for key in gone:
            if key[:2] in homes:  # else the index never had it
                leaving[homes[key[:2]]].append(index_id(key))
        for home, names in leaving.items():
            self._index.delete(home, names)
        touched |= set(homes.values())
        done = {key: batch.marks[key] for key in (*found, *gone)}
        with self._database.write(batch.partition_ids, derived=True) as connection:
            vectors.forget(connection, gone)
            vectors.unmark(connection, done)
            vectors.note_unreached(connection, (), lost)
            failpoint("index.before_unmark")
        failpoint("index.unmarked")
        return len(done)

    def _places(self, batch: _Batch, live: Sequence[Key]) -> tuple[Mapping[placement.Shelf, str], list[Key], Vectors]:
        """Return where shelves are, giving a place to the new ones, and the vectors of live records."""
        wanted = {key[:2] for key in live}
        with self._database.read() as connection:
            homes = placement.homes(connection, batch.embedder_id, batch.partition_ids)
        if not homes.keys() >= wanted:
            with self._database.write([EVERYBODY]) as connection:
                placement.assign(connection, batch.embedder_id, wanted)
        with self._database.read() as connection:
            homes = placement.homes(connection, batch.embedder_id, batch.partition_ids)
            return homes, *vectors.read(connection, batch.embedder_id, live)

    # ------------------------------------------------------------------------------------------ reach

    def _write(self, index: VectorIndex, home: str, keys: Sequence[Key], rows: Vectors) -> list[Key]:
        """Write records, again those that no search finds; return what still no search finds."""
        self._written[home] += len(keys)
        for _ in range(1 + _TRIES):
            names = [index_id(key) for key in keys]
            index.upsert(home, names, [shelf_name(*key[:2]) for key in keys], rows)
            missed = set(index.unreached(home, names, rows))
            at = [at for at, name in enumerate(names) if name in missed]
            keys, rows = [keys[each] for each in at], rows[at]
            if not keys:
                break
        return list(keys)

    def _look_for_all(self, embedder: Embedder, home: str) -> None:
        """Look whether a search finds each record of a collection, if much of it was written since the last look.

        What was there lost ways to what came after it. What no search finds is written once more, and where that does
        not help, or takes ways from others, it is noted: recall looks at it in SQL.
        """
        if self._index is None:
            return
        self._index.optimize(home)
        if self._written[home] < self._due.get(home, 0):
            return
        with self.read() as connection:
            embedder_id = embedders.require(connection, embedder)
            places = placement.inhabitants(connection, [home])[home]
            self._due[home] = _GROWN * placement.size(connection, embedder_id, places)
        if self._written[home] < self._due[home]:
            return
        self._written[home] = 0
        looked_for, lost = self._lost(self._index, embedder_id, home)
        for _ in range(_TRIES):
            if not lost:
                break
            with self.read() as connection:
                keys, rows = vectors.read(connection, embedder_id, lost)
            names = [index_id(key) for key in keys]
            self._index.upsert(home, names, [shelf_name(*key[:2]) for key in keys], rows)
            looked_for, lost = self._lost(self._index, embedder_id, home)
        numbers = {partition_id for partition_id, _ in places}
        with self.read() as connection:
            noted = vectors.unreached(connection, numbers)
        found = noted.intersection(looked_for).difference(lost)
        if found or lost:
            with self._database.write(numbers, derived=True) as connection:
                vectors.note_unreached(connection, list(found), lost)

    def _lost(self, index: VectorIndex, embedder_id: int, home: str) -> tuple[list[Key], list[Key]]:
        """Return what a collection holds, and what of it no search finds."""
        held, lost = sorted(key_of(name) for name in index.ids(home)), list[Key]()
        for part in chunks(held):
            with self.read() as connection:
                keys, rows = vectors.read(connection, embedder_id, part)
            if keys:
                lost += [key_of(name) for name in index.unreached(home, [index_id(key) for key in keys], rows)]
        return held, lost

    # ---------------------------------------------------------------------------------------- rebuild

    def _part(self, embedder: Embedder, touched: set[str]) -> bool:
        """Take shelves out of collections that grew too large; return whether any has to be applied again."""
        if self._index is None or not touched:
            return False
        with self._database.read() as connection:
            embedder_id = embedders.require(connection, embedder)
            leaving = placement.overfull(connection, embedder_id, touched)
        for shelf, home in leaving:
            with self._database.write([shelf[0]], derived=True) as connection:
                vectors.mark_live(connection, shelf[0])
                keys = vectors.keys_of(connection, embedder_id, shelf)
            self._index.delete(home, [index_id(key) for key in keys])
            with self._database.write([EVERYBODY]) as connection:
                placement.release(connection, embedder_id, shelf)
        return bool(leaving)

    def _embed_everything(self, embedder: Embedder, embedder_id: int, advance: Advance | None) -> None:
        """Embed all live records that have no vector of this embedder; continues where it was stopped."""
        with self._database.read() as connection:
            total = sum(vectors.count_live(connection, kind) for kind in KINDS)
        done = 0
        for kind in KINDS:
            after: Key | None = None
            while True:
                with self._database.read() as connection:
                    keys = vectors.live_keys(connection, kind, after, _BATCH)
                    batch = self._load(connection, embedder_id, dict.fromkeys(keys, ""))
                if not keys:
                    break
                after = keys[-1]
                self._embed(embedder, batch)
                done += len(keys)
                if advance is not None:
                    advance(min(done, total), total)

    def _heal(self) -> VectorIndexError | None:
        """Drop what is damaged, its records marked first, so that they are applied again; return how that failed."""
        if self._index is None:
            return None
        try:
            damage = self._index.damage() or self._missing(self._index)
            for name, problem in damage.items():
                _log.warning(
                    "The vector index is damaged and made anew (%s): %s",
                    name or "all of it",
                    problem,
                    extra=event("index.damaged"),
                )
            if WHOLE in damage:
                mark_everything(self._database)
                failpoint("heal.marked")
                self._empty(self._index)
                failpoint("heal.dropped")
            elif damage:
                self._drop(self._index, damage)
        except VectorIndexError as error:
            return error
        return None

    def _missing(self, index: VectorIndex) -> dict[str, str]:
        """Return the collections that are gone: made again for what changed, they would hold nothing else."""
        with self._database.read() as connection:
            used = placement.collection_names(connection) if vectors.pending(connection) else set()
        return dict.fromkeys(used - index.collections(), "it is not there") if used else {}

    def _drop(self, index: VectorIndex, names: Iterable[str]) -> None:
        with self._database.read() as connection:
            hurt = placement.inhabitants(connection, names)
        mark_partitions(self._database, {partition_id for places in hurt.values() for partition_id, _ in places})
        failpoint("heal.marked")
        for name in names:
            index.drop(name)
        failpoint("heal.dropped")

    def _empty(self, index: VectorIndex) -> None:
        """Drop the collections of this ledger, those of embedders before too, and forget who was where."""
        if not index.reset():
            with self._database.read() as connection:
                used = placement.collection_names(connection)
            for name in sorted(used | {name for name in index.collections() if placement.owned(name, used)}):
                index.drop(name)
        with self._database.write([EVERYBODY]) as connection:
            placement.release_all(connection)

    def _owned(self) -> VectorIndex:
        if self._index is None:
            raise IndexOwnedError("The vector index belongs to another process.")
        self.check()
        return self._index

    def _left(self) -> VectorIndexError | None:
        """Return why the index is left as it is, if so."""
        try:
            self.check()
        except IndexChangedError as error:
            return error
        return None

    def check(self) -> None:
        """Return if the ledger has this index still.

        Raises:
            IndexChangedError: It has another one.
        """
        if self._index is not None:
            with self._database.read() as connection:
                check_kept(connection, self._index)
