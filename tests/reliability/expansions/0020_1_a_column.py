"""Made up, for the tests: what only adds, so that code of the release before goes on beside it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020.1"
down_revision = "0020"


def upgrade() -> None:
    """Let messages have a mood."""
    op.add_column("messages", sa.Column("mood", sa.Text(), nullable=False, server_default=""))
