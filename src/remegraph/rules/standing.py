"""What a found record is worth now: how sure it is, how old, and whether it still holds (K5)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from remegraph.models import Hit, Memory, Standing

__all__ = ["confidence", "dated"]


def confidence(memory: Memory, against: int = 0) -> float:
    """Return how sure it is that a memory holds, 0 to 1: never more than its trust.

    After Laplace's rule of succession: of s times that it was said and a memories that say the contrary, it is
    (s + 1) / (s + a + 2). Said once, two in three; said again, more; contradicted once, one in two.

    Args:
        memory: The memory.
        against: Live memories that it contradicts.
    """
    said = 1 + memory.merges
    against = max(against, memory.status == "disputed")
    return memory.trust * (said + 1) / (said + against + 2)


def dated(hits: Iterable[Hit], now: datetime) -> tuple[Hit, ...]:
    """Return hits with their age and standing as of a time.

    Args:
        hits: What was found.
        now: When it was asked for.
    """
    return tuple(hit.evolve(age=now - hit.time, standing=_standing(hit, now)) for hit in hits)


def _standing(hit: Hit, now: datetime) -> Standing:
    if hit.status == "superseded":
        return "superseded"
    return "expired" if hit.valid_to is not None and hit.valid_to <= now else "current"
