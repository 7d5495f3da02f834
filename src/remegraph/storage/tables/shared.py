"""What agents let each other read, and agree on. Rows are only ever added: a revocation is a row of its own."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Table, Text

from remegraph.storage.tables.base import Big, metadata, partition

__all__ = ["endorsements", "granted", "grants", "revocations"]

grants = Table(
    "grants",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),  # of the agent that gives it
    Column("reader_id", Big, ForeignKey("partitions.id"), nullable=False),  # of the agent that may read
    Column("grant_id", Text, nullable=False, unique=True),
    Column("expires_at", Big, nullable=True),
    Column("body", Text, nullable=False),
    Index(None, "partition_id"),
    Index(None, "reader_id"),
)

# The memories of those grants that name them.
granted = Table(
    "granted",
    metadata,
    Column("grant", Big, ForeignKey("grants.id"), primary_key=True),
    Column("memory_id", Text, primary_key=True),
)

revocations = Table(
    "revocations",
    metadata,
    Column("grant", Big, ForeignKey("grants.id"), primary_key=True),
    Column("at", Big, nullable=False),
)

# Who bears out, approves or refuses what is proposed for all agents of a user; appended, never changed.
endorsements = Table(
    "endorsements",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("proposal_id", Text, nullable=False),
    Column("body", Text, nullable=False),
    Index(None, "partition_id", "proposal_id"),
)
