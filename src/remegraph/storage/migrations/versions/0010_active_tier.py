"""What is always active, and the newest rows of each partition: the active tier is served without a query."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_CORE = 0.9
_MEMORIES = sa.table("memories", sa.column("id"), sa.column("body"), sa.column("resident", sa.Boolean()))


def upgrade() -> None:
    """Add column and indexes; so far, core rules are what is always active."""
    op.add_column("memories", sa.Column("resident", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index("ix_memories_partition_id_resident", "memories", ["partition_id", "resident"])
    op.create_index("ix_events_partition_id_id", "events", ["partition_id", "id"])
    op.create_index("ix_reviews_partition_id_id", "reviews", ["partition_id", "id"])
    bind = op.get_bind()
    rows = bind.execute(sa.select(_MEMORIES.c.id, _MEMORIES.c.body), execution_options={"yield_per": 1000})
    core = [row.id for row in rows if json.loads(row.body)["importance"] >= _CORE]
    for number in core:
        bind.execute(sa.update(_MEMORIES).where(_MEMORIES.c.id == number).values(resident=True))
