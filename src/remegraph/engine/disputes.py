"""What is written is held against what is known (G7): contradictions are kept, marked and linked, never resolved here (K4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from remegraph.engine.search import Searcher
from remegraph.errors import ConflictError
from remegraph.models import LIVE, ChangeSet, Link, LinkType, Memory, MemoryChange, Partition, Receipt
from remegraph.ports import Archive
from remegraph.rules.claims import slot
from remegraph.rules.conflicts import Finding, Said, compare, said, says_what_became
from remegraph.rules.disputes import TELLING, disputed, opposing, pair_of
from remegraph.rules.disputes import settled as settled_pairs
from remegraph.rules.standing import APPROVE

__all__ = ["UPDATE", "Disputes"]

UPDATE = "update"
"""The action of a change by which somebody says outright what a memory says from now on."""

_LOOKED_AT = 8
"""Memories that a new one is held against."""

_ATTEMPTS = 4
"""How often a change is weighed anew because a memory that it disputes changed meanwhile."""


class Disputes:
    """Weighs changes before they are committed.

    Args:
        archive: The ledger.
        searcher: Finds what is like a memory.
    """

    def __init__(self, archive: Archive, searcher: Searcher) -> None:
        self._archive = archive
        self._searcher = searcher

    def commit(self, changes: ChangeSet) -> tuple[ChangeSet, Receipt]:
        """Weigh and commit a change; return what was committed, and what it did.

        Raises:
            ConflictError: Records that the change itself names changed, or a twin appeared.
        """
        named = {change.memory.memory_id for change in changes.changes}
        for _ in range(_ATTEMPTS - 1):
            weighed = self.weigh(changes)
            added = {change.memory.memory_id for change in weighed.changes} - named
            try:
                return weighed, self._archive.commit(weighed)
            except ConflictError as conflict:
                if not added.issuperset(conflict.records):
                    raise
        weighed = self.weigh(changes)
        return weighed, self._archive.commit(weighed)

    def weigh(self, changes: ChangeSet) -> ChangeSet:
        """Return a change with what follows from it for contradictions.

        New memories, and those that somebody approves or updates, are held against those most like them. What contradicts
        a memory is linked, and both are in dispute; what says more than another is linked both ways. A memory whose last
        open contradiction ends is active again.

        Args:
            changes: What shall change.
        """
        weighing = _Weighing(self._archive, changes)
        created = [each.memory for each in changes.changes if _begins(each) and each.memory.live]
        for home in dict.fromkeys(memory.partition for memory in created):
            new = [memory for memory in created if memory.partition == home]
            for one, near in self._near(home, new):
                weighing.hold_against(one, near)
        weighing.release()
        return changes.evolve(changes=tuple(weighing.planned.values()), links=tuple(weighing.links.values()))

    def _near(self, home: Partition, new: Sequence[Memory]) -> Iterator[tuple[_Heard, _Heard]]:
        """Yield each new memory with each that it is held against: what came before it and is like it by its words.

        Whatever contradicts it shares its words: vectors would cost, and find no more.
        """
        slots = sorted({memory.canonical_topic for memory in new} - {""})
        crowd = self._archive.memories([home], canonical_topics=slots, statuses=sorted(LIVE)) if slots else ()
        known = self._searcher.worded(home, [memory.indexed_text for memory in new], _LOOKED_AT)
        fresh = [_Heard(memory) for memory in new]
        there = {memory.memory_id: _Heard(memory) for memory in (*chain.from_iterable(known), *crowd)}
        for place, one in enumerate(fresh):
            here = [each for each in crowd if each.canonical_topic == one.memory.canonical_topic]
            before = {each.memory.memory_id: each for each in fresh[:place]}
            before |= {memory.memory_id: there[memory.memory_id] for memory in (*known[place], *here)}
            for memory_id, each in before.items():
                if memory_id != one.memory.memory_id:  # as it was before the update
                    yield one, each


@dataclass(frozen=True)
class _Heard:
    """A memory, and what it says: one that is held against many is read once."""

    memory: Memory

    @cached_property
    def said(self) -> Said:
        """What it says."""
        return said(self.memory)


@dataclass
class _Weighing:
    """A change, and what follows from it."""

    archive: Archive
    changes: ChangeSet
    planned: dict[str, MemoryChange] = field(init=False)
    links: dict[tuple[str, LinkType, str], Link] = field(init=False)

    def __post_init__(self) -> None:
        self.planned = {change.memory.memory_id: change for change in self.changes.changes}
        self.links = {}
        for link in self.changes.links:
            self._link(link)

    def after(self, memory: Memory) -> Memory:
        """Return a memory as it will be after the change."""
        change = self.planned.get(memory.memory_id)
        return change.memory if change else memory

    def hold_against(self, one: _Heard, other: _Heard) -> None:
        """Link what a new memory contradicts or holds, and dispute what is in contradiction."""
        new, old = one.memory, other.memory
        if not self.after(old).live:
            return
        mine, yours = one.said, other.said
        finding = compare(mine, yours) or self._of_one_topic(new, old)
        if finding is None or finding.kind == "redundancy":
            return
        if finding.kind == "contradiction":
            skill = "procedural" in {new.layer, old.layer}  # of two ways to do a thing, neither is untrue
            if not skill and not says_what_became(mine, yours):
                self._contradict(new, old, finding)
            return
        more, less = (new, old) if finding.kind == "superset" else (old, new)
        self._link(_link_of(more, "superset_of", less, finding.reason))
        self._link(_link_of(less, "related", more, finding.reason))

    def _of_one_topic(self, new: Memory, old: Memory) -> Finding | None:
        if not new.canonical_topic or new.canonical_topic != old.canonical_topic:
            return None
        parsed = all(new.canonical_topic in map(slot, memory.claims) for memory in (new, old))
        return None if parsed else Finding("contradiction", "")  # of values that parse, it is known that they agree

    def _contradict(self, new: Memory, old: Memory, finding: Finding) -> None:
        certain = bool(finding.reason) and not (new.firm or old.firm)
        if not certain:
            reason = finding.reason or f"Both hold {new.canonical_topic}."
            if not any(pair_of(link) == {new.memory_id, old.memory_id} for link in self.links.values()):
                self._link(_link_of(new, "may_contradict", old, reason))
            return
        self.links.pop((new.memory_id, "may_contradict", old.memory_id), None)
        self._link(_link_of(new, "contradicts", old, finding.reason))
        for memory in (new, old):
            self._dispute(self.after(memory))

    def _dispute(self, memory: Memory) -> None:
        now = disputed(memory)
        if now is not memory:
            self._revise(memory, now, "dispute")

    def release(self) -> None:
        """Make memories active again whose last open contradiction ends with this change."""
        later = (change.memory for change in self.changes.changes if change.expected_version)
        gone = {memory.memory_id for memory in later if not memory.live}
        over = set(settled_pairs(self.changes.links))
        touched = gone.union(*over)
        if not touched:
            return
        homes = list(dict.fromkeys(change.memory.partition for change in self.changes.changes))
        links = self._links(homes, touched)
        ending = {pair for pair in opposing(links) if pair & gone or pair in over}
        others = {end for pair in (*ending, *over) for end in pair} - gone
        if not others:
            return
        still = opposing([*self._links(homes, others), *self.links.values()])
        still = {pair for pair in still if not pair & gone and pair not in over}
        for memory in self.archive.memories(homes, ids=sorted(others)):
            now = self.after(memory)
            if now.status == "disputed" and not any(now.memory_id in pair for pair in still):
                self._revise(now, now.evolve(status="active"), "release")

    def _links(self, homes: Collection[Partition], memory_ids: Iterable[str]) -> tuple[Link, ...]:
        return self.archive.links(list(homes), sorted(memory_ids), types=TELLING, live=True)

    def _revise(self, memory: Memory, now: Memory, action: str) -> None:
        """Let a memory be otherwise, in the change that it has already, or in one of its own."""
        planned = self.planned.get(memory.memory_id)
        if planned is not None:
            self.planned[memory.memory_id] = planned.evolve(memory=now)
            return
        new = now.evolve(version=memory.version + 1, recorded_at=self.changes.recorded_at)
        self.planned[memory.memory_id] = MemoryChange(memory=new, expected_version=memory.version, action=action)

    def _link(self, link: Link) -> None:
        self.links.setdefault((link.source_id, link.type, link.target_id), link)


def _begins(change: MemoryChange) -> bool:
    """Return whether a memory is known from this change on: it is new, waited until now, or says something else."""
    return change.expected_version == 0 or change.action in {"agree", APPROVE, UPDATE}


def _link_of(source: Memory, kind: LinkType, target: Memory, reason: str) -> Link:
    return Link(source_id=source.memory_id, type=kind, target_id=target.memory_id, reason=reason)
