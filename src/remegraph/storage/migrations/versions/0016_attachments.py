"""Attachments: which messages hold which, and what is in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "attachments",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("reading", sa.Text(), nullable=True),
        sa.Column("reader", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_attachments_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_attachments"),
        sa.UniqueConstraint(
            "partition_id", "message_id", "sha256", name="uq_attachments_partition_id_message_id_sha256"
        ),
    )
    op.create_index("ix_attachments_sha256", "attachments", ["sha256"])
