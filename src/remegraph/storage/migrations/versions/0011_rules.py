"""What is given to an agent unasked is found by its importance and by where it applies."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_BATCH = 1000

_MEMORIES = sa.table(
    "memories",
    sa.column("id", sa.BigInteger()),
    sa.column("partition_id", sa.BigInteger()),
    sa.column("importance", sa.Float()),
    sa.column("applies_to", sa.Text()),
    sa.column("body", sa.Text()),
)


def upgrade() -> None:
    """Add the columns, and fill them: of older memories, the class is the default."""
    op.add_column("memories", sa.Column("importance", sa.Float(), nullable=False, server_default="0.5"))
    op.add_column("memories", sa.Column("applies_to", sa.Text(), nullable=False, server_default=""))
    op.add_column("memories", sa.Column("memory_class", sa.Text(), nullable=False, server_default="episodic"))
    connection = op.get_bind()
    last = 0
    while rows := _after(connection, last):
        connection.execute(_FILL, [_values(row.id, json.loads(row.body)) for row in rows])
        last = rows[-1].id
    op.create_index("ix_memories_partition_id_importance", "memories", ["partition_id", "importance"])
    op.create_index(
        "ix_memories_partition_id_applies_to_importance", "memories", ["partition_id", "applies_to", "importance"]
    )


_FILL = (
    sa.update(_MEMORIES)
    .where(_MEMORIES.c.id == sa.bindparam("number"))
    .values(importance=sa.bindparam("weight"), applies_to=sa.bindparam("place"))
)


def _after(connection: sa.Connection, last: int) -> list[sa.Row[tuple[int, str]]]:
    query = sa.select(_MEMORIES.c.id, _MEMORIES.c.body).where(_MEMORIES.c.id > last)
    return list(connection.execute(query.order_by(_MEMORIES.c.id).limit(_BATCH)))


def _values(number: int, memory: dict[str, Any]) -> dict[str, object]:
    project = memory["partition"]["project"]
    place = "global" if project is None else f"project:{project}"
    return {"number": number, "weight": memory["importance"], "place": place}
