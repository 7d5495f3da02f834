"""Which generation of the vector index the ledger worked with last: tells an old copy of the index from the index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table; without a row, the ledger knows no index yet."""
    op.create_table(
        "projections",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("generation", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_projections"),
    )
