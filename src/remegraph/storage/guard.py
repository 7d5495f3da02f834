"""An embedded index that cannot take its host down.

`kill -9` in the middle of a bulk write tears Chroma's files, and whoever opens torn files dies. So this process opens
the index only after it was closed in order and its files are byte for byte as they were left, or after another process
has opened it and lived. An older copy of the folder is sound and wrong; it is told by its generation, which changes
with every write, in the ledger and beside the index.

While that is not known, every call is a `VectorIndexError`: recall goes on from SQL and does not wait.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlalchemy import select

from remegraph.errors import VectorIndexError
from remegraph.failpoints import failpoint
from remegraph.ports import WHOLE
from remegraph.storage.chroma import ChromaIndex, persistent
from remegraph.storage.database import EVERYBODY, Database, upsert
from remegraph.storage.folder import IndexFolder, Note
from remegraph.storage.owner import AFTER_FORK, IndexOwner
from remegraph.storage.probing import Prober
from remegraph.storage.tables import projections
from remegraph.telemetry import event

if TYPE_CHECKING:
    from remegraph.ports import Vectors

__all__ = ["GuardedIndex", "recorded"]

_log = logging.getLogger(__name__)

_NAME = "vectors"


def recorded(database: Database) -> str:
    """Return the generation of the index that a ledger recorded; nothing before the first."""
    with database.read() as connection:
        found = connection.execute(select(projections.c.generation).where(projections.c.name == _NAME))
        return found.scalar_one_or_none() or ""


class GuardedIndex:
    """Embedded Chroma as a `VectorIndex`, opened at first use and only when sound.

    Args:
        database: The ledger, which records the generation.
        owner: The right to the directory; `close` gives it back.
    """

    def __init__(self, database: Database, owner: IndexOwner) -> None:
        self._database = database
        self._owner = owner
        self._process = os.getpid()
        self._folder = IndexFolder(owner.directory)
        self._prober = Prober(self._folder.files)
        self._examining = Lock()
        self._turn = Condition()  # guards all that follows
        self._in_use = 0
        self._chroma: ChromaIndex | None = None
        self._damage: dict[str, str] | None = None  # none: not known
        self._generation = ""
        self._noted_open = False
        self._background: Thread | None = None
        self._closed = False

    # ------------------------------------------------------------------------------------------- VectorIndex

    def upsert(self, collection: str, ids: Sequence[str], shelves: Sequence[str], vectors: Vectors) -> None:
        """Write records; see `ChromaIndex.upsert`."""
        with self._writing(collection) as chroma:
            chroma.upsert(collection, ids, shelves, vectors)

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove records; see `ChromaIndex.delete`."""
        with self._writing(collection) as chroma:
            chroma.delete(collection, ids)

    def query(self, collection: str, shelves: Sequence[str] | None, vector: Vectors, k: int) -> list[tuple[str, float]]:
        """Return the k nearest; see `ChromaIndex.query`."""
        with self._using(collection) as chroma:
            return chroma.query(collection, shelves, vector, k)

    def unreached(self, collection: str, ids: Sequence[str], vectors: Vectors) -> list[str]:
        """Return what no search finds; see `ChromaIndex.unreached`."""
        with self._using(collection) as chroma:
            return chroma.unreached(collection, ids, vectors)

    def ids(self, collection: str) -> set[str]:
        """Return all ids of a collection."""
        with self._using(collection) as chroma:
            return chroma.ids(collection)

    def collections(self) -> set[str]:
        """Return the names of all collections."""
        with self._using() as chroma:
            return chroma.collections()

    def drop(self, collection: str) -> None:
        """Remove a collection, a damaged one too: Chroma does not open it for that."""
        with self._writing() as chroma:
            chroma.drop(collection)
        with self._turn:
            if self._damage is not None:
                self._damage.pop(collection, None)

    def damage(self, *, thorough: bool = False) -> Mapping[str, str]:
        """Look whether the index is sound, in another process where that could kill this one; wait for the answer.

        Args:
            thorough: Probe in another process in any case; meanwhile recall goes on from SQL.

        Raises:
            VectorIndexError: It could not be probed.
        """
        with self._examining:
            with self._turn:
                self._check()
                if thorough:
                    self._let_go()
                    self._damage = None
                found = self._damage if self._damage is not None else self._look()
            if found is None or (thorough and not found and self._folder.files.exists()):
                self._write(Note((self._generation,)))  # probing changes files, too
                found = self._prober.run()
            with self._turn:
                self._damage = found
                return dict(found)

    def reset(self) -> bool:
        """Throw all files away."""
        with self._examining, self._turn:
            self._check()
            self._let_go()
            generation = uuid4().hex
            try:
                self._folder.remove()
            except OSError as error:
                raise VectorIndexError(f"The vector index cannot be removed: {error}.") from error
            self._record(generation)  # first: a note of vectors that the ledger knows nothing of is another ledger's
            self._write(Note((generation,), closed=True))  # no files are what was left here
            self._damage = {}
        return True

    def shred(self) -> bool:
        """Clear the files of what was removed, which Chroma leaves in them; it is closed meanwhile."""
        with self._examining, self._turn:
            self._check()
            self._let_go()
            try:
                self._folder.shred()
            except (OSError, ValueError, sqlite3.Error) as error:
                raise VectorIndexError(f"The files of the vector index cannot be cleared: {error}.") from error
        return True

    def close(self) -> None:
        """Close the index, note in which state it is left, and give the directory back."""
        if self._process == os.getpid():
            self._prober.stop()
            with self._turn:
                self._closed = True
                self._let_go()
                if self._noted_open and self._damage == {}:
                    self._seal()
            if self._background is not None:
                self._background.join()
        self._owner.close()

    # ------------------------------------------------------------------------------------------- inside

    @contextmanager
    def _writing(self, collection: str = WHOLE) -> Iterator[ChromaIndex]:
        """Give the index for a write, which makes a new generation: announced beside the index, recorded after it."""
        with self._using(collection) as chroma:
            generation = uuid4().hex
            self._write(Note((self._generation, generation)))
            failpoint("index.announced")
            yield chroma
            failpoint("index.applied")
            self._record(generation)
            failpoint("index.recorded")

    @contextmanager
    def _using(self, collection: str = WHOLE) -> Iterator[ChromaIndex]:
        """Give the index, opened, if this collection is known to be sound."""
        with self._turn:
            chroma = self._sound(collection)
            self._in_use += 1
        try:
            yield chroma
        finally:
            with self._turn:
                self._in_use -= 1
                self._turn.notify_all()

    def _sound(self, collection: str) -> ChromaIndex:
        self._check()
        if self._damage is None:
            self._damage = None if self._examining.locked() else self._look()
        if self._damage is None:
            self._examine_in_background()
            raise VectorIndexError("The vector index was not closed in order and is examined.", "Wait, or call sync.")
        problem = self._damage.get(WHOLE) or self._damage.get(collection)
        if problem:
            raise VectorIndexError(f"The vector index is damaged: {problem}.")
        if self._chroma is None:
            self._write(Note((self._generation,)))  # Chroma writes even when it reads
            self._sweep()
            self._chroma = ChromaIndex(lambda: persistent(self._folder.files))
        return self._chroma

    def _look(self) -> dict[str, str] | None:
        """Return what is wrong as far as the files tell without opening them; none where they do not."""
        self._generation = recorded(self._database)
        note, there = self._folder.note(), self._folder.files.exists()
        if self._generation not in (note or Note()).generations:
            return {WHOLE: "its files are older or newer than the ledger"}
        if note is not None and note.closed:
            return {} if self._unchanged(note) else {WHOLE: "its files changed since it was closed"}
        if not there:
            return {} if not self._generation else {WHOLE: "its files are gone"}
        return None

    def _unchanged(self, note: Note) -> bool:
        try:
            return note.files == self._folder.checksums()
        except OSError as error:
            raise VectorIndexError(f"The files of the vector index cannot be read: {error}.") from error

    def _sweep(self) -> None:
        try:
            self._folder.sweep()
        except (OSError, sqlite3.Error) as error:
            raise VectorIndexError(f"The folder of the vector index cannot be cleared: {error}.") from error

    def _examine_in_background(self) -> None:
        if self._background is None and not self._examining.locked():
            self._background = Thread(target=self._examine, name="remegraph-index-probe", daemon=True)
            self._background.start()

    def _examine(self) -> None:
        try:
            self.damage()
        except VectorIndexError as error:
            _log.warning("The vector index could not be examined: %s", error, extra=event("index.unexamined", error))

    def _let_go(self) -> None:
        """Close Chroma once nobody uses it; the caller holds the turn."""
        self._turn.wait_for(lambda: self._in_use == 0)
        chroma, self._chroma = self._chroma, None
        if chroma is not None:
            chroma.close()

    def _seal(self) -> None:
        try:
            self._folder.sweep()
            self._folder.blank()
            self._folder.write(Note((self._generation,), closed=True, files=self._folder.checksums()))
        except (OSError, ValueError, sqlite3.Error) as error:  # then it is probed before it is opened again
            _log.warning(
                "How the vector index was left could not be noted: %s", error, extra=event("index.unsealed", error)
            )

    def _write(self, note: Note) -> None:
        self._noted_open = True
        try:
            self._folder.write(note)
        except OSError as error:
            raise VectorIndexError(f"The folder of the vector index cannot be written: {error}.") from error

    def _record(self, generation: str) -> None:
        values = {"generation": generation}
        with self._database.write([EVERYBODY]) as connection:
            statement = upsert(connection.dialect.name, projections).values(name=_NAME, **values)
            connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))
        self._generation = generation

    def _check(self) -> None:
        if self._closed:
            raise VectorIndexError("The vector index was closed.", "Open it again.")
        if self._process != os.getpid():
            raise VectorIndexError(
                "The vector index was opened by the process that this one was forked from.", AFTER_FORK
            )
