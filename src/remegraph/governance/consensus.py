"""How agents agree on shared memories: one proposes, others corroborate it, or a person approves (B12, B13).

A proposal is a memory of the shared library with status `proposed`, under its final id. It cites the evidence of
every agent that supports it, which stays where it was said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self

from remegraph.engine.frame import shows_recalled
from remegraph.errors import ConflictError, ConsensusError, InputError, NotFoundError
from remegraph.governance.versions import ends
from remegraph.ledger.permissions import WITNESSES, borne_out, doubt, is_shared, standing, substance
from remegraph.models import (
    ChangeSet,
    Endorsement,
    Link,
    Memory,
    MemoryChange,
    Message,
    Origin,
    Partition,
    Proposal,
    ProposalState,
    Scope,
    Shelf,
)
from remegraph.models.base import operation_id
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.models.supersession import disputed, same

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["Consensus", "echoes", "state_of", "unfit"]


@dataclass(frozen=True, slots=True)
class Consensus:
    """The proposals that a scope sees. Each act returns the change to commit."""

    archive: Archive
    scope: Scope
    libraries: Sequence[Partition]
    quorum: int
    now: datetime

    @classmethod
    def of(cls, archive: Archive, scope: Scope, quorum: int, now: datetime) -> Self:
        """Return the proposals that a scope sees now."""
        libraries = [each for each in archive.visible(scope) if is_shared(each)]
        return cls(archive, scope, libraries, quorum, now)

    def proposals(self) -> tuple[Proposal, ...]:
        """Return all proposals, the oldest first."""
        words: dict[str, list[Endorsement]] = {}
        for word in self.archive.endorsements(self.libraries):
            words.setdefault(word.proposal_id, []).append(word)
        return self._proposals(words)

    def get(self, proposal_id: str) -> Proposal:
        """Return a proposal."""
        words = self.archive.endorsements(self.libraries, [proposal_id])
        found = self._proposals({proposal_id: words} if words else {})
        if not found:
            raise NotFoundError(f"There is no proposal {proposal_id!r} here.")
        return found[0]

    def own(self, memory_id: str) -> Memory:
        """Return a memory that is the agent's own."""
        me = self.scope.user, self.scope.agent
        mine = [each for each in self.archive.visible(self.scope) if (each.user, each.agent) == me]
        found = self.archive.memories(mine, ids=[memory_id]) if mine else ()
        if not found:
            raise NotFoundError(
                f"Agent {self.scope.agent} has no memory {memory_id!r} of its own here.",
                "Name a memory that this agent learned with this user.",
            )
        return found[0]

    def propose(self, source: Memory, reason: str, replaces: str, expected: int | None, new_id: str) -> ChangeSet:
        """Return the change that proposes a memory."""
        self._check_fit(source)
        home = source.partition.evolve(agent=None)
        before = self._replaced(home, replaces, expected) if replaces else None
        self._check_new(source, home, before)
        word = self._word(new_id, "propose", reason, source).evolve(
            replaces=replaces, expected_version=before.version if before else 0
        )
        memory = source.evolve(
            memory_id=new_id,
            version=1,
            partition=home,
            status="proposed",
            resident=None,
            block_ids=(),  # a label means another block elsewhere; the evidence says which one with its message
            merges=0,
            supersedes=(),
            origin=Origin(via="consensus", agents=(word.by,), at=self.now),
            recorded_at=self.now,
        )
        link = Link(source_id=new_id, type="derived_from", target_id=source.memory_id, reason=reason)
        return self._change(word, memory, 0, links=(link,), action="propose")

    def corroborate(self, proposal: Proposal, mine: Memory) -> ChangeSet:
        """Return the change by which an agent corroborates a proposal; once the quorum is reached, it becomes memory."""
        self._check_open(proposal)
        if self.scope.agent in proposal.agents:
            raise ConsensusError(
                f"Agent {self.scope.agent} supports the proposal already.", "Another agent must corroborate it."
            )
        why = doubt(mine, proposal.memory) or echoes(self._own_words(mine), self._cited(proposal.memory))
        if mine.partition.project != proposal.memory.partition.project:
            why = "is of another project"
        if why:
            raise ConsensusError(
                f"Memory {mine.memory_id} {why}.", "Corroborate with a memory that says so on evidence of its own."
            )
        word = self._word(proposal.proposal_id, "corroborate", "", mine)
        old = proposal.memory
        memory = old.evolve(
            evidence=(*old.evidence, *mine.evidence),
            trust=min(old.trust, mine.trust),
            said_at=max(old.said_at, mine.said_at),
            origin=Origin(via="consensus", agents=(*proposal.agents, word.by), at=self.now),
        )
        link = Link(source_id=old.memory_id, type="derived_from", target_id=mine.memory_id)
        return self._decided(proposal, word, memory, (link,))

    def approve(self, proposal: Proposal, actor: str, reason: str) -> ChangeSet:
        """Return the change by which a person turns a proposal into memory; see `corroborate`."""
        self._check_open(proposal)
        word = Endorsement(proposal_id=proposal.proposal_id, act="approve", by=actor, reason=reason, at=self.now)
        return self._decided(proposal, word, proposal.memory, ())

    def refuse(self, proposal: Proposal, word: Endorsement) -> ChangeSet:
        """Return the change by which a person rejects an open or stale proposal, or its author withdraws it."""
        if proposal.state != "stale":
            self._check_open(proposal)
        gone = proposal.memory.evolve(status="deleted")
        return self._change(word, gone, proposal.memory.version, action=word.act)

    # ------------------------------------------------------------------------------------------- inside

    def _proposals(self, words: Mapping[str, Sequence[Endorsement]]) -> tuple[Proposal, ...]:
        """Return the proposals of these endorsements, by id."""
        found = self.archive.memories(self.libraries, ids=list(words)) if words else ()
        memories = {memory.memory_id: memory for memory in found}
        sources = self._witnesses((memory.partition, words[memory.memory_id][0]) for memory in found)
        return tuple(
            Proposal(
                proposal_id=name,
                memory=memories[name],
                state=state_of(memories[name], some, sources.get(some[0].memory_id)),
                endorsements=tuple(some),
            )
            for name, some in words.items()
            if name in memories
        )

    def _check_fit(self, source: Memory) -> None:
        tallies = self.archive.outcomes([source.partition], [source.memory_id])
        if misfit := unfit(source, sum(tally.runs for tally in tallies.values())):
            why, cure = misfit
            raise InputError(f"Memory {source.memory_id} {why}, and cannot be proposed.", cure)
        if not self._own_words(source):
            raise InputError(
                f"Memory {source.memory_id} rests on what others gave, and cannot be proposed.",
                "Let an agent propose it that knows it from evidence of its own.",
            )

    def _check_new(self, source: Memory, home: Partition, before: Memory | None) -> None:
        """Refuse what is already shared, proposed or rejected in the same words."""
        refused = {memory.memory_id: memory for memory, _ in self.archive.forgotten([home])}
        for each in self.proposals():
            told = refused.get(each.proposal_id, each.memory)
            if each.memory.partition != home or substance(told) != substance(source):
                continue
            if each.state == "open":
                raise InputError(
                    f"Agent {each.author} proposed this already.", f"Corroborate proposal {each.proposal_id}."
                )
            if each.state == "rejected" and each.author == self.scope.agent:
                raise InputError("This was proposed before, and rejected.", "Propose it once it says something else.")
        topic = self.archive.memories([home], topics=[source.topic])
        twins = [each for each in topic if each.live and each.content == source.content and each != before]
        if twins:
            raise InputError(f"This is shared already, as memory {twins[0].memory_id}.", "There is nothing to propose.")

    def _replaced(self, home: Partition, replaces: str, expected: int | None) -> Memory:
        found = self.archive.memories([home], ids=[replaces])
        if not found or not found[0].live:
            raise NotFoundError(f"There is no live shared memory {replaces!r} here.")
        if expected is None:
            raise InputError(f"Which version of {replaces} was read?", "Give expected_version.")
        if self._moved(found[0], expected):
            raise ConflictError([replaces])
        return found[0]

    def _moved(self, head: Memory, expected: int) -> bool:
        """Return whether a memory says something other than the version that was read; its status does not count."""
        if head.version == expected:
            return False
        read = [each for each in self.archive.versions([head.partition], head.memory_id) if each.version == expected]
        return not read or substance(read[0]) != substance(head)

    def _check_open(self, proposal: Proposal) -> None:
        if proposal.state == "stale":
            raise ConsensusError(
                f"Agent {proposal.author} says otherwise by now, or took it back.", "The agent may propose it again."
            )
        if proposal.state != "open":
            raise ConsensusError(f"The proposal is {proposal.state}.", "Nothing is left to decide.")

    def _own_words(self, mine: Memory) -> Sequence[Message]:
        """Return the messages that a memory cites, without those that other agents or packs supplied."""
        beside = self.archive.memories([mine.partition], block_ids=mine.block_ids) if mine.block_ids else ()
        given = {item.message_id for each in beside if each.origin is not None for item in each.evidence}
        return [message for message in self._cited(mine) if message.message_id not in given]

    def _cited(self, memory: Memory) -> Sequence[Message]:
        """Return the messages that a memory cites, from the conversations of all of this user's agents."""
        cited = {each.message_id for each in memory.evidence}
        words = self.archive.endorsements([memory.partition], [memory.memory_id]) if memory.status == "proposed" else ()
        homes = [memory.partition.evolve(agent=word.by) for word in words if word.act in WITNESSES]
        return self.archive.messages(homes or [memory.partition], ids=sorted(cited))

    def _word(self, proposal_id: str, act: str, reason: str, mine: Memory) -> Endorsement:
        given = {"proposal_id": proposal_id, "act": act, "by": self.scope.agent, "reason": reason, "at": self.now}
        return Endorsement.model_validate(given | {"memory_id": mine.memory_id, "version": mine.version})

    def _decided(self, proposal: Proposal, word: Endorsement, memory: Memory, links: tuple[Link, ...]) -> ChangeSet:
        """Return the change that an endorsement makes; if it completes the quorum, the proposal becomes memory."""
        words = (*proposal.endorsements, word)
        if not borne_out(
            words, standing(memory, words, self._witnesses((memory.partition, each) for each in words)), self.quorum
        ):
            return self._change(word, memory, memory.version, links=links, action=word.act)
        old, against = self._before(proposal)
        memory = memory.evolve(status="active", supersedes=(old.memory_id,) if old else ())
        if against:
            memory = disputed(memory)
        links += tuple(
            Link(source_id=memory.memory_id, type="contradicts", target_id=each.memory_id, reason=_LATER)
            for each in against
        )
        others = [self._revised(disputed(each), each, "dispute") for each in against if disputed(each) is not each]
        if old is not None:
            gone = old.evolve(status="superseded", valid_to=old.valid_to or memory.valid_from or memory.said_at)
            others.append(self._revised(gone, old, "supersede", f"proposal {memory.memory_id}"))
        return self._change(word, memory, memory.version, links=links, action="agree", others=others)

    def _before(self, proposal: Proposal) -> tuple[Memory | None, Sequence[Memory]]:
        """Return the memory that a proposal replaces; or, if others replaced it first, what now contradicts it."""
        first = proposal.endorsements[0]
        if not first.replaces:
            return None, ()
        home = [proposal.memory.partition]
        (head,) = self.archive.memories(home, ids=[first.replaces])
        if head.live and not self._moved(head, first.expected_version):
            return head, ()
        heirs = [each for each in ends(self.archive, home, first.replaces) if each.live]
        return None, [each for each in heirs if not same(proposal.memory, each)]

    def _witnesses(self, words: Iterable[tuple[Partition, Endorsement]]) -> dict[str, Memory]:
        """Return the current versions of the memories that agents cited for proposals."""
        named = {each.memory_id: home.evolve(agent=each.by) for home, each in words if each.memory_id}
        found = self.archive.memories(list(dict.fromkeys(named.values())), ids=list(named)) if named else ()
        return {memory.memory_id: memory for memory in found}

    def _change(
        self,
        word: Endorsement,
        memory: Memory,
        expected_version: int,
        *,
        action: str,
        links: tuple[Link, ...] = (),
        others: Sequence[MemoryChange] = (),
    ) -> ChangeSet:
        new = memory.evolve(version=expected_version + 1, recorded_at=self.now)
        change = MemoryChange(memory=new, expected_version=expected_version, action=action, reason=word.reason)
        return ChangeSet(
            operation_id=operation_id("consensus", word.to_json()),
            actor=word.by,
            recorded_at=self.now,
            shelves=(Shelf(partition=memory.partition, topic=memory.topic),),
            changes=(change, *others),
            links=links,
            endorsements=(word,),
        )

    def _revised(self, new: Memory, old: Memory, action: str, reason: str = "") -> MemoryChange:
        memory = new.evolve(version=old.version + 1, recorded_at=self.now)
        return MemoryChange(memory=memory, expected_version=old.version, action=action, reason=reason)


_LATER = "Both were agreed on in place of one memory."


def echoes(mine: Collection[Message], theirs: Iterable[Message]) -> str:
    """Return why what an agent was told is not evidence of its own; empty if it is.

    Its own words may repeat what it recalled, so they do not count; nor does what both agents were told in the same
    message.
    """
    heard = [each for each in mine if each.role != "assistant" and not shows_recalled(each)]
    if not heard:
        return "rests on the agent's own words, or on recalled memory"
    known = {(each.text, each.time) for each in theirs}
    return "rests on the same words, heard at the same time" if {(m.text, m.time) for m in heard} <= known else ""


def unfit(memory: Memory, runs: int) -> tuple[str, str] | None:
    """Return why a memory cannot be proposed, with the cure; None if it can."""
    return next((why for applies, why in _misfits(memory, runs) if applies), None)


def _misfits(memory: Memory, runs: int) -> tuple[tuple[bool, tuple[str, str]], ...]:
    waits = memory.status in {"quarantined", "proposed"}
    told = memory.memory_class == "policy" or memory.is_core
    better = "Propose long-term memories and skills; episodes are shared by grant, or once they are consolidated."
    return (
        (waits, (f"is {memory.status}", "It must be approved first.")),
        (not memory.live, (f"is {memory.status}", "Propose a live memory.")),
        (memory.topic.type == "self", ("is about the agent itself", "State it with remember_self for each agent.")),
        (memory.layer not in {"long_term", "procedural"}, (f"is {memory.layer}", better)),
        (memory.layer == "procedural" and not runs, ("was never carried out", "Report how a run of it went first.")),
        (told, ("is a policy or a core rule", "A person states it, under a scope without an agent.")),
        (
            memory.origin is not None,
            ("came from elsewhere", "Let an agent propose it that knows it from evidence of its own."),
        ),
        (memory.trust < QUARANTINE_BELOW, (f"is trusted {memory.trust:g} only", "It needs better evidence.")),
    )


def state_of(memory: Memory, endorsements: Iterable[Endorsement], source: Memory | None) -> ProposalState:
    """Return the state of a proposal.

    `source` is the current version of the author's own memory.
    """
    acts = {each.act for each in endorsements}
    if "withdraw" in acts:
        return "withdrawn"
    if "reject" in acts:
        return "rejected"
    if memory.status != "proposed":
        return "agreed"
    return "open" if source is not None and source.live and substance(source) == substance(memory) else "stale"
