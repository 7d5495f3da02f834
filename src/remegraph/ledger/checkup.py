"""What is wrong with a home before it is opened: its folder, its key and its ledger. Nothing is changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select

from remegraph.errors import JournalKeyError, SetupError
from remegraph.ledger import migrations
from remegraph.ledger.backup import problems
from remegraph.ledger.database import Database
from remegraph.ledger.index import embedders
from remegraph.ledger.journal import KEY_FILE as KEY
from remegraph.ledger.rows import from_micros
from remegraph.ledger.schema import events, messages
from remegraph.models import Finding
from remegraph.settings import open_to_others

__all__ = ["examine_folder", "examine_key", "examine_ledger", "newest", "recorded_embedder"]

_ROOM = 100 * 2**20  # less than this, and a busy agent fills it within days
_NO_ROOM = 10 * 2**20


def examine_folder(home: Path) -> Iterator[Finding]:
    """Look at the folder of a home, and how much room it has."""
    if not home.is_dir():
        cure = "Record something first (remegraph ingest FILE), or name another folder with --home."
        yield Finding(check="home", severity="error", what=f"There is no memory in {home}.", cure=cure)
        return
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(
            check="home", severity="error", what=f"{home} cannot be written.", cure="Make it yours: chown, chmod u+rwx."
        )
    free = shutil.disk_usage(home).free
    if free < _ROOM:
        yield Finding(
            check="disk",
            severity="error" if free < _NO_ROOM else "warning",
            what=f"The disk of {home} has {free >> 20} MB left.",
            cure="Free some space: when none is left, nothing new is remembered; recall goes on.",
        )


def examine_key(home: Path, *, sealed: bool) -> Iterator[Finding]:
    """Look at the file of the journal's key.

    Args:
        sealed: Whether there is a journal that it has sealed.
    """
    path = home / KEY
    if not path.exists():
        if sealed:
            yield Finding(
                check="key",
                severity="error",
                what=f"The key of the journal, {path}, is missing: nobody can tell whether the journal was rewritten.",
                cure=JournalKeyError.cure,
            )
    elif open_to_others(path):
        yield Finding(
            check="key",
            severity="warning",
            what=f"Others may read the key of the journal, {path}: whoever has it can write a journal that fits.",
            cure=f"chmod 600 {path}",
            fixable=True,
        )


def examine_ledger(database: Database) -> Iterator[Finding]:
    """Look at the pages of a ledger, what its rows refer to, and its schema; stop at the first error."""
    try:
        with database.read() as connection:
            source = connection.connection.driver_connection
            problem = problems(source) if isinstance(source, sqlite3.Connection) else ""
            current = not problem and migrations.is_current(connection)
    except SetupError as error:
        yield Finding(check="ledger", severity="error", what=error.what, cure=error.cure)
        return
    except sqlite3.Error as error:
        problem, current = str(error), False
    if problem:
        cure = "Restore a backup (remegraph backup restore), or salvage the file with `sqlite3 FILE .recover`."
        yield Finding(check="ledger", severity="error", what=f"The ledger is damaged: {problem}.", cure=cure)
    elif not current:
        yield Finding(
            check="schema",
            severity="warning",
            what="The ledger is of an earlier release; what follows is examined once it is brought up to date.",
            cure="Take a backup, then open it once with this release.",
            fixable=True,
        )


def newest(database: Database) -> datetime | None:
    """Return when the newest row of a ledger was recorded; none where there is none."""
    with database.read() as connection:
        times = [connection.execute(select(func.max(at))).scalar() for at in (messages.c.recorded_at, events.c.time)]
    return max((from_micros(time) for time in times if time is not None), default=None)


def recorded_embedder(database: Database) -> tuple[str, int] | None:
    """Return the name and the dimension of a ledger's embedder; none before the first."""
    with database.read() as connection:
        known = embedders.current(connection)
    return None if known is None else (known.name, known.dimension)
