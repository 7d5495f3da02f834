"""Marks records that the index may not know as they are now: the next sync applies them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select

from remegraph.storage import vectors
from remegraph.storage.database import Database
from remegraph.storage.tables import partitions

__all__ = ["mark", "mark_everything", "partition_ids"]


def partition_ids(database: Database) -> list[int]:
    """Return the numbers of all partitions."""
    with database.read() as connection:
        return list(connection.execute(select(partitions.c.id)).scalars())


def mark(database: Database, numbers: Iterable[int]) -> None:
    """Mark all live records of partitions, each partition in a transaction of its own."""
    for number in numbers:
        with database.write([number], derived=True) as connection:
            vectors.mark_live(connection, number)


def mark_everything(database: Database) -> None:
    """Mark all live records."""
    mark(database, partition_ids(database))
