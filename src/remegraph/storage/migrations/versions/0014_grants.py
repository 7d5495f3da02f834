"""Grants: what agents let each other read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "grants",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("reader_id", _BIG, nullable=False),
        sa.Column("grant_id", sa.Text(), nullable=False),
        sa.Column("expires_at", _BIG, nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_grants_partition_id"),
        sa.ForeignKeyConstraint(["reader_id"], ["partitions.id"], name="fk_grants_reader_id"),
        sa.PrimaryKeyConstraint("id", name="pk_grants"),
        sa.UniqueConstraint("grant_id", name="uq_grants_grant_id"),
    )
    op.create_index("ix_grants_partition_id", "grants", ["partition_id"])
    op.create_index("ix_grants_reader_id", "grants", ["reader_id"])
    op.create_table(
        "granted",
        sa.Column("grant", _BIG, nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["grant"], ["grants.id"], name="fk_granted_grant"),
        sa.PrimaryKeyConstraint("grant", "memory_id", name="pk_granted"),
    )
    op.create_table(
        "revocations",
        sa.Column("grant", _BIG, nullable=False),
        sa.Column("at", _BIG, nullable=False),
        sa.ForeignKeyConstraint(["grant"], ["grants.id"], name="fk_revocations_grant"),
        sa.PrimaryKeyConstraint("grant", name="pk_revocations"),
    )
