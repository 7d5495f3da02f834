"""The active tier: the few memories that stand ready in the process, found without a query (MEK, 2.1.2).

What belongs there follows from the ledger and the time, so a restart computes the same. What was computed serves until the
ledger's journal or its reviews go on, whoever wrote them, or until the next memory is due to leave.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from remegraph.errors import NotFoundError
from remegraph.models import LIVE, ChangeSet, Memory, MemoryChange, Partition, Scope
from remegraph.ports import Archive, Clock, Pulse
from remegraph.rules.tiers import MEMORY_OF_USE, standing
from remegraph.settings import Settings

__all__ = ["ActiveTier", "pin"]

_SCOPES = 1000
"""Scopes at once; what was idle longest is computed anew."""


@dataclass(frozen=True, slots=True)
class _Held:
    pulse: Mapping[Partition, Pulse]
    since: datetime
    until: datetime | None
    memories: tuple[Memory, ...]

    def serves(self, pulse: Mapping[Partition, Pulse], now: datetime) -> bool:
        return self.pulse == pulse and self.since <= now and (self.until is None or now < self.until)


class ActiveTier:
    """The active memories of all scopes. Use it from any thread.

    Args:
        archive: The ledger.
        settings: How many there may be, agent by agent.
        clock: Tells the time.
    """

    def __init__(self, archive: Archive, settings: Settings, clock: Clock) -> None:
        self._archive = archive
        self._settings = settings
        self._clock = clock
        self._lock = Lock()
        self._held: OrderedDict[Scope, _Held] = OrderedDict()

    def of(self, scope: Scope) -> tuple[Memory, ...]:
        """Return what is active for a scope: what always is, by importance; then what is used most.

        Args:
            scope: Who asks.
        """
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

    def _computed(self, pulse: Mapping[Partition, Pulse], now: datetime, most: int) -> _Held:
        partitions = list(pulse)
        ids = self._archive.in_use(partitions, since=now - MEMORY_OF_USE) if most else ()
        found = self._archive.memories(partitions, ids=ids, statuses=sorted(LIVE)) if ids else ()
        known = self._archive.accesses(partitions, [memory.memory_id for memory in found]) if found else {}
        stand = [(memory, standing(memory, known[memory.partition, memory.memory_id][1:], now)) for memory in found]
        active = [(memory, each) for memory, each in stand if each.active]
        active.sort(key=lambda pair: (-pair[1].points, -pair[0].importance, pair[0].memory_id))
        ends = [each.until for _, each in active if each.until is not None]
        return _Held(pulse, now, min(ends, default=None), tuple(memory for memory, _ in active[:most]))


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
    """Make a memory always active, or never; one that is so already stays as it is.

    Args:
        archive: The ledger.
        partitions: Whose memories.
        memory_id: The memory.
        resident: Which of the two.
        actor: Who asks.
        at_home: Whether what all agents of the user own is theirs to change.
        at: Now.
        operation_id: Names the operation.

    Raises:
        NotFoundError: There is no such live memory.
        ConflictError: It changed meanwhile.
    """
    found = archive.memories(partitions, ids=[memory_id], statuses=sorted(LIVE)) if partitions else ()
    if not found:
        raise NotFoundError(f"There is no live memory {memory_id!r} here.")
    (memory,) = found
    if memory.resident is resident:
        return memory
    change = MemoryChange(
        memory=memory.evolve(version=memory.version + 1, resident=resident, recorded_at=at),
        expected_version=memory.version,
        action="activate" if resident else "deactivate",
    )
    archive.commit(
        ChangeSet(operation_id=operation_id, actor=actor, recorded_at=at, at_home=at_home, changes=(change,))
    )
    (memory,) = archive.memories([memory.partition], ids=[memory_id])
    return memory
