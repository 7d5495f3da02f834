"""Backups of a ledger on SQLite, taken while others write and restored elsewhere; and how to recognise copies.

A backup is a folder: the ledger, the attachments, the key of the journal and a manifest. The vector index is not in it:
it is rebuilt from the ledger, which holds the vectors. The copy is one snapshot of the ledger; readers and writers go
on meanwhile.

A copy knows the collections of its original by name. On a Chroma server that both use, it would write into them, and its
`rebuild` would drop them. So a ledger on PostgreSQL notes in which database it is: the number that the server was made
with, and that of the database in it, which no renaming of either changes. A file may be moved at will; there, a backup
says of itself that it is one.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError
from sqlalchemy import Connection, select, text

from remegraph.errors import BackupError, CancelledError, SetupError
from remegraph.failpoints import failpoint
from remegraph.files import drafted, sync_file, sync_folder
from remegraph.ledger import attachments, migrations
from remegraph.ledger.attachments import BlobFolder
from remegraph.ledger.connections import LEDGER
from remegraph.ledger.database import EVERYBODY, Database
from remegraph.ledger.index import placement
from remegraph.ledger.index.vectors import mark_everything
from remegraph.ledger.journal import KEY_FILE as KEY
from remegraph.ledger.rows import counts, upsert
from remegraph.ledger.schema import projections
from remegraph.models import Backup, BackupFile, Progress
from remegraph.telemetry import event

if TYPE_CHECKING:
    from datetime import datetime


__all__ = ["BackupRun", "declare_copy", "inspect", "problems", "restore", "settle_copy"]

_BLOBS = "blobs"
_MANIFEST = "manifest.json"
_KNOWN = re.compile(rf"{re.escape(LEDGER)}|{re.escape(KEY)}|{_BLOBS}/[0-9a-f]{{2}}/[0-9a-f]{{2}}/[0-9a-f]{{64}}")
"""The files that a backup may hold: a name in a manifest becomes part of a path."""

_PAGES = 1_000  # copied between two looks at the caller

_Report = Callable[[Progress], None]

_log = logging.getLogger(__name__)

_PLACE_NOTE = "place"
_A_COPY = "a copy"
_MAY_ASK = text("SELECT has_function_privilege(to_regprocedure('pg_control_system()'), 'EXECUTE')")
_ASK_PLACE = text(
    "SELECT system_identifier || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())"
    " FROM pg_control_system()"
)


class BackupRun:
    """Takes one backup.

    Args:
        home: Where the key of the journal is, if it is a file.
        blobs: The bytes of attachments, if any are kept.
        progress: Told how far it is.
        cancel: Asked again and again whether to stop.
    """

    def __init__(
        self,
        database: Database,
        home: Path,
        blobs: BlobFolder | None,
        *,
        progress: _Report | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> None:
        self._database = database
        self._home = home
        self._blobs = blobs
        self._progress = progress
        self._cancel = cancel

    def run(self, folder: Path, *, at: datetime, settings: dict[str, object]) -> Backup:
        """Write the backup; return its manifest.

        Args:
            folder: Where: must be missing or empty.
            settings: To be noted in it; no secrets.

        Raises:
            BackupError: The ledger is not on SQLite or is damaged, or the folder cannot be written.
            CancelledError: `cancel` said so; nothing is left.
        """
        if not self._database.is_sqlite:
            raise BackupError(
                "The ledger is on PostgreSQL.", "Use its own tools, pg_dump and pg_restore: see docs/operations.md."
            )
        with drafted(folder) as draft:
            with self._database.read() as connection:
                counted = counts(connection)  # the first query begins the snapshot that all others see
                held = attachments.everywhere(connection)
                self._copy_ledger(connection, draft / LEDGER)
            if problem := _integrity(draft / LEDGER):
                raise BackupError(
                    f"The ledger is damaged: {problem}.", "Restore an earlier backup; `remegraph doctor` tells more."
                )
            missing = tuple(self._copy_blobs(held, BlobFolder(draft / _BLOBS)))
            self._copy_key(draft / KEY)
            backup = Backup(
                revision=migrations.HEAD,
                taken_at=at,
                counts=counted,
                files={name: _measured(draft / name) for name in _names(draft)},
                missing=missing,
                settings=settings,
            )
            (draft / _MANIFEST).write_text(backup.model_dump_json(indent=2), encoding="utf-8")
            sync_file(draft / _MANIFEST)
            self._step("manifest", 1, 1)
        return backup

    def _copy_ledger(self, connection: Connection, path: Path) -> None:
        """Copy the pages of the snapshot that this connection reads, a thousand at a time."""

        def look(_status: int, remaining: int, total: int) -> None:
            self._step("ledger", total - remaining, total)

        source = connection.connection.driver_connection
        assert isinstance(source, sqlite3.Connection)
        try:
            with closing(sqlite3.connect(path)) as target:
                source.backup(target, pages=_PAGES, progress=look)
        except sqlite3.Error as error:
            raise BackupError(f"The ledger cannot be copied to {path.parent} ({error}).", "Free some space.") from error
        with closing(Database.as_it_is(f"sqlite:///{path}")) as copy:
            declare_copy(copy)
        path.chmod(0o600)
        sync_file(path)

    def _copy_blobs(self, held: tuple[str, ...], target: BlobFolder) -> Iterator[str]:
        """Copy attachments; yield those that cannot be: a backup without them is better than none."""
        for done, sha256 in enumerate(held, start=1):
            try:
                data = None if self._blobs is None else self._blobs.get(sha256)
            except SetupError:
                data = None
            if data is None:
                yield sha256
            else:
                target.put(sha256, data)
            self._step("attachments", done, len(held))

    def _copy_key(self, path: Path) -> None:
        if (self._home / KEY).exists():
            shutil.copyfile(self._home / KEY, path)
            path.chmod(0o600)
            sync_file(path)

    def _step(self, stage: str, done: int, total: int) -> None:
        if self._cancel is not None and self._cancel():
            raise CancelledError("The backup was cancelled; nothing of it is left.", "Take it again.")
        if self._progress is not None:
            self._progress(Progress(stage=stage, done=done, total=total))


def inspect(folder: Path) -> Backup:
    """Return what a backup holds, once all of it was read and fits its checksums.

    Raises:
        BackupError: It is none, or it is incomplete or damaged.
        SchemaTooNewError: A newer remegraph made it.
        SetupError: No release made it.
    """
    try:
        backup = Backup.model_validate_json((folder / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, ValidationError) as error:
        raise BackupError(f"{folder} is no backup: its manifest cannot be read.") from error
    migrations.check_revision(backup.revision, "backup")
    for name, told in backup.files.items():
        if not _KNOWN.fullmatch(name):
            raise BackupError(f"{folder} names a file that no backup holds: {name!r}.", "Do not use it.")
        if not (folder / name).is_file():
            raise BackupError(f"{folder} is incomplete: {name} is missing.")
        if _measured(folder / name) != told:
            raise BackupError(f"{folder} is damaged: {name} is not what was written.")
    if problem := _integrity(folder / LEDGER):
        raise BackupError(f"{folder} is damaged: {problem}.")
    return backup


def restore(folder: Path, home: Path, progress: _Report | None = None) -> Backup:
    """Bring a backup back as a home of its own; return what it holds.

    Args:
        home: Where: must be missing or empty.

    Raises:
        BackupError: The backup is damaged, or there is something in the home.
        SchemaTooNewError: A newer remegraph made it.
    """
    backup = inspect(folder)
    with drafted(home) as draft:
        for done, (name, told) in enumerate(backup.files.items(), start=1):
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, path)
            path.chmod(0o600)
            sync_file(path)
            if _measured(path) != told:
                raise BackupError(f"{name} changed while it was copied.")
            if progress is not None:
                progress(Progress(stage="restore", done=done, total=len(backup.files)))
        for path in sorted(draft.rglob("*"), reverse=True):
            if path.is_dir():
                sync_folder(path)
    return backup


def _integrity(ledger: Path) -> str:
    """Return what is wrong with the file of a ledger that no one has open, as SQLite says it; nothing where all is well.

    Args:
        ledger: The file, which is not changed.
    """
    if not ledger.is_file():
        return f"{ledger.name} is missing"
    try:
        with closing(sqlite3.connect(f"{ledger.absolute().as_uri()}?immutable=1", uri=True)) as connection:
            return problems(connection)
    except sqlite3.Error as error:
        return str(error)


def problems(connection: sqlite3.Connection) -> str:
    """Return what is wrong with a database, as SQLite says it; nothing where all is well."""
    (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if answer != "ok":
        return " ".join(str(answer).split())
    orphan = connection.execute("PRAGMA foreign_key_check").fetchone()
    return "" if orphan is None else f"a row of {orphan[0]} refers to a row of {orphan[2]} that is not there"


def _names(folder: Path) -> Iterable[str]:
    """Return the paths of the files of a backup, as a manifest has them."""
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in paths if _KNOWN.fullmatch(name))


def _measured(path: Path) -> BackupFile:
    with path.open("rb") as file:
        return BackupFile(size=path.stat().st_size, sha256=hashlib.file_digest(file, "sha256").hexdigest())


def settle_copy(database: Database) -> None:
    """Leave the collections of its original to it, where this ledger is a copy; else note where it is.

    Everything is marked first, so that it is found in SQL until the next sync brings it into new collections. May be
    stopped at any time: the next call repeats it.

    Raises:
        SetupError: The database cannot be used.
    """
    with database.read() as connection:
        here, noted = _current_place(connection), _noted_place(connection)
    copied = noted == _A_COPY or (bool(here and noted) and here != noted)
    if not copied and (noted or not here):
        return
    if copied:
        mark_everything(database)
        failpoint("copy.marked")
    with database.write([EVERYBODY]) as connection:
        if _noted_place(connection) != noted:  # another process was first
            return
        names = placement.collection_names(connection)
        if copied:
            placement.release_all(connection)
        _note_place(connection, here)
    if copied and names:
        _log.warning(
            "The ledger is a copy: it gets collections of its own; those named %s-… are left to its original.",
            placement.namespace(min(names)),
            extra=event("index.copied"),
        )


def declare_copy(database: Database) -> None:
    """Let a ledger say of itself that it is a copy."""
    with database.write([EVERYBODY]) as connection:
        _note_place(connection, _A_COPY)


def _current_place(connection: Connection) -> str:
    """Return where this ledger is: a file, or a server; nothing where that cannot be known, as a server may hide it."""
    if connection.dialect.name == "sqlite" or not connection.execute(_MAY_ASK).scalar_one():
        return ""
    return str(connection.execute(_ASK_PLACE).scalar_one())


def _noted_place(connection: Connection) -> str:
    """Return where it was; nothing before that was noted."""
    query = select(projections.c.generation).where(projections.c.name == _PLACE_NOTE)
    return connection.execute(query).scalar_one_or_none() or ""


def _note_place(connection: Connection, place: str) -> None:
    values = {"generation": place}
    statement = upsert(connection.dialect.name, projections).values(name=_PLACE_NOTE, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))
