"""Memory available without a query: the sensory buffer and working memory of an agent, and the active tier of a scope.

The buffer and working memory exist only in the process. The buffer holds streaming events for seconds. It reports how
new an event is, and never what it contains: no vector, no link, no row. What deserves attention moves to working
memory, the few chunks held for a task. No agent reaches another's, no task another task's; a finished task leaves
nothing.

The active tier (MEK, 2.1.2; K2) is the few memories held ready. A memory rises by use and falls with time. Each review
is worth a point, two where an answer drew on it, times .5 and its importance; half of that is gone after each week.
From 6 points on a memory is active, until less than 2 are left: the gap between the two keeps it from moving up and
down with every question, and no burst of use counts more than 12. Core rules are always active. `kit.retention.pin`
overrules all that. Half-life, points and bounds are our own choice: the protocol says only "most relevant to the
current task or most frequently accessed". It follows from the ledger and the time, so a restart computes the same. A
result is valid until the ledger's journal or reviews grow, in any process, or until the next memory is due to leave.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING

from remegraph.engine.salience import content_words
from remegraph.errors import NotFoundError
from remegraph.models import LIVE, Access, ChangeSet, Chunk, Eviction, Memory, Partition, Scope, Tier
from remegraph.models.standing import always_active, recency_decay
from remegraph.models.supersession import revision
from remegraph.ports import Clock, NewId, Pulse
from remegraph.settings import SensoryPolicy, Settings, WorkingPolicy
from remegraph.text.scripts import folded
from remegraph.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = [
    "MEMORY_OF_USE",
    "ActiveTier",
    "Desk",
    "SensoryBuffer",
    "Standing",
    "WorkingMemory",
    "drawn_on",
    "pin",
    "standing",
    "tier_of",
]

Score = Callable[[list[str]], float]
"""Scores an event, given the texts of those before it."""


@dataclass(frozen=True, slots=True)
class _Event:
    timestamp: datetime
    source: str
    attention_score: float
    raw_content: str
    partition: Partition


class SensoryBuffer:
    """Holds events for their time to live, at most so many. Use it from any thread."""

    def __init__(self, policy: SensoryPolicy, clock: Clock) -> None:
        self._ttl = policy.ttl
        self._clock = clock
        self._lock = Lock()
        self._events: deque[_Event] = deque(maxlen=policy.capacity)

    def sense(self, partition: Partition, content: str, *, source: str, score: Score) -> float:
        """Add an event and return the attention that it gets."""
        with self._lock:
            self._expire()
            before = [event.raw_content for event in self._events if event.partition == partition]
        attention = score(before)  # may be the host's code, and slow
        with self._lock:
            self._events.append(_Event(self._clock(), source, attention, content, partition))
        return attention

    def __len__(self) -> int:
        with self._lock:
            self._expire()
            return len(self._events)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._events.clear()

    def _expire(self) -> None:
        """Forget expired events, and future ones after the clock was set back."""
        now = self._clock()
        while self._events and not timedelta(0) <= now - self._events[0].timestamp < self._ttl:
            self._events.popleft()


Desk = tuple[Partition, str]
"""Where chunks belong: the agent's own partition, and the task."""

_SAME_MATTER = 0.5
"""Share of the words, of the text that has fewer, from which two texts are about the same matter."""


@dataclass(slots=True)
class _Held:
    chunk_id: str
    lines: list[str]
    created_at: datetime
    last_accessed: datetime
    rehearsals: int = 0
    words: set[str] = field(default_factory=set)

    @property
    def content(self) -> str:
        return "\n".join(self.lines)

    def includes(self, text: str) -> bool:
        return any(folded(line) == folded(text) for line in self.lines)

    def touch(self, now: datetime, *, rehearsed: bool = True) -> None:
        self.last_accessed = now
        self.rehearsals += rehearsed


class WorkingMemory:
    """The chunks of all agents and tasks, one task at a time. Use it from any thread."""

    def __init__(self, policy: WorkingPolicy, new_id: NewId, clock: Clock) -> None:
        self._policy = policy
        self._new_id = new_id
        self._clock = clock
        self._lock = Lock()
        self._desks: OrderedDict[Desk, list[_Held]] = OrderedDict()
        """By agent and task; the one used last comes last."""

    def hold(self, desk: Desk, text: str) -> tuple[Chunk, tuple[Eviction, ...]]:
        """Hold a text, and return its chunk and the evicted ones.

        A text that a chunk already has rehearses it. A text on its matter joins it, if it has room, and rehearses it,
        too. Anything else is a new chunk, cut if it is too long for one.
        """
        now, text = self._clock(), text.strip()
        while (cost := estimate_tokens(text)) > self._policy.chunk_tokens:
            text = text[: len(text) * self._policy.chunk_tokens // cost]
        with self._lock:
            held = self._begin(desk)
            chunk = next((each for each in held if each.includes(text)), None) or self._join(held, text)
            if chunk is not None:
                chunk.touch(now)
                return _chunk(chunk, held), ()
            evicted = _evict(held, self._policy.capacity - 1)
            held.append(_Held(self._new_id(), [text], now, now, words=set(content_words(text))))
            return _chunk(held[-1], held), evicted

    def chunks(self, desk: Desk) -> tuple[Chunk, ...]:
        """Return what is held for a task, oldest first."""
        with self._lock:
            held = self._desks.get(desk, [])
            return tuple(_chunk(each, held) for each in held)

    def recall(self, desk: Desk, query: str) -> tuple[Chunk, ...]:
        """Return what is held for a task; a chunk that shares words with the query is thereby rehearsed."""
        now, asked = self._clock(), content_words(query)
        with self._lock:
            held = self._begin(desk) if desk in self._desks else []
            for each in held:
                each.touch(now, rehearsed=not asked.isdisjoint(each.words))
            return tuple(_chunk(each, held) for each in held)

    def rehearse(self, desk: Desk, chunk_id: str) -> Chunk:
        """Rehearse a chunk: the more it is rehearsed, the later it is evicted."""
        with self._lock:
            held = self._desks.get(desk, [])
            for each in held:
                if each.chunk_id == chunk_id:
                    each.touch(self._clock())
                    return _chunk(each, held)
        raise NotFoundError(f"Working memory holds no chunk {chunk_id!r} for this task.")

    def end(self, desk: Desk) -> int:
        """Forget all that is held for a task, and return how many chunks that were."""
        with self._lock:
            return len(self._desks.pop(desk, []))

    def discard(self, homes: Collection[Partition], says: Callable[[str], bool]) -> None:
        """Drop the lines that match, for any task."""
        with self._lock:
            for (home, _), held in self._desks.items():
                for each in held if home in homes else ():
                    each.lines = [line for line in each.lines if not says(line)]
                held[:] = [each for each in held if each.lines]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._desks.clear()

    def _begin(self, desk: Desk) -> list[_Held]:
        """Return what is held for a task, which is now the last used; drop the tasks idle longest."""
        held = self._desks.setdefault(desk, [])
        self._desks.move_to_end(desk)
        while len(self._desks) > self._policy.tasks:
            self._desks.popitem(last=False)
        return held

    def _join(self, held: list[_Held], text: str) -> _Held | None:
        """Put a text into the chunk on its matter, if one has room, and return that."""
        words = content_words(text)
        for chunk in reversed(held):
            fewer = min(len(words), len(chunk.words))
            alike = fewer and len(chunk.words & words) / fewer >= _SAME_MATTER
            if alike and estimate_tokens(f"{chunk.content}\n{text}") <= self._policy.chunk_tokens:
                chunk.lines.append(text)
                chunk.words |= words
                return chunk
        return None


def _evict(held: list[_Held], most: int) -> tuple[Eviction, ...]:
    """Evict what is rehearsed least, of that what was idle longest, until this many are left."""
    evicted: list[Eviction] = []
    while len(held) > most:
        least = min(held, key=lambda each: (each.rehearsals, each.last_accessed))
        reason = f"rehearsed least, {least.rehearsals} times, of the {len(held)} chunks that there is room for"
        evicted.append(Eviction(chunk=_chunk(least, held), reason=reason))
        held.remove(least)
    return tuple(evicted)


def _chunk(held: _Held, among: list[_Held]) -> Chunk:
    return Chunk(
        chunk_id=held.chunk_id,
        content=held.content,
        created_at=held.created_at,
        last_accessed=held.last_accessed,
        rehearsals=held.rehearsals,
        links=tuple(each.chunk_id for each in among if each is not held and not held.words.isdisjoint(each.words)),
    )


# ------------------------------------------------------------------------------------------- the active tier

_HALF_LIFE = 7
_UP, _DOWN, _MOST = 6.0, 2.0, 12.0
_DAY = timedelta(days=1)

MEMORY_OF_USE = _HALF_LIFE * math.log2(_MOST / _DOWN) * _DAY
"""A memory without a review for this long cannot be active by use."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a memory is active, and until when if it is not used."""

    active: bool
    points: float = 0.0
    until: datetime | None = None


def standing(memory: Memory, reviews: Sequence[Access], at: datetime) -> Standing:
    """Return the tier of a memory at a time; it depends only on the log, and not on who computes it or how often.

    The reviews come oldest first.
    """
    if always_active(memory):
        return Standing(active=True, points=_MOST)
    if not memory.live or memory.resident is False:
        return Standing(active=False)
    active, points, last = False, 0.0, None
    for time, used in reviews:
        if time > at:
            break
        points = _left(points, last, time)
        active = active and points >= _DOWN
        points = min(points + (2 if used else 1) * (0.5 + memory.importance), _MOST)
        active = active or points >= _UP
        last = time
    left = _left(points, last, at)
    if not active or last is None or left < _DOWN:
        return Standing(active=False, points=left)
    return Standing(active=True, points=left, until=last + _HALF_LIFE * math.log2(points / _DOWN) * _DAY)


def _left(points: float, since: datetime | None, at: datetime) -> float:
    return points * recency_decay((at - since) / _DAY, _HALF_LIFE) if since is not None else points


def tier_of(memory: Memory, *, active: bool, derived: bool) -> Tier:
    """Return the tier that a memory is in."""
    if active:
        return "active"
    condensed = memory.layer == "procedural" or (memory.layer == "long_term" and derived)
    return "compressed" if condensed else "long_term"


_SCOPES = 1000
"""Scopes cached; the one idle longest is dropped first."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    pulse: Mapping[Partition, Pulse]
    since: datetime
    until: datetime | None
    memories: tuple[Memory, ...]

    def serves(self, pulse: Mapping[Partition, Pulse], now: datetime) -> bool:
        return self.pulse == pulse and self.since <= now and (self.until is None or now < self.until)


class ActiveTier:
    """The active memories of all scopes. Use it from any thread."""

    def __init__(self, archive: Archive, settings: Settings, clock: Clock) -> None:
        self._archive = archive
        self._settings = settings
        self._clock = clock
        self._lock = Lock()
        self._held: OrderedDict[Scope, _Snapshot] = OrderedDict()

    def of(self, scope: Scope) -> tuple[Memory, ...]:
        """Return the active memories of a scope: permanent ones by importance, then the most used."""
        now, pulse = self._clock(), self._archive.pulse(scope)
        with self._lock:
            held = self._held.get(scope)
        if held is None or not held.serves(pulse, now):
            held = self._computed(pulse, now, self._settings.for_agent(scope.agent).lifecycle.active_entries)
        with self._lock:
            self._held[scope] = held
            self._held.move_to_end(scope)
            while len(self._held) > _SCOPES:
                self._held.popitem(last=False)
        return held.memories

    def _computed(self, pulse: Mapping[Partition, Pulse], now: datetime, most: int) -> _Snapshot:
        partitions = list(pulse)
        ids = self._archive.in_use(partitions, since=now - MEMORY_OF_USE) if most else ()
        found = self._archive.memories(partitions, ids=ids, statuses=sorted(LIVE)) if ids else ()
        known = self._archive.accesses(partitions, [memory.memory_id for memory in found]) if found else {}
        stand = [(memory, standing(memory, known[memory.partition, memory.memory_id][1:], now)) for memory in found]
        active = [(memory, each) for memory, each in stand if each.active]
        active.sort(key=lambda pair: (-pair[1].points, -pair[0].importance, pair[0].memory_id))
        ends = [each.until for _, each in active if each.until is not None]
        return _Snapshot(pulse, now, min(ends, default=None), tuple(memory for memory, _ in active[:most]))


def pin(
    archive: Archive,
    partitions: Sequence[Partition],
    memory_id: str,
    *,
    resident: bool,
    actor: str,
    at_home: bool,
    at: datetime,
    operation_id: str,
) -> Memory:
    """Make a memory always active, or never."""
    found = archive.memories(partitions, ids=[memory_id], statuses=sorted(LIVE)) if partitions else ()
    if not found:
        raise NotFoundError(f"There is no live memory {memory_id!r} here.")
    (memory,) = found
    if memory.resident is resident:
        return memory
    change = revision(memory, at, "activate" if resident else "deactivate", resident=resident)
    archive.commit(
        ChangeSet(operation_id=operation_id, actor=actor, recorded_at=at, at_home=at_home, changes=(change,))
    )
    (memory,) = archive.memories([memory.partition], ids=[memory_id])
    return memory


_DRAWN = 0.5
"""Mean of two shares: how much of what only the memory has is in the answer, and how much of the answer the memory has."""


def drawn_on(answer: str, question: str, memories: Mapping[str, str]) -> list[str]:
    """Return the ids of the memories that an answer used, by words alone; words of the question do not count.

    A word counts less, the more of the memories hold it, and only for those that say most of the answer, then of
    the question: "celery" points to Tom where Tom was asked for. Of the two shares, the first alone would find every
    short memory in a long answer, the second every long memory in a short one. An answer that repeats a memory is
    found nearly always; one that puts it in other words often is not: `python -m evals used` measures both errors.
    """
    asked = content_words(question)
    news = content_words(answer) - asked
    told = {memory_id: content_words(text) for memory_id, text in memories.items()}
    own = {memory_id: words - asked for memory_id, words in told.items()}
    held_by = Counter(word for words in own.values() for word in words)
    fit = {memory_id: (len(words & news), len(words & asked)) for memory_id, words in told.items()}
    best = {word: max(fit[memory_id] for memory_id in own if word in own[memory_id]) for word in news & held_by.keys()}

    def worth(words: Iterable[str]) -> float:
        return sum(1 / max(held_by[word], 1) for word in words)

    def share(memory_id: str) -> float:
        common = worth(word for word in own[memory_id] & news if best[word] == fit[memory_id])
        return (common / worth(own[memory_id]) + common / worth(news)) / 2 if common else 0.0

    return [memory_id for memory_id in own if share(memory_id) >= _DRAWN]
