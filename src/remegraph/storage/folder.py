"""The folder of an embedded index, and the note in it that says in which state it was left.

The note says whether the index was closed in order, which generation it is, and, if it was closed, the size and
checksum of each file. A process that dies leaves it open; files that changed since, or a generation that the ledger
does not know, are not the index that was left here.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from struct import Struct

__all__ = ["IndexFolder", "Note", "segments"]

_CHUNK = 1 << 20

_HEADER = Struct("<iQQQQ")
"""How the header of an HNSW index begins: version, offset, vectors that there is room for, vectors, bytes of each."""

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
    """Files of an index and the note beside them.

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
            OSError: It cannot be written; the old one stands.
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

        Vectors that are gone, and anything else that the host once had in memory, would stand there.

        Raises:
            OSError: A file cannot be written.
            ValueError: The files are laid out otherwise than known.
        """
        for header in self.files.glob("*/header.bin"):
            _, _, reserved, filled, size = _HEADER.unpack_from(header.read_bytes())
            vectors = header.with_name("data_level0.bin")
            length = vectors.stat().st_size  # an index that grew is written without what it reserved
            if not filled * size <= length <= reserved * size:
                raise ValueError(f"{vectors} does not hold {filled} to {reserved} vectors of {size} bytes")
            with vectors.open("r+b") as file:
                file.seek(filled * size)
                for start in range(filled * size, length, _CHUNK):
                    file.write(bytes(min(_CHUNK, length - start)))

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


def segments(files: Path) -> dict[str, str]:
    """Return the collections of an index by the folders that hold their vectors, without opening the index.

    Args:
        files: The folder of Chroma.

    Raises:
        sqlite3.Error: Chroma's database is damaged.
    """
    database = files / "chroma.sqlite3"
    if not database.exists():
        return {}
    query = "SELECT s.id, c.name FROM segments s JOIN collections c ON c.id = s.collection WHERE s.scope = 'VECTOR'"
    with closing(sqlite3.connect(database, timeout=5)) as connection:
        return dict(connection.execute(query).fetchall())


def _checksum(path: Path) -> int:
    """Return a CRC: it shall find accidents, at the speed of reading."""
    found = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found = zlib.crc32(chunk, found)
    return found
