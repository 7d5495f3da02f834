"""Alembic's entry point: runs the revisions on the connection that `migrations.config` carries."""

from __future__ import annotations

from alembic import context

from remegraph.ledger.migrations import VERSION_TABLE
from remegraph.ledger.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
