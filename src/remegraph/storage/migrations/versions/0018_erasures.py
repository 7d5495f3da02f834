"""Erasures, the marks that they leave, and how many of them each partition saw."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables and the column."""
    op.create_table(
        "erasures",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("erasure_id", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("asked_at", _BIG, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_erasures"),
        sa.UniqueConstraint("erasure_id", name="uq_erasures_erasure_id"),
    )
    op.create_table(
        "tombstones",
        sa.Column("mark", sa.Text(), nullable=False),
        sa.Column("erasure_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("mark", name="pk_tombstones"),
    )
    op.add_column("partitions", sa.Column("erasures", _BIG, nullable=False, server_default="0"))
