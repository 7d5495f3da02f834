"""What every change leaves behind: a row of the journal, and a mark for the indexer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, insert

from remegraph.storage.database import upsert
from remegraph.storage.tables import dirty, events

__all__ = ["Entry", "add_events", "mark_dirty"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the journal."""

    partition_id: int
    time: int
    actor: str
    action: str
    record_id: str
    operation_id: str
    version: int = 0
    digest: str = ""
    reason: str = ""


def add_events(connection: Connection, entries: Sequence[Entry]) -> None:
    """Write rows of the journal, in this order."""
    if entries:
        connection.execute(insert(events), [asdict(entry) for entry in entries])


def mark_dirty(connection: Connection, partition_id: int, kind: str, marks: Mapping[str, str]) -> None:
    """Tell the indexer that records changed.

    Args:
        connection: A write transaction.
        partition_id: Where they live.
        kind: memory or block.
        marks: A new id for each, by record id.
    """
    statement = upsert(connection.dialect.name, dirty)
    rows = [
        {"partition_id": partition_id, "kind": kind, "record_id": record_id, "mark": mark}
        for record_id, mark in marks.items()
    ]
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["partition_id", "kind", "record_id"], set_={"mark": statement.excluded.mark}
        ),
        rows,
    )
