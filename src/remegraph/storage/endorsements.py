"""What no single agent may change: checked in the commit, against the words of those who bear it out (B12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, insert, select

from remegraph.errors import ConflictError, ConsensusError, NotFoundError
from remegraph.models import ChangeSet, Endorsement, Memory, MemoryChange, Partition
from remegraph.rules.consensus import WITNESSES, borne_out, doubt, is_shared, says, standing, untouched
from remegraph.rules.tombstones import TOMBSTONES
from remegraph.rules.veil import MARK
from remegraph.storage.rows import chunks
from remegraph.storage.tables import endorsements, memories

__all__ = ["Consent", "read"]


def read(
    connection: Connection, places: Mapping[int, Partition], proposal_ids: Sequence[str] | None = None
) -> tuple[Endorsement, ...]:
    """Return what was said on proposals, oldest first.

    Args:
        connection: A connection.
        places: Where they live.
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
        known = read(self.connection, {self.numbers[new.partition]: new.partition}, [new.memory_id])
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
