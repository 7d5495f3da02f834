"""Takes rows out, table by table, and counts them by the place that they were in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, Table, delete, func, or_, select

from remegraph.models import HitKind
from remegraph.storage import fulltext
from remegraph.storage.rows import chunks
from remegraph.storage.tables import (
    attachments,
    blocks,
    dirty,
    endorsements,
    granted,
    grants,
    injections,
    item_namespaces,
    item_texts,
    items,
    jobs,
    links,
    memories,
    memory_sources,
    messages,
    operations,
    outcomes,
    reviews,
    revocations,
    shares,
    summaries,
    texts,
    threads,
    tool_calls,
    topics,
    totals,
    vectors,
    versions,
    work,
)

__all__ = ["KINDS", "WHOLE", "Removal"]

KINDS: tuple[HitKind, ...] = ("message", "block", "memory")

WHOLE: tuple[Table, ...] = (
    totals, vectors, dirty, tool_calls, reviews, injections, outcomes, shares, endorsements,
    item_texts, items, item_namespaces, summaries, work, jobs, operations, blocks, attachments, messages, threads,
)  # fmt: skip
"""What goes with a partition, in the order of their keys; memories and grants, which others may name, go before."""


class Removal:
    """Rows that go, in one transaction.

    Args:
        connection: A write transaction that has locked the partitions.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.counts: Counter[str] = Counter()
        """How many went, by place."""

    def rows(self, table: Table, *where: ColumnElement[bool]) -> None:
        """Delete rows that meet all conditions."""
        self.counts[table.name] += self.connection.execute(delete(table).where(*where)).rowcount

    def named(
        self, table: Table, column: ColumnElement[str], names: Sequence[str], *where: ColumnElement[bool]
    ) -> None:
        """Delete the rows that name one of these."""
        for some in chunks(names):
            self.rows(table, column.in_(some), *where)

    def texts(self, partition_id: int, names: Mapping[HitKind, Sequence[str] | None]) -> None:
        """Take records out of full text.

        Args:
            partition_id: Where.
            names: Ids by kind; none: all of the kind.
        """
        for kind, ids in names.items():
            shelf = fulltext.TextShelf(partition_id, kind)
            if ids is None:
                here = (texts.c.partition_id == partition_id, texts.c.kind == kind)
                ids = self.connection.execute(select(texts.c.record_id).where(*here)).scalars().all()  # noqa: PLW2901
            self.counts["full text"] += len(ids)
            fulltext.remove(self.connection, shelf, ids)

    def vectors(self, partition_id: int, kind: str, names: Sequence[str]) -> None:
        """Delete the vectors of records, of all embedders."""
        self.named(vectors, vectors.c.record_id, names, vectors.c.partition_id == partition_id, vectors.c.kind == kind)

    def memories(self, memory_ids: Sequence[str]) -> None:
        """Delete memories with all that hangs on them; their topics stay."""
        self.ties(memory_ids)
        for some in chunks(memory_ids):
            numbers = select(memories.c.id).where(memories.c.memory_id.in_(some))
            self.rows(versions, versions.c.memory.in_(numbers))
            self.rows(memory_sources, memory_sources.c.memory.in_(numbers))
            self.rows(memories, memories.c.memory_id.in_(some))

    def ties(self, memory_ids: Sequence[str]) -> None:
        """Delete what others say of memories: links, grants of them, words on proposals, reviews, runs."""
        for some in chunks(memory_ids):
            self.rows(links, or_(links.c.source_id.in_(some), links.c.target_id.in_(some)))
        self.named(granted, granted.c.memory_id, memory_ids)
        self.named(endorsements, endorsements.c.proposal_id, memory_ids)
        self.named(reviews, reviews.c.memory_id, memory_ids)
        self.named(outcomes, outcomes.c.memory_id, memory_ids)

    def partitions(self, numbers: Sequence[int]) -> None:
        """Delete all rows of partitions, but for their journals."""
        for number in numbers:
            self.texts(number, dict.fromkeys(KINDS))
        self.memories(
            self.connection.execute(select(memories.c.memory_id).where(memories.c.partition_id.in_(numbers)))
            .scalars()
            .all()
        )
        self.rows(topics, topics.c.partition_id.in_(numbers))
        given = select(grants.c.id).where(or_(grants.c.partition_id.in_(numbers), grants.c.reader_id.in_(numbers)))
        self.rows(granted, granted.c.grant.in_(given))
        self.rows(revocations, revocations.c.grant.in_(given))
        self.rows(grants, grants.c.id.in_(given))
        for table in WHOLE:
            self.rows(table, table.c.partition_id.in_(numbers))

    def left(self, numbers: Sequence[int]) -> Counter[str]:
        """Return how many rows such partitions still hold, by place."""
        found: Counter[str] = Counter()
        for table in (*WHOLE, texts, memories, topics, links, memory_sources):
            query = select(func.count()).select_from(table).where(table.c.partition_id.in_(numbers))
            found["full text" if table is texts else table.name] += self.connection.execute(query).scalar_one()
        return found
