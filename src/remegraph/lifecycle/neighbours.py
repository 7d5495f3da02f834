"""Ties between long-term memories: none stands alone, and most have two neighbours at least (B7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from heapq import nsmallest
from operator import itemgetter

from remegraph.models import Abstraction, Link, Memory
from remegraph.rules.terms import Lexicon

__all__ = ["WANTED", "Ties", "lifted"]

WANTED = 2
"""Neighbours of a long-term memory, where there are so many."""


_LIFTED = frozenset({"causes", "depends_on", "is_a", "superset_of"})


def lifted(links: Sequence[Link], sources: Mapping[str, frozenset[str]], lasting: Collection[str]) -> list[Link]:
    """Return the links that long-term memories lack although what they came from has them: a cause remains a cause.

    Args:
        links: All links.
        sources: What each long-term memory was abstracted from.
        lasting: The live long-term memories.
    """
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
    """Who is tied to whom in one partition. Where a memory came from is no tie.

    Args:
        memories: Its live memories.
        links: Links between them.
        sources: What each long-term memory was abstracted from.
    """

    def __init__(
        self, memories: Iterable[Memory], links: Iterable[Link], sources: Mapping[str, frozenset[str]]
    ) -> None:
        self._memories = {memory.memory_id: memory for memory in memories}
        self._sources = sources
        self._lexicon = Lexicon((memory.content for memory in self._memories.values()), names=())
        self._words = {name: self._told(memory) for name, memory in self._memories.items()}
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
        self._words[memory.memory_id] = self._told(memory)

    def drop(self, memory_id: str) -> None:
        """Forget a memory: nobody is tied to it."""
        del self._memories[memory_id]
        for other in self._near.pop(memory_id, set()):
            self._near[other].discard(memory_id)

    def alone(self, memory_id: str) -> bool:
        """Return whether a memory has no neighbour."""
        return not self._near[memory_id]

    def missing(self, memory_id: str) -> list[Link]:
        """Return the links that a long-term memory lacks: to those most like it, long-term ones before others."""
        wanted = WANTED - len(self._near[memory_id])
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

    def _told(self, memory: Memory) -> frozenset[str]:
        abstraction = Abstraction.of(memory)
        return frozenset(abstraction.terms) if abstraction else self._lexicon.words(memory.content)
