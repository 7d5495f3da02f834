"""From whom a memory comes that is made of others: what another agent gave stays attributed, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Iterable

from remegraph.models import Memory, Origin

__all__ = ["borne_out", "derived"]


def derived(sources: Iterable[Memory]) -> Origin | None:
    """Return the origin of a memory that is made of others: all agents of theirs; none where all are the agent's own.

    Args:
        sources: The others, the one that counts most first.
    """
    given = [memory.origin for memory in sources if memory.origin is not None]
    if not given:
        return None
    first, *others = given
    for other in others:
        first = borne_out(first, other)
    return first


def borne_out(origin: Origin, other: Origin) -> Origin:
    """Return an origin with the agents of another behind its own.

    Args:
        origin: Where a memory came from first.
        other: Where it, or what it was put together with, came from as well.
    """
    return origin.evolve(agents=tuple(dict.fromkeys((*origin.agents, *other.agents))), at=max(origin.at, other.at))
