"""What another agent, or a pack, gives becomes memories of one's own: weighed, attributed, once, all of it or nothing (K8).

The raw record comes first, like that of any memory. Its item is kept to the letter, but only an id of it is text: so what
others wrote is found through memories, which say from whom they are, or wait for approval; never as one's own words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from remegraph.errors import ConflictError, MessageChangedError
from remegraph.exchange.bringing import brought, done
from remegraph.exchange.offers import Offer
from remegraph.exchange.reading import read
from remegraph.exchange.recording import THREAD, Drafts, message_of
from remegraph.exchange.redacting import Redactor
from remegraph.exchange.weighing import Candidate, Known, Verdict, weigh
from remegraph.models import (
    LIVE,
    Absorbed,
    Absorption,
    ChangeSet,
    LinkType,
    Memory,
    Partition,
    Receipt,
)
from remegraph.ports import Archive, Clock
from remegraph.rules.naming import operation_id
from remegraph.rules.procedures import is_skill, read_workflow

__all__ = ["Absorber", "Commit", "Near"]

Commit = Callable[[ChangeSet], tuple[ChangeSet, Receipt]]
"""Weighs a change against what is known, and commits it; see `Disputes.commit`."""

Near = Callable[[Partition, Sequence[str], int], Sequence[Sequence[Memory]]]
"""Returns, for each text, the live memories of a partition that share most words with it; see `Searcher.worded`."""

_ATTEMPTS = 4
"""How often a change is decided anew because another one came first."""

_LOOKED_AT = 8
"""Memories that an offer is held against."""


@dataclass(frozen=True, slots=True)
class Absorber:
    """Takes offers in.

    Args:
        archive: The ledger.
        near: Finds what is like an offer.
        commit: Holds a change against what is known, and commits it.
        clock: Tells the time.
        recipe: Name of the way of summarising, for the work rows.
        at_home: Whether what all agents of the user own is theirs to change.
        redactor: Takes what is private out of offers.
    """

    archive: Archive
    near: Near
    commit: Commit
    clock: Clock
    recipe: str
    at_home: bool
    redactor: Redactor

    def absorb(self, offers: Sequence[Offer], *, said_in: Partition, lives_in: Partition, actor: str) -> Absorption:
        """Take offers in, in one change: all of them, or none. The same ones again change nothing.

        What is known already is borne out, once by each agent; what contradicts a memory is kept beside it, both in
        dispute; what is not believed waits for approval. No memory of one's own is rewritten, replaced or trusted more.

        Args:
            offers: What is given.
            said_in: Where the raw records go.
            lives_in: Where the memories live.
            actor: Who takes them in, for the journal.

        Raises:
            ConflictError: Other changes came first, again and again.
        """
        offers = [self.redactor.offer(each) for each in offers]
        rivals: tuple[Memory, ...] = ()
        for _ in range(_ATTEMPTS):
            candidates = self._read(offers, said_in, lives_in)
            verdicts = weigh(candidates, self._known(candidates, said_in, lives_in, rivals))
            writing = [verdict for verdict in verdicts if verdict.writes]
            if not writing:
                return _report(verdicts, None)
            change = self._change(writing, said_in, lives_in, actor)
            try:
                committed, receipt = self.commit(change)
            except MessageChangedError:  # somebody else recorded one of them just now
                continue
            except ConflictError as conflict:
                rivals = self.archive.memories([lives_in], ids=conflict.records)
                continue
            if not receipt.replayed:
                return _report(verdicts, committed)
        raise ConflictError([memory.memory_id for memory in rivals] or [said_in.user or ""], "Absorb it again.")

    # ------------------------------------------------------------------------------------------- reading

    def _read(self, offers: Sequence[Offer], said_in: Partition, lives_in: Partition) -> list[Candidate]:
        here = list(dict.fromkeys((lives_in, said_in)))
        found = self.archive.memories(here, statuses=sorted(LIVE), layers=["procedural"])
        known = {skill.name: skill for skill in map(read_workflow, filter(is_skill, found))}
        topics = {shelf.topic.key.casefold(): shelf.topic for shelf in self.archive.topics([lives_in])}
        return read(offers, known, topics, said_in, lives_in)

    def _known(
        self, candidates: Sequence[Candidate], said_in: Partition, lives_in: Partition, rivals: Sequence[Memory]
    ) -> Known:
        heads = self.archive.memories([lives_in], ids=[each.memory_id for each in candidates])
        found = self.near(lives_in, [each.content for each in candidates], _LOOKED_AT)
        near = {
            each.memory_id: [memory for memory in (*rivals, *like) if memory.live and memory.topic.type != "self"]
            for each, like in zip(candidates, found, strict=True)
        }
        witnesses = self._witnesses([*heads, *(memory for each in near.values() for memory in each)], said_in)
        absorbed = self._absorbed([each.message_id for each in candidates], said_in, lives_in)
        return Known(absorbed, {memory.memory_id: memory for memory in heads}, near, witnesses)

    def _absorbed(self, message_ids: Sequence[str], said_in: Partition, lives_in: Partition) -> dict[str, Memory]:
        """Return the memories that hold items of these raw records, whatever became of them."""
        ids = [block.block_id for block in self.archive.blocks([said_in], message_ids=message_ids)]
        found = self.archive.memories([lives_in], block_ids=ids) if ids else ()
        return {item.message_id: memory for memory in found for item in memory.evidence}

    def _witnesses(self, memories: Sequence[Memory], said_in: Partition) -> dict[str, frozenset[str]]:
        """Return the agents that bear memories out: of those that were absorbed, and of one's own."""
        ids = list(dict.fromkeys(item.message_id for memory in memories for item in memory.evidence))
        said = self.archive.messages([said_in], ids=ids) if ids else ()
        names = {each.message_id: each.name for each in said if each.thread.startswith(THREAD)}
        return {
            memory.memory_id: frozenset(
                (
                    *(memory.origin.agents if memory.origin else ()),
                    *(names[item.message_id] for item in memory.evidence if item.message_id in names),
                )
            )
            for memory in memories
        }

    # ------------------------------------------------------------------------------------------- writing

    def _change(self, writing: Sequence[Verdict], said_in: Partition, lives_in: Partition, actor: str) -> ChangeSet:
        """Return the change that takes offers in: their raw records, and the memories that rest on them."""
        now = self.clock()
        wanted = {verdict.candidate.message_id: verdict.candidate for verdict in writing}
        there = self.archive.blocks([said_in], message_ids=list(wanted))
        blocks = {block.thread.removeprefix(THREAD): block.block_id for block in there}
        missing = [message_of(each, now) for name, each in wanted.items() if name not in blocks]
        raw = brought(self.archive, said_in, missing)
        blocks |= {block.message_ids[0]: block.block_id for block in raw.blocks}
        old = [verdict.memory_id for verdict in writing if verdict.outcome == "corroborated"]
        heads = self.archive.memories([lives_in], ids=old) if old else ()
        drafts = Drafts({memory.memory_id: memory for memory in heads}, lives_in, now)
        for verdict in writing:
            drafts.add(verdict, blocks[verdict.candidate.message_id])
        return ChangeSet(
            operation_id=operation_id("absorb", lives_in.to_json(), *sorted(blocks)),
            actor=actor,
            recorded_at=now,
            at_home=self.at_home,
            changes=tuple(drafts.changes.values()),
            work=done((block.block_id for block in raw.blocks), said_in, self.recipe),
            brought=raw,
        )


def _report(verdicts: Sequence[Verdict], committed: ChangeSet | None) -> Absorption:
    links = committed.links if committed else ()

    def ends(memory_id: str, kind: LinkType, *, backward: bool = False) -> tuple[str, ...]:
        pairs = (
            (link.target_id, link.source_id) if backward else (link.source_id, link.target_id)
            for link in links
            if link.type == kind
        )
        return tuple(dict.fromkeys(other for mine, other in pairs if mine == memory_id))

    return Absorption(
        items=tuple(
            Absorbed(
                item_id=verdict.candidate.offer.item_id,
                outcome=verdict.outcome,
                memory_id=verdict.memory_id,
                reason=verdict.reason,
                source=verdict.candidate.offer.agent,
                trust=verdict.candidate.offer.trust,
                contradicts=ends(verdict.memory_id, "contradicts") if verdict.writes else (),
                may_contradict=ends(verdict.memory_id, "may_contradict") if verdict.writes else (),
                more_than=ends(verdict.memory_id, "superset_of") if verdict.writes else (),
                less_than=ends(verdict.memory_id, "superset_of", backward=True) if verdict.writes else (),
            )
            for verdict in verdicts
        )
    )
