"""Made up, for the tests: another key, for which SQLite copies the table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Let the key of the calls of tools begin with the tool."""
    with op.batch_alter_table("tool_calls") as table:
        table.add_column(sa.Column("place", sa.Text(), nullable=False, server_default=""))
        table.drop_constraint("pk_tool_calls", type_="primary")
        table.create_primary_key("pk_tool_calls", ["partition_id", "message_id", "call", "digest", "place"])
        table.create_index("ix_tool_calls_place", ["partition_id", "place"])
    op.execute("UPDATE tool_calls SET place = 'here'")
