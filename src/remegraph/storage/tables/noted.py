"""What is noted of memories and tools as they are used: appended, never versions of anything."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, Index, Integer, Table, Text, UniqueConstraint

from remegraph.storage.tables.base import Big, metadata, partition

__all__ = ["injections", "outcomes", "reviews", "shares", "tool_calls"]

tool_calls = Table(
    "tool_calls",
    metadata,
    partition(primary_key=True),
    Column("message_id", Text, primary_key=True),  # empty: heard only, no message that asked for it is read yet
    Column("call", Text, primary_key=True),  # JSON text of the call id
    Column("digest", Text, primary_key=True),  # of tool and arguments; empty: recorded before it was
    Column("tool", Text, nullable=False),  # JSON text of the name
    Column("ok", Boolean),
    Column("seconds", Float),
    Column("input_tokens", Big),
    Column("output_tokens", Big),
    Column("time", Big, nullable=False),
    Column("body", Text, nullable=False),
    Index(None, "partition_id", "tool", "time"),
    Index(None, "partition_id", "call"),
)

# Each time that a memory came back; appended, never changed.
reviews = Table(
    "reviews",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("memory_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", Big, nullable=False),
    Index(None, "partition_id", "id"),
    Index(None, "partition_id", "memory_id", "at"),
)

# Which memories an agent was shown, in which versions; appended, never changed, and without a word of them.
injections = Table(
    "injections",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("thread", Text, nullable=False),  # JSON text
    Column("run_id", Text, nullable=False),  # JSON text
    Column("turn", Integer, nullable=False),
    Column("at", Big, nullable=False),
    Column("shown", Text, nullable=False),  # JSON: version by memory id
    Index(None, "partition_id", "at"),
)

# How the runs of a skill went, by the version of its procedure: each run once.
outcomes = Table(
    "outcomes",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("memory_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("run", Text, nullable=False),
    Column("ok", Boolean, nullable=False),
    Column("at", Big, nullable=False),
    Column("seconds", Float),
    Column("tokens", Big),
    UniqueConstraint("partition_id", "memory_id", "run"),
)

# Which knowledge an agent has given to others: by that a true source is told from a forged one.
shares = Table(
    "shares",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("knowledge_id", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("at", Big, nullable=False),
    UniqueConstraint("partition_id", "knowledge_id", "digest", "agent"),
)
