"""Marks of what was erased, or said off the record: late workers, replays and repeated imports are turned away by them.

A mark is an HMAC with the key of the journal, which is not in the ledger: no name can be read from it, and no guess be
confirmed by it without the key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, bindparam, exists, func, select

from remegraph.errors import ConflictError, ErasedError
from remegraph.ledger.journal import Journal
from remegraph.ledger.rows import chunks, micros, upsert
from remegraph.ledger.schema import events, tombstones
from remegraph.models import ChangeSet, Partition, Subject

__all__ = ["ANY", "Grave", "Tombstones", "person", "unsaid"]

Grave = Literal["message", "block", "memory", "call", "thread", "person"]

ANY = exists(select(tombstones.c.mark)).label("graves")
"""A column that says whether there is any mark, for whoever reads a row anyway: most ledgers have none to look among."""

# Said once: building a statement costs as much as running it.
_FOUND = select(tombstones.c.mark).where(tombstones.c.mark.in_(bindparam("marks", expanding=True)))
_WHEN = (
    select(tombstones.c.mark, func.max(events.c.time).label("time"))
    .join(events, events.c.operation_id == tombstones.c.erasure_id)
    .where(tombstones.c.mark.in_(bindparam("marks", expanding=True)))
    .group_by(tombstones.c.mark)
)


def person(whose: Subject | Partition) -> Partition:
    """Return what stands for a person, or the person of a partition, whatever agent and project."""
    return Partition(tenant=whose.tenant, user=whose.user)


def unsaid(thread: str, message_id: str) -> str:
    """Return what a message that was said off the record is marked by: hosts may number each thread from the start."""
    return json.dumps(["unsaid", thread, message_id])


class Tombstones:
    """What was erased from a ledger.

    Args:
        journal: Its journal, which has the key.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def lay(
        self, connection: Connection, erasure_id: str, kind: Grave, partition: Partition | None, ids: Iterable[str]
    ) -> None:
        """Mark records as erased.

        Args:
            partition: Where they were; none for memories, whose ids are unique.
        """
        rows = [{"mark": self._marks(kind, partition, each)[0], "erasure_id": erasure_id} for each in ids]
        if rows:
            statement = upsert(connection.dialect.name, tombstones)
            newest = {"erasure_id": statement.excluded.erasure_id}
            connection.execute(statement.on_conflict_do_update(index_elements=["mark"], set_=newest), rows)

    def among(
        self, connection: Connection, kind: Grave, partition: Partition | None, ids: Sequence[str]
    ) -> frozenset[str]:
        """Return those of the ids that were erased.

        Args:
            partition: Where; none for memories.
        """
        by_mark = {mark: each for each in ids for mark in self._marks(kind, partition, each)}
        return frozenset(
            by_mark[mark]
            for chunk in chunks(list(by_mark))
            for mark in connection.execute(_FOUND, {"marks": chunk}).scalars()
        )

    def late(self, connection: Connection, kind: Grave, notes: Sequence[tuple[Partition, str, datetime]]) -> list[bool]:
        """Tell of notes that waited to be written whether what they are about, or its person, was erased meanwhile.

        Names of calls and threads come again, and so do persons: only what was noted before the erasure is late.

        Args:
            notes: Where, about which, noted when.
        """
        found = [
            (*self._marks("person", person(place), ""), *self._marks(kind, place, name)) for place, name, _ in notes
        ]
        wanted = list(dict.fromkeys(mark for each in found for mark in each))
        rows = (row for chunk in chunks(wanted) for row in connection.execute(_WHEN, {"marks": chunk}))
        erased = {row.mark: row.time for row in rows}
        return [
            any(mark in erased and micros(at) <= erased[mark] for mark in each)
            for each, (_, _, at) in zip(found, notes, strict=True)
        ]

    def check(self, connection: Connection, changes: ChangeSet) -> None:
        """Turn away what was erased, and whatever was made of it by who read it before.

        Args:
            connection: The transaction that would write it.

        Raises:
            ErasedError: A memory or a message of it was erased.
            ConflictError: It refers to an erased memory.
        """
        own = [change.memory.memory_id for change in changes.changes]
        ends = [end for link in changes.links for end in (link.source_id, link.target_id)]
        gone = self.among(connection, "memory", None, [*own, *ends])
        if stale := sorted(gone.intersection(own)):
            raise ErasedError(f"Memory {', '.join(stale)} was erased.")
        if gone:
            raise ConflictError(sorted(gone), "It was erased meanwhile: read again, and go on without it.")
        if changes.brought is not None:
            brought = [message.message_id for message in changes.brought.messages]
            if names := sorted(self.among(connection, "message", changes.brought.partition, brought)):
                raise ErasedError(f"Message {', '.join(names)} was erased.")

    def _marks(self, kind: Grave, partition: Partition | None, name: str) -> tuple[str, ...]:
        """Return the marks of one record: that of the key that seals, then those of other keys at hand."""
        place = None if partition is None else [partition.tenant, partition.user, partition.agent, partition.project]
        return self._journal.marks(json.dumps([kind, place, name]))
