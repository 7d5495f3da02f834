"""Supersedes or disputes (G7): each change is compared with what is known, by words, slot and time, never by likeness.

Only here are conflicts settled without a model or a person, for every kind of write. A later value
of a slot replaces the earlier one of the same source; what else is at odds is kept, marked and linked, not resolved (K4).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from remegraph.engine.retrieval.search import Searcher
from remegraph.errors import ConflictError
from remegraph.ledger.permissions import is_shared
from remegraph.models import (
    LIVE,
    ChangeSet,
    Link,
    LinkType,
    Memory,
    MemoryChange,
    Message,
    Partition,
    Receipt,
    StoredMessage,
)
from remegraph.models.forms import in_form
from remegraph.models.standing import APPROVE, QUARANTINE_BELOW
from remegraph.models.supersession import (
    CONTRARY,
    TELLING,
    compare,
    disputed,
    holds,
    opposing,
    pair_of,
    relation,
    settled,
)

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["ATTEMPTS", "UPDATE", "Disputes", "repeated"]

UPDATE = "update"
"""The action of a change that states explicitly what a memory says from now on."""

_LOOKED_AT = 8
"""Memories that an item of the protocol is compared with: those that share most words with it."""

ATTEMPTS = 4
"""How often a change is decided again because another one came first."""

_TOLD: frozenset[LinkType] = frozenset({*CONTRARY, "supersedes", "settled"})
"""Links by which a change says itself what two memories are to each other."""


Done = TypeVar("Done")


def repeated(
    act: Callable[[], Done], *, again: Callable[[ConflictError], bool] | None = None, lost: ConflictError | None = None
) -> Done:
    """Run an act that reads memory and then commits; run it again if another change came first, unless that cannot help.

    Args:
        act: The act.
        again: Whether another attempt may resolve a conflict; unless given, any may.
        lost: What to raise after the last attempt, in place of its conflict.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return act()
        except ConflictError as conflict:
            if again is not None and not again(conflict):
                raise
    try:
        return act()
    except ConflictError as conflict:
        raise lost or conflict from None


class Disputes:
    """Weighs changes before they are committed."""

    def __init__(self, archive: Archive, searcher: Searcher) -> None:
        self._archive = archive
        self._searcher = searcher

    def commit(self, changes: ChangeSet) -> tuple[ChangeSet, Receipt]:
        """Weigh and commit a change; return what was committed, and what it did.

        Raises:
            ConflictError: Records that the change itself names changed, or a twin appeared.
        """
        weighed = changes

        def act() -> tuple[ChangeSet, Receipt]:
            nonlocal weighed
            weighed = self.weigh(changes)
            return weighed, self._archive.commit(weighed)

        return repeated(act, again=lambda conflict: (_ids(weighed) - _ids(changes)).issuperset(conflict.records))

    def weigh(self, changes: ChangeSet) -> ChangeSet:
        """Return a change with what follows from it.

        New memories, and those that are approved or updated, are compared with those of their slot, and items of the
        protocol against those like them, whose content keys are compared. Of one slot with one value, the later
        statement of a source replaces its earlier one, the same value is the same memory, and any other two are in
        dispute. What has more keys than another is linked both ways. A memory whose last open contradiction ends is
        active again.
        """
        weighing = _Weighing(self._archive, changes)
        created = [each.memory for each in changes.changes if _begins(each) and each.memory.live]
        for home in dict.fromkeys(memory.partition for memory in created):
            new = [memory for memory in created if memory.partition == home]
            for one, near in self._near(home, new):
                weighing.hold_against(one, near)
        weighing.release()
        return changes.evolve(changes=tuple(weighing.planned.values()), links=tuple(weighing.links.values()))

    def ids_from(self, memories: Iterable[Memory], user: str) -> frozenset[str]:
        """Return which memories come from a user, by their words or those that their agent keeps for them: their ids."""
        sources, given = _Sources(self._archive), list(memories)
        sources.read(given)
        return frozenset(memory.memory_id for memory in given if _person(user) in sources.of(memory))

    def _near(self, home: Partition, new: Sequence[Memory]) -> Iterator[tuple[Memory, Memory]]:
        """Yield each new memory with each that it is compared with: those of its slot; for items and rules, also similar earlier ones."""
        slots = sorted({memory.canonical_topic for memory in new} - {""})
        crowd = self._archive.memories([home], canonical_topics=slots, statuses=sorted(LIVE)) if slots else ()
        items = [memory for memory in new if in_form(memory) is not None or memory.memory_class == "policy"]
        found = self._searcher.worded(home, [memory.indexed_text for memory in items], _LOOKED_AT) if items else []
        known = {memory.memory_id: near for memory, near in zip(items, found, strict=True)}
        there = {memory.memory_id: memory for memory in (*crowd, *chain.from_iterable(found))}
        for place, one in enumerate(new):
            here = [each for each in crowd if each.canonical_topic == one.canonical_topic]
            before = {each.memory_id: each for each in new[:place]}
            before |= {each.memory_id: there[each.memory_id] for each in (*known.get(one.memory_id, ()), *here)}
            for memory_id, each in before.items():
                if memory_id != one.memory_id:  # as it was before the update
                    yield one, each


@dataclass
class _Sources:
    """Who said what memories say."""

    archive: Archive
    brought: dict[str, Message] = field(default_factory=dict)
    """Messages that come with the change, by id."""
    homes: frozenset[Partition] = frozenset()
    """Where the words of a memory may be, other than its own partition."""
    known: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of_change(cls, archive: Archive, changes: ChangeSet) -> _Sources:
        """Return the sources of what a change names."""
        brought = changes.brought
        homes = {each.partition for each in (*changes.work, *changes.summaries, *((brought,) if brought else ()))}
        messages = {message.message_id: message for message in brought.messages} if brought else {}
        return cls(archive, messages, frozenset(homes))

    def of(self, memory: Memory) -> frozenset[str]:
        """Return who said what a memory says: the user, other persons, tools, other agents."""
        self.read([memory])
        return self.known[memory.memory_id, memory.version]

    def read(self, memories: Iterable[Memory]) -> None:
        """Find out who said what these memories say."""
        new = {(each.memory_id, each.version): each for each in memories}
        new = {key: each for key, each in new.items() if key not in self.known}
        learned = [each for each in new.values() if each.origin is None]
        homes = list(dict.fromkeys((*(each.partition for each in learned), *sorted(self.homes, key=str))))
        ids = list(dict.fromkeys(item.message_id for each in learned for item in each.evidence))
        said = self.archive.messages(homes, ids=ids) if ids else ()
        self.known |= {key: self._of(each, said) for key, each in new.items()}

    def _of(self, memory: Memory, said: Sequence[StoredMessage]) -> frozenset[str]:
        if memory.origin is not None:
            agents = memory.origin.agents or (memory.origin.claimed or memory.origin.knowledge_id,)
            return frozenset(f"agent {agent}" for agent in agents)
        user = memory.partition.user
        ids = list(dict.fromkeys(item.message_id for item in memory.evidence))
        homes = {memory.partition, *self.homes}
        found = {
            _speaker(each, each.partition.user) for each in said if each.message_id in ids and each.partition in homes
        }
        found |= {_speaker(self.brought[each], user) for each in ids if each in self.brought}
        return frozenset(found or ({_person(user)} if user else ()))


def _speaker(message: Message | StoredMessage, user: str | None) -> str:
    """Return who speaks; an agent and an application keep what is their user's."""
    if message.role == "tool" or message.is_document:
        return "tool of the owner" if message.trust >= QUARANTINE_BELOW else f"tool {message.name}"
    return _person((message.name.strip() if message.role == "user" else "") or user or "")


def _person(name: str) -> str:
    return f"person {name.casefold()}"


def _is_person(source: str) -> bool:
    return source.startswith("person ")


def _is_tool(source: str) -> bool:
    return source.startswith("tool ")


@dataclass
class _Weighing:
    """A change, and what follows from it."""

    archive: Archive
    changes: ChangeSet
    planned: dict[str, MemoryChange] = field(init=False)
    links: dict[tuple[str, LinkType, str], Link] = field(init=False)
    sources: _Sources = field(init=False)
    joined: set[str] = field(default_factory=set)
    """New memories that only support an existing one, and are not kept as memories of their own."""

    def __post_init__(self) -> None:
        self.planned = {change.memory.memory_id: change for change in self.changes.changes}
        self.links = {}
        self.sources = _Sources.of_change(self.archive, self.changes)
        for link in self.changes.links:
            self._link(link)

    def after(self, memory: Memory) -> Memory:
        """Return a memory as it will be after the change."""
        change = self.planned.get(memory.memory_id)
        return change.memory if change else memory

    def hold_against(self, new: Memory, old: Memory) -> None:
        """Merge, retire, link or dispute a new memory and an existing one, as they relate to each other."""
        if new.memory_id not in self.planned or old.memory_id in self.joined:
            return
        if not (self.after(old).live and self.after(new).live):
            return
        if self._is_related(new, old):
            return
        earlier, later = (new, old) if new.said_at < old.said_at else (old, new)
        if "procedural" not in {new.layer, old.layer}:  # two ways to do something can both be right
            what = relation(later, earlier, one_source=self._follows(later, earlier))
            if what == "same":
                self._join(new, old)
                return
            if what != "beside":
                self._settle(earlier, later, retire=what == "supersedes")
                return
        self._compare(new, old)

    def _follows(self, later: Memory, earlier: Memory) -> bool:
        """Return whether both memories have the same source, or a person says what so far a tool said."""
        new, old = self.sources.of(later), self.sources.of(earlier)
        return bool(new & old) or (any(map(_is_person, new)) and all(map(_is_tool, old)))

    def _is_related(self, new: Memory, old: Memory) -> bool:
        """Return whether the change itself states how the two relate."""
        replaced = {*self.after(new).supersedes, *self.after(old).supersedes}
        pair = {new.memory_id, old.memory_id}
        return not pair.isdisjoint(replaced) or any(
            link.type in _TOLD and pair_of(link) == pair for link in self.links.values()
        )

    def _settle(self, earlier: Memory, later: Memory, *, retire: bool) -> None:
        """Let the later value of a slot take the place of the earlier, or hold the two apart."""
        if retire and not (earlier.firm or earlier.is_core or self._of_all(earlier)):
            now = self.after(earlier)
            ends = now.valid_to or later.valid_from or later.said_at
            self._revise(earlier, now.evolve(status="superseded", valid_to=ends), "supersede")
            heir = self.after(later)
            replaced = tuple(dict.fromkeys((*heir.supersedes, earlier.memory_id)))
            self._revise(later, heir.evolve(supersedes=replaced), "supersede")
            return
        new, old = (earlier, later) if earlier.memory_id in self.planned else (later, earlier)
        self._contradict(new, old, f"Both hold {new.canonical_topic}.")

    def _of_all(self, memory: Memory) -> bool:
        """Return whether it takes consensus to change a memory, and this change has none."""
        return is_shared(memory.partition) and not self.changes.at_home

    def _join(self, new: Memory, old: Memory) -> None:
        """Merge a new memory into an old one that gives the slot the same value."""
        change = self.planned[new.memory_id]
        if (
            change.expected_version
            or old.firm
            or self._of_all(old)
            or not holds(old, new.canonical_topic, new.slot_value)
        ):
            return  # an update stays what it is; and the same words are one memory where the ledger commits them
        kept, spoken = self.after(old), self._from_person(new)
        corroborated = kept.evolve(
            evidence=tuple(dict.fromkeys((*kept.evidence, *new.evidence))),
            block_ids=tuple(dict.fromkeys((*kept.block_ids, *new.block_ids))),
            tags=tuple(dict.fromkeys((*kept.tags, *new.tags))),
            merges=kept.merges + spoken,
            layer="long_term" if spoken and kept.layer == "episodic" else kept.layer,
            supersedes=tuple(
                dict.fromkeys((*kept.supersedes, *(each for each in new.supersedes if each != kept.memory_id)))
            ),
            said_at=max(kept.said_at, new.said_at),
        )
        del self.planned[new.memory_id]
        self.joined.add(new.memory_id)
        self._revise(old, corroborated, "corroborate")
        moved = [self._moved(link, new.memory_id, old.memory_id) for link in self.links.values()]
        self.links = {}
        for link in moved:
            if link.source_id != link.target_id:
                self._link(link)

    def _from_person(self, new: Memory) -> bool:
        """Return whether a person said it, and not only an agent, which may repeat what it recalled."""
        return any(map(_is_person, self.sources.of(new))) and new.perspective != "first-person"

    @staticmethod
    def _moved(link: Link, gone: str, kept: str) -> Link:
        ends = {"source_id": link.source_id, "target_id": link.target_id}
        return link.evolve(**{name: kept if end == gone else end for name, end in ends.items()})

    def _compare(self, new: Memory, old: Memory) -> None:
        """Link or dispute two items, as their keys relate."""
        finding = compare(new, old)
        if finding is None or finding.kind == "redundancy":
            return
        if finding.kind == "contradiction":
            self._contradict(new, old, finding.reason)
            return
        more, less = (new, old) if finding.kind == "superset" else (old, new)
        self._link(_link_of(more, "superset_of", less, finding.reason))
        self._link(_link_of(less, "related", more, finding.reason))

    def _contradict(self, new: Memory, old: Memory, reason: str) -> None:
        if new.firm or old.firm:
            self._link(_link_of(new, "may_contradict", old, reason))
            return
        self._link(_link_of(new, "contradicts", old, reason))
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
        over = set(settled(self.changes.links))
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
        """Change a memory, within the change that it already has or in a new one."""
        planned = self.planned.get(memory.memory_id)
        if planned is not None:
            self.planned[memory.memory_id] = planned.evolve(memory=now)
            return
        new = now.evolve(version=memory.version + 1, recorded_at=self.changes.recorded_at)
        self.planned[memory.memory_id] = MemoryChange(memory=new, expected_version=memory.version, action=action)

    def _link(self, link: Link) -> None:
        self.links.setdefault((link.source_id, link.type, link.target_id), link)


def _ids(changes: ChangeSet) -> set[str]:
    return {change.memory.memory_id for change in changes.changes}


def _begins(change: MemoryChange) -> bool:
    """Return whether a memory is known from this change on: it is new, waited until now, or its content changed."""
    return change.expected_version == 0 or change.action in {"agree", APPROVE, UPDATE}


def _link_of(source: Memory, kind: LinkType, target: Memory, reason: str) -> Link:
    return Link(source_id=source.memory_id, type=kind, target_id=target.memory_id, reason=reason)
