"""Forgetting: how much of a memory is left at a time, by several curves, and when it will be forgotten."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from remegraph.ledger.archive import Archive
from remegraph.models import Access, Fading, Layer, Memory, Partition, Weight
from remegraph.models.standing import frequency, recency_decay
from remegraph.settings import LifecyclePolicy

__all__ = [
    "ForgettingCurve",
    "HealthScore",
    "Kept",
    "Life",
    "PriorityDecay",
    "Retained",
    "RetentionPolicy",
    "SettingsOf",
    "Unwritten",
    "forecast",
    "life_of",
    "retained",
    "retention",
]

_DAY = timedelta(days=1)

_GAIN = 1.5
"""A review of an almost forgotten memory multiplies the half-life by 1 + this."""

_HALF_LIVES = {"curve": 28.0, "health": 14.0}
"""Default half-lives in days. Health: as published. Curve: what is asked for every two weeks must outlast its
first, longest pause; with 14, one in seven of such facts was gone before it was asked for (`python -m evals retention`)."""

_LASTING = 4
"""The first half-life is this many times longer for more than an episode: saved explicitly, said twice, or a skill."""

_REINFORCED = 2
"""Priority gained by a point: a fifth of what repetition gains."""

_HIGHEST = 200
"""The highest priority of the memory layer RFC."""


@dataclass(frozen=True, slots=True)
class Life:
    """Inputs of a weight."""

    learned: datetime
    said_again: datetime | None
    """When its newest evidence was said, if that was after it was learned."""
    reviews: tuple[Access, ...]
    """Oldest first."""
    importance: float
    priority: int
    layer: Layer = "episodic"

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All accesses, the learning first."""
        again = () if self.said_again is None else (Access(self.said_again),)
        return (Access(self.learned), *sorted((*again, *self.reviews)))

    @property
    def uses(self) -> int:
        """How many of the reviews were answers that used it."""
        return sum(review.used for review in self.reviews)

    @property
    def points(self) -> int:
        """Its reviews; those in which an answer drew on it count double."""
        return len(self.reviews) + self.uses

    def until(self, at: datetime) -> Life:
        """Return it as of a time."""
        again = self.said_again if self.said_again is not None and self.said_again <= at else None
        return replace(self, said_again=again, reviews=tuple(review for review in self.reviews if review.at <= at))


def life_of(memory: Memory, accesses: Sequence[Access]) -> Life:
    """Return the life of a memory."""
    (learned, _), *reviews = accesses
    return Life(
        learned=learned,
        said_again=memory.said_at if memory.said_at > learned else None,
        reviews=tuple(review._replace(at=max(review.at, learned)) for review in reviews),  # clocks of machines differ
        importance=memory.importance,
        priority=memory.priority,
        layer=memory.layer,
    )


class RetentionPolicy(ABC):
    """How memories fade."""

    __slots__ = ()

    @abstractmethod
    def forget_at(self, life: Life) -> datetime | None:
        """Return when the weight falls under the threshold if nothing more happens; None: never."""

    @abstractmethod
    def explain(self, life: Life, at: datetime) -> Weight:
        """Return the weight at a time, 0 to 1, with its formula and numbers; only what happened by then counts."""

    def weight(self, life: Life, at: datetime) -> float:
        """Return the weight at a time."""
        return self.explain(life, at).value


@dataclass(frozen=True, slots=True)
class ForgettingCurve(RetentionPolicy):
    """Ebbinghaus' curve, with a stability that reviews build up: the more, the longer they were apart.

    Retrievability falls by half with each half-life since the last access. A review lengthens the half-life by 1.5 × (1
    - retrievability): much after a long pause, hardly at all right away. Reviews in which an answer drew on the memory
    build up as much once more, however soon they follow: a hit is a guess that it was wanted, a use confirms it. Two
    components, and why massed reviews help little: Woźniak, Gorzelańczyk and Murakowski, "Two components of long-term
    memory", Acta Neurobiologiae Experimentalis 55 (1995), after Ebbinghaus, "Über das Gedächtnis" (1885). The gains,
    and how importance and layer lengthen the first half-life, are our own choice.
    """

    half_life: float
    """Days, of an episode of middling importance (priority 50)."""
    threshold: float

    def forget_at(self, life: Life) -> datetime | None:
        """Return the last access and as many half-lives as it takes."""
        half_life, last = self._stability(life)
        return _after(last, half_life * math.log2(1 / self.threshold)) if self.threshold else None

    def explain(self, life: Life, at: datetime) -> Weight:
        """Return the retrievability with its numbers."""
        life = life.until(at)
        half_life, last = self._stability(life)
        days = _days(last, at)
        return Weight(
            policy="curve",
            value=recency_decay(days, half_life),
            formula="0.5 ^ (days / half_life)",
            numbers={
                "days": days,
                "half_life": half_life,
                "first_half_life": self._first(life),
                "reviews": len(life.reviews),
                "uses": life.uses,
                "threshold": self.threshold,
            },
        )

    def _first(self, life: Life) -> float:
        return self.half_life * (0.5 + life.priority / 100) * (1 if life.layer == "episodic" else _LASTING)

    def _stability(self, life: Life) -> tuple[float, datetime]:
        """Return the half-life that all accesses have built up, in days, and the last of them."""
        times = [access.at for access in life.accesses]
        first, uses = self._first(life), [life.learned, *(review.at for review in life.reviews if review.used)]
        return _grown(first, times) + _grown(first, uses) - first, times[-1]


@dataclass(frozen=True, slots=True)
class PriorityDecay(RetentionPolicy):
    """The memory layer RFC, section 2.8: priority × decayFactor ^ daysSinceLastAccess; a hit raises the priority.

    As a weight it is counted in hundreds, so that a threshold of .15 is a priority of 15.
    """

    factor: float
    threshold: float

    def forget_at(self, life: Life) -> datetime | None:
        """Return the last access and the days until the threshold."""
        priority, last = self._priority(life) / 100, life.accesses[-1].at
        if priority <= self.threshold:
            return last
        if self.threshold == 0 or self.factor == 1:
            return None
        return _after(last, math.log(self.threshold / priority) / math.log(self.factor))

    def explain(self, life: Life, at: datetime) -> Weight:
        """Return the decayed priority with its numbers."""
        life = life.until(at)
        priority, days = self._priority(life), _days(life.accesses[-1].at, at)
        return Weight(
            policy="priority",
            value=min(priority * self.factor**days / 100, 1.0),
            formula="priority × decay_factor ^ days / 100, at most 1",
            numbers={
                "priority": priority,
                "decay_factor": self.factor,
                "days": days,
                "reviews": len(life.reviews),
                "uses": life.uses,
                "threshold": self.threshold,
            },
        )

    @staticmethod
    def _priority(life: Life) -> int:
        return min(life.priority + _REINFORCED * life.points, _HIGHEST)


@dataclass(frozen=True, slots=True)
class HealthScore(RetentionPolicy):
    """The governance protocol, section 4.1: .4 recency since creation + .35 access frequency + .25 user weight."""

    half_life: float
    threshold: float

    def forget_at(self, life: Life) -> datetime | None:
        """Return when recency no longer makes up for the rest."""
        missing = self.threshold - self._lasting(life)
        if missing <= 0:
            return None
        return _after(life.learned, max(self.half_life * math.log2(0.4 / missing), 0.0))

    def explain(self, life: Life, at: datetime) -> Weight:
        """Return the health score with its numbers."""
        life = life.until(at)
        days = _days(life.learned, at)
        fresh = recency_decay(days, self.half_life)
        return Weight(
            policy="health",
            value=0.4 * fresh + self._lasting(life),
            formula="0.4 × recency + 0.35 × access_frequency + 0.25 × user_weight, recency = 0.5 ^ (days / half_life)",
            numbers={
                "days": days,
                "half_life": self.half_life,
                "recency": fresh,
                "access_frequency": frequency(life.points),
                "user_weight": life.importance,
                "threshold": self.threshold,
            },
        )

    @staticmethod
    def _lasting(life: Life) -> float:
        return 0.35 * frequency(life.points) + 0.25 * life.importance


@dataclass(frozen=True, slots=True)
class Kept(RetentionPolicy):
    """Does not fade."""

    why: str

    def forget_at(self, life: Life) -> datetime | None:  # noqa: ARG002 - as the policy has it
        """Return None."""
        return None

    def explain(self, life: Life, at: datetime) -> Weight:  # noqa: ARG002 - as the policy has it
        """Return 1, and why."""
        return Weight(policy="kept", value=1.0, formula=self.why)


def retention(memory: Memory, settings: LifecyclePolicy) -> RetentionPolicy:
    """Return how a memory fades."""
    if why := _kept(memory):
        return Kept(why)
    half_life = settings.half_life or _HALF_LIVES.get(settings.policy, 0.0)
    if settings.policy == "priority":
        return PriorityDecay(settings.decay_factor, settings.forget_threshold)
    if settings.policy == "health":
        return HealthScore(half_life, settings.forget_threshold)
    return ForgettingCurve(half_life, settings.forget_threshold)


def _kept(memory: Memory) -> str:
    """Return why a memory does not fade, or an empty text."""
    if memory.is_core:
        return "a core rule: its importance is .9 or more"
    if memory.usage == "knowledge":
        return "knowledge, which time does not wear"
    if memory.memory_class == "policy":
        return "a policy, which holds until it is replaced"
    if memory.topic.type == "self":
        return "what the agent knows of itself"
    return "in dispute: it waits for a decision" if memory.status == "disputed" else ""


def _grown(half_life: float, times: Sequence[datetime]) -> float:
    """Return the half-life built up by a series of times, in days."""
    for last, time in pairwise(times):
        half_life *= 1 + _GAIN * (1 - recency_decay(_days(last, time), half_life))
    return half_life


def _days(since: datetime, at: datetime) -> float:
    return max((at - since) / _DAY, 0.0)


def _after(time: datetime, days: float) -> datetime | None:
    """Return a time so many days later, or None beyond the calendar."""
    try:
        return time + timedelta(days=days)
    except OverflowError:
        return None


SettingsOf = Callable[[Partition], LifecyclePolicy]
"""Returns the lifecycle settings of the agent that a partition belongs to."""

Unwritten = Mapping[tuple[Partition, str], Sequence[Access]]
"""Reviews that the ledger does not hold yet, oldest first, by partition and memory."""


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
        """Return it as of a time."""
        return Retained(self.memory, self.life.until(at), self.policy)


def retained(
    archive: Archive, memories: Sequence[Memory], settings_of: SettingsOf, unwritten: Unwritten
) -> Iterator[Retained]:
    """Yield memories with how they fade."""
    places = list(dict.fromkeys(memory.partition for memory in memories))
    known = archive.accesses(places, [memory.memory_id for memory in memories])
    for memory in memories:
        key = memory.partition, memory.memory_id
        accesses = (*known[key], *unwritten.get(key, ()))
        yield Retained(memory, life_of(memory, accesses), retention(memory, settings_of(memory.partition)))


def forecast(found: Sequence[Retained], at: datetime, until: datetime) -> tuple[Fading, ...]:
    """Return what will be forgotten by a time, the next first."""
    fading = [
        Fading(memory=each.memory, weight=each.weight(at).value, forget_at=time)
        for each in found
        if (time := each.forget_at()) is not None and time <= until
    ]
    return tuple(sorted(fading, key=lambda each: (each.forget_at, each.memory.memory_id)))
