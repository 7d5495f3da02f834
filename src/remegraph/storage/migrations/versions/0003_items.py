"""Key-value items: namespaces, items, and the texts by which they are found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the three tables."""
    op.create_table(
        "item_namespaces",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("path_digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_item_namespaces_partition_id"),
        sa.PrimaryKeyConstraint("id", name="pk_item_namespaces"),
        sa.UniqueConstraint("partition_id", "path_digest", name="uq_item_namespaces_partition_id_path_digest"),
    )
    op.create_table(
        "items",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("namespace_id", _BIG, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("key_digest", sa.Text(), nullable=False),
        sa.Column("created_at", _BIG, nullable=False),
        sa.Column("updated_at", _BIG, nullable=False),
        sa.Column("ttl", _BIG, nullable=True),
        sa.Column("expires_at", _BIG, nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_items_partition_id"),
        sa.ForeignKeyConstraint(["namespace_id"], ["item_namespaces.id"], name="fk_items_namespace_id"),
        sa.PrimaryKeyConstraint("id", name="pk_items"),
        sa.UniqueConstraint("namespace_id", "key_digest", name="uq_items_namespace_id_key_digest"),
    )
    op.create_index("ix_items_partition_id_expires_at", "items", ["partition_id", "expires_at"])
    op.create_table(
        "item_texts",
        sa.Column("partition_id", _BIG, nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("item_id", _BIG, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["partition_id"], ["partitions.id"], name="fk_item_texts_partition_id"),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name="fk_item_texts_item_id"),
        sa.PrimaryKeyConstraint("partition_id", "record_id", name="pk_item_texts"),
    )
    op.create_index("ix_item_texts_item_id", "item_texts", ["item_id"])
