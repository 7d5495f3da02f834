"""Which contradictions are open, and what that does to a memory (K4, G7).

Two memories are in conflict where a link says that they contradict each other, or may, and both are live. A link
`settled` between the two, whose reason is the decision, ends it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from remegraph.models import (
    Link,
    LinkType,
    Memory,
)

__all__ = ["CONTRARY", "TELLING", "Pair", "at_variance", "crowded", "disputed", "opposing", "pair_of", "settled"]

CONTRARY: tuple[LinkType, ...] = ("contradicts", "may_contradict")
"""Links of which each says that its two ends do not agree."""

TELLING: tuple[LinkType, ...] = (*CONTRARY, "settled")
"""Links that tell which contradictions there are, and which of them are settled."""

_RAISE = 0.1
"""How much more important a memory in dispute is."""

_LIMIT = 0.89
"""Only a person makes a core rule of it."""

Pair = frozenset[str]
"""The ids of two memories."""


def pair_of(link: Link) -> Pair:
    """Return both ends of a link, whichever way it goes."""
    return frozenset({link.source_id, link.target_id})


def settled(links: Iterable[Link]) -> dict[Pair, str]:
    """Return which pairs are settled, and how."""
    return {pair_of(link): link.reason for link in links if link.type == "settled"}


def opposing(links: Collection[Link], *, shown: bool = False) -> set[Pair]:
    """Return the pairs that contradict each other, or may, as far as it is not settled.

    With `shown` those count, too, that were settled by keeping both: a reader of one should see the other.
    """
    over = {pair for pair, decision in settled(links).items() if not (shown and decision == "keep_both")}
    return {pair_of(link) for link in links if link.type in CONTRARY} - over


def disputed(memory: Memory) -> Memory:
    """Return a memory as one that is in dispute, and more important by .1; what is firm or core stays what it is.

    One that is not live stays what it is.
    """
    if not memory.live or memory.is_core or memory.firm or memory.status == "disputed":
        return memory
    return memory.evolve(status="disputed", importance=max(memory.importance, min(memory.importance + _RAISE, _LIMIT)))


_CHOICE = "Add (keep them all), or let one supersede the others."


def crowded(topic: str, memory_ids: Collection[str]) -> str:
    """Return the warning that several memories hold what may have one current truth only."""
    return f"{len(memory_ids)} live memories hold {topic}: {', '.join(sorted(memory_ids))}. {_CHOICE}"


def at_variance(link: Link) -> str:
    """Return the warning that two memories contradict each other, or may."""
    verb = "contradicts" if link.type == "contradicts" else "may contradict"
    return f"Memory {link.source_id} {verb} memory {link.target_id}. {_CHOICE}"
