"""Consolidation: from similar episodes a model or a person concludes long-term memories, and none stands alone.

Likeness only proposes what belongs together. What shall be asked follows from the ledger alone, so a run that was stopped
goes on where it stopped. No source is ever changed: what a long-term memory was made of, its links say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from remegraph.errors import WITHOUT_VECTORS, ConflictError, InputError, NotFoundError
from remegraph.lifecycle.drafting import ACTOR, Drafter, doubted
from remegraph.lifecycle.gathering import Gathered, gather, may_be_mixed
from remegraph.lifecycle.maintenance import Round
from remegraph.lifecycle.neighbours import Ties, lifted
from remegraph.lifecycle.retaining import SettingsOf
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
from remegraph.ports import Archive, Concluded, Concluder
from remegraph.rules.naming import operation_id
from remegraph.rules.terms import Lexicon, recurring
from remegraph.settings import LifecyclePolicy

if TYPE_CHECKING:
    from remegraph.ports.index import Vectors

__all__ = ["ACTOR", "MeaningsOf", "consolidate"]

_BATCH = 8
"""Long-term memories in one commit: where a model writes them, no more than so many are done again after a stop."""

_LINKS = 200
"""Links in one commit."""

_CONTRARY = frozenset({"contradicts", "may_contradict"})

MeaningsOf = Callable[[Partition, Sequence[str]], "Mapping[str, Vectors]"]
"""Unit vectors of memories that have one, by id; nothing where words alone count."""


def consolidate(
    archive: Archive,
    partitions: Sequence[Partition],
    settings_of: SettingsOf,
    this: Round,
    *,
    concluder_of: Callable[[Partition], Concluder | None],
    meanings_of: MeaningsOf,
    agreed: Sequence[Conclusion] = (),
) -> Consolidation:
    """Consolidate the memories of some partitions, or say what would be asked.

    Args:
        archive: The ledger.
        partitions: Whose memories.
        settings_of: How those of a partition live on.
        this: The run. In a dry one no model is asked. Progress is told, and cancelling asked for, before each batch.
        concluder_of: Who draws the conclusions of a partition; none: groups are only proposed.
        meanings_of: What memories mean.
        agreed: What a person concludes; then nothing else is asked or proposed.

    Raises:
        CancelledError: It was cancelled; what was committed stays.
        NotFoundError: A person concludes from a memory that does not live here.
        InputError: Or from memories that may not be mixed.
        ModelUnavailableError: The model is down; likewise.
        BudgetExceededError: The budget is used up; likewise.
    """
    total = Consolidation(dry_run=this.dry_run, examined=0)
    told = {frozenset(each.sources): Concluded(each.conclusion, each.conditions) for each in agreed}
    homes = _homes(archive, partitions, agreed)
    for partition in homes if agreed else partitions:
        drafter = Drafter(archive, None if this.dry_run or agreed else concluder_of(partition), told, this.at)
        library = _Library(archive, partition, drafter, this.at, dry_run=this.dry_run)
        groups = library.told(homes[partition]) if agreed else library.gathered(settings_of(partition), meanings_of)
        for done, of in library.work(groups):
            this.tell(Progress(stage="consolidate", done=done, total=of))
            this.check()
        total = total.plus(library.report())
    return total


def _homes(
    archive: Archive, partitions: Sequence[Partition], agreed: Sequence[Conclusion]
) -> dict[Partition, list[Conclusion]]:
    """Return what a person concludes, by where the first of its sources lives."""
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
    links: tuple[Link, ...] = ()

    def changes(self) -> Iterator[MemoryChange]:
        """Yield the versions."""
        memory = self.memory
        yield MemoryChange(memory=memory, expected_version=memory.version - 1, action=self.action, reason=self.reason)

    def all_links(self) -> Iterator[Link]:
        """Yield the links, first those to what it was made of."""
        for source in self.sources:
            yield Link(source_id=self.memory.memory_id, type="derived_from", target_id=source.memory_id)
        yield from self.links


class _Library:
    """The memories of one partition while they are consolidated: as the ledger has them, or would have them."""

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
        live = (link for link in self._links if {link.source_id, link.target_id} <= self._heads.keys())
        self._ties = Ties(self._heads.values(), live, self._sources)
        self._report = Consolidation(dry_run=dry_run, examined=len(self._heads))
        self._made: dict[str, Memory] = {}
        self._grown: dict[str, Memory] = {}

    def _provenance(self) -> dict[str, frozenset[str]]:
        """Return what each abstracted memory was made of, those that are no longer live among them."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for link in self._links:
            if link.type == "derived_from":
                found[link.source_id].add(link.target_id)
        gone = self._archive.memories([self._partition], ids=[name for name in found if name not in self._heads])
        known = {**self._heads, **{memory.memory_id: memory for memory in gone}}
        return {name: frozenset(ids) for name, ids in found.items() if name in known and Abstraction.of(known[name])}

    def work(self, groups: Sequence[Gathered]) -> Iterator[tuple[int, int]]:
        """Do everything, batch by batch; yield before each how many of how many groups are done.

        Args:
            groups: What may belong together.
        """
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
            made=tuple(self._made.values()),
            grown=tuple(self._grown.values()),
            offline=tuple(self._drafter.failed),
        )

    # ------------------------------------------------------------------------------- episodes become one

    def told(self, conclusions: Sequence[Conclusion]) -> list[Gathered]:
        """Return the groups from which a person concludes something.

        Args:
            conclusions: What, from memories of this partition.

        Raises:
            NotFoundError: One of them does not live here.
            InputError: They may not be mixed.
        """
        return [self._named(each.sources) for each in conclusions]

    def _named(self, ids: Sequence[str]) -> Gathered:
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
        if firm := [each for each in memories if not may_be_mixed(each)]:
            raise InputError(
                f"Memory {firm[0].memory_id} may not be mixed.", "Leave rules, knowledge and disputes out."
            )
        shelf = (each.content for each in self._heads.values() if each.topic.key == memories[0].topic.key)
        lexicon = Lexicon(shelf, [memories[0].topic.target_name])
        terms = recurring([lexicon.words(each.content) for each in sources], lexicon)
        return Gathered(terms, sources, grown[0] if grown else None)

    def gathered(self, policy: LifecyclePolicy, meanings_of: MeaningsOf) -> list[Gathered]:
        """Return the groups of memories that are alike.

        Args:
            policy: How alike, and how many.
            meanings_of: What memories mean.
        """
        taken = frozenset[str]().union(*self._sources.values())
        result: list[Gathered] = []
        for memories in self._shelves():
            usable = [memory for memory in memories if may_be_mixed(memory)]
            free = [each for each in usable if each.layer == "episodic" and each.memory_id not in taken]
            known = [memory for memory in usable if Abstraction.of(memory)]
            said = (memory.content for memory in memories if not Abstraction.of(memory))
            lexicon = Lexicon(said, [memories[0].topic.target_name])
            result += gather(free, known, lexicon, policy, self._vectors(free, meanings_of))
        return result

    def _shelves(self) -> list[list[Memory]]:
        """Return the live memories, shelf by shelf."""
        found: defaultdict[tuple[str, str], list[Memory]] = defaultdict(list)
        for memory in self._heads.values():
            found[memory.topic.type, memory.topic.target].append(memory)
        return [found[key] for key in sorted(found)]

    def _vectors(self, memories: Sequence[Memory], meanings_of: MeaningsOf) -> Mapping[str, Vectors]:
        try:
            return meanings_of(self._partition, [memory.memory_id for memory in memories])
        except WITHOUT_VECTORS as error:
            self._note(degraded=(f"vectors: {error.what}",))
            return {}

    def _unchanged(self, groups: Sequence[Gathered]) -> list[Gathered]:
        """Return the groups whose memories are as they were read: making one may take its time."""
        read = {memory.memory_id: memory for group in groups for memory in group.memories()}
        now = {memory.memory_id: memory for memory in self._archive.memories([self._partition], ids=list(read))}
        changed = {memory_id for memory_id, memory in read.items() if now.get(memory_id) != memory}
        late = [group for group in groups if any(memory.memory_id in changed for memory in group.memories())]
        self._note(skipped=tuple(each.memory_id for group in late for each in group.sources))
        return [group for group in groups if group not in late]

    def _step(self, group: Gathered) -> _Step | None:
        memory = self._drafter.draft(group)
        if memory is None:
            self._note(proposed=(group.ids(),))
            return None
        action = "grow" if group.joined else "abstract"
        reason = f"{len(group.sources)} similar memories"
        return _Step(memory, action, reason, sources=tuple(group.sources))

    # ----------------------------------------------------------------------------------------- the contrary

    def _doubt(self) -> None:
        """Count what contradicts each abstracted memory, by the links that say so: both stay."""
        for memory in sorted(self._heads.values(), key=lambda each: each.memory_id):
            abstraction = Abstraction.of(memory)
            if abstraction is None or not may_be_mixed(memory):
                continue
            against = len(self._contrary(memory.memory_id))
            if against != abstraction.contradictions:
                self._commit([_Step(doubted(memory, against, self._at), "doubt", f"{against} say the contrary")])

    def _contrary(self, memory_id: str) -> set[str]:
        pairs = ({link.source_id, link.target_id} for link in self._links if link.type in _CONTRARY)
        found = {other for pair in pairs if memory_id in pair for other in pair} - {memory_id}
        return found & self._heads.keys()

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
        """Commit steps together; where somebody came first, each alone, and what cannot be done is left."""
        steps, tied = self._tied(steps)
        if not steps:
            return
        links = [*(link for step in steps for link in step.all_links()), *tied]
        try:
            self._apply([change for step in steps for change in step.changes()], links)
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
        """Return the steps that may be committed, and links for those that are new: none comes into being alone."""
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
        """Take what was committed for what is there now."""
        for step in steps:
            memory, name = step.memory, step.memory.memory_id
            self._heads[name] = memory
            self._ties.put(memory)
            made_of = self._sources.get(name, frozenset()) | {each.memory_id for each in step.sources}
            if made_of:
                self._sources[name] = made_of
            (self._made if memory.version == 1 or name in self._made else self._grown)[name] = memory
        self._links += links
        for link in links:
            if {link.source_id, link.target_id} <= self._heads.keys():
                self._ties.add(link)

    def _note(self, **more: Any) -> None:
        """Add to the report."""
        self._report = self._report.evolve(
            **{name: getattr(self._report, name) + value for name, value in more.items()}
        )
