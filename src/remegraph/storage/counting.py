"""How many rows each table holds: what statistics and backups tell."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, func, select

from remegraph.storage.tables import metadata, seals

__all__ = ["counts"]


def counts(connection: Connection, partition_ids: Collection[int] | None = None) -> dict[str, int]:
    """Return row counts by table name; where partitions are named, of the tables whose rows have one.

    Args:
        connection: A snapshot.
        partition_ids: Which partitions; all there is unless given.
    """
    counted: dict[str, int] = {}
    for name, table in metadata.tables.items():
        if table is seals:  # no records
            continue
        query = select(func.count()).select_from(table)
        if partition_ids is not None:
            if "partition_id" not in table.c:
                continue
            query = query.where(table.c.partition_id.in_(list(partition_ids)))
        counted[name] = connection.execute(query).scalar_one()
    return counted
