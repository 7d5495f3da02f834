"""Made up, for the tests: columns that are filled from what was recorded, an index, and a table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_MESSAGES = sa.table("messages", sa.column("id"), sa.column("body"), sa.column("length"))


def upgrade() -> None:
    """Add the columns, fill them row by row, and create the table."""
    op.add_column("messages", sa.Column("length", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("place", sa.Text(), nullable=False, server_default=""))
    bind = op.get_bind()
    for number, body in bind.execute(sa.select(_MESSAGES.c.id, _MESSAGES.c.body)).all():
        bind.execute(sa.update(_MESSAGES).where(_MESSAGES.c.id == number).values(length=len(body)))
    op.create_index("ix_messages_length", "messages", ["partition_id", "length"])
    op.create_table(
        "stars",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_stars_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_stars"),
    )
