"""What a found record is worth now: how sure it is, how old, and whether it still holds (K5)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from remegraph.models import Abstraction, Hit, Standing

__all__ = ["APPROVE", "QUARANTINE_BELOW", "confidence", "dated", "recounted"]

QUARANTINE_BELOW = 0.5
"""Trust under which a memory waits for approval instead of being recalled."""

APPROVE = "approve"
"""The action by which a memory that waited for approval holds from now on: it is weighed like a new one."""


def confidence(trust: float, said: int, against: int) -> float:
    """Return how sure it is that a memory holds, 0 to 1: never more than its trust.

    After Laplace's rule of succession: said s times and contradicted by a memories, it is (s + 1) / (s + a + 2). Said
    once, two in three; said again, more; contradicted once, one in two.

    Args:
        trust: How far those who said it are believed.
        said: How often it was said.
        against: Live memories that it contradicts.
    """
    return trust * (said + 1) / (said + against + 2)


def recounted(old: Abstraction, *, said: int, against: int, trust: float) -> Abstraction:
    """Return what is kept beside a conclusion, counted anew.

    Args:
        old: What was kept.
        said: How often its sources said so.
        against: Memories that say the contrary.
        trust: The least of the sources.
    """
    sure = confidence(trust, said, against)
    return old.evolve(confidence=sure, corroborations=said, contradictions=against)


def dated(hits: Iterable[Hit], now: datetime) -> tuple[Hit, ...]:
    """Return hits with their age and standing as of a time.

    Args:
        hits: What was found.
        now: When it was asked for.
    """
    # copied, not validated anew: it is done for every hit of every recall
    return tuple(hit.model_copy(update={"age": now - hit.time, "standing": _standing(hit, now)}) for hit in hits)


def _standing(hit: Hit, now: datetime) -> Standing:
    if hit.status == "superseded":
        return "superseded"
    return "expired" if hit.valid_to is not None and hit.valid_to <= now else "current"
