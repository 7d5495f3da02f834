"""What happened: the journal, what it is sealed with, and what makes each operation happen once."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, Text

from remegraph.storage.tables.base import Big, metadata, partition

__all__ = ["events", "operations", "seals"]

events = Table(
    "events",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("time", Big, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("record_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("operation_id", Text, nullable=False),
    Column("digest", Text, nullable=False),  # of the version's body, salted
    Column("reason", Text, nullable=False, server_default=""),
    Column("chain", Text, nullable=False, server_default=""),  # HMAC of this event and the chain before it
    Index(None, "partition_id", "id"),
    Index(None, "partition_id", "record_id"),
    Index(None, "operation_id"),
)

# What the journal is sealed with: one row. The key itself is never in the ledger.
seals = Table(
    "seals",
    metadata,
    Column("id", Big, primary_key=True),
    Column("salt", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),  # of the key
)

# What makes "once" true for every commit, also for those that are no work on a block.
operations = Table(
    "operations",
    metadata,
    partition(primary_key=True),  # the first that it touches: the same id elsewhere is another operation
    Column("operation_id", Text, primary_key=True),
    Column("recorded_at", Big, nullable=False),
    Column("receipt", Text, nullable=False),
)
