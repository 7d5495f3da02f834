"""Which messages end with a question: what comes after one is likely its answer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_ASKING = sa.text(
    "UPDATE texts SET asks = :yes WHERE kind = 'message' AND EXISTS (SELECT 1 FROM messages"
    " WHERE messages.partition_id = texts.partition_id AND messages.message_id = texts.record_id"
    " AND (messages.body LIKE '%?\"%' OR messages.body LIKE '%\\uff1f\"%' ESCAPE '~'))"
)
"""Of older messages it is told by a string in the body that ends with a question mark, ASCII or Chinese."""


def upgrade() -> None:
    """Add the column, and fill it."""
    op.add_column("texts", sa.Column("asks", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.get_bind().execute(_ASKING, {"yes": True})
