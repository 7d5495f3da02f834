"""Calls that were heard before their message is read: the arguments' digest joins the key; what a call cost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns; the calls that are there stay, without a digest. SQLite copies the table, as its key changes."""
    with op.batch_alter_table("tool_calls") as table:
        table.add_column(sa.Column("digest", sa.Text(), nullable=False, server_default=""))
        table.add_column(sa.Column("input_tokens", _BIG))
        table.add_column(sa.Column("output_tokens", _BIG))
        table.drop_constraint("pk_tool_calls", type_="primary")
        table.create_primary_key("pk_tool_calls", ["partition_id", "message_id", "call", "digest"])
        table.create_index("ix_tool_calls_partition_id_call", ["partition_id", "call"])
