"""Tells a copy of a ledger from a ledger that stayed where it was: a copy gets collections of its own.

A copy knows the collections of its original by name. On a Chroma server that both use, it would write into them, and its
`rebuild` would drop them. So a ledger on PostgreSQL notes in which database it is: the number that the server was made
with, and that of the database in it, which no renaming of either changes. A file may be moved at will; there, a backup
says of itself that it is one.
"""

from __future__ import annotations

import logging

from sqlalchemy import Connection, select, text

from remegraph.failpoints import failpoint
from remegraph.storage import shelves
from remegraph.storage.database import EVERYBODY, Database, upsert
from remegraph.storage.marking import mark_everything
from remegraph.storage.tables import projections
from remegraph.telemetry import event

__all__ = ["declare", "settle"]

_log = logging.getLogger(__name__)

_NAME = "place"
_A_COPY = "a copy"
_ASK = text("SELECT has_function_privilege(to_regprocedure('pg_control_system()'), 'EXECUTE')")
_PLACE = text(
    "SELECT system_identifier || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())"
    " FROM pg_control_system()"
)


def settle(database: Database) -> None:
    """Leave the collections of its original to it, where this ledger is a copy; else note where it is.

    Everything is marked first, so that it is found in SQL until the next sync brings it into new collections. May be
    stopped at any time: the next call repeats it.

    Args:
        database: The ledger.

    Raises:
        SetupError: The database cannot be used.
    """
    with database.read() as connection:
        here, noted = _here(connection), _noted(connection)
    copied = noted == _A_COPY or (bool(here and noted) and here != noted)
    if not copied and (noted or not here):
        return
    if copied:
        mark_everything(database)
        failpoint("copy.marked")
    with database.write([EVERYBODY]) as connection:
        if _noted(connection) != noted:  # another process was first
            return
        names = shelves.collection_names(connection)
        if copied:
            shelves.release_all(connection)
        _note(connection, here)
    if copied and names:
        _log.warning(
            "The ledger is a copy: it gets collections of its own; those named %s-… are left to its original.",
            shelves.namespace(min(names)),
            extra=event("index.copied"),
        )


def declare(database: Database) -> None:
    """Let a ledger say of itself that it is a copy.

    Args:
        database: The ledger, which nobody uses yet.
    """
    with database.write([EVERYBODY]) as connection:
        _note(connection, _A_COPY)


def _here(connection: Connection) -> str:
    """Return where this ledger is; nothing where that cannot be told: in a file, or on a server that keeps it secret."""
    if connection.dialect.name == "sqlite" or not connection.execute(_ASK).scalar_one():
        return ""
    return str(connection.execute(_PLACE).scalar_one())


def _noted(connection: Connection) -> str:
    """Return where it was; nothing before that was noted."""
    query = select(projections.c.generation).where(projections.c.name == _NAME)
    return connection.execute(query).scalar_one_or_none() or ""


def _note(connection: Connection, place: str) -> None:
    values = {"generation": place}
    statement = upsert(connection.dialect.name, projections).values(name=_NAME, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))
