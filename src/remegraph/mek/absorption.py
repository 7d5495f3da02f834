"""Absorb items: those of another agent or a pack (K8), and those that change a memory of one's own (K6).

What others give is weighed, attributed, and absorbed once, all of it or nothing. The raw record comes first, as for any
memory. Its item is kept to the letter, but only its id is text, so the words of others are found only through memories,
which say who they are from or wait for approval, and never as one's own words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from remegraph.engine.disputes import ATTEMPTS, UPDATE, Disputes, repeated
from remegraph.engine.redaction import Redactor
from remegraph.engine.routes import at_home, own
from remegraph.engine.statements import Stated, check_statement, closing, state
from remegraph.engine.writer import MemoryCandidate
from remegraph.errors import ConflictError, InputError, MessageChangedError, NotFoundError
from remegraph.mek.offers import Candidate, Known, Offer, Verdict, read, weigh
from remegraph.models import (
    LIVE,
    Absorbed,
    Absorption,
    ChangeSet,
    EpisodeContent,
    Evidence,
    Link,
    LinkType,
    Memory,
    MemoryChange,
    MemoryItem,
    Message,
    Partition,
    ProfileContent,
    Receipt,
    Scope,
    SemanticContent,
    WorkflowContent,
)
from remegraph.models.base import operation_id
from remegraph.models.forms import importance_of, item_of, links_of, revised, topic_of
from remegraph.models.item_text import sentence
from remegraph.models.skills import is_skill, read_workflow, workflow
from remegraph.models.standing import APPROVE, TOMBSTONES
from remegraph.models.supersession import joint_origin
from remegraph.ports import Clock, NewId
from remegraph.settings import Settings
from remegraph.text.scripts import plain

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["Absorber", "ItemWriter", "candidate"]

_THREAD = "absorbed:"
"""Prefix of the threads of raw records."""

_IMPORTANCE_LIMIT = 0.89
"""Only a person may make a core rule."""


def _raw_record(candidate: Candidate, now: datetime) -> Message:
    """Return the raw record: the item to the letter as a non-text part, and its id as the text."""
    item = {"type": "non_standard", "value": dict(candidate.offer.raw)}
    return Message(
        message_id=candidate.message_id,
        thread=f"{_THREAD}{candidate.message_id}",
        role="tool",  # what others wrote
        name=candidate.offer.agent,
        content=[{"type": "text", "text": candidate.memory_id}, item],
        time=now,
    )


@dataclass
class _Drafts:
    """The next versions that follow from verdicts, one for each memory."""

    heads: dict[str, Memory]
    """Of the memories that are corroborated."""
    lives_in: Partition
    now: datetime
    changes: dict[str, MemoryChange] = field(default_factory=dict)

    def add(self, verdict: Verdict, block_id: str) -> None:
        """Add the version that follows from a verdict."""
        each, name = verdict.candidate, verdict.memory_id
        planned = self.changes.get(name)
        if verdict.outcome != "corroborated":
            memory, version, action = self._new(each, block_id), 0, "create"
        elif planned is not None:
            memory, version = self._borne_out(planned.memory, each, block_id), planned.expected_version
            action = planned.action
        else:
            old = self.heads[name]
            memory, version = self._borne_out(old, each, block_id).evolve(version=old.version + 1), old.version
            action = APPROVE if memory.live and not old.live else "corroborate"
        reason = f"from {each.offer.agent}" if each.offer.agent else "from a source that nothing proves"
        self.changes[name] = MemoryChange(memory=memory, expected_version=version, action=action, reason=reason)

    def _new(self, each: Candidate, block_id: str) -> Memory:
        offer, says, skill = each.offer, each.says, each.skill
        if skill is not None:
            skill = skill.evolve(source=skill.source.evolve(source_agent=offer.agent))
        return Memory(
            memory_id=each.memory_id,
            partition=self.lives_in,
            topic=says.topic,
            content=each.content,
            when_to_use=says.when_to_use,
            kind=says.kind,
            category="episode" if says.kind == "episode" else "fact",
            payload=workflow(skill) if skill else says.payload,
            evidence=(_evidence(each, block_id),),
            block_ids=(block_id,),
            layer="procedural" if skill else "long_term",
            status="active" if offer.believed else "quarantined",
            importance=min(offer.importance, _IMPORTANCE_LIMIT),
            resident=offer.resident,
            tags=offer.tags,
            language=says.language,
            trust=offer.trust,
            origin=offer.origin,
            source="tool-call",
            extractor=offer.origin.via,
            said_at=self.now,
            recorded_at=self.now,
        )

    def _borne_out(self, old: Memory, each: Candidate, block_id: str) -> Memory:
        """Return a memory corroborated by one more agent: its words, what it replaces and its trust stay.

        A quarantined memory becomes active once a trusted source says it, with the trust of that source.
        """
        released = old.status == "quarantined" and each.offer.believed
        return old.evolve(
            status="active" if released else old.status,
            trust=each.offer.trust if released else old.trust,
            origin=None if old.origin is None else joint_origin(old.origin, each.offer.origin),
            evidence=tuple(dict.fromkeys((*old.evidence, _evidence(each, block_id)))),
            block_ids=tuple(dict.fromkeys((*old.block_ids, block_id))),
            merges=old.merges + (1 if each.offer.believed and not released else 0),
            said_at=max(old.said_at, self.now),
            recorded_at=self.now,
        )


def _evidence(each: Candidate, block_id: str) -> Evidence:
    return Evidence(message_id=each.message_id, quote=each.memory_id, block_id=block_id)


_Commit = Callable[[ChangeSet], tuple[ChangeSet, Receipt]]
"""Checks a change for conflicts with known memories, and commits it; see `Disputes.commit`."""

_Near = Callable[[Partition, Sequence[str], int], Sequence[Sequence[Memory]]]
"""Returns, for each text, the live memories of a partition that share most words with it; see `Searcher.worded`."""

_LOOKED_AT = 8
"""Memories that an offer is compared with."""


@dataclass(frozen=True, slots=True)
class Absorber:
    """Absorbs offers."""

    archive: Archive
    near: _Near
    commit: _Commit
    clock: Clock
    recipe: str
    at_home: bool
    redactor: Redactor

    def absorb(self, offers: Sequence[Offer], *, said_in: Partition, lives_in: Partition, actor: str) -> Absorption:
        """Absorb offers in one change: all of them, or none. The same ones again change nothing.

        Known content is corroborated, once by each agent; what contradicts a memory is kept beside it, both in dispute;
        untrusted content waits for approval. No memory of the agent's own is rewritten, replaced or trusted more.
        """
        offers = [each.redacted(self.redactor) for each in offers]
        rivals: tuple[Memory, ...] = ()
        for _ in range(ATTEMPTS):
            candidates = self._read(offers, said_in, lives_in)
            verdicts = weigh(candidates, self._known(candidates, said_in, lives_in, rivals))
            writing = [verdict for verdict in verdicts if verdict.writes]
            if not writing:
                return _report(verdicts, None)
            change = self._change(writing, said_in, lives_in, actor)
            try:
                committed, receipt = self.commit(change)
            except MessageChangedError:  # another call recorded one of them just now
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
        message_ids = [each.message_id for each in candidates]
        ids = [block.block_id for block in self.archive.blocks([said_in], message_ids=message_ids)]
        here = self.archive.memories([lives_in], block_ids=ids) if ids else ()
        # The memories that hold the items of these raw records, whatever their status.
        absorbed = {item.message_id: memory for memory in here for item in memory.evidence}
        return Known(absorbed, {memory.memory_id: memory for memory in heads}, near, witnesses)

    def _witnesses(self, memories: Sequence[Memory], said_in: Partition) -> dict[str, frozenset[str]]:
        """Return the agents that corroborate memories, by memory."""
        ids = list(dict.fromkeys(item.message_id for memory in memories for item in memory.evidence))
        said = self.archive.messages([said_in], ids=ids) if ids else ()
        names = {each.message_id: each.name for each in said if each.thread.startswith(_THREAD)}
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
        """Return the change that absorbs offers: their raw records, and the memories that rest on them."""
        now = self.clock()
        wanted = {verdict.candidate.message_id: verdict.candidate for verdict in writing}
        there = self.archive.blocks([said_in], message_ids=list(wanted))
        blocks = {block.thread.removeprefix(_THREAD): block.block_id for block in there}
        missing = [_raw_record(each, now) for name, each in wanted.items() if name not in blocks]
        raw = self.archive.in_blocks(said_in, missing)
        blocks |= {block.message_ids[0]: block.block_id for block in raw.blocks}
        old = [verdict.memory_id for verdict in writing if verdict.outcome == "corroborated"]
        heads = self.archive.memories([lives_in], ids=old) if old else ()
        drafts = _Drafts({memory.memory_id: memory for memory in heads}, lives_in, now)
        for verdict in writing:
            drafts.add(verdict, blocks[verdict.candidate.message_id])
        return ChangeSet(
            operation_id=operation_id("absorb", lives_in.to_json(), *sorted(blocks)),
            actor=actor,
            recorded_at=now,
            at_home=self.at_home,
            changes=tuple(drafts.changes.values()),
            work=tuple(block.done(said_in, self.recipe) for block in raw.blocks),
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


# ------------------------------------------------------------------------------------------- items of one's own


def candidate(item: MemoryItem) -> MemoryCandidate:
    """Return an item as a statement for the memory writer.

    Args:
        item: It is put on the shelf of the person or the field that it is about; an event, on the user's.
    """
    content = item.content
    key = ""
    if isinstance(content, ProfileContent):
        key = content.entity_name
    elif isinstance(content, SemanticContent):
        key = content.concept_name
    elif isinstance(content, WorkflowContent):
        key = content.workflow_name
    event = isinstance(content, EpisodeContent)
    return MemoryCandidate(
        key=plain(key).strip(),
        content=sentence(content).strip(),
        importance=importance_of(item.importance),
        topic=None if event else topic_of(content).key,
        category="episode" if event else None,
        item=item,
    )


@dataclass(frozen=True, slots=True)
class ItemWriter:
    """Updates memories from items."""

    archive: Archive
    disputes: Disputes
    clock: Clock
    new_id: NewId
    settings: Settings

    def known(self, memory_id: str, scope: Scope) -> Memory | None:
        """Return a memory that this user may change; none if there is no such memory, or it was deleted.

        Args:
            memory_id: The memory.
            scope: Who asks.
        """
        found = self.archive.memories(self._own(scope), ids=[memory_id])
        return found[0] if found and found[0].status not in {"deleted", *TOMBSTONES} else None

    def update(self, item: MemoryItem, scope: Scope) -> Memory:
        """Update a memory to what its item says. Fields that the item leaves unchanged stay; the same item changes nothing.

        Args:
            item: The memory's id, and all that it is to say.
            scope: Whose.

        Raises:
            InputError: The memory is not current, or the item says nothing.
            NotFoundError: There is no such memory, or none of an id that the item links it with.
            ConflictError: Other changes kept coming first, or another memory says the same.
        """
        check_statement(sentence(item.content), importance_of(item.importance))
        statement_id = self.new_id()
        stated: Stated | None = None

        def act() -> Memory:
            nonlocal stated
            old = self.known(item.memory_id, scope)
            if old is None:
                raise NotFoundError(f"There is no memory {item.memory_id!r} here.")
            if not old.live:
                raise InputError(f"Memory {old.memory_id!r} is {old.status}.", "Update what holds: restore it first.")
            new, links = self._revised(old, item, scope)
            if new == old and not links:
                return old
            stated = stated or self._state(new, item, statement_id, scope)
            committed, _ = self.disputes.commit(self._change(old, new, links, stated, scope))
            return committed.changes[0].memory

        return repeated(act, lost=ConflictError([item.memory_id], "Read it again, and update it then."))

    def _revised(self, old: Memory, item: MemoryItem, scope: Scope) -> tuple[Memory, tuple[Link, ...]]:
        """Return the updated memory, and its new links."""
        mine = self._own(scope)
        links = self.archive.links(mine, [old.memory_id], live=True)
        known = {*links, *links_of(item_of(old, links))}
        new = tuple(link for link in links_of(item) if not any(_same(link, each) for each in known))
        ends = {end for link in new for end in (link.source_id, link.target_id)}
        there = {
            memory.memory_id
            for memory in self.archive.memories(mine, ids=sorted(ends))
            if memory.status not in {"deleted", *TOMBSTONES}
        }
        if missing := sorted(ends - there):
            raise NotFoundError(f"There is no memory {missing[0]!r} here.", "Link it with memories of this scope.")
        return revised(old, item, links), new

    def _state(self, new: Memory, item: MemoryItem, statement_id: str, scope: Scope) -> Stated:
        return state(
            self.archive,
            self.clock,
            scope.partition(),
            new.content,
            statement_id=statement_id,
            role="system",
            actor=scope.agent or "operator",
            recipe=self.settings.summary.recipe,
            extra={"item": json.loads(item.to_json())},
            said_at=item.timestamp,
        )

    def _change(self, old: Memory, new: Memory, links: Sequence[Link], stated: Stated, scope: Scope) -> ChangeSet:
        message = stated.message
        memory = new.evolve(
            version=old.version + 1,
            evidence=(*old.evidence, stated.evidence),
            block_ids=tuple(dict.fromkeys((*old.block_ids, stated.block.block_id))),
            trust=min(old.trust, message.trust),
            recorded_at=message.recorded_at,
        )
        summaries, work = closing(self.archive, stated, self.settings.summary.recipe)
        return ChangeSet(
            operation_id=operation_id("update", message.message_id, old.version),
            actor=scope.agent or "operator",
            recorded_at=message.recorded_at,
            at_home=at_home(scope, self.settings),
            changes=(MemoryChange(memory=memory, expected_version=old.version, action=UPDATE),),
            links=tuple(links),
            summaries=summaries,
            work=work,
        )

    def _own(self, scope: Scope) -> list[Partition]:
        return own(self.archive.visible(scope), scope, self.settings.trust_boundary)


def _same(one: Link, other: Link) -> bool:
    return (one.source_id, one.type, one.target_id) == (other.source_id, other.type, other.target_id)
