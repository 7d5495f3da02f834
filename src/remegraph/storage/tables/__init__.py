"""The ledger's schema: one set of tables for SQLite and PostgreSQL.

Times are integer microseconds since the epoch (UTC) with the original offset in seconds beside them.
Records that may hold any text (NUL, lone surrogates) are ASCII-escaped JSON in TEXT, never jsonb.
Columns beside a body are copies for finding rows; the body is what is read back.
"""

from __future__ import annotations

from remegraph.storage.tables.base import metadata, partitions
from remegraph.storage.tables.erased import erasures, tombstones
from remegraph.storage.tables.found import collections, dirty, embedders, projections, texts, totals, vectors
from remegraph.storage.tables.noted import injections, outcomes, reviews, shares, tool_calls
from remegraph.storage.tables.remembered import links, memories, memory_sources, topics, versions
from remegraph.storage.tables.said import attachments, blocks, messages, summaries, threads
from remegraph.storage.tables.sealed import events, operations, seals
from remegraph.storage.tables.shared import endorsements, granted, grants, revocations
from remegraph.storage.tables.stored import item_namespaces, item_texts, items
from remegraph.storage.tables.working import jobs, work

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
    "vectors",
    "versions",
    "work",
]
