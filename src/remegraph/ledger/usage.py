"""How memories, skills, items and tools are used, which never changes them: reviews, outcomes, shares, calls of tools."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import compress, groupby
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    select,
    true,
    union,
)

from remegraph.errors import NotFoundError
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.blocks import Extents
from remegraph.ledger.database import Database
from remegraph.ledger.journal import Entry, Journal
from remegraph.ledger.rows import chunks, from_micros, micros, upsert
from remegraph.ledger.schema import memories, messages, outcomes, partitions, reviews, shares, tool_calls, versions
from remegraph.ledger.withheld import Tombstones
from remegraph.models import (
    REVIEWING,
    Access,
    Partition,
    Review,
    Reviews,
    Scope,
    SharedItem,
    SkillOutcome,
    ToolRecord,
    ToolStats,
    ToolWindow,
)
from remegraph.models.tools import joined, twin, window
from remegraph.ports import NewId, Tally

__all__ = ["UsageLog", "call_stats", "read_calls", "record_calls", "without_late_calls"]

_COUNTED = (  # said once: building a statement costs as much as running it
    select(
        reviews.c.partition_id,
        reviews.c.memory_id,
        func.count(),
        func.sum(case((reviews.c.kind == "used", 1), else_=0)),
        func.max(reviews.c.at),
    )
    .where(
        reviews.c.partition_id.in_(bindparam("here", expanding=True)),
        reviews.c.memory_id.in_(bindparam("ids", expanding=True)),
    )
    .group_by(reviews.c.partition_id, reviews.c.memory_id)
)


class UsageLog:
    """Reviews, outcomes of skills, and who shared what: appended, never changed, and no version of any memory."""

    def __init__(self, database: Database, journal: Journal, new_id: NewId) -> None:
        self.database = database
        self.journal = journal
        self._new_id = new_id

    def add_reviews(self, reviews: Sequence[Review]) -> None:
        """Append reviews of memories. They are no versions, and no reader waits for them.

        Args:
            reviews: Each time that a memory came back. Those of partitions that are gone are left out.
        """
        partitions = dict.fromkeys(review.partition for review in reviews)
        if partitions:
            with self.database.write() as connection:
                known = partition_rows.known(connection, partitions, fresh=True)
                _add_reviews(connection, {partition: number for number, partition in known.items()}, reviews)

    def reviews(
        self, partitions: Sequence[Partition], memory_ids: Sequence[str]
    ) -> Mapping[tuple[Partition, str], Reviews]:
        """Return the reviews of these memories, counted, by place and id; those without any are left out."""
        found: dict[tuple[Partition, str], Reviews] = {}
        with self.database.read() as connection:
            places = partition_rows.known(connection, partitions)
            for chunk in chunks(memory_ids):
                asked = {"here": list(places), "ids": chunk}
                for number, memory_id, count, uses, last in connection.execute(_COUNTED, asked):
                    counted = Reviews(count=count - uses, used=uses, last=from_micros(last))
                    found[places[number], memory_id] = counted
        return found

    def accesses(
        self, partitions: Sequence[Partition], memory_ids: Sequence[str]
    ) -> Mapping[tuple[Partition, str], Sequence[Access]]:
        """Return when each of these memories was learned, then each of its reviews (`REVIEWING`), oldest first."""
        found: defaultdict[tuple[Partition, str], list[Access]] = defaultdict(list)
        with self.database.read() as connection:
            places = partition_rows.known(connection, partitions)
            for chunk in chunks(memory_ids):
                learned = (
                    select(memories.c.partition_id, memories.c.memory_id, func.min(versions.c.recorded_at), literal(""))
                    .join(versions, versions.c.memory == memories.c.id)
                    .where(memories.c.partition_id.in_(list(places)), memories.c.memory_id.in_(chunk))
                    .group_by(memories.c.partition_id, memories.c.memory_id)
                )
                reviewed = (
                    select(reviews.c.partition_id, reviews.c.memory_id, reviews.c.at, reviews.c.kind)
                    .where(reviews.c.partition_id.in_(list(places)), reviews.c.memory_id.in_(chunk))
                    .where(reviews.c.kind.in_(sorted(REVIEWING)))
                    .order_by(reviews.c.at)
                )
                for query in (learned, reviewed):
                    for number, memory_id, at, kind in connection.execute(query):
                        found[places[number], memory_id].append(Access(from_micros(at), kind == "used"))
        return {key: tuple(times) for key, times in found.items()}

    def in_use(self, partitions: Sequence[Partition], *, since: datetime) -> Sequence[str]:
        """Return the ids of the memories that are always active, or were reviewed (`REVIEWING`) at a time or later."""
        with self.database.read() as connection:
            numbers = list(partition_rows.known(connection, partitions))
            always = select(memories.c.memory_id).where(
                memories.c.partition_id.in_(numbers), memories.c.resident == true()
            )
            reviewed = select(reviews.c.memory_id).where(
                reviews.c.partition_id.in_(numbers),
                reviews.c.kind.in_(sorted(REVIEWING)),
                reviews.c.at >= micros(since),
            )
            return sorted(connection.execute(union(always, reviewed)).scalars())

    def add_outcome(self, partition: Partition, outcome: SkillOutcome) -> SkillOutcome:
        """Append how a run of a skill went, durably, which reviews the skill; return what the ledger holds of this run.

        Raises:
            NotFoundError: The skill was erased meanwhile, with all that was there.
        """
        with self.database.write() as connection:
            for number in partition_rows.known(connection, [partition], fresh=True):
                return _add_outcome(connection, number, partition, outcome)
        raise NotFoundError(f"There is no skill {outcome.memory_id} here.")

    def outcomes(
        self, partitions: Sequence[Partition], memory_ids: Sequence[str]
    ) -> Mapping[tuple[Partition, str, int], Tally]:
        """Return how the versions of these skills went, counted, by place, id and version; without runs: left out."""
        found: dict[tuple[Partition, str, int], Tally] = {}
        key = (outcomes.c.partition_id, outcomes.c.memory_id, outcomes.c.version)
        worked = func.sum(case((outcomes.c.ok, 1), else_=0))
        with self.database.read() as connection:
            places = partition_rows.known(connection, partitions)
            for chunk in chunks(memory_ids):
                query = (
                    select(*key, func.count(), worked, func.avg(outcomes.c.seconds), func.avg(outcomes.c.tokens))
                    .where(outcomes.c.partition_id.in_(list(places)), outcomes.c.memory_id.in_(chunk))
                    .group_by(*key)
                )
                for number, memory_id, version, runs, successes, seconds, tokens in connection.execute(query):
                    cost = None if tokens is None else float(tokens)
                    found[places[number], memory_id, version] = Tally(runs, int(successes), seconds, cost)
        return found

    def add_shared(self, partition: Partition, items: Sequence[SharedItem]) -> None:
        """Note that an agent shared items, durably, with an event for each. What is noted already is left as it is.

        Args:
            partition: Where what they were made of lives.
            items: What was shared, by whom.
        """
        operation_id = self._new_id()
        with self.database.write() as connection:
            number = partition_rows.hold(self.database, connection, [partition])[partition]
            new = _add_shares(connection, number, items)
            self.journal.add(
                connection,
                [
                    Entry(
                        partition_id=number,
                        time=micros(item.at),
                        actor=item.agent,
                        action="share",
                        record_id=item.knowledge_id,
                        operation_id=operation_id,
                        body=item.digest,
                    )
                    for item in new
                ],
            )

    def shared_by(self, scope: Scope, knowledge_id: str, digest: str) -> str | None:
        """Return which agent of this tenant, user and project was the first to share exactly this item; none: no one.

        Args:
            digest: Of what it says (`mek.items.item_digest`).
        """
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
        with self.database.read() as connection:
            return connection.execute(query).scalar()


def _add_reviews(connection: Connection, numbers: Mapping[Partition, int], found: Sequence[Review]) -> None:
    """Append reviews.

    Args:
        numbers: The number of each partition; reviews of others are left out.
    """
    rows = [
        {"partition_id": numbers[each.partition], "memory_id": each.memory_id, "kind": each.kind, "at": micros(each.at)}
        for each in found
        if each.partition in numbers
    ]
    if rows:
        connection.execute(insert(reviews), rows)


def _add_outcome(
    connection: Connection, partition_id: int, partition: Partition, outcome: SkillOutcome
) -> SkillOutcome:
    """Append an outcome, unless its run is known, and that the skill was used; return what is known of the run."""
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
        _add_reviews(connection, {partition: partition_id}, [used])
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


def _add_shares(connection: Connection, partition_id: int, items: Sequence[SharedItem]) -> list[SharedItem]:
    """Note what was shared; return what was not noted before.

    Args:
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


def without_late_calls(
    connection: Connection, tombstones: Tombstones, calls: Sequence[ToolRecord]
) -> tuple[ToolRecord, ...]:
    """Leave out what was only heard, and erased before it was written: with its message, or with the person.

    Args:
        calls: The calls, heard or read.
    """
    heard = [call for call in calls if not call.message_id]
    late = tombstones.late(connection, "call", [(call.partition, call.call_id, call.time) for call in heard])
    gone = list(compress(heard, late))
    return tuple(call for call in calls if call not in gone)


def record_calls(
    connection: Connection, numbers: Mapping[Partition, int], there: Extents, calls: Iterable[ToolRecord]
) -> None:
    """Write how tool calls went. What is known of a call already is joined with what is new, and counts once.

    Args:
        connection: A write transaction that holds the locks of the partitions.
        there: The blocks that are there.
        calls: The calls, heard or read.

    Raises:
        NotFoundError: There is no such block or message.
    """
    for call in calls:
        partition_id = numbers[call.partition]
        if call.message_id:
            there.require(partition_id, call.block_id)
            here = (messages.c.partition_id == partition_id, messages.c.message_id == call.message_id)
            if connection.execute(select(messages.c.id).where(*here)).first() is None:
                raise NotFoundError(f"There is no message {call.message_id} here.")
        same_id = (tool_calls.c.partition_id == partition_id, tool_calls.c.call == json.dumps(call.call_id))
        found = connection.execute(select(tool_calls.c.body).where(*same_id)).scalars()
        known = twin((ToolRecord.from_json(body) for body in found), call)
        if known is not None:
            key = (tool_calls.c.message_id == known.message_id, tool_calls.c.digest == known.digest)
            connection.execute(delete(tool_calls).where(*same_id, *key))
            call = joined(known, call)  # noqa: PLW2901 - what is written is both in one
        connection.execute(insert(tool_calls).values(_row(partition_id, call)))


def _row(partition_id: int, call: ToolRecord) -> dict[str, Any]:
    return {
        "partition_id": partition_id,
        "message_id": call.message_id,
        "call": json.dumps(call.call_id),
        "digest": call.digest,
        "tool": json.dumps(call.tool),
        "ok": call.ok,
        "seconds": call.seconds,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "time": micros(call.time),
        "body": call.to_json(),
    }


def read_calls(
    connection: Connection,
    places: Mapping[int, Partition],
    tools: Sequence[str] | None,
    last: int,
    digest: str | None = None,
) -> tuple[ToolRecord, ...]:
    """Return the newest calls of each tool, by tool, the newest first."""
    order = (tool_calls.c.time.desc(), tool_calls.c.message_id.desc(), tool_calls.c.call.desc())
    rank = func.row_number().over(partition_by=tool_calls.c.tool, order_by=order).label("rank")
    alike = [] if digest is None else [tool_calls.c.digest == digest]
    found: list[Row[Any]] = []
    for here in _pieces(places, tools):
        ranked = select(tool_calls.c.tool, tool_calls.c.body, rank).where(*here, *alike).subquery()
        query = select(ranked.c.body).where(ranked.c.rank <= last)
        found += connection.execute(query.order_by(ranked.c.tool, ranked.c.rank)).all()
    return tuple(ToolRecord.from_json(row.body) for row in found)


def call_stats(
    connection: Connection, places: Mapping[int, Partition], tools: Sequence[str] | None, last: int
) -> tuple[ToolStats, ...]:
    """Return the statistics of the tools, by name: all calls are counted in SQL, the last ones looked at closely."""
    newest = read_calls(connection, places, tools, last) if last else ()
    recent = {tool: window(list(calls)) for tool, calls in groupby(newest, lambda call: call.tool)}
    counted: list[Row[Any]] = []
    errors: dict[str, str] = {}
    for here in _pieces(places, tools):
        counted += connection.execute(_count(here)).all()
        errors |= {row.tool: json.loads(row.body)["error"] for row in connection.execute(_newest_errors(here))}
    found = [
        ToolStats(
            tool=json.loads(row.tool),
            calls=row.calls,
            distinct=row.distinct,
            succeeded=row.succeeded,
            failed=row.failed,
            mean_seconds=row.mean_seconds,
            mean_input_tokens=row.mean_input_tokens,
            mean_output_tokens=row.mean_output_tokens,
            last_error=errors.get(row.tool, ""),
            last_called=from_micros(row.last_called),
            recent=recent.get(json.loads(row.tool), ToolWindow()),
        )
        for row in counted
    ]
    return tuple(sorted(found, key=lambda one: one.tool))


def _pieces(places: Mapping[int, Partition], tools: Sequence[str] | None) -> list[list[ColumnElement[bool]]]:
    """Return what rows of these partitions and tools meet, in pieces that fit one statement."""
    here = tool_calls.c.partition_id.in_(list(places))
    if tools is None:
        return [[here]]
    names = [json.dumps(tool) for tool in dict.fromkeys(tools)]
    return [[here, tool_calls.c.tool.in_(chunk)] for chunk in chunks(names)]


def _count(here: Sequence[ColumnElement[bool]]) -> Select[Any]:
    return (
        select(
            tool_calls.c.tool,
            func.count().label("calls"),
            func.count(tool_calls.c.digest.distinct()).label("distinct"),
            func.count(case((tool_calls.c.ok.is_(True), 1))).label("succeeded"),
            func.count(case((tool_calls.c.ok.is_(False), 1))).label("failed"),
            func.avg(tool_calls.c.seconds).label("mean_seconds"),
            func.avg(tool_calls.c.input_tokens).label("mean_input_tokens"),
            func.avg(tool_calls.c.output_tokens).label("mean_output_tokens"),
            func.max(tool_calls.c.time).label("last_called"),
        )
        .where(*here)
        .group_by(tool_calls.c.tool)
    )


def _newest_errors(here: Sequence[ColumnElement[bool]]) -> Select[Any]:
    rank = func.row_number().over(partition_by=tool_calls.c.tool, order_by=tool_calls.c.time.desc()).label("rank")
    failed = select(tool_calls.c.tool, tool_calls.c.body, rank).where(*here, tool_calls.c.ok.is_(False)).subquery()
    return select(failed.c.tool, failed.c.body).where(failed.c.rank == 1)
