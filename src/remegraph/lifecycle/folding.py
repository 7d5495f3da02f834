"""The step that merges: what stands on one shelf twice becomes one memory, and the copies point to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remegraph.errors import ConflictError
from remegraph.lifecycle.maintenance import ACTOR, Round
from remegraph.models import LIVE, ChangeSet, Link, Maintenance, Memory, MemoryChange, Merge, Partition
from remegraph.ports import Archive, NewId
from remegraph.rules.folding import folded_together, twins

__all__ = ["Folding"]


@dataclass(frozen=True, slots=True)
class Folding:
    """The step, for the memories of any library."""

    archive: Archive
    new_id: NewId

    def merge(self, partition: Partition, this: Round) -> Maintenance:
        """Merge the copies of each memory into it. They are superseded: their versions and words stay.

        Args:
            partition: The library.
            this: The run.
        """
        done: list[Merge] = []
        skipped: list[str] = []
        for kept, others in twins(self.archive.memories([partition], statuses=sorted(LIVE))):
            if not this.dry_run:
                this.check()
                try:
                    self._commit(kept, others, this)
                except (
                    ConflictError
                ):  # somebody changed one of them, or says the same just now: the next run looks again
                    skipped += [kept.memory_id, *(other.memory_id for other in others)]
                    continue
            done.append(Merge(kept=kept, merged=tuple(others)))
        return Maintenance(dry_run=this.dry_run, merges=tuple(done), skipped=tuple(skipped))

    def _commit(self, kept: Memory, others: Sequence[Memory], this: Round) -> None:
        reason = f"they say the same: {', '.join(each.memory_id for each in (kept, *others))}"
        changes = [
            MemoryChange(
                memory=folded_together(kept, others).evolve(recorded_at=this.at),
                expected_version=kept.version,
                action="merge",
                reason=reason,
            )
        ]
        for other in others:
            gone = other.evolve(version=other.version + 1, status="superseded", recorded_at=this.at)
            changes.append(MemoryChange(memory=gone, expected_version=other.version, action="supersede", reason=reason))
        self.archive.commit(
            ChangeSet(
                operation_id=self.new_id(),
                actor=ACTOR,
                recorded_at=this.at,
                at_home=True,
                changes=tuple(changes),
                links=tuple(
                    Link(source_id=kept.memory_id, type="supersedes", target_id=other.memory_id) for other in others
                ),
            )
        )
