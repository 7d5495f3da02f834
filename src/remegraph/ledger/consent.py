"""Consent: what all agents of a user share changes only as they agree, or as a person approves (B12)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, insert, select

from remegraph.errors import ConflictError, ConsensusError, NotFoundError
from remegraph.ledger.rows import chunks
from remegraph.ledger.schema import (
    endorsements,
    memories,
)
from remegraph.models import (
    ChangeSet,
    Endorsement,
    Memory,
    MemoryChange,
    Partition,
)
from remegraph.models.remnants import MARK
from remegraph.models.skills import is_skill, read_workflow, same_procedure
from remegraph.models.standing import QUARANTINE_BELOW, TOMBSTONES
from remegraph.models.supersession import same

__all__ = [
    "WITNESSES",
    "Consent",
    "borne_out",
    "doubt",
    "endorsements_of",
    "is_shared",
    "says",
    "standing",
    "untouched",
]


WITNESSES = frozenset({"propose", "corroborate"})
"""The acts by which an agent stands for what it knows itself."""

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


def says(memory: Memory) -> dict[str, object]:
    """Return what a memory says, wherever it lives and whoever bears it out."""
    return memory.model_dump(exclude=set(_OWN))


def untouched(before: Memory, after: Memory) -> bool:
    """Return whether a version only moves with time, or into a dispute and out of it: it says and cites the same."""
    if after.status in {"purged", "erased"}:
        return True
    moved = {"status", "version", "summary", "recorded_at"} | ({"importance"} if after.status == "disputed" else set())
    kept = before.model_dump(exclude=moved) == after.model_dump(exclude=moved)
    return kept and {before.status, after.status} <= _SHELVED


def doubt(mine: Memory, proposed: Memory) -> str:
    """Return why a memory does not bear a proposal out; nothing where it does.

    `mine` is of another agent than those that bear the proposal out already, whose evidence the proposal has.
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
    """Return the memories, by id, that bear a proposal out still: what its author says, and what others hold true.

    `words` begin with the author's.
    """
    live = {name for name, memory in heads.items() if memory.live}
    author = heads.get(words[0].memory_id)
    return frozenset(live if author and says(author) == says(proposed) else live - {words[0].memory_id})


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
        changes: What shall change.
        numbers: The numbers of the partitions that it names.
        heads: The heads, as JSON, of all memories that it names, by id.
        quorum: How many agents must bear out what is proposed.
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
            ConflictError: What bears a proposal out changed meanwhile.
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
        if old is not None and says(old) != says(new):
            raise ConsensusError(f"Proposal {new.memory_id} would say something else.", "Propose what it shall say.")
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
            raise ConsensusError(f"Agent {word.by} bears proposal {new.memory_id} out already.", "Another one must.")
        if old is None and says(mine) != says(new):
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
