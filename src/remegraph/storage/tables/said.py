"""What was said: messages, threads, and the blocks that they are cut into."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, Text, UniqueConstraint

from remegraph.storage.tables.base import Big, metadata, partition

__all__ = ["attachments", "blocks", "messages", "summaries", "threads"]

messages = Table(
    "messages",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("seq", Big, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("thread", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("time", Big, nullable=False),
    Column("recorded_at", Big, nullable=False),
    Column("digest", Text, nullable=False),  # SHA-256 of the body: same id, same content?
    Column("body", Text, nullable=False),
    Column("withheld", Text),  # JSON: which of its words are shown no more, why and since when; see storage/withheld.py
    UniqueConstraint("partition_id", "message_id"),
    UniqueConstraint("partition_id", "seq"),
    Index(None, "partition_id", "thread", "seq"),
    Index(None, "partition_id", "time"),
)
Index(
    "ix_messages_withheld",
    messages.c.partition_id,
    sqlite_where=messages.c.withheld.is_not(None),
    postgresql_where=messages.c.withheld.is_not(None),
)

# Which bytes, in the folder of attachments, a message holds, and what is in them, as far as it was read.
attachments = Table(
    "attachments",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("message_id", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("reading", Text),  # JSON text
    Column("reader", Text),  # JSON text
    UniqueConstraint("partition_id", "message_id", "sha256"),
    Index(None, "sha256"),
)

# Where each thread stands: what no block holds yet is found without reading the history.
threads = Table(
    "threads",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("thread", Text, nullable=False),
    Column("last_seq", Big, nullable=False),  # seq of its newest message
    Column("block_seq", Big, nullable=False, server_default="0"),  # last seq of its newest block
    UniqueConstraint("partition_id", "thread"),
)
Index(
    "ix_threads_open",
    threads.c.partition_id,
    sqlite_where=threads.c.last_seq > threads.c.block_seq,
    postgresql_where=threads.c.last_seq > threads.c.block_seq,
)

blocks = Table(
    "blocks",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("block_id", Text, nullable=False),
    Column("day", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("thread", Text, nullable=False),
    Column("first_seq", Big, nullable=False),
    Column("last_seq", Big, nullable=False),
    Column("start_time", Big, nullable=False),
    Column("start_offset", Integer, nullable=False),
    Column("end_time", Big, nullable=False),
    Column("end_offset", Integer, nullable=False),
    UniqueConstraint("partition_id", "block_id"),
    UniqueConstraint("partition_id", "day", "number"),
    Index(None, "partition_id", "thread", "last_seq"),
    Index(None, "partition_id", "start_time"),
)

summaries = Table(
    "summaries",
    metadata,
    partition(primary_key=True),
    Column("block_id", Text, primary_key=True),
    Column("start_time", Big, nullable=False),
    Column("end_time", Big, nullable=False),
    Column("body", Text, nullable=False),
    Column("original", Text),  # the entry as it was, where it was made again without words that are withheld
)
