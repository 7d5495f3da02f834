"""An embedded index that cannot take its host down.

`kill -9` in the middle of a bulk write tears Chroma's files, and a process that opens torn files dies. So this process opens
the index only after it was closed in order and its files are byte for byte as they were left, or after another process
has opened it and lived. An older copy of the folder is sound and wrong; it is recognised by its generation, which changes
with every write, in the ledger and beside the index.

While that is not known, every call is a `VectorIndexError`: recall searches SQL and does not wait.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import shutil
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from struct import Struct
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING
from uuid import uuid4
from weakref import WeakSet

from sqlalchemy import select

from remegraph.errors import VectorIndexError
from remegraph.failpoints import failpoint
from remegraph.files import AFTER_FORK, IndexOwner
from remegraph.ledger.database import EVERYBODY, Database
from remegraph.ledger.index.chroma import ChromaIndex, persistent
from remegraph.ledger.index.probe import Prober, segments
from remegraph.ledger.rows import upsert
from remegraph.ledger.schema import projections
from remegraph.ports import WHOLE
from remegraph.telemetry import event

if TYPE_CHECKING:
    from remegraph.ports import Vectors

__all__ = ["GuardedIndex", "IndexFolder", "Note", "recorded"]


_CHUNK = 1 << 20

_GRACE = 5.0
"""Seconds that the end of the process waits for a call."""

_LENGTH = 4
"""Bytes of the length of a vector, in `length.bin`."""

_HEADER = Struct("<iQQQQ")
"""How the header of an HNSW index begins: version, offset, capacity in vectors, vectors, bytes of each."""

_CLEAR_QUEUE = (
    "DELETE FROM embeddings_queue WHERE NOT EXISTS"
    " (SELECT 1 FROM collections WHERE embeddings_queue.topic LIKE '%' || collections.id)"
)


@dataclass(frozen=True, slots=True)
class Note:
    """In which state an index was left."""

    generations: tuple[str, ...] = ("",)
    """The one that the ledger recorded, and the one that was being written; empty before the first."""
    closed: bool = False
    files: dict[str, str] = field(default_factory=dict)
    """Size and checksum by path, where it was closed."""


class IndexFolder:
    """Files of an index and the note beside them, which says in which state it was left.

    A process that dies leaves the note open; files that changed since it was closed, or a generation that the ledger does
    not know, are not the index that was left here.

    Args:
        directory: The folder that the owner of the index has locked.
    """

    def __init__(self, directory: Path) -> None:
        self.files = directory / "chroma"
        self._note = directory / "state.json"

    def note(self) -> Note | None:
        """Return the note; none where there is none, an empty one where it cannot be read."""
        try:
            found = json.loads(self._note.read_text(encoding="utf-8"))
            return Note(tuple(found["generations"]), bool(found["closed"]), dict(found["files"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError):
            return Note(generations=())

    @property
    def used(self) -> bool:
        """Whether vectors were written here, and the ledger noted it."""
        generations = (self.note() or Note()).generations
        return bool(generations) and "" not in generations

    def write(self, note: Note) -> None:
        """Replace the note, whole or not at all.

        Raises:
            OSError: It cannot be written; the old one stays.
        """
        new = self._note.with_suffix(".new")
        new.write_text(json.dumps(asdict(note)), encoding="utf-8")
        new.replace(self._note)

    def checksums(self) -> dict[str, str]:
        """Return size and checksum of each file of the index."""
        return {
            path.relative_to(self.files).as_posix(): f"{path.stat().st_size} {_checksum(path):08x}"
            for path in sorted(self.files.rglob("*"))
            if path.is_file()
        }

    def sweep(self) -> None:
        """Remove the folders of collections that are no more: Chroma leaves them behind."""
        if not self.files.is_dir():
            return
        used = set(segments(self.files))
        for path in self.files.iterdir():
            if path.is_dir() and path.name not in used:
                shutil.rmtree(path)

    def blank(self) -> None:
        """Overwrite what Chroma reserved and never filled: it writes such space as it finds it in this process's memory.

        Otherwise removed vectors, and anything else that was once in memory, would be in there.

        Raises:
            OSError: A file cannot be written.
            ValueError: The files are laid out otherwise than known.
        """
        for header in self.files.glob("*/header.bin"):
            _, _, reserved, filled, size = _HEADER.unpack_from(header.read_bytes())
            for name, width in (("data_level0.bin", size), ("length.bin", _LENGTH)):
                _blank(header.with_name(name), filled * width, reserved * width)

    def shred(self) -> None:
        """Clear the files of what was removed: Chroma's queue keeps the vectors of collections that are no more.

        Raises:
            OSError: A file cannot be written.
            ValueError: The files are laid out otherwise than known.
            sqlite3.Error: Chroma's database is damaged, or in use.
        """
        self.sweep()
        self.blank()
        database = self.files / "chroma.sqlite3"
        if not database.exists():
            return
        with closing(sqlite3.connect(database, timeout=5, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete=ON")
            connection.execute(_CLEAR_QUEUE)
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def remove(self) -> None:
        """Remove all files of the index."""
        if self.files.exists():
            shutil.rmtree(self.files)


def _blank(path: Path, filled: int, reserved: int) -> None:
    length = path.stat().st_size  # an index that grew is written without what it reserved
    if not filled <= length <= reserved:
        raise ValueError(f"{path} does not hold {filled} to {reserved} bytes")
    with path.open("r+b") as file:
        file.seek(filled)
        for start in range(filled, length, _CHUNK):
            file.write(bytes(min(_CHUNK, length - start)))


def _checksum(path: Path) -> int:
    """Return a CRC: it is meant to find accidents, at the speed of reading."""
    found = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found = zlib.crc32(chunk, found)
    return found


_log = logging.getLogger(__name__)

_NAME = "vectors"


def recorded(database: Database) -> str:
    """Return the generation of the index that a ledger recorded; nothing before the first."""
    with database.read() as connection:
        found = connection.execute(select(projections.c.generation).where(projections.c.name == _NAME))
        return found.scalar_one_or_none() or ""


@cache
def _open() -> WeakSet[GuardedIndex]:
    """The indexes that a process leaves when it ends."""
    indexes: WeakSet[GuardedIndex] = WeakSet()

    @atexit.register
    def leave() -> None:
        for each in list(indexes):
            each.leave()

    return indexes


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
        _open().add(self)
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

    def optimize(self, collection: str) -> None:
        """Do nothing: Chroma does so as it writes."""

    def damage(self, *, thorough: bool = False) -> Mapping[str, str]:
        """Look whether the index is sound, in another process where that could kill this one; wait for the answer.

        Args:
            thorough: Probe in another process in any case; meanwhile recall searches SQL.

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

    def leave(self) -> None:
        """Begin no call from now on, and wait a while for those under way, as the process ends without `close`.

        A thread that the interpreter ends within Chroma's compiled code takes the process down: "Segmentation fault".
        """
        if self._process == os.getpid():
            with self._turn:
                self._closed = True
                self._turn.wait_for(lambda: self._in_use == 0, _GRACE)

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
        """Return what is wrong as far as the files show without opening them; none where they do not."""
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
        """Close Chroma once no one uses it; the caller holds the turn."""
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
