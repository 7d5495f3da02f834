"""What agents of one person may do with each other's memories: read them by a grant (B11), change what is of all (B12).

A grant is decided in SQL at each call. What all agents of a user share changes only as enough of them agree, or as a person
approves: each commit checks their consent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, or_, select

from remegraph.errors import ConflictError, ConsensusError, InputError, NotFoundError
from remegraph.ledger import blocks as block_rows
from remegraph.ledger import memories as memory_rows
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.database import Database
from remegraph.ledger.journal import Entry, Journal
from remegraph.ledger.rows import chunks, from_micros, micros
from remegraph.ledger.schema import (
    endorsements,
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
    ChangeSet,
    Endorsement,
    Grant,
    Layer,
    Memory,
    MemoryChange,
    Partition,
    Scope,
)  # fmt: skip
from remegraph.models.remnants import MARK
from remegraph.models.skills import is_skill, read_workflow, same_procedure
from remegraph.models.standing import QUARANTINE_BELOW, TOMBSTONES
from remegraph.models.supersession import same
from remegraph.ports import Clock, NewId

__all__ = [
    "WITNESSES",
    "Consent",
    "GrantBook",
    "borne_out",
    "doubt",
    "endorsements_of",
    "is_shared",
    "standing",
    "substance",
    "ungrantable",
    "untouched",
]


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
        clock: Used to know when grants end.
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
    return {each.memory_id: each for each in memory_rows.read(connection, places, ids=ids)}


def _grant(row: Row[Any]) -> Grant:
    grant = Grant.from_json(row.body)
    return grant if row.revoked_at is None else grant.evolve(revoked_at=from_micros(row.revoked_at))


# -------------------------------------------------------------------------------------------------- consent

WITNESSES = frozenset({"propose", "corroborate"})
"""The acts by which an agent vouches for what it knows itself."""

_OWN = frozenset({
    "memory_id", "version", "partition", "status", "importance", "resident", "summary", "evidence", "block_ids", "trust",
    "origin", "merges", "supersedes", "said_at", "recorded_at", "language", "source", "extractor", "prompt",
})  # fmt: skip
"""What may differ between memories that say one thing."""

_SHELVED = frozenset({"active", "disputed", "low_priority", "archived"})
"""Among these, time and open contradictions move what is agreed on; neither is the word of an agent."""


def is_shared(partition: Partition) -> bool:
    """Return whether what lives here belongs to all agents of a user, and to none of them."""
    return partition.agent is None and partition.user is not None


def substance(memory: Memory) -> dict[str, object]:
    """Return what a memory says, without where it lives and what supports it."""
    return memory.model_dump(exclude=set(_OWN))


def untouched(before: Memory, after: Memory) -> bool:
    """Return whether a version only moves with time, or into a dispute and out of it: it says and cites the same."""
    if after.status in {"purged", "erased"}:
        return True
    moved = {"status", "version", "summary", "recorded_at"} | ({"importance"} if after.status == "disputed" else set())
    kept = before.model_dump(exclude=moved) == after.model_dump(exclude=moved)
    return kept and {before.status, after.status} <= _SHELVED


def doubt(mine: Memory, proposed: Memory) -> str:
    """Return why a memory does not support a proposal; nothing where it does.

    `mine` is of another agent than those that support the proposal already, whose evidence the proposal has.
    """
    if not mine.live:
        return f"is {mine.status}"
    if mine.trust < QUARANTINE_BELOW:
        return f"is trusted {mine.trust:g} only"
    if mine.origin is not None:
        return "came from another agent or a pack"
    if not mine.evidence:
        return "has no evidence"
    if {each.message_id for each in mine.evidence} & {each.message_id for each in proposed.evidence}:
        return "stands on the same messages"
    return "" if _agree(mine, proposed) else "does not say the same"


def _agree(mine: Memory, proposed: Memory) -> bool:
    if is_skill(mine) or is_skill(proposed):
        return is_skill(mine) and is_skill(proposed) and same_procedure(read_workflow(mine), read_workflow(proposed))
    return same(mine, proposed)


def standing(proposed: Memory, words: Sequence[Endorsement], heads: Mapping[str, Memory]) -> frozenset[str]:
    """Return the memories, by id, that still support a proposal: what its author says, and what others hold true.

    `words` begin with the author's.
    """
    live = {name for name, memory in heads.items() if memory.live}
    author = heads.get(words[0].memory_id)
    return frozenset(live if author and substance(author) == substance(proposed) else live - {words[0].memory_id})


def borne_out(endorsements: Collection[Endorsement], upheld: Collection[str], quorum: int) -> bool:
    """Return whether a proposal is agreed on.

    `upheld` is what `standing` returned.
    """
    if any(each.act in {"reject", "withdraw"} for each in endorsements):
        return False
    witnesses = [each for each in endorsements if each.act in WITNESSES]
    if not any(each.act == "propose" and each.memory_id in upheld for each in witnesses):
        return False
    agents = {each.by for each in witnesses if each.memory_id in upheld}
    return len(agents) >= quorum or any(each.act == "approve" for each in endorsements)


def endorsements_of(
    connection: Connection, places: Mapping[int, Partition], proposal_ids: Sequence[str] | None = None
) -> tuple[Endorsement, ...]:
    """Return what was said on proposals, oldest first.

    Args:
        proposal_ids: Only on these.
    """
    query = select(endorsements.c.id, endorsements.c.body).where(endorsements.c.partition_id.in_(list(places)))
    if proposal_ids is None:
        rows = connection.execute(query).all()
    else:
        parts = (query.where(endorsements.c.proposal_id.in_(chunk)) for chunk in chunks(proposal_ids))
        rows = [row for part in parts for row in connection.execute(part)]
    return tuple(Endorsement.from_json(row.body) for row in sorted(rows, key=lambda row: row.id))


@dataclass(slots=True)
class Consent:
    """Whether a change set may do what it does where memories belong to all agents of a user.

    Args:
        connection: A write transaction that has locked their partitions.
        changes: What is to change.
        numbers: The numbers of the partitions that it names.
        heads: The heads, as JSON, of all memories that it names, by id.
        quorum: How many agents must support what is proposed.
    """

    connection: Connection
    changes: ChangeSet
    numbers: Mapping[Partition, int]
    heads: Mapping[str, str]
    quorum: int
    given: dict[str, Endorsement] = field(init=False)
    agreed: list[Memory] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.given = {each.proposal_id: each for each in self.changes.endorsements}

    def check(self) -> None:
        """Record the endorsements, and refuse what takes more of them.

        Raises:
            ConsensusError: One agent alone would change what is shared, or its word does not count.
            ConflictError: What supports a proposal changed meanwhile.
        """
        shared = [
            change
            for change in self.changes.changes
            if is_shared(change.memory.partition) and not self._only_unquotes(change)
        ]
        changed = {change.memory.memory_id for change in shared}
        if strays := self.given.keys() - changed:
            raise NotFoundError(f"There is no proposal {', '.join(sorted(strays))} here.")
        waiting = [change for change in shared if self._waits(change)]
        for change in waiting:
            self._check_proposal(change)
        if not self.changes.at_home:
            self._check_standing([change for change in shared if change not in waiting])
            self._check_links()

    def _only_unquotes(self, change: MemoryChange) -> bool:
        """Return whether a change only takes quotes out whose words are withheld: what is shared says what it said."""
        new, old = change.memory, self._head(change.memory.memory_id)
        if old is None or change.action != "withhold":
            return False
        same = old.evolve(version=new.version, recorded_at=new.recorded_at, evidence=new.evidence)
        unquoted = [
            new_item in {item, item.evolve(quote=MARK)}
            for item, new_item in zip(old.evidence, new.evidence, strict=False)
        ]
        return same == new and len(old.evidence) == len(new.evidence) and all(unquoted)

    def _waits(self, change: MemoryChange) -> bool:
        """Return whether a change is about a proposal: a new one, or one that waits."""
        old = self._head(change.memory.memory_id)
        return change.memory.status == "proposed" or (old is not None and old.status == "proposed")

    def _check_proposal(self, change: MemoryChange) -> None:
        new, old = change.memory, self._head(change.memory.memory_id)
        if new.status in TOMBSTONES:
            return
        word = self.given.get(new.memory_id)
        if word is None or (old is None) != (word.act == "propose"):
            raise _alone(new)
        if old is not None and substance(old) != substance(new):
            raise ConsensusError(f"Proposal {new.memory_id} would say something else.", "Propose what it should say.")
        known = endorsements_of(self.connection, {self.numbers[new.partition]: new.partition}, [new.memory_id])
        if word.act in WITNESSES:
            self._check_witness(word, new, old, known)
        if word.act == "withdraw" and word.by != known[0].by:
            raise ConsensusError(f"Proposal {new.memory_id} is not {word.by}'s.", "Its author withdraws it.")
        self._record(word, self.numbers[new.partition])
        if (new.status == "deleted") != (word.act in {"reject", "withdraw"}):
            raise _alone(new)
        if new.live:
            self._check_agreed(new, (*known, word))

    def _check_witness(self, word: Endorsement, new: Memory, old: Memory | None, known: Sequence[Endorsement]) -> None:
        """Check that an agent's word rests on a memory of its own that says so."""
        mine = self._head(word.memory_id)
        if mine is None or mine.partition != new.partition.evolve(agent=word.by):
            raise NotFoundError(f"Agent {word.by} has no memory {word.memory_id} here.")
        if not mine.live or mine.version != word.version:
            raise ConflictError([mine.memory_id])
        if word.by in {each.by for each in known if each.act in WITNESSES}:
            raise ConsensusError(f"Agent {word.by} supports proposal {new.memory_id} already.", "Another agent must.")
        if old is None and substance(mine) != substance(new):
            raise ConsensusError(f"Memory {mine.memory_id} does not say that.", "Propose what a memory says.")
        if old is not None and (why := doubt(mine, old)):
            raise ConsensusError(f"Memory {mine.memory_id} {why}.", "Corroborate with evidence of the agent's own.")

    def _check_agreed(self, new: Memory, words: Sequence[Endorsement]) -> None:
        heads = self._stored([each.memory_id for each in words if each.memory_id])
        if not borne_out(words, standing(new, words, heads), self.quorum) or set(new.supersedes) - {words[0].replaces}:
            raise _alone(new)
        self.agreed.append(new)

    def _check_standing(self, changes: Iterable[MemoryChange]) -> None:
        """Check what is shared already: it moves with time, and gives way to what was agreed on instead."""
        replaced = {old for memory in self.agreed for old in memory.supersedes}
        for change in changes:
            new, old = change.memory, self._head(change.memory.memory_id)
            if old is None:
                raise _alone(new)
            if new.status == "superseded" and new.memory_id in replaced:
                new = new.evolve(status=old.status, valid_to=old.valid_to)
            if not untouched(old, new):
                raise _alone(new)

    def _check_links(self) -> None:
        """Check that no agent ties, or settles, what is shared: links come with what was agreed on."""
        for link in self.changes.links:
            source = self._head(link.source_id)
            if (
                source is not None
                and is_shared(source.partition)
                and self.given.keys().isdisjoint({link.source_id, link.target_id})
            ):
                raise _alone(source)

    def _record(self, word: Endorsement, partition_id: int) -> None:
        row = {"partition_id": partition_id, "proposal_id": word.proposal_id, "body": word.to_json()}
        self.connection.execute(insert(endorsements).values(row))

    def _head(self, memory_id: str) -> Memory | None:
        body = self.heads.get(memory_id)
        return None if body is None else Memory.from_json(body)

    def _stored(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        query = select(memories.c.body).where(memories.c.memory_id.in_(memory_ids))
        found = (Memory.from_json(body) for body in self.connection.execute(query).scalars())
        return {memory.memory_id: memory for memory in found}


def _alone(memory: Memory) -> ConsensusError:
    return ConsensusError(f"Memory {memory.memory_id} is shared: no agent alone writes or changes it.")
