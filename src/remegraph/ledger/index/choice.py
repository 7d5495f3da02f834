"""Which vector index a ledger has: the one that is named, else the one that it had."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import Connection, inspect, select

from remegraph.ledger.database import EVERYBODY, Database
from remegraph.ledger.index import pgvector, placement
from remegraph.ledger.index.vectors import mark_everything
from remegraph.ledger.rows import upsert
from remegraph.ledger.schema import projections
from remegraph.settings import Settings

__all__ = ["chosen", "complete", "lacking", "settle_index"]

_NOTE = "index"

_Name = Literal["chroma", "pgvector"]


def chosen(settings: Settings, database: Database) -> _Name:
    """Return which index a ledger is to have.

    Args:
        settings: What a kit is opened with.
        database: The ledger, which may have no tables yet.
    """
    if settings.index is not None or settings.chroma_url is not None or database.is_sqlite:
        return settings.index or "chroma"
    with database.read() as connection:
        return _noted(connection) if inspect(connection).has_table(projections.name) else "chroma"


def lacking(settings: Settings, database: Database) -> str:
    """Return what of the index a role that may change tables is to make, in words; nothing where all is there."""
    if chosen(settings, database) != "pgvector":
        return ""
    with database.read() as connection:
        return pgvector.lacking(connection)


def complete(settings: Settings, database: Database) -> None:
    """Make what is `lacking`.

    Raises:
        SetupError: It cannot be made here.
        VectorIndexError: PostgreSQL failed.
    """
    if chosen(settings, database) == "pgvector":
        pgvector.complete(database)


def settle_index(database: Database, index: _Name) -> None:
    """Note which index a ledger has. One that it did not have a moment ago begins empty, and vectors of no use are removed.

    An index that was left knows nothing of what changed since. May be stopped at any time: the next call repeats it.

    Raises:
        SetupError: The database cannot be used.
    """
    if database.is_sqlite:
        return
    with database.read() as connection:
        changed, orphaned = _noted(connection) != index, pgvector.orphaned(connection)
    if changed:
        mark_everything(database)
    if changed or orphaned:
        with database.write([EVERYBODY]) as connection:
            if _noted(connection) != index:  # no other process was first
                placement.release_all(connection)
                _note(connection, index)
            pgvector.sweep(connection)


def _noted(connection: Connection) -> _Name:
    query = select(projections.c.generation).where(projections.c.name == _NOTE)
    return "pgvector" if connection.execute(query).scalar_one_or_none() == "pgvector" else "chroma"


def _note(connection: Connection, index: _Name) -> None:
    values = {"generation": index}
    statement = upsert(connection.dialect.name, projections).values(name=_NOTE, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))
