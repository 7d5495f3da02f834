"""The journal as a chain, and what agents were shown. The first open with a key chains the events that are there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns and the two tables."""
    op.add_column("events", sa.Column("chain", sa.Text(), nullable=False, server_default=""))
    op.add_column("partitions", sa.Column("journal_head", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "seals",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("salt", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_seals"),
    )
    op.create_table(
        "injections",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("at", _BIG, nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_injections_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_injections"),
    )
    op.create_index("ix_injections_partition_id_at", "injections", ["partition_id", "at"])
