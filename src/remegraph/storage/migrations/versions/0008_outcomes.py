"""Outcomes: how the runs of skills went."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "outcomes",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("ok", sa.Boolean(), nullable=False),
        sa.Column("at", _BIG, nullable=False),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("tokens", _BIG, nullable=True),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_outcomes_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_outcomes"),
        sa.UniqueConstraint("partition_id", "memory_id", "run", name="uq_outcomes_partition_id_memory_id_run"),
    )
