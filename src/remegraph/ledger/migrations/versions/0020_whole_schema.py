"""The whole schema, as the tables are declared.

No release wrote the revisions before this one. The first release writes the tables out here, and a change of them is a
revision of its own from then on.
"""

from __future__ import annotations

from alembic import op

from remegraph.ledger.schema import metadata

revision = "0020"
down_revision = None


def upgrade() -> None:
    """Create all tables, with the full text index of either engine."""
    metadata.create_all(op.get_bind(), checkfirst=False)
