"""What was erased: how far each erasure is, and marks of what must not come back."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from remegraph.storage.tables.base import Big, metadata

__all__ = ["erasures", "tombstones"]

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
