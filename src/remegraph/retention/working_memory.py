"""The sensory buffer and working memory of an agent, in the process and nowhere else.

The buffer holds streaming events for seconds. It says how new one is, and never what it holds: no vector, no link, no row.
What deserves attention goes on to working memory, the few chunks held for a task. No agent reaches another's, no task
another task's; a finished task leaves nothing.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from remegraph.engine.salience import telling_words
from remegraph.errors import NotFoundError
from remegraph.models import Chunk, Eviction, Partition
from remegraph.ports import Clock, NewId
from remegraph.settings import SensoryPolicy, WorkingPolicy
from remegraph.text.scripts import folded
from remegraph.text.tokens import estimate_tokens

__all__ = ["Desk", "SensoryBuffer", "WorkingMemory"]


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
        """Take in an event and return the attention that it gets."""
        with self._lock:
            self._expire()
            before = [event.raw_content for event in self._events if event.partition == partition]
        attention = score(before)  # may be the host's, and slow
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
"""Where chunks lie: the agent's own partition, and the task."""

_SAME_MATTER = 0.5
"""Share of the words, of whichever has fewer, from which on two texts are of one matter."""


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

    def says(self, text: str) -> bool:
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
        """Hold a text, and return its chunk and what had to make room.

        What a chunk says already rehearses it. What is of its matter joins it, where it has room, and rehearses it,
        too. Anything else is a new chunk, which is cut where it is too long for one.
        """
        now, text = self._clock(), text.strip()
        while (cost := estimate_tokens(text)) > self._policy.chunk_tokens:
            text = text[: len(text) * self._policy.chunk_tokens // cost]
        with self._lock:
            held = self._begin(desk)
            chunk = next((each for each in held if each.says(text)), None) or self._join(held, text)
            if chunk is not None:
                chunk.touch(now)
                return _chunk(chunk, held), ()
            evicted = _evict(held, self._policy.capacity - 1)
            held.append(_Held(self._new_id(), [text], now, now, words=set(telling_words(text))))
            return _chunk(held[-1], held), evicted

    def chunks(self, desk: Desk) -> tuple[Chunk, ...]:
        """Return what is held for a task, oldest first."""
        with self._lock:
            held = self._desks.get(desk, [])
            return tuple(_chunk(each, held) for each in held)

    def recall(self, desk: Desk, query: str) -> tuple[Chunk, ...]:
        """Return what is held for a task; a chunk that shares words with the query is thereby rehearsed."""
        now, asked = self._clock(), telling_words(query)
        with self._lock:
            held = self._begin(desk) if desk in self._desks else []
            for each in held:
                each.touch(now, rehearsed=not asked.isdisjoint(each.words))
            return tuple(_chunk(each, held) for each in held)

    def rehearse(self, desk: Desk, chunk_id: str) -> Chunk:
        """Rehearse a chunk: what is rehearsed more goes later."""
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
        """Drop the lines that say something, whatever task they are held for."""
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
        """Return what is held for a task, which is now the one used last; drop tasks that were idle longest."""
        held = self._desks.setdefault(desk, [])
        self._desks.move_to_end(desk)
        while len(self._desks) > self._policy.tasks:
            self._desks.popitem(last=False)
        return held

    def _join(self, held: list[_Held], text: str) -> _Held | None:
        """Put a text into the chunk of its matter, if there is one that has room, and return it."""
        words = telling_words(text)
        for chunk in reversed(held):
            fewer = min(len(words), len(chunk.words))
            alike = fewer and len(chunk.words & words) / fewer >= _SAME_MATTER
            if alike and estimate_tokens(f"{chunk.content}\n{text}") <= self._policy.chunk_tokens:
                chunk.lines.append(text)
                chunk.words |= words
                return chunk
        return None


def _evict(held: list[_Held], most: int) -> tuple[Eviction, ...]:
    """Take out what is rehearsed least, of that what lay idle longest, until so many are left."""
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
