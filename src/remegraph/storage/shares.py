"""The rows of shares: which knowledge an agent has given to others, without a word of it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from remegraph.models import Scope, SharedItem
from remegraph.storage.database import upsert
from remegraph.storage.rows import micros
from remegraph.storage.tables import partitions, shares

__all__ = ["add", "author"]


def add(connection: Connection, partition_id: int, items: Sequence[SharedItem]) -> list[SharedItem]:
    """Note what was shared; return what was not noted before.

    Args:
        connection: A write transaction.
        partition_id: The number of the partition that it was made from.
        items: What was shared.
    """
    statement = upsert(connection.dialect.name, shares).on_conflict_do_nothing().returning(shares.c.id)
    return [
        item
        for item in items
        if connection.execute(
            statement.values(
                partition_id=partition_id,
                knowledge_id=item.knowledge_id,
                digest=item.digest,
                agent=item.agent,
                at=micros(item.at),
            )
        ).first()
    ]


def author(connection: Connection, scope: Scope, knowledge_id: str, digest: str) -> str | None:
    """Return which agent of this tenant, user and project was the first to share exactly this."""
    query = (
        select(shares.c.agent)
        .join(partitions, shares.c.partition_id == partitions.c.id)
        .where(
            shares.c.knowledge_id == knowledge_id,
            shares.c.digest == digest,
            partitions.c.tenant == scope.tenant,
            partitions.c.user == scope.user,
            partitions.c.project.is_not_distinct_from(scope.project),
        )
        .order_by(shares.c.id)
        .limit(1)
    )
    return connection.execute(query).scalar()
