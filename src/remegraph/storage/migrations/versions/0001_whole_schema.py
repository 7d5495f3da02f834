"""The whole schema, with the full text index of either engine."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# Terms only find rows: no copy of the text, no positions, no sizes. A term is letters, digits and underscores.
_FTS5 = """
CREATE VIRTUAL TABLE texts_fts USING fts5(
    terms, content='', detail=none, columnsize=0, tokenize="ascii tokenchars '_'"
)
"""


def upgrade() -> None:
    """Create all tables."""
    _places()
    _conversations()
    _blocks()
    _memories()
    _ties()
    _doings()
    _upkeep()
    _vectors()
    _full_text()


def _places() -> None:
    """Create the partitions that all rows belong to."""
    op.create_table(
        "partitions",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=True),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("project", sa.Text(), nullable=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("last_seq", _BIG, server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_partitions"),
        sa.UniqueConstraint("key", name="uq_partitions_key"),
    )
    op.create_index("ix_partitions_tenant_user", "partitions", ["tenant", "user"])


def _conversations() -> None:
    """Create the messages, and the threads that they stand in."""
    op.create_table(
        "messages",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("seq", _BIG, nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("time", _BIG, nullable=False),
        sa.Column("recorded_at", _BIG, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_messages_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
        sa.UniqueConstraint("partition_id", "message_id", name="uq_messages_partition_id_message_id"),
        sa.UniqueConstraint("partition_id", "seq", name="uq_messages_partition_id_seq"),
    )
    op.create_index("ix_messages_partition_id_thread_seq", "messages", ["partition_id", "thread", "seq"])
    op.create_index("ix_messages_partition_id_time", "messages", ["partition_id", "time"])
    op.create_table(
        "threads",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("last_seq", _BIG, nullable=False),
        sa.Column("block_seq", _BIG, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_threads_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_threads"),
        sa.UniqueConstraint("partition_id", "thread", name="uq_threads_partition_id_thread"),
    )
    op.create_index(
        "ix_threads_open",
        "threads",
        ["partition_id"],
        sqlite_where=sa.text("last_seq > block_seq"),
        postgresql_where=sa.text("last_seq > block_seq"),
    )


def _blocks() -> None:
    """Create the blocks of a conversation, with their entries in the index."""
    op.create_table(
        "blocks",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("block_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("first_seq", _BIG, nullable=False),
        sa.Column("last_seq", _BIG, nullable=False),
        sa.Column("start_time", _BIG, nullable=False),
        sa.Column("start_offset", sa.Integer(), nullable=False),
        sa.Column("end_time", _BIG, nullable=False),
        sa.Column("end_offset", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_blocks_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_blocks"),
        sa.UniqueConstraint("partition_id", "block_id", name="uq_blocks_partition_id_block_id"),
        sa.UniqueConstraint("partition_id", "day", "number", name="uq_blocks_partition_id_day_number"),
    )
    op.create_index("ix_blocks_partition_id_start_time", "blocks", ["partition_id", "start_time"])
    op.create_index("ix_blocks_partition_id_thread_last_seq", "blocks", ["partition_id", "thread", "last_seq"])
    op.create_table(
        "summaries",
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("block_id", sa.Text(), nullable=False),
        sa.Column("start_time", _BIG, nullable=False),
        sa.Column("end_time", _BIG, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_summaries_partition_id"),
        sa.PrimaryKeyConstraint("partition_id", "block_id", name="pk_summaries"),
    )


def _memories() -> None:
    """Create the memories on their topics, with all versions."""
    op.create_table(
        "topics",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("target_name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_topics_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_topics"),
        sa.UniqueConstraint("partition_id", "type", "target", name="uq_topics_partition_id_type_target"),
    )
    op.create_table(
        "memories",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("topic_id", _BIG, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("layer", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("canonical_topic", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("said_at", _BIG, nullable=False),
        sa.Column("recorded_at", _BIG, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_memories_partition_id"),
        sa.ForeignKeyConstraint(["topic_id"], ["topics.id"], name="fk_memories_topic_id"),
        sa.PrimaryKeyConstraint("id", name="pk_memories"),
        sa.UniqueConstraint("memory_id", name="uq_memories_memory_id"),
    )
    op.create_index("ix_memories_partition_id_canonical_topic", "memories", ["partition_id", "canonical_topic"])
    op.create_index("ix_memories_partition_id_topic_id_status", "memories", ["partition_id", "topic_id", "status"])
    op.create_index("ix_memories_partition_id_words", "memories", ["partition_id", "words"])
    op.create_table(
        "versions",
        sa.Column("memory", _BIG, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("recorded_at", _BIG, nullable=False),
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["memory"], ["memories.id"], name="fk_versions_memory"),
        sa.PrimaryKeyConstraint("memory", "version", name="pk_versions"),
    )


def _ties() -> None:
    """Create the sources of memories, and the links between them."""
    op.create_table(
        "memory_sources",
        sa.Column("memory", _BIG, nullable=False),
        sa.Column("block_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.ForeignKeyConstraint(["memory"], ["memories.id"], name="fk_memory_sources_memory"),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_memory_sources_partition_id"),
        sa.PrimaryKeyConstraint("memory", "block_id", "message_id", "partition_id", name="pk_memory_sources"),
    )
    op.create_index("ix_memory_sources_partition_id_block_id", "memory_sources", ["partition_id", "block_id"])
    op.create_index("ix_memory_sources_partition_id_message_id", "memory_sources", ["partition_id", "message_id"])
    op.create_table(
        "links",
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("target_id", sa.Text(), nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("recorded_at", _BIG, nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_links_partition_id"),
        sa.ForeignKeyConstraint(["source_id"], ["memories.memory_id"], name="fk_links_source_id"),
        sa.ForeignKeyConstraint(["target_id"], ["memories.memory_id"], name="fk_links_target_id"),
        sa.PrimaryKeyConstraint("source_id", "type", "target_id", name="pk_links"),
    )
    op.create_index("ix_links_target_id", "links", ["target_id"])


def _doings() -> None:
    """Create the journal of what was done to memory, and the calls of tools."""
    op.create_table(
        "operations",
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column("recorded_at", _BIG, nullable=False),
        sa.Column("receipt", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_operations_partition_id"),
        sa.PrimaryKeyConstraint("partition_id", "operation_id", name="pk_operations"),
    )
    op.create_table(
        "events",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("time", _BIG, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("operation_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_events_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
    )
    op.create_index("ix_events_operation_id", "events", ["operation_id"])
    op.create_index("ix_events_partition_id_record_id", "events", ["partition_id", "record_id"])
    op.create_table(
        "tool_calls",
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("ok", sa.Boolean(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("time", _BIG, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_tool_calls_partition_id"),
        sa.PrimaryKeyConstraint("partition_id", "message_id", "call", name="pk_tool_calls"),
    )
    op.create_index("ix_tool_calls_partition_id_tool_time", "tool_calls", ["partition_id", "tool", "time"])


def _upkeep() -> None:
    """Create the lists of what is still to do."""
    op.create_table(
        "work",
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("block_id", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_work_partition_id"),
        sa.PrimaryKeyConstraint("partition_id", "block_id", "topic", "recipe", name="pk_work"),
    )
    op.create_index("ix_work_state_partition_id", "work", ["state", "partition_id"])
    op.create_table(
        "jobs",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("again", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", _BIG, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("lease_until", _BIG, nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_jobs_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.UniqueConstraint("partition_id", "kind", name="uq_jobs_partition_id_kind"),
    )
    op.create_index("ix_jobs_kind_state_due_at", "jobs", ["kind", "state", "due_at"])
    op.create_table(
        "dirty",
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("mark", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_dirty_partition_id"),
        sa.PrimaryKeyConstraint("partition_id", "kind", "record_id", name="pk_dirty"),
    )


def _vectors() -> None:
    """Create the vectors, who made them, and where the index keeps them."""
    op.create_table(
        "embedders",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("current", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_embedders"),
        sa.UniqueConstraint("name", name="uq_embedders_name"),
    )
    op.create_table(
        "vectors",
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("embedder_id", _BIG, nullable=False),
        sa.Column("text_digest", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["embedder_id"], ["embedders.id"], name="fk_vectors_embedder_id"),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_vectors_partition_id"),
        sa.PrimaryKeyConstraint("partition_id", "kind", "record_id", "embedder_id", name="pk_vectors"),
    )
    op.create_table(
        "collections",
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("embedder_id", _BIG, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["embedder_id"], ["embedders.id"], name="fk_collections_embedder_id"),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_collections_partition_id"),
        sa.PrimaryKeyConstraint("partition_id", "kind", "embedder_id", name="pk_collections"),
    )
    op.create_index("ix_collections_name", "collections", ["name"])


def _full_text() -> None:
    """Create the words of each text, with the statistics of each partition."""
    op.create_table(
        "texts",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("seq", _BIG, server_default="0", nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_texts_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_texts"),
        sa.UniqueConstraint("partition_id", "kind", "record_id", name="uq_texts_partition_id_kind_record_id"),
    )
    op.create_index("ix_texts_partition_id_kind_seq", "texts", ["partition_id", "kind", "seq"])
    op.create_table(
        "totals",
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("records", _BIG, nullable=False),
        sa.Column("tokens", _BIG, nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_totals_partition_id"),
        sa.PrimaryKeyConstraint("partition_id", "kind", name="pk_totals"),
    )
    if op.get_context().dialect.name == "sqlite":
        op.execute(_FTS5)
    else:
        op.add_column("texts", sa.Column("terms", postgresql.TSVECTOR, nullable=False))
        op.create_index(
            "ix_texts_terms", "texts", ["terms"], postgresql_using="gin", postgresql_with={"fastupdate": "off"}
        )
