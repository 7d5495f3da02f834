"""The rows of outcomes: how runs of skills went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, case, func, select

from remegraph.models import Partition, Review, SkillOutcome
from remegraph.ports import Tally
from remegraph.storage import reviews
from remegraph.storage.database import upsert
from remegraph.storage.rows import chunks, from_micros, micros
from remegraph.storage.tables import outcomes

__all__ = ["add", "counted"]


def add(connection: Connection, partition_id: int, partition: Partition, outcome: SkillOutcome) -> SkillOutcome:
    """Append an outcome, unless its run is known, and that the skill was used; return what is known of the run.

    Args:
        connection: A write transaction.
        partition_id: The number of the partition.
        partition: Where the skill lives.
        outcome: How it went.
    """
    statement = upsert(connection.dialect.name, outcomes).values(
        partition_id=partition_id,
        memory_id=outcome.memory_id,
        version=outcome.version,
        run=outcome.run_id,
        ok=outcome.ok,
        at=micros(outcome.at),
        seconds=outcome.seconds,
        tokens=outcome.tokens,
    )
    if connection.execute(statement.on_conflict_do_nothing().returning(outcomes.c.id)).first():
        used = Review(partition=partition, memory_id=outcome.memory_id, kind="used", at=outcome.at)
        reviews.add(connection, {partition: partition_id}, [used])
    row = connection.execute(
        select(outcomes).where(
            outcomes.c.partition_id == partition_id,
            outcomes.c.memory_id == outcome.memory_id,
            outcomes.c.run == outcome.run_id,
        )
    ).one()
    return outcome.evolve(
        version=row.version, ok=row.ok, at=from_micros(row.at), seconds=row.seconds, tokens=row.tokens
    )


def counted(
    connection: Connection, places: Mapping[int, Partition], memory_ids: Sequence[str]
) -> dict[tuple[Partition, str, int], Tally]:
    """Return the outcomes of these skills, counted by version; versions without any are left out."""
    found: dict[tuple[Partition, str, int], Tally] = {}
    key = (outcomes.c.partition_id, outcomes.c.memory_id, outcomes.c.version)
    for chunk in chunks(memory_ids):
        query = (
            select(
                *key,
                func.count(),
                func.sum(case((outcomes.c.ok, 1), else_=0)),
                func.avg(outcomes.c.seconds),
                func.avg(outcomes.c.tokens),
            )
            .where(outcomes.c.partition_id.in_(list(places)), outcomes.c.memory_id.in_(chunk))
            .group_by(*key)
        )
        for partition_id, memory_id, version, runs, successes, seconds, tokens in connection.execute(query):
            cost = None if tokens is None else float(tokens)
            found[places[partition_id], memory_id, version] = Tally(runs, int(successes), seconds, cost)
    return found
