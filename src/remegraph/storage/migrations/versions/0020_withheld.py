"""What is withheld of messages, and the index entries that were made again without it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("messages", sa.Column("withheld", sa.Text()))
    op.add_column("summaries", sa.Column("original", sa.Text()))
    some = sa.text("withheld IS NOT NULL")
    op.create_index("ix_messages_withheld", "messages", ["partition_id"], sqlite_where=some, postgresql_where=some)
