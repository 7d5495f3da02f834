"""How it is found: full text, vectors, and what the index has yet to learn."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, UniqueConstraint, false

from remegraph.storage.tables.base import Big, metadata, partition

__all__ = ["collections", "dirty", "embedders", "projections", "texts", "totals", "vectors"]

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
