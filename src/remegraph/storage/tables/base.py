"""What all tables share: their names, their numbers, and whose each row is."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, MetaData, Table, Text

__all__ = ["Big", "metadata", "partition", "partitions"]

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
    Index(None, "tenant", "user"),
)
