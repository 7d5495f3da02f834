"""The ledger's schema: one set of tables for SQLite and PostgreSQL.

Times are integer microseconds since the epoch (UTC) with the original offset in seconds beside them.
Records that may hold any text (NUL, lone surrogates) are ASCII-escaped JSON in TEXT, never jsonb.
Columns beside a body are copies for finding rows; the body is what is read back.
"""

from __future__ import annotations

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
    false,
)

__all__ = [
    "attachments",
    "blocks",
    "collections",
    "dirty",
    "embedders",
    "endorsements",
    "erasures",
    "events",
    "granted",
    "grants",
    "injections",
    "item_namespaces",
    "item_texts",
    "items",
    "jobs",
    "links",
    "memories",
    "memory_sources",
    "messages",
    "metadata",
    "operations",
    "outcomes",
    "partitions",
    "projections",
    "reviews",
    "revocations",
    "seals",
    "shares",
    "summaries",
    "texts",
    "threads",
    "tombstones",
    "tool_calls",
    "topics",
    "totals",
    "usage",
    "vectors",
    "versions",
    "work",
]

# --- names, numbers, and whose each row is

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Big = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers only INTEGER keys by itself


def partition(*, primary_key: bool = False) -> Column[int]:
    """Return the column that says where a row lives.

    Args:
        primary_key: Whether it is part of the primary key.
    """
    return Column("partition_id", Big, ForeignKey("partitions.id"), nullable=False, primary_key=primary_key)


partitions = Table(
    "partitions",
    metadata,
    Column("id", Big, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("user", Text),
    Column("agent", Text),
    Column("project", Text),
    Column(
        "key", Text, nullable=False, unique=True
    ),  # JSON of the four, or its digest: unique also where some are none
    Column("last_seq", Big, nullable=False, server_default="0"),  # seq of its newest message
    Column("journal_head", Text, nullable=False, server_default=""),  # chain of its newest event
    Column("erasures", Big, nullable=False, server_default="0"),  # how many touched it: what is cached of it is stale
    Column("stored", Big, nullable=False, server_default="0"),  # bytes of its messages and their attachments
    Column("minute", Big, nullable=False, server_default="0"),  # since the epoch, of its newest message
    Column("in_minute", Big, nullable=False, server_default="0"),  # messages that were recorded in it
    Index(None, "tenant", "user"),
    Index(None, "tenant", "minute"),
)

# What chat models were used for a partition on a day, and how often its callers were refused.
usage = Table(
    "usage",
    metadata,
    partition(primary_key=True),
    Column("day", Big, primary_key=True),  # since the epoch, of UTC
    Column("calls", Big, nullable=False),
    Column("input_tokens", Big, nullable=False),
    Column("output_tokens", Big, nullable=False),
    Column("refused", Big, nullable=False),
)


# --- erasure: how far each one is, and marks of what must not come back

erasures = Table(
    "erasures",
    metadata,
    Column("id", Big, primary_key=True),
    Column("erasure_id", Text, nullable=False, unique=True),
    Column("stage", Text, nullable=False),
    Column("asked_at", Big, nullable=False),
    Column("body", Text, nullable=False),  # JSON: what was asked for; then what is left to do; then the receipt
)

# What was erased, record by record, and who: each as an HMAC with the key of the journal, which is not in the
# ledger: a replay is known again, and nothing can be read from the mark.
tombstones = Table(
    "tombstones",
    metadata,
    Column("mark", Text, primary_key=True),
    Column("erasure_id", Text, nullable=False),
)


# --- search: full text, vectors, and what the index has yet to learn

# Token counts of every record that full text can find; the FTS5 table (SQLite) or the tsvector
# column (PostgreSQL) beside it finds the rows, these counts rank them.
texts = Table(
    "texts",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("kind", Text, nullable=False),
    Column("record_id", Text, nullable=False),
    Column("seq", Big, nullable=False, server_default="0"),
    Column("length", Integer, nullable=False),
    Column("counts", Text, nullable=False),
    Column("asks", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("partition_id", "kind", "record_id"),
    Index(None, "partition_id", "kind", "seq"),
)

# Terms only find rows: no copy of the text, no positions, no sizes. A term is letters, digits and underscores.
_FTS5 = """
CREATE VIRTUAL TABLE texts_fts USING fts5(
    terms, content='', detail=none, columnsize=0, tokenize="ascii tokenchars '_'"
)
"""
# One insert writes a text, its terms, and what the shelf holds in all.
_INDEXED = """
CREATE VIEW indexed_texts AS
SELECT partition_id, kind, record_id, seq, length, counts, asks, '' AS terms FROM texts
"""
_INDEX = """
CREATE TRIGGER index_text INSTEAD OF INSERT ON indexed_texts BEGIN
    INSERT INTO texts (partition_id, kind, record_id, seq, length, counts, asks)
    VALUES (NEW.partition_id, NEW.kind, NEW.record_id, NEW.seq, NEW.length, NEW.counts, NEW.asks);
    INSERT INTO texts_fts (rowid, terms) VALUES (last_insert_rowid(), NEW.terms);
    INSERT INTO totals (partition_id, kind, records, tokens)
    VALUES (NEW.partition_id, NEW.kind, 1, NEW.length)
    ON CONFLICT (partition_id, kind)
    DO UPDATE SET records = totals.records + 1, tokens = totals.tokens + excluded.tokens;
END
"""
_FULL_TEXT = (
    ("sqlite", _FTS5),
    ("sqlite", _INDEXED),
    ("sqlite", _INDEX),
    ("postgresql", "ALTER TABLE texts ADD COLUMN terms TSVECTOR NOT NULL"),
    ("postgresql", "CREATE INDEX ix_texts_terms ON texts USING gin (terms) WITH (fastupdate = off)"),
)
for _dialect, _statement in _FULL_TEXT:
    event.listen(texts, "after_create", DDL(_statement).execute_if(dialect=_dialect))  # type: ignore[no-untyped-call]

# How many texts each shelf (partition, kind) holds, and how long they are in all: BM25 needs both.
totals = Table(
    "totals",
    metadata,
    partition(primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("records", Big, nullable=False),
    Column("tokens", Big, nullable=False),
)

embedders = Table(
    "embedders",
    metadata,
    Column("id", Big, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("dimension", Integer, nullable=False),
    Column("current", Boolean, nullable=False),
)

vectors = Table(
    "vectors",
    metadata,
    partition(primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("record_id", Text, primary_key=True),
    Column("embedder_id", Big, ForeignKey("embedders.id"), primary_key=True),
    Column("text_digest", Text, nullable=False),  # of the text embedded: a change of status needs no new vector
    Column("vector", LargeBinary, nullable=False),  # float32, little endian
    Index(None, "text_digest", "embedder_id"),
)

# What changed since the index last looked; the indexer applies the current row and removes the mark
# if `mark` is still the one it saw.
dirty = Table(
    "dirty",
    metadata,
    partition(primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("record_id", Text, primary_key=True),
    Column("mark", Text, nullable=False),  # a new uuid each time
)

# Which collection of the vector index holds a shelf (partition, kind) of an embedder.
collections = Table(
    "collections",
    metadata,
    partition(primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("embedder_id", Big, ForeignKey("embedders.id"), primary_key=True),
    Column("name", Text, nullable=False),
    Index(None, "name"),
)

# Which generation of an embedded index the ledger worked with last, and in which place: a copy has another one.
projections = Table(
    "projections",
    metadata,
    Column("name", Text, primary_key=True),
    Column("generation", Text, nullable=False),
)


# --- use of memories and tools: appended, never versions of anything

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

# Which knowledge an agent has given to others: this distinguishes a true source from a forged one.
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


# --- topics, memories with all versions, their sources and links

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


# --- messages, threads, and the blocks that they are cut into

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
    Column("withheld", Text),  # JSON: which of its words are shown no more, why and since when; see ledger/withheld.py
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
    Column("size", Big, nullable=False),
    Column("reading", Text),  # JSON text
    Column("reader", Text),  # JSON text
    UniqueConstraint("partition_id", "message_id", "sha256"),
    Index(None, "sha256"),
)

# The state of each thread: what no block holds yet is found without reading the history.
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


# --- the journal, its seals, and what makes each operation happen once

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


# --- grants and agreements between agents: only ever added, a revocation is a row of its own

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

# Who supports, approves or refuses what is proposed for all agents of a user; appended, never changed.
endorsements = Table(
    "endorsements",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("proposal_id", Text, nullable=False),
    Column("body", Text, nullable=False),
    Index(None, "partition_id", "proposal_id"),
)


# --- items of LangGraph stores

# Key-value items, of a LangGraph store: no memories, and not versioned. A namespace is a list of labels; it is there
# while it holds items, and keeps its number, and so its place in the order, as long.
item_namespaces = Table(
    "item_namespaces",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("path", Text, nullable=False),  # each label as JSON text, and a line feed: a prefix ends where a label does
    Column("path_digest", Text, nullable=False),
    UniqueConstraint("partition_id", "path_digest"),
)

items = Table(
    "items",
    metadata,
    Column("id", Big, primary_key=True),
    partition(),
    Column("namespace_id", Big, ForeignKey("item_namespaces.id"), nullable=False),
    Column("key", Text, nullable=False),  # JSON text
    Column("key_digest", Text, nullable=False),  # a key may be longer than an index takes
    Column("created_at", Big, nullable=False),
    Column("updated_at", Big, nullable=False),
    Column("ttl", Big),  # microseconds that a read adds to its life; none: it stays
    Column("expires_at", Big),
    Column("body", Text, nullable=False),
    UniqueConstraint("namespace_id", "key_digest"),
    Index(None, "partition_id", "expires_at"),
)

# The texts by which an item is found. A record is named after its item and its text: another text is another record.
item_texts = Table(
    "item_texts",
    metadata,
    partition(primary_key=True),
    Column("record_id", Text, primary_key=True),
    Column("item_id", Big, ForeignKey("items.id"), nullable=False),
    Column("body", Text, nullable=False),  # JSON text
    Index(None, "item_id"),
)


# --- jobs, and the state of work

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
    Column("again", Boolean, nullable=False),  # asked for again while it was running
    Column("attempts", Integer, nullable=False),
    Column("due_at", Big, nullable=False),
    Column("owner", Text, nullable=False),
    Column("lease_until", Big, nullable=False),  # of one that waits: how often it was asked for
    Column("fence", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("stamp", Text, nullable=False, server_default=""),  # of the settings that it is done with; empty: any
    UniqueConstraint("partition_id", "kind"),
    Index(None, "kind", "state", "due_at"),
)
