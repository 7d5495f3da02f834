"""What a LangGraph store keeps beside the memories."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Table, Text, UniqueConstraint

from remegraph.storage.tables.base import Big, metadata, partition

__all__ = ["item_namespaces", "item_texts", "items"]

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
