"""Shares: which knowledge an agent has given to others."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0013"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "shares",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("knowledge_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("at", _BIG, nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_shares_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_shares"),
        sa.UniqueConstraint(
            "partition_id", "knowledge_id", "digest", "agent", name="uq_shares_partition_id_knowledge_id_digest_agent"
        ),
    )
