"""The maintenance run: merge, fade, archive and purge the memories of each library.

What a step does follows from the ledger and the time alone, so a stopped run continues where it stopped, and a second
one finds nothing left to do. Each batch is one commit that expects the versions that were read: what changed in between
is left to the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from remegraph.errors import CancelledError, ConflictError, NotFoundError
from remegraph.models import (
    LIVE,
    ChangeSet,
    Link,
    Maintenance,
    Memory,
    MemoryChange,
    Merge,
    Partition,
    Progress,
    Receipt,
    Review,
    Status,
    StatusMove,
    Weight,
)
from remegraph.models.supersession import folded_together, revision, twins
from remegraph.ports import NewId
from remegraph.retention.forgetting import Retained, SettingsOf, Unwritten, retained
from remegraph.settings import LifecyclePolicy

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["ACTOR", "Fading", "Folding", "Round", "Step", "due", "maintain", "restore"]

ACTOR = "maintenance"


@dataclass(frozen=True, slots=True)
class Round:
    """The parameters of a run, for every step."""

    at: datetime
    """Now."""
    dry_run: bool
    """Whether to change nothing."""
    progress: Callable[[Progress], None] | None = None
    """Called after each step."""
    cancel: Callable[[], bool] | None = None
    """Asked before each step, and by steps before each commit."""

    def check(self) -> None:
        """Raise `CancelledError` if the run was cancelled."""
        if self.cancel is not None and self.cancel():
            raise CancelledError("It was cancelled.", "Run it again: it continues where it stopped.")

    def report(self, progress: Progress) -> None:
        """Report progress."""
        if self.progress is not None:
            self.progress(progress)


Step = Callable[[Partition, Round], Maintenance]
"""One step for one library; a dry run only reports. It may be stopped between two commits, and run again."""


def maintain(steps: Mapping[str, Step], partitions: Sequence[Partition], this: Round) -> Maintenance:
    """Do all steps, library by library."""
    done = Maintenance(dry_run=this.dry_run)
    total = len(partitions) * len(steps)
    for number, (partition, name) in enumerate(((each, name) for each in partitions for name in steps), start=1):
        this.check()
        done = done.plus(steps[name](partition, this))
        this.report(Progress(stage="maintain", done=number, total=total, detail=name))
    return done


_BATCH = 200
"""Moves in one commit, which keeps waiting short for others."""

_ACTIONS: dict[Status, str] = {"low_priority": "fade", "archived": "archive", "active": "revive"}


@dataclass(frozen=True, slots=True)
class Fading:
    """The steps, for the memories of any library."""

    archive: Archive
    settings_of: SettingsOf
    """The lifecycle settings of a partition."""
    new_id: NewId
    unwritten: Unwritten
    """Reviews that the ledger does not hold yet."""

    def fade(self, partition: Partition, this: Round) -> Maintenance:
        """Lower memories that have faded, and raise those that are used again."""
        found, moves = self._due(partition, this.at)
        done = self._move([move for move in moves if move.to != "archived"], this)
        return done.evolve(examined=len(found))

    def archive_faded(self, partition: Partition, this: Round) -> Maintenance:
        """Archive memories that have almost faded, and those beyond the maximum."""
        _, moves = self._due(partition, this.at)
        return self._move([move for move in moves if move.to == "archived"], this)

    def purge(self, partition: Partition, this: Round) -> Maintenance:
        """Purge memories archived long enough: the content is removed, a stub stays."""
        after = self.settings_of(partition).purge_after
        if after is None:
            return Maintenance(dry_run=this.dry_run)
        archived = self.archive.memories([partition], statuses=["archived"])
        rule = f"purge_after {after / timedelta(days=1):g} days"
        moves = [
            StatusMove(
                memory=memory,
                to="purged",
                action="purge",
                reason=f"archived since {memory.recorded_at:%Y-%m-%d}, {rule}",
            )
            for memory in archived
            if memory.recorded_at + after <= this.at
        ]
        return self._move(moves, this)

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
    """Return the moves that are due in one library."""
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


def _surplus(weighed: Sequence[tuple[Memory, Weight]], most: int | None) -> Iterator[StatusMove]:
    """Yield the moves of the weakest memories beyond the maximum; kept ones stay."""
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
    """Commit a batch; return its moves, and the ids of memories that changed meanwhile."""
    left, late = list(moves), list[str]()
    while left:
        try:
            _apply(archive, left, ACTOR, at, operation_id)
        except ConflictError as conflict:
            changed = {move.memory.memory_id for move in left} & set(conflict.records)
            if not changed:
                raise
            late += sorted(changed)
            left = [move for move in left if move.memory.memory_id not in changed]
        else:
            break
    return left, late


def _apply(archive: Archive, moves: Sequence[StatusMove], actor: str, at: datetime, operation_id: str) -> Receipt:
    changes = (revision(move.memory, at, move.action, move.reason, status=move.to) for move in moves)
    return archive.commit(ChangeSet(operation_id=operation_id, actor=actor, recorded_at=at, changes=tuple(changes)))


def restore(
    archive: Archive, partitions: Sequence[Partition], memory_id: str, *, actor: str, at: datetime, operation_id: str
) -> Memory:
    """Make an archived or low-priority memory active again, which counts as a review."""
    found = archive.memories(partitions, ids=[memory_id]) if partitions else ()
    if not found or found[0].status not in {"active", "low_priority", "archived"}:
        raise NotFoundError(f"There is no archived memory {memory_id!r} here.")
    (memory,) = found
    if memory.status != "active":
        _apply(archive, [StatusMove(memory=memory, to="active", action="restore", reason="")], actor, at, operation_id)
        archive.add_reviews([Review(partition=memory.partition, memory_id=memory_id, at=at)])
        (memory,) = archive.memories([memory.partition], ids=[memory_id])
    return memory


@dataclass(frozen=True, slots=True)
class Folding:
    """The step, for the memories of any library."""

    archive: Archive
    new_id: NewId

    def merge(self, partition: Partition, this: Round) -> Maintenance:
        """Merge the copies of each memory into it. The copies are superseded: their versions and words stay."""
        done: list[Merge] = []
        lines: list[str] = []
        skipped: list[str] = []
        for kept, others in twins(self.archive.memories([partition], statuses=sorted(LIVE))):
            if not this.dry_run:
                this.check()
                try:
                    self._commit(kept, others, this)
                except ConflictError:  # one of them changed meanwhile: the next run looks again
                    skipped += [kept.memory_id, *(other.memory_id for other in others)]
                    continue
            done.append(Merge(kept=kept, merged=tuple(others)))
            lines.append(f"{kept.memory_id} <- {', '.join(each.memory_id for each in others)}: they say the same")
        return Maintenance(dry_run=this.dry_run, merges=tuple(done), lines=tuple(lines), skipped=tuple(skipped))

    def _commit(self, kept: Memory, others: Sequence[Memory], this: Round) -> None:
        reason = f"they say the same: {', '.join(each.memory_id for each in (kept, *others))}"
        merged = MemoryChange(
            memory=folded_together(kept, others).evolve(recorded_at=this.at),
            expected_version=kept.version,
            action="merge",
            reason=reason,
        )
        retired = (revision(other, this.at, "supersede", reason, status="superseded") for other in others)
        self.archive.commit(
            ChangeSet(
                operation_id=self.new_id(),
                actor=ACTOR,
                recorded_at=this.at,
                at_home=True,
                changes=(merged, *retired),
                links=tuple(
                    Link(source_id=kept.memory_id, type="supersedes", target_id=other.memory_id) for other in others
                ),
            )
        )
