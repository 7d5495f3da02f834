"""Who bears out, approves or refuses what agents propose for their common library."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "endorsements",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("proposal_id", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_endorsements_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_endorsements"),
    )
    op.create_index("ix_endorsements_partition_id_proposal_id", "endorsements", ["partition_id", "proposal_id"])
