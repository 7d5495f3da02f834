"""What another agent gives: what it may give, how far it is believed, how much of an answer it may make (B11, X6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from remegraph.models import GRANTABLE, Hit, Layer, Memory, Origin
from remegraph.settings import SharingPolicy

__all__ = ["believed", "excess", "fair", "source_of", "ungrantable"]


def ungrantable(memory: Memory, layers: Sequence[Layer]) -> str | None:
    """Return why a memory cannot be read through a grant of these layers; nothing where it can.

    Args:
        memory: The memory.
        layers: Those of the grant.
    """
    if memory.topic.type == "self":
        return "is what the agent knows of itself, and that is nobody else's"
    if not memory.live:
        return f"is {memory.status}, and only live memories are read through a grant"
    if memory.layer not in layers:
        named = f"only {', '.join(layers)} {'is' if len(layers) == 1 else 'are'} granted"
        return f"is of layer {memory.layer}, and {named if memory.layer in GRANTABLE else 'that is never shared'}"
    return None


def believed(trust: float, source: str, policy: SharingPolicy) -> float:
    """Return how far something is believed that another agent gave: no further than itself, nor than its source.

    Args:
        trust: How far the source believes it.
        source: Name of the agent, or key of the pack.
        policy: How far whom.
    """
    return min(trust, policy.trust.get(source, policy.default_trust))


def source_of(origin: Origin | None, reader: str | None) -> str:
    """Return the other agent, or the pack, that alone stands behind a memory; empty: it is the reader's own, or agreed on.

    Where nothing proves from whom it is, the agent that it is said to be from counts.

    Args:
        origin: From whom it came.
        reader: The agent that reads.
    """
    if origin is None or reader in origin.agents:
        return ""
    if origin.via == "pack":
        return f"pack {origin.pack_id}"
    agreed = origin.via == "consensus" and len(origin.agents) > 1
    first = next((name for name in (*origin.agents, origin.claimed) if name), "anybody")
    return "" if agreed else f"agent {first}"


def fair(hits: Sequence[Hit], k: int, share: float, reader: str | None) -> tuple[list[Hit], list[Hit]]:
    """Return the best k hits of which no other source makes more than its share, and those that made way for it.

    What made way is followed by the next best. What is the reader's own never makes way, nor does what stands alone.

    Args:
        hits: What was found, best first.
        k: How many at most.
        share: Most of the hits that one other agent or pack may make.
        reader: The agent that reads.
    """
    left = [(source_of(hit.origin, reader), hit) for hit in hits]
    gone: list[Hit] = []
    while (place := excess([source for source, _ in left[:k]], share)) is not None:
        gone.append(left.pop(place)[1])
    return [hit for _, hit in left[:k]], gone


def excess(sources: Sequence[str], share: float) -> int | None:
    """Return the place of the last thing of the source that has most over its share; nothing where none has.

    Args:
        sources: Of each thing, best first; empty: no other source.
        share: Most of all of them that one other source may make.
    """
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, source in enumerate(sources):
        if source:
            places[source].append(place)
    most = max(places.values(), key=len, default=[])
    over = len(most) > share * len(sources) and len(sources) > 1
    return most[-1] if over else None
