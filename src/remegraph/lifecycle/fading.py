"""The steps that fade, archive and purge: what has faded loses its priority, then its place, at last its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from remegraph.errors import ConflictError, NotFoundError
from remegraph.lifecycle.maintenance import ACTOR, Round
from remegraph.lifecycle.retaining import Retained, SettingsOf, Unwritten, retained
from remegraph.models import (
    LIVE,
    ChangeSet,
    Maintenance,
    Memory,
    MemoryChange,
    Partition,
    Receipt,
    Review,
    Status,
    StatusMove,
    Weight,
)
from remegraph.ports import Archive, NewId
from remegraph.settings import LifecyclePolicy

__all__ = ["Fading", "due", "restore"]

_BATCH = 200
"""Moves in one commit: others wait for it no longer than for a block."""

_ACTIONS: dict[Status, str] = {"low_priority": "fade", "archived": "archive", "active": "revive"}


@dataclass(frozen=True, slots=True)
class Fading:
    """The steps, for the memories of any library."""

    archive: Archive
    settings_of: SettingsOf
    """How the memories of a partition live on."""
    new_id: NewId
    unwritten: Unwritten
    """Reviews that the ledger does not hold yet."""

    def fade(self, partition: Partition, this: Round) -> Maintenance:
        """Lower what has faded, and raise again what came back into use.

        Args:
            partition: The library.
            this: The run.
        """
        found, moves = self._due(partition, this.at)
        done = self._move([move for move in moves if move.to != "archived"], this)
        return done.evolve(examined=len(found))

    def archive_faded(self, partition: Partition, this: Round) -> Maintenance:
        """Archive what has all but gone, and what is too much.

        Args:
            partition: The library.
            this: The run.
        """
        _, moves = self._due(partition, this.at)
        return self._move([move for move in moves if move.to == "archived"], this)

    def purge(self, partition: Partition, this: Round) -> Maintenance:
        """Bury what has been archived for so long that nobody will miss it: its content goes, its stub stays.

        Args:
            partition: The library.
            this: The run.
        """
        after = self.settings_of(partition).purge_after
        if after is None:
            return Maintenance(dry_run=this.dry_run)
        archived = self.archive.memories([partition], statuses=["archived"])
        since = (memory for memory in archived if memory.recorded_at + after <= this.at)
        return self._move([_purge(memory, after) for memory in since], this)

    def _due(self, partition: Partition, at: datetime) -> tuple[list[Retained], list[StatusMove]]:
        heads = self.archive.memories([partition], statuses=sorted(LIVE))
        found = list(retained(self.archive, heads, self.settings_of, self.unwritten))
        return found, due(found, self.settings_of(partition), at)

    def _move(self, moves: Sequence[StatusMove], this: Round) -> Maintenance:
        if this.dry_run:
            return Maintenance(dry_run=True, moves=tuple(moves))
        moved: list[StatusMove] = []
        skipped: list[str] = []
        for start in range(0, len(moves), _BATCH):
            this.check()
            done, late = _commit(self.archive, moves[start : start + _BATCH], this.at, self.new_id())
            moved += done
            skipped += late
        return Maintenance(dry_run=False, moves=tuple(moved), skipped=tuple(skipped))


def due(found: Sequence[Retained], settings: LifecyclePolicy, at: datetime) -> list[StatusMove]:
    """Return the moves that are due in one library.

    Args:
        found: All its live memories.
        settings: How they live on.
        at: Now.
    """
    weighed = [(each.memory, each.weight(at)) for each in found]
    moves = list(_faded(weighed, settings))
    gone = {move.memory.memory_id for move in moves if move.to == "archived"}
    left = [(memory, weight) for memory, weight in weighed if memory.memory_id not in gone]
    surplus = list(_surplus(left, settings.max_entries))
    over = {move.memory.memory_id for move in surplus}
    return [*(move for move in moves if move.memory.memory_id not in over), *surplus]


def _faded(weighed: Sequence[tuple[Memory, Weight]], settings: LifecyclePolicy) -> Iterator[StatusMove]:
    for memory, weight in weighed:
        to, why = memory.status, ""
        if weight.value < settings.forget_threshold:
            to, why = "archived", f"under forget_threshold {settings.forget_threshold:g}"
        elif weight.value < settings.low_threshold:
            to, why = "low_priority", f"under low_threshold {settings.low_threshold:g}"
        elif memory.status == "low_priority":
            to, why = "active", f"no longer under low_threshold {settings.low_threshold:g}"
        if to != memory.status:
            yield StatusMove(memory=memory, to=to, action=_ACTIONS[to], reason=f"{why}: {weight.reason}")


def _purge(memory: Memory, after: timedelta) -> StatusMove:
    reason = f"archived since {memory.recorded_at:%Y-%m-%d}, purge_after {after / timedelta(days=1):g} days"
    return StatusMove(memory=memory, to="purged", action="purge", reason=reason)


def _surplus(weighed: Sequence[tuple[Memory, Weight]], most: int | None) -> Iterator[StatusMove]:
    """Yield what there is too much of, the faintest first; what is kept stays."""
    if most is None or len(weighed) <= most:
        return
    fading = [(memory, weight) for memory, weight in weighed if weight.policy != "kept"]
    fading.sort(key=lambda pair: (pair[1].value, pair[0].said_at, pair[0].memory_id))
    for memory, weight in fading[: len(weighed) - most]:
        reason = f"one of the faintest of {len(weighed)}, max_entries {most}; {weight.reason}"
        yield StatusMove(memory=memory, to="archived", action="archive_surplus", reason=reason)


def _commit(
    archive: Archive, moves: Sequence[StatusMove], at: datetime, operation_id: str
) -> tuple[list[StatusMove], list[str]]:
    """Commit a batch; return what was moved, and the ids of what others changed meanwhile."""
    left, late = list(moves), list[str]()
    while left:
        try:
            _apply(
                archive, [(move.memory, move.to, move.action, move.reason) for move in left], ACTOR, at, operation_id
            )
        except ConflictError as conflict:
            changed = {move.memory.memory_id for move in left} & set(conflict.records)
            if not changed:
                raise
            late += sorted(changed)
            left = [move for move in left if move.memory.memory_id not in changed]
        else:
            break
    return left, late


def _apply(
    archive: Archive,
    moves: Sequence[tuple[Memory, Status, str, str]],
    actor: str,
    at: datetime,
    operation_id: str,
) -> Receipt:
    changes = (
        MemoryChange(
            memory=memory.evolve(version=memory.version + 1, status=to, recorded_at=at),
            expected_version=memory.version,
            action=action,
            reason=reason,
        )
        for memory, to, action, reason in moves
    )
    return archive.commit(ChangeSet(operation_id=operation_id, actor=actor, recorded_at=at, changes=tuple(changes)))


def restore(
    archive: Archive, partitions: Sequence[Partition], memory_id: str, *, actor: str, at: datetime, operation_id: str
) -> Memory:
    """Make an archived or low-priority memory active again, and count that as a review; an active one stays as it is.

    Args:
        archive: The ledger.
        partitions: Whose memories.
        memory_id: The memory.
        actor: Who asks.
        at: Now.
        operation_id: Names the operation.

    Raises:
        NotFoundError: There is no such memory, or it was not maintenance that put it away.
        ConflictError: It changed meanwhile, or its words stand in a live memory by now.
    """
    found = archive.memories(partitions, ids=[memory_id]) if partitions else ()
    if not found or found[0].status not in {"active", "low_priority", "archived"}:
        raise NotFoundError(f"There is no archived memory {memory_id!r} here.")
    (memory,) = found
    if memory.status != "active":
        _apply(archive, [(memory, "active", "restore", "")], actor, at, operation_id)
        archive.add_reviews([Review(partition=memory.partition, memory_id=memory_id, at=at)])
        (memory,) = archive.memories([memory.partition], ids=[memory_id])
    return memory
