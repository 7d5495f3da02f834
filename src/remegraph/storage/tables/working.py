"""What is to be done, and what is being done."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text, UniqueConstraint

from remegraph.storage.tables.base import Big, metadata, partition

__all__ = ["jobs", "work"]

work = Table(
    "work",
    metadata,
    partition(primary_key=True),
    Column("block_id", Text, primary_key=True),
    Column("topic", Text, primary_key=True),
    Column("recipe", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),  # JSON text: may quote a model
    Column("attempts", Integer, nullable=False),
    Index(None, "state", "partition_id"),
)

# One row per kind and partition, used again and again: the table does not grow with the work done.
jobs = Table(
    "jobs",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),  # waiting, running, done, dead
    Column("again", Boolean, nullable=False),  # asked for once more while it was running
    Column("attempts", Integer, nullable=False),
    Column("due_at", Big, nullable=False),
    Column("owner", Text, nullable=False),
    Column("lease_until", Big, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("stamp", Text, nullable=False, server_default=""),  # of the settings that it is done with; empty: any
    UniqueConstraint("partition_id", "kind"),
    Index(None, "kind", "state", "due_at"),
)
