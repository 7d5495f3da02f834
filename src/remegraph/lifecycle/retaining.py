"""Memories with what they fade by: the one place where heads, accesses and an agent's settings come together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from remegraph.models import Access, Fading, Memory, Partition, Weight
from remegraph.ports import Archive
from remegraph.rules.retention import Life, RetentionPolicy, life_of, retention
from remegraph.settings import LifecyclePolicy

__all__ = ["Retained", "SettingsOf", "Unwritten", "forecast", "retained"]

SettingsOf = Callable[[Partition], LifecyclePolicy]
"""How memories of a partition live on: as the settings of the agent say whose it is."""

Unwritten = Mapping[tuple[Partition, str], Sequence[Access]]
"""Reviews that are not in the ledger yet, oldest first, by place and memory."""


@dataclass(frozen=True, slots=True)
class Retained:
    """A memory and how it fades."""

    memory: Memory
    life: Life
    policy: RetentionPolicy

    def weight(self, at: datetime) -> Weight:
        """Return what is left of it at a time, and why."""
        return self.policy.explain(self.life, at)

    def forget_at(self) -> datetime | None:
        """Return when its weight falls under the threshold; None: never."""
        return self.policy.forget_at(self.life)

    def until(self, at: datetime) -> Retained:
        """Return it with what had happened by a time."""
        return Retained(self.memory, self.life.until(at), self.policy)


def retained(
    archive: Archive, memories: Sequence[Memory], settings_of: SettingsOf, unwritten: Unwritten
) -> Iterator[Retained]:
    """Yield memories with how they fade.

    Args:
        archive: Holds their reviews.
        memories: In their head versions.
        settings_of: How those of a partition live on.
        unwritten: Reviews that it does not hold yet.
    """
    places = list(dict.fromkeys(memory.partition for memory in memories))
    known = archive.accesses(places, [memory.memory_id for memory in memories])
    for memory in memories:
        key = memory.partition, memory.memory_id
        accesses = (*known[key], *unwritten.get(key, ()))
        yield Retained(memory, life_of(memory, accesses), retention(memory, settings_of(memory.partition)))


def forecast(found: Sequence[Retained], at: datetime, until: datetime) -> tuple[Fading, ...]:
    """Return what will be forgotten by a time, the next first.

    Args:
        found: The memories.
        at: Now.
        until: The time.
    """
    fading = [
        Fading(memory=each.memory, weight=each.weight(at).value, forget_at=time)
        for each in found
        if (time := each.forget_at()) is not None and time <= until
    ]
    return tuple(sorted(fading, key=lambda each: (each.forget_at, each.memory.memory_id)))
