"""Which links of a type a partition has: its open conflicts are listed without reading all that it knows."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the index."""
    op.create_index("ix_links_partition_id_type", "links", ["partition_id", "type"])
