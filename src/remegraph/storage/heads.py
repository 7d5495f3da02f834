"""The row of a memory's head: what the columns beside its body say, what full text finds it by, and how it is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from remegraph.language.plain import folded
from remegraph.models import Memory, Partition, Status
from remegraph.rules.tiers import always_active
from remegraph.storage.interning import partition_of
from remegraph.storage.rows import chunks, digest, micros
from remegraph.storage.tables import memories, partitions

__all__ = ["Head", "columns", "indexed", "read", "words"]


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a memory, as a commit finds it."""

    number: int
    partition_id: int
    partition: Partition
    version: int
    status: Status
    body: str


def words(memory: Memory) -> str:
    """Return a digest that two memories share if they say the same, case, spaces and final stop aside."""
    return digest(folded(memory.content))


def indexed(memory: Memory) -> str:
    """Return the words that full text finds a memory by."""
    return " ".join((memory.content, memory.when_to_use, *memory.tags))


def columns(memory: Memory, topic_id: int) -> dict[str, Any]:
    """Return the columns of a head, as the table `memories` has them.

    Args:
        memory: The version.
        topic_id: Number of the topic it stands on.
    """
    return {
        "topic_id": topic_id,
        "version": memory.version,
        "status": memory.status,
        "layer": memory.layer,
        "kind": memory.kind,
        "canonical_topic": memory.canonical_topic,
        "importance": memory.importance,
        "applies_to": memory.applies_to,
        "memory_class": memory.memory_class,
        "words": words(memory),
        "said_at": micros(memory.said_at),
        "recorded_at": micros(memory.recorded_at),
        "resident": always_active(memory),
        "body": memory.to_json(),
    }


def read(connection: Connection, memory_ids: Iterable[str]) -> dict[str, Head]:
    """Return the heads of memories by id, whoever they are of; none for those that there are not."""
    found: dict[str, Head] = {}
    query = select(memories, partitions.c.tenant, partitions.c.user, partitions.c.agent, partitions.c.project)
    query = query.join(partitions, partitions.c.id == memories.c.partition_id)
    for chunk in chunks(list(dict.fromkeys(memory_ids))):
        for row in connection.execute(query.where(memories.c.memory_id.in_(chunk))):
            found[row.memory_id] = Head(row.id, row.partition_id, partition_of(row), row.version, row.status, row.body)
    return found
