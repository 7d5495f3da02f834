"""A vector is found by the digest of its text: the same text is not embedded again for another record."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the index."""
    op.create_index("ix_vectors_text_digest_embedder_id", "vectors", ["text_digest", "embedder_id"])
