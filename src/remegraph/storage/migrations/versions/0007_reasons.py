"""Why a memory was changed, in the journal."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the column; what was changed before says nothing."""
    op.add_column("events", sa.Column("reason", sa.Text(), nullable=False, server_default=""))
