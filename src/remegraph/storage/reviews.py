"""The rows of reviews: when memories came back, which is what keeps them from being forgotten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, case, func, insert, literal, select, true, union

from remegraph.models import REVIEWING, Access, Partition, Review, Reviews
from remegraph.storage.rows import chunks, from_micros, micros
from remegraph.storage.tables import memories, reviews, versions

__all__ = ["accesses", "add", "counted", "in_use"]


def add(connection: Connection, numbers: Mapping[Partition, int], found: Sequence[Review]) -> None:
    """Append reviews.

    Args:
        connection: A write transaction.
        numbers: The number of each partition; reviews of others are left out.
        found: The reviews.
    """
    rows = [
        {"partition_id": numbers[each.partition], "memory_id": each.memory_id, "kind": each.kind, "at": micros(each.at)}
        for each in found
        if each.partition in numbers
    ]
    if rows:
        connection.execute(insert(reviews), rows)


def counted(
    connection: Connection, places: Mapping[int, Partition], memory_ids: Sequence[str]
) -> dict[tuple[Partition, str], Reviews]:
    """Return the reviews of these memories, counted; those without any are left out."""
    found: dict[tuple[Partition, str], Reviews] = {}
    used = case((reviews.c.kind == "used", 1), else_=0)
    for chunk in chunks(memory_ids):
        query = (
            select(reviews.c.partition_id, reviews.c.memory_id, func.count(), func.sum(used), func.max(reviews.c.at))
            .where(reviews.c.partition_id.in_(list(places)), reviews.c.memory_id.in_(chunk))
            .group_by(reviews.c.partition_id, reviews.c.memory_id)
        )
        for partition_id, memory_id, count, uses, last in connection.execute(query):
            found[places[partition_id], memory_id] = Reviews(count=count - uses, used=uses, last=from_micros(last))
    return found


def in_use(connection: Connection, partition_ids: Sequence[int], since: datetime) -> list[str]:
    """Return the ids of the memories that are always active, or were reviewed at a time or later."""
    always = select(memories.c.memory_id).where(
        memories.c.partition_id.in_(partition_ids), memories.c.resident == true()
    )
    reviewed = select(reviews.c.memory_id).where(
        reviews.c.partition_id.in_(partition_ids), reviews.c.kind.in_(sorted(REVIEWING)), reviews.c.at >= micros(since)
    )
    return sorted(connection.execute(union(always, reviewed)).scalars())


def accesses(
    connection: Connection, places: Mapping[int, Partition], memory_ids: Sequence[str]
) -> dict[tuple[Partition, str], tuple[Access, ...]]:
    """Return when each of these memories was learned, then each time that postponed forgetting, oldest first."""
    found: defaultdict[tuple[Partition, str], list[Access]] = defaultdict(list)
    for chunk in chunks(memory_ids):
        learned = (
            select(memories.c.partition_id, memories.c.memory_id, func.min(versions.c.recorded_at), literal(""))
            .join(versions, versions.c.memory == memories.c.id)
            .where(memories.c.partition_id.in_(list(places)), memories.c.memory_id.in_(chunk))
            .group_by(memories.c.partition_id, memories.c.memory_id)
        )
        reviewed = (
            select(reviews.c.partition_id, reviews.c.memory_id, reviews.c.at, reviews.c.kind)
            .where(reviews.c.partition_id.in_(list(places)), reviews.c.memory_id.in_(chunk))
            .where(reviews.c.kind.in_(sorted(REVIEWING)))
            .order_by(reviews.c.at)
        )
        for query in (learned, reviewed):
            for partition_id, memory_id, at, kind in connection.execute(query):
                found[places[partition_id], memory_id].append(Access(from_micros(at), kind == "used"))
    return {key: tuple(times) for key, times in found.items()}
