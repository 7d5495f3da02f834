"""What every change leaves behind: a row of the journal, and a mark for the indexer."""

from __future__ import annotations

from sqlalchemy import Connection, insert

from remegraph.storage.database import upsert
from remegraph.storage.tables import dirty, events

__all__ = ["add_event", "mark_dirty"]


def add_event(
    connection: Connection,
    *,
    partition_id: int,
    time: int,
    actor: str,
    action: str,
    record_id: str,
    operation_id: str,
    version: int = 0,
    digest: str = "",
) -> None:
    """Write a row of the journal."""
    connection.execute(
        insert(events).values(
            partition_id=partition_id,
            time=time,
            actor=actor,
            action=action,
            record_id=record_id,
            version=version,
            operation_id=operation_id,
            digest=digest,
        )
    )


def mark_dirty(connection: Connection, partition_id: int, kind: str, record_id: str, mark: str) -> None:
    """Tell the indexer that a record changed.

    Args:
        connection: A write transaction.
        partition_id: Where it lives.
        kind: memory or block.
        record_id: Which.
        mark: A new id.
    """
    statement = upsert(connection.dialect.name, dirty).values(
        partition_id=partition_id, kind=kind, record_id=record_id, mark=mark
    )
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["partition_id", "kind", "record_id"], set_={"mark": statement.excluded.mark}
        )
    )
