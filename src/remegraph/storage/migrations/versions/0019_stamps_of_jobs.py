"""Which settings a job is done with; those of earlier releases say nothing, and any worker may do them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the column."""
    op.add_column("jobs", sa.Column("stamp", sa.Text(), nullable=False, server_default=""))
