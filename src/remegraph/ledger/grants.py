"""Grants: what an agent lets others read of its own, decided in SQL at each call (B11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, or_, select

from remegraph.errors import InputError, NotFoundError
from remegraph.ledger import blocks as block_rows
from remegraph.ledger import memories as memory_rows
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.database import Database
from remegraph.ledger.journal import Entry, Journal
from remegraph.ledger.rows import chunks, from_micros, micros
from remegraph.ledger.schema import (
    granted,
    grants,
    memories,
    memory_sources,
    revocations,
    topics,
    versions,
)
from remegraph.models import (
    GRANTABLE,
    LIVE,
    BlockSummary,
    Grant,
    Layer,
    Memory,
    Partition,
    Scope,
)
from remegraph.ports import Clock, NewId

__all__ = ["GrantBook", "ungrantable"]


def ungrantable(memory: Memory, layers: Sequence[Layer]) -> str | None:
    """Return why a memory cannot be read through a grant of these layers; nothing where it can."""
    if memory.topic.type == "self":
        return "is what the agent knows of itself, and that is nobody else's"
    if not memory.live:
        return f"is {memory.status}, and only live memories are read through a grant"
    if memory.layer not in layers:
        named = f"only {', '.join(layers)} {'is' if len(layers) == 1 else 'are'} granted"
        return f"is of layer {memory.layer}, and {named if memory.layer in GRANTABLE else 'that is never shared'}"
    return None


_EVERY = select(grants, revocations.c.at.label("revoked_at")).outerjoin(revocations).order_by(grants.c.id)


class GrantBook:
    """The grants, and what they let through: decided at each call, and nowhere else.

    A grant lets its reader see live memories of the giver's own partition, and nothing around them.

    Args:
        clock: Tells when grants are over.
    """

    def __init__(self, database: Database, journal: Journal, clock: Clock, new_id: NewId) -> None:
        self._database = database
        self._journal = journal
        self._clock = clock
        self._new_id = new_id

    # ------------------------------------------------------------------------------------------ writing

    def give(self, grant: Grant) -> Grant:
        """Record a grant, with an event in the giver's journal.

        Raises:
            NotFoundError: A memory or topic that it names is not the giver's own.
            InputError: A memory that it names cannot be granted.
        """
        reader = grant.giver.evolve(agent=grant.to_agent)
        with self._database.write() as connection:
            numbers = partition_rows.hold(self._database, connection, [grant.giver, reader])
            giver_id = numbers[grant.giver]
            self._check(connection, giver_id, grant)
            row = {
                "partition_id": giver_id,
                "reader_id": numbers[reader],
                "grant_id": grant.grant_id,
                "expires_at": None if grant.expires_at is None else micros(grant.expires_at),
                "body": grant.to_json(),
            }
            number = connection.execute(insert(grants).values(**row).returning(grants.c.id)).scalar_one()
            named = [{"grant": number, "memory_id": memory_id} for memory_id in dict.fromkeys(grant.memory_ids)]
            if named:
                connection.execute(insert(granted), named)
            self._journal.add(connection, [self._event("grant", giver_id, grant)])
        return grant

    def revoke(self, giver: Partition, grant_id: str, *, actor: str, reason: str) -> Grant:
        """Revoke a grant, with an event in the giver's journal; one that was revoked before stays as it is.

        Raises:
            NotFoundError: The giver gave no such grant.
        """
        with self._database.write() as connection:
            numbers = partition_rows.known(connection, [giver])
            self._database.lock(connection, numbers)
            here = _EVERY.where(grants.c.partition_id.in_(list(numbers)), grants.c.grant_id == grant_id)
            row = connection.execute(here).one_or_none()
            if row is None:
                raise NotFoundError(f"There is no grant {grant_id!r} that this agent gave.")
            if row.revoked_at is None:
                now = micros(self._clock())
                connection.execute(insert(revocations).values(grant=row.id, at=now))
                told = _grant(row).evolve(actor=actor, reason=reason)
                self._journal.add(connection, [self._event("revoke", row.partition_id, told)])
            return _grant(connection.execute(here).one())

    def _check(self, connection: Connection, giver_id: int, grant: Grant) -> None:
        """Refuse what is not the giver's own to let others read."""
        if grant.topic and not connection.execute(_on_topic(giver_id, grant.topic)).first():
            raise NotFoundError(f"This agent has no topic {grant.topic!r} that others may read.")
        found = _read(connection, {giver_id: grant.giver}, grant.memory_ids)
        for memory_id in grant.memory_ids:
            if memory_id not in found:
                raise NotFoundError(f"There is no memory {memory_id!r} of this agent's own.")
            if (reason := ungrantable(found[memory_id], grant.layers)) is not None:
                raise InputError(f"Memory {memory_id} {reason}.", "Grant others, or name the layers to be granted.")

    def _event(self, action: str, giver_id: int, grant: Grant) -> Entry:
        return Entry(
            partition_id=giver_id,
            time=micros(self._clock()),
            actor=grant.actor,
            action=action,
            record_id=grant.grant_id,
            operation_id=self._new_id(),
            body=grant.to_json(),
            reason=grant.reason,
        )

    # ------------------------------------------------------------------------------------------ reading

    def grants(self, scope: Scope) -> tuple[Grant, ...]:
        """Return the grants that the scope's agent gave or received, those that are over included, oldest first."""
        with self._database.read() as connection:
            number = self._number(connection, scope)
            mine = or_(grants.c.partition_id == number, grants.c.reader_id == number)
            return tuple(_grant(row) for row in connection.execute(_EVERY.where(mine)))

    def opened(self, scope: Scope) -> Mapping[Partition, Sequence[str]]:
        """Return the ids of all memories that the scope may read by a grant, by where they live."""
        mine = partition_rows.pulse(self._database, scope).get(scope.partition())
        if mine is None or not mine.granted:
            return {}
        return self._database.once(("opened", scope), partial(self._opened, scope))

    def _opened(self, scope: Scope, connection: Connection) -> Mapping[Partition, Sequence[str]]:
        found: dict[Partition, dict[str, None]] = {}
        for grant, every in self._open(connection, scope):
            ids = connection.execute(every.with_only_columns(memories.c.memory_id)).scalars()
            found.setdefault(grant.giver, {}).update(dict.fromkeys(ids))
        return {giver: tuple(ids) for giver, ids in found.items() if ids}

    def memories(self, scope: Scope, ids: Sequence[str] | None = None) -> tuple[Memory, ...]:
        """Return the head versions of memories that the scope may read by a grant, newest `said_at` first.

        Args:
            ids: Only these; all of them unless given.
        """
        with self._database.read() as connection:
            rows = {row.id: row for _, row in self._readable(connection, scope, ids)}
        newest_first = sorted(rows.values(), key=lambda row: (-row.said_at, row.id))
        return tuple(Memory.from_json(row.body) for row in newest_first)

    def versions(self, scope: Scope, memory_id: str) -> tuple[Memory, ...]:
        """Return the live versions of a memory since it was granted, oldest first: what it said before is not granted."""
        with self._database.read() as connection:
            readable = list(self._readable(connection, scope, [memory_id]))
            if not readable:
                return ()
            since = min(grant.given_at for grant, _ in readable)
            query = select(versions.c.body).where(versions.c.memory == readable[0][1].id).order_by(versions.c.version)
            read = [Memory.from_json(body) for body in connection.execute(query).scalars()]
            every = memory_rows.shown_versions(connection, read)
        later = [version.recorded_at for version in every[1:]]
        held = [version for version, until in zip(every, later, strict=False) if until > since]
        return tuple(version for version in (*held, every[-1]) if version.live)

    def summaries(self, scope: Scope, memory_id: str) -> tuple[BlockSummary, ...]:
        """Return the index entries of the blocks that a granted memory came from, oldest first."""
        with self._database.read() as connection:
            readable = list(self._readable(connection, scope, [memory_id]))
            if not readable:
                return ()
            grant, row = readable[0]
            source = (memory_sources.c.memory == row.id, memory_sources.c.partition_id == row.partition_id)
            labels = connection.execute(select(memory_sources.c.block_id).where(*source).distinct()).scalars().all()
            return block_rows.read_summaries(connection, {row.partition_id: grant.giver}, labels)

    def _readable(
        self, connection: Connection, scope: Scope, ids: Sequence[str] | None
    ) -> Iterator[tuple[Grant, Row[Any]]]:
        """Yield the rows of memories that the scope may read, each with every grant that lets it through."""
        for grant, every in self._open(connection, scope):
            parts = [every] if ids is None else [every.where(memories.c.memory_id.in_(some)) for some in chunks(ids)]
            for query in parts:
                for memory in connection.execute(query):
                    yield grant, memory

    def _open(self, connection: Connection, scope: Scope) -> Iterator[tuple[Grant, Select[Any]]]:
        """Yield the grants that are open to the scope now, each with the query for the memories that it lets through."""
        number = self._number(connection, scope)
        if number is None or scope.agent is None:
            return
        lasting = or_(grants.c.expires_at.is_(None), grants.c.expires_at > micros(self._clock()))
        query = _EVERY.where(grants.c.reader_id == number, revocations.c.at.is_(None), lasting)
        for row in connection.execute(query).all():
            grant = _grant(row)
            yield grant, _let_through(row, grant)

    def _number(self, connection: Connection, scope: Scope) -> int | None:
        return next(iter(partition_rows.known(connection, [scope.partition()])), None)


def _let_through(row: Row[Any], grant: Grant) -> Select[Any]:
    """Return the query for the memories that a grant lets through, as long as it is open."""
    query = select(
        memories.c.id, memories.c.partition_id, memories.c.memory_id, memories.c.said_at, memories.c.body
    ).where(
        memories.c.partition_id == row.partition_id,
        memories.c.status.in_(sorted(LIVE)),
        memories.c.layer.in_(grant.layers),
        memories.c.topic_id.in_(_on_topic(row.partition_id, grant.topic)),
    )
    if grant.memory_ids:
        query = query.where(memories.c.memory_id.in_(select(granted.c.memory_id).where(granted.c.grant == row.id)))
    return query


def _on_topic(partition_id: int, key: str) -> Select[int]:
    """Return the query for the topics of a partition that others may read, or for the one of a key."""
    query = select(topics.c.id).where(topics.c.partition_id == partition_id, topics.c.type != "self")
    if key:
        kind, _, name = key.partition(":")
        query = query.where(topics.c.type == kind.strip(), topics.c.target == name.strip().casefold())
    return query


def _read(connection: Connection, places: Mapping[int, Partition], ids: Sequence[str]) -> dict[str, Memory]:
    if not ids:
        return {}
    anything = dict.fromkeys(("on", "statuses", "canonical_topics", "block_ids", "layers", "limit"))
    return {each.memory_id: each for each in memory_rows.read(connection, places, ids=ids, **anything)}


def _grant(row: Row[Any]) -> Grant:
    grant = Grant.from_json(row.body)
    return grant if row.revoked_at is None else grant.evolve(revoked_at=from_micros(row.revoked_at))
