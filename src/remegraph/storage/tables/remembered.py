"""What is remembered: topics, memories with all versions, where they came from and how they hang together."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, Table, Text, UniqueConstraint, false

from remegraph.storage.tables.base import Big, metadata, partition

__all__ = ["links", "memories", "memory_sources", "topics", "versions"]

topics = Table(
    "topics",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("type", Text, nullable=False),
    Column("target", Text, nullable=False),  # folded, for comparing
    Column("target_name", Text, nullable=False),
    Column("description", Text, nullable=False),
    UniqueConstraint("partition_id", "type", "target"),
)

memories = Table(
    "memories",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("memory_id", Text, nullable=False, unique=True),
    Column("topic_id", Big, ForeignKey("topics.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("layer", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("canonical_topic", Text, nullable=False),
    Column("words", Text, nullable=False),  # digest of the folded content: finds a twin
    Column("said_at", Big, nullable=False),
    Column("recorded_at", Big, nullable=False),
    Column("resident", Boolean, nullable=False, server_default=false()),  # active whether it is used or not
    Column("importance", Float, nullable=False, server_default="0.5"),
    Column("applies_to", Text, nullable=False, server_default=""),
    Column("memory_class", Text, nullable=False, server_default="episodic"),
    Column("body", Text, nullable=False),
    Index(None, "partition_id", "resident"),
    Index(None, "partition_id", "applies_to", "importance"),
    Index(None, "partition_id", "importance"),
    Index(None, "partition_id", "topic_id", "status"),
    Index(None, "partition_id", "canonical_topic"),
    Index(None, "partition_id", "words"),
)

versions = Table(
    "versions",
    metadata,
    Column("memory", Big, ForeignKey("memories.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("recorded_at", Big, nullable=False),
    Column("operation_id", Text, nullable=False),
    Column("body", Text, nullable=False),
)

# Where the head version of a memory came from: many to many.
memory_sources = Table(
    "memory_sources",
    metadata,
    Column("memory", Big, ForeignKey("memories.id"), primary_key=True),
    Column("block_id", Text, primary_key=True),
    Column("message_id", Text, primary_key=True),  # empty: the block as a whole
    partition(primary_key=True),  # of the block and its messages
    Index(None, "partition_id", "block_id"),
    Index(None, "partition_id", "message_id"),
)

links = Table(
    "links",
    metadata,
    Column("source_id", Text, ForeignKey("memories.memory_id"), primary_key=True),
    Column("type", Text, primary_key=True),
    Column("target_id", Text, ForeignKey("memories.memory_id"), primary_key=True),
    partition(),  # of the source
    Column("reason", Text, nullable=False),
    Column("recorded_at", Big, nullable=False),
    Index(None, "target_id"),
    Index(None, "partition_id", "type"),
)
