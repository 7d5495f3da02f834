"""Consolidation: a model or a person concludes long-term memories from similar episodes; each has its sources.

Likeness only proposes what belongs together. What is asked follows from the ledger alone, so a stopped run continues
where it stopped. No source is ever changed: the links of a long-term memory say what it was made of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from heapq import nsmallest
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from remegraph.errors import WITHOUT_VECTORS, ConflictError, InputError, NotFoundError
from remegraph.models import (
    LIVE,
    Abstraction,
    ChangeSet,
    Conclusion,
    Consolidation,
    Link,
    Memory,
    MemoryChange,
    Partition,
    Progress,
)
from remegraph.models.base import operation_id
from remegraph.models.supersession import CONTRARY
from remegraph.ports import Concluded, Concluder
from remegraph.retention.conclusions import (
    ACTOR,
    Drafter,
    Gathered,
    Lexicon,
    doubted,
    gather,
    holds,
    may_be_mixed,
    recurring,
)
from remegraph.retention.forgetting import SettingsOf
from remegraph.retention.maintenance import Round
from remegraph.settings import LifecyclePolicy

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive
    from remegraph.ports import Vectors

__all__ = ["ACTOR", "consolidate"]

_WANTED = 2
"""Neighbours wanted for each long-term memory."""

_LIFTED = frozenset({"causes", "depends_on", "is_a", "superset_of"})


def lifted(links: Sequence[Link], sources: Mapping[str, frozenset[str]], lasting: Collection[str]) -> list[Link]:
    """Return the links that long-term memories should inherit from their sources: a cause remains a cause."""
    owner = {source: name for name in sorted(lasting) for source in (name, *sources.get(name, ()))}
    known = {(link.source_id, link.type, link.target_id) for link in links}
    found = {
        (owner[link.source_id], link.type, owner[link.target_id]): link
        for link in links
        if link.type in _LIFTED and link.source_id in owner and link.target_id in owner
    }
    return [
        Link(source_id=source, type=kind, target_id=target, reason=link.reason)
        for (source, kind, target), link in sorted(found.items(), key=itemgetter(0))
        if source != target and (source, kind, target) not in known
    ]


class Ties:
    """The links between the memories of a partition, other than those to sources."""

    def __init__(
        self, memories: Iterable[Memory], links: Iterable[Link], sources: Mapping[str, frozenset[str]]
    ) -> None:
        self._memories = {memory.memory_id: memory for memory in memories}
        self._sources = sources
        self._lexicon = Lexicon((memory.content for memory in self._memories.values()), names=())
        self._words = {name: self._terms(memory) for name, memory in self._memories.items()}
        self._near: defaultdict[str, set[str]] = defaultdict(set)
        for link in links:
            self.add(link)

    def add(self, link: Link) -> None:
        """Note a link."""
        if link.type != "derived_from" and link.source_id != link.target_id:
            self._near[link.source_id].add(link.target_id)
            self._near[link.target_id].add(link.source_id)

    def put(self, memory: Memory) -> None:
        """Note a new memory, or a new version."""
        self._memories[memory.memory_id] = memory
        self._words[memory.memory_id] = self._terms(memory)

    def drop(self, memory_id: str) -> None:
        """Forget a memory and its links."""
        del self._memories[memory_id]
        for other in self._near.pop(memory_id, set()):
            self._near[other].discard(memory_id)

    def alone(self, memory_id: str) -> bool:
        """Return whether a memory has no neighbour."""
        return not self._near[memory_id]

    def missing(self, memory_id: str) -> list[Link]:
        """Return the links that a long-term memory lacks: to those most like it, long-term ones before others."""
        wanted = _WANTED - len(self._near[memory_id])
        if wanted < 1:
            return []
        known = {memory_id, *self._near[memory_id], *self._sources.get(memory_id, ())}
        others = [other for name, other in self._memories.items() if name not in known]
        lasting = [other for other in others if other.layer == "long_term"]
        pool = lasting if len(lasting) >= wanted else others
        return [self._link(memory_id, other) for other in nsmallest(wanted, pool, key=partial(self._order, memory_id))]

    def _order(self, memory_id: str, other: Memory) -> tuple[bool, bool, float, str]:
        likeness = self._lexicon.likeness(self._words[memory_id], self._words[other.memory_id])
        elsewhere = other.topic.key != self._memories[memory_id].topic.key
        return other.layer != "long_term", not likeness and elsewhere, -likeness, other.memory_id

    def _link(self, memory_id: str, other: Memory) -> Link:
        alike = self._words[memory_id] & self._words[other.memory_id]
        reason = "they share telling words" if alike else "the nearest that is known"
        return Link(source_id=memory_id, type="related", target_id=other.memory_id, reason=reason)

    def _terms(self, memory: Memory) -> frozenset[str]:
        abstraction = Abstraction.of(memory)
        return frozenset(abstraction.terms) if abstraction else self._lexicon.words(memory.content)


_BATCH = 8
"""Long-term memories in one commit: at most this many conclusions are repeated after a stop."""

_LINKS = 200
"""Links in one commit."""

_MeaningsOf = Callable[[Partition, Sequence[str]], "Mapping[str, Vectors]"]
"""Returns unit vectors of memories that have one, by id; None if only words count."""


def consolidate(
    archive: Archive,
    partitions: Sequence[Partition],
    settings_of: SettingsOf,
    this: Round,
    *,
    concluder_of: Callable[[Partition], Concluder | None],
    meanings_of: _MeaningsOf,
    agreed: Sequence[Conclusion] = (),
) -> Consolidation:
    """Consolidate the memories of some partitions, or report what would be asked."""
    total = Consolidation(dry_run=this.dry_run, examined=0)
    concluded = {frozenset(each.sources): Concluded(each.conclusion, each.conditions) for each in agreed}
    homes = _homes(archive, partitions, agreed)
    for partition in homes if agreed else partitions:
        drafter = Drafter(archive, None if this.dry_run or agreed else concluder_of(partition), concluded, this.at)
        library = _Library(archive, partition, drafter, this.at, dry_run=this.dry_run)
        groups = (
            [library.named(each.sources) for each in homes[partition]]
            if agreed
            else library.gathered(settings_of(partition), meanings_of)
        )
        for done, of in library.work(groups):
            this.report(Progress(stage="consolidate", done=done, total=of))
            this.check()
        total = total.plus(library.report())
    return total


def _homes(
    archive: Archive, partitions: Sequence[Partition], agreed: Sequence[Conclusion]
) -> dict[Partition, list[Conclusion]]:
    """Return the conclusions of a person, by the partition of their first source."""
    ids = [each.sources[0] for each in agreed]
    found = {memory.memory_id: memory.partition for memory in archive.memories(partitions, ids=ids)} if ids else {}
    homes: defaultdict[Partition, list[Conclusion]] = defaultdict(list)
    for each in agreed:
        if each.sources[0] not in found:
            raise NotFoundError(f"There is no memory {each.sources[0]!r} here.")
        homes[found[each.sources[0]]].append(each)
    return homes


@dataclass(frozen=True, slots=True)
class _Step:
    """The next version of one long-term memory, and what changes with it."""

    memory: Memory
    action: str
    reason: str
    sources: tuple[Memory, ...] = ()
    why: str = ""
    """Why the sources belong together, for the report only: the journal holds no words of a memory."""

    def change(self) -> MemoryChange:
        """Return the change that writes the version."""
        memory = self.memory
        return MemoryChange(memory=memory, expected_version=memory.version - 1, action=self.action, reason=self.reason)

    def links(self) -> Iterator[Link]:
        """Yield the links to what it was made of."""
        for source in self.sources:
            yield Link(source_id=self.memory.memory_id, type="derived_from", target_id=source.memory_id)


class _Library:
    """The memories of one partition during consolidation, as the ledger has them, or would have them in a dry run."""

    def __init__(
        self, archive: Archive, partition: Partition, drafter: Drafter, at: datetime, *, dry_run: bool
    ) -> None:
        self._archive = archive
        self._partition = partition
        self._drafter = drafter
        self._at = at
        self._dry_run = dry_run
        self._heads = {each.memory_id: each for each in archive.memories([partition], statuses=sorted(LIVE))}
        self._links = list(archive.links([partition], list(self._heads)))
        self._sources = self._provenance()
        made_of = frozenset[str]().union(*self._sources.values())
        known = archive.memories([partition], ids=sorted(made_of)) if made_of else ()
        self._past = {each.memory_id for each in known if not holds(each, at)}
        live = (link for link in self._links if {link.source_id, link.target_id} <= self._heads.keys())
        self._ties = Ties(self._heads.values(), live, self._sources)
        self._report = Consolidation(dry_run=dry_run, examined=len(self._heads))
        self._made: dict[str, Memory] = {}
        self._grown: dict[str, Memory] = {}

    def _provenance(self) -> dict[str, frozenset[str]]:
        """Return the sources of each abstracted memory, live or not."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for link in self._links:
            if link.type == "derived_from":
                found[link.source_id].add(link.target_id)
        gone = self._archive.memories([self._partition], ids=[name for name in found if name not in self._heads])
        known = {**self._heads, **{memory.memory_id: memory for memory in gone}}
        return {name: frozenset(ids) for name, ids in found.items() if name in known and Abstraction.of(known[name])}

    def work(self, groups: Sequence[Gathered]) -> Iterator[tuple[int, int]]:
        """Do everything, batch by batch; before each, yield how many of how many groups are done."""
        for start in range(0, len(groups), _BATCH):
            yield start, len(groups)
            steps = [self._step(group) for group in self._unchanged(groups[start : start + _BATCH])]
            self._commit([step for step in steps if step is not None])
        yield len(groups), len(groups)
        self._doubt()
        self._tie()

    def report(self) -> Consolidation:
        """Return what was done, or would be."""
        return self._report.evolve(
            made=tuple(self._made.values()), grown=tuple(self._grown.values()), offline=tuple(self._drafter.failed)
        )

    # ------------------------------------------------------------------------------- episodes become one

    def named(self, ids: Sequence[str]) -> Gathered:
        """Return the group that a person concludes from; refuse memories that may not be mixed."""
        if missing := [each for each in ids if each not in self._heads]:
            raise NotFoundError(
                f"There is no live memory {missing[0]!r} here.", "Conclude from memories of one library."
            )
        memories = [self._heads[each] for each in ids]
        grown = [each for each in memories if Abstraction.of(each)]
        sources = [each for each in memories if each not in grown]
        if len({each.topic.key for each in memories}) > 1 or not sources or len(grown) > 1:
            raise InputError(
                "They are not of one topic.", "Conclude from memories of one topic, and one conclusion at most."
            )
        if apart := [each for each in memories if not self._may_be_mixed(each)]:
            raise InputError(
                f"Memory {apart[0].memory_id} may not be mixed.",
                "Leave out rules, knowledge, disputes, and what is over or yet to be.",
            )
        shelf = (each.content for each in self._heads.values() if each.topic.key == memories[0].topic.key)
        lexicon = Lexicon(shelf, [memories[0].topic.target_name])
        terms = recurring([lexicon.words(each.content) for each in sources], lexicon)
        return Gathered(terms, sources, grown[0] if grown else None)

    def gathered(self, policy: LifecyclePolicy, meanings_of: _MeaningsOf) -> list[Gathered]:
        """Return the groups of memories that are alike."""
        taken = frozenset[str]().union(*self._sources.values())
        result: list[Gathered] = []
        shelves: defaultdict[tuple[str, str], list[Memory]] = defaultdict(list)
        for memory in self._heads.values():
            shelves[memory.topic.type, memory.topic.target].append(memory)
        for _, memories in sorted(shelves.items(), key=itemgetter(0)):
            usable = [memory for memory in memories if self._may_be_mixed(memory)]
            free = [each for each in usable if each.layer == "episodic" and each.memory_id not in taken]
            known = [memory for memory in usable if Abstraction.of(memory)]
            said = (memory.content for memory in memories if not Abstraction.of(memory))
            lexicon = Lexicon(said, [memories[0].topic.target_name])
            result += gather(free, known, lexicon, policy, self._vectors(free, meanings_of))
        return result

    def _may_be_mixed(self, memory: Memory) -> bool:
        """Return whether a memory may be grouped: it holds now, and so do all its sources."""
        made_of = self._sources.get(memory.memory_id, frozenset())
        return may_be_mixed(memory) and holds(memory, self._at) and not self._past & made_of

    def _vectors(self, memories: Sequence[Memory], meanings_of: _MeaningsOf) -> Mapping[str, Vectors]:
        try:
            return meanings_of(self._partition, [memory.memory_id for memory in memories])
        except WITHOUT_VECTORS as error:
            self._note(degraded=(f"vectors: {error.what}",))
            return {}

    def _unchanged(self, groups: Sequence[Gathered]) -> list[Gathered]:
        """Return the groups whose memories did not change since they were read."""
        read = {memory.memory_id: memory for group in groups for memory in group.memories()}
        now = {memory.memory_id: memory for memory in self._archive.memories([self._partition], ids=list(read))}
        changed = {memory_id for memory_id, memory in read.items() if now.get(memory_id) != memory}
        late = [group for group in groups if any(memory.memory_id in changed for memory in group.memories())]
        self._note(skipped=tuple(each.memory_id for group in late for each in group.sources))
        return [group for group in groups if group not in late]

    def _step(self, group: Gathered) -> _Step | None:
        memory = self._drafter.draft(group)
        if memory is None:
            self._note(proposed=(group.ids(),), lines=(f"{', '.join(group.ids())}: {group.why}; nobody concluded yet",))
            return None
        action = "grow" if group.joined else "abstract"
        reason = f"{len(group.sources)} similar memories"
        return _Step(memory, action, reason, sources=tuple(group.sources), why=group.why)

    # ----------------------------------------------------------------------------------------- the contrary

    def _doubt(self) -> None:
        """Update how many memories contradict each abstracted memory."""
        for memory in sorted(self._heads.values(), key=lambda each: each.memory_id):
            abstraction = Abstraction.of(memory)
            if abstraction is None or not may_be_mixed(memory):
                continue
            pairs = ({link.source_id, link.target_id} for link in self._links if link.type in CONTRARY)
            ends = {other for pair in pairs if memory.memory_id in pair for other in pair} - {memory.memory_id}
            against = len(ends & self._heads.keys())
            if against != abstraction.contradictions:
                self._commit([_Step(doubted(memory, against, self._at), "doubt", f"{against} say the contrary")])

    def _tie(self) -> None:
        """Give each long-term memory the links that its sources have, and the neighbours that it lacks."""
        lasting = sorted(each.memory_id for each in self._heads.values() if each.layer == "long_term")
        links = lifted(self._links, self._sources, lasting)
        for link in links:
            self._ties.add(link)
        for memory_id in lasting:
            missing = self._ties.missing(memory_id)
            for link in missing:
                self._ties.add(link)
            links += missing
        for start in range(0, len(links), _LINKS):
            self._apply([], links[start : start + _LINKS])
        self._note(linked=len(links), waiting=tuple(memory_id for memory_id in lasting if self._ties.alone(memory_id)))

    # ------------------------------------------------------------------------------------------- writing

    def _commit(self, steps: Sequence[_Step]) -> None:
        """Commit steps together; on a conflict each alone, and skip what still conflicts."""
        done = [step for step in steps if step.memory.version == 1 and step.memory.memory_id in self._heads]
        self._note(skipped=tuple(each.memory_id for step in done for each in step.sources))  # another run was faster
        steps, tied = self._tied([step for step in steps if step not in done])
        if not steps:
            return
        links = [*(link for step in steps for link in step.links()), *tied]
        try:
            self._apply([step.change() for step in steps], links)
        except (ConflictError, NotFoundError):
            self._undo(steps)
            if len(steps) == 1:
                self._note(skipped=tuple(each.memory_id for each in steps[0].sources) or (steps[0].memory.memory_id,))
                return
            for step in steps:
                self._commit([step])
        else:
            self._keep(steps, links)
            self._note(linked=sum(link.type != "derived_from" for link in links))

    def _tied(self, steps: Sequence[_Step]) -> tuple[list[_Step], list[Link]]:
        """Return the steps to commit, with links for new memories; steps without sources wait."""
        new = [step for step in steps if step.memory.version == 1]
        for step in new:
            self._sources[step.memory.memory_id] = frozenset(each.memory_id for each in step.sources)
            self._ties.put(step.memory)
        links: list[Link] = []
        for step in new:
            missing = self._ties.missing(step.memory.memory_id)
            for link in missing:
                self._ties.add(link)
            links += missing
        alone = [step for step in new if self._ties.alone(step.memory.memory_id)]
        self._undo(alone)
        self._note(waiting=tuple(each.memory_id for step in alone for each in step.sources))
        return [step for step in steps if step not in alone], links

    def _undo(self, steps: Sequence[_Step]) -> None:
        for step in steps:
            if step.memory.version == 1:
                self._ties.drop(step.memory.memory_id)
                del self._sources[step.memory.memory_id]

    def _apply(self, changes: Sequence[MemoryChange], links: Sequence[Link]) -> None:
        if self._dry_run:
            return
        versions = [f"{change.memory.memory_id} {change.memory.version}" for change in changes]
        self._archive.commit(
            ChangeSet(
                operation_id=operation_id(ACTOR, self._partition.to_json(), *versions, *map(Link.to_json, links)),
                actor=ACTOR,
                recorded_at=self._at,
                extracted=True,
                at_home=True,
                changes=tuple(changes),
                links=tuple(links),
            )
        )

    def _keep(self, steps: Sequence[_Step], links: Sequence[Link]) -> None:
        """Update the state by what was committed."""
        for step in steps:
            memory, name = step.memory, step.memory.memory_id
            self._heads[name] = memory
            self._ties.put(memory)
            made_of = self._sources.get(name, frozenset()) | {each.memory_id for each in step.sources}
            if made_of:
                self._sources[name] = made_of
            (self._made if memory.version == 1 or name in self._made else self._grown)[name] = memory
            if step.why:
                self._note(lines=(f"{name} <- {', '.join(each.memory_id for each in step.sources)}: {step.why}",))
        self._links += links
        for link in links:
            if {link.source_id, link.target_id} <= self._heads.keys():
                self._ties.add(link)

    def _note(self, **more: Any) -> None:
        """Add to the report."""
        self._report = self._report.evolve(
            **{name: getattr(self._report, name) + value for name, value in more.items()}
        )
