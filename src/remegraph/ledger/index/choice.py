"""Which vector index a ledger has: the one that is named, else the one that it had."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import Connection, inspect

from remegraph.errors import IndexChangedError, SetupError
from remegraph.ledger.database import EVERYBODY, Database
from remegraph.ledger.index import pgvector, placement
from remegraph.ledger.index.placement import IndexName
from remegraph.ledger.index.vectors import mark_everything
from remegraph.ledger.rows import upsert
from remegraph.ledger.schema import projections
from remegraph.ports import VectorIndex
from remegraph.settings import Settings

__all__ = ["check_kept", "chosen", "complete", "lacking", "misnamed", "settle_index"]


def chosen(settings: Settings, database: Database) -> IndexName:
    """Return which index a ledger is to have.

    Args:
        settings: What a kit is opened with.
        database: The ledger, which may have no tables yet.
    """
    if (name := placement.named(settings)) is not None or database.is_sqlite:
        return name or "chroma"
    with database.read() as connection:
        return _noted(connection) if _has_tables(connection) else "chroma"


def misnamed(settings: Settings, database: Database) -> SetupError | None:
    """Return what is wrong where a ledger, which may have no tables yet, has another index than settings name."""
    with database.read() as connection:
        return placement.misnamed(connection, placement.named(settings)) if _has_tables(connection) else None


def lacking(settings: Settings, database: Database) -> str:
    """Return what of the index a role that may change tables is to make or change, in words; nothing where all is there.

    Raises:
        SetupError: The index that the settings name cannot be made of this ledger.
    """
    index = chosen(settings, database)
    with database.read() as connection:
        has = None if database.is_sqlite or not _has_tables(connection) else placement.held(connection)
        if has not in (None, index):
            return f"The index changes from {has} to {index}: all vectors are brought in again."
        return pgvector.lacking(connection) if index == "pgvector" else ""


def complete(settings: Settings, database: Database) -> None:
    """Make and change what is `lacking`.

    Raises:
        SetupError: It cannot be made here.
        VectorIndexError: PostgreSQL failed.
    """
    index = chosen(settings, database)
    if index == "pgvector":
        pgvector.complete(database)
    _settle(database, index)


def settle_index(database: Database, index: VectorIndex, migrate: Literal["auto", "never"]) -> None:
    """Note which index a ledger has. One that it did not have a moment ago begins empty, and vectors of no use are removed.

    An index that was left knows nothing of what changed since. May be stopped at any time: the next call repeats it.

    Raises:
        SetupError: The database cannot be used, or it has another index, and that is not to be changed here.
    """
    if database.is_sqlite:
        return
    with database.read() as connection:
        wrong = placement.misnamed(connection, _name_of(index))
    if wrong is not None and migrate == "never":
        raise wrong
    _settle(database, _name_of(index))


def check_kept(connection: Connection, index: VectorIndex) -> None:
    """Return if a ledger has this index still; it changes over while processes run.

    Raises:
        IndexChangedError: It has another one.
    """
    noted = None if connection.dialect.name == "sqlite" else placement.noted(connection)
    if noted not in (None, _name_of(index)):
        raise IndexChangedError(noted)


def _settle(database: Database, index: IndexName) -> None:
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


def _name_of(index: VectorIndex) -> IndexName:
    """Return how settings name an index; one that a host gives is outside of the ledger, too."""
    return "pgvector" if isinstance(index, pgvector.PgvectorIndex) else "chroma"


def _has_tables(connection: Connection) -> bool:
    return inspect(connection).has_table(projections.name)


def _noted(connection: Connection) -> IndexName:
    return placement.noted(connection) or "chroma"


def _note(connection: Connection, index: IndexName) -> None:
    values = {"generation": index}
    statement = upsert(connection.dialect.name, projections).values(name=placement.NOTE, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))
