"""The maintenance run: step by step through the memories of each library.

What a step shall do follows from the ledger and the time alone, so a run that was stopped goes on where it stopped, and a
second one finds nothing left to do. Each batch is one commit that expects the versions that were read: what somebody
changed meanwhile is left to the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from remegraph.errors import CancelledError
from remegraph.models import Maintenance, Partition, Progress

__all__ = ["ACTOR", "Round", "Step", "maintain"]

ACTOR = "maintenance"


@dataclass(frozen=True, slots=True)
class Round:
    """What every step of a run is given."""

    at: datetime
    """Now."""
    dry_run: bool
    """Whether to change nothing."""
    progress: Callable[[Progress], None] | None = None
    """Told after each step."""
    cancel: Callable[[], bool] | None = None
    """Asked before each step, and by steps before each commit."""

    def check(self) -> None:
        """Stop here if the run was cancelled.

        Raises:
            CancelledError: It was.
        """
        if self.cancel is not None and self.cancel():
            raise CancelledError("It was cancelled.", "Run it again: it goes on where it stopped.")

    def tell(self, progress: Progress) -> None:
        """Tell how far it is, where somebody listens."""
        if self.progress is not None:
            self.progress(progress)


Step = Callable[[Partition, Round], Maintenance]
"""Does one thing in one library, or tells what it would do. It may be stopped between two commits, and run again."""


def maintain(steps: Mapping[str, Step], partitions: Sequence[Partition], this: Round) -> Maintenance:
    """Do all steps, library by library.

    Args:
        steps: By name, in their order.
        partitions: Whose memories.
        this: What each step is given.

    Raises:
        CancelledError: It was cancelled; what is done stays, and the next run does the rest.
    """
    done = Maintenance(dry_run=this.dry_run)
    total = len(partitions) * len(steps)
    for number, (partition, name) in enumerate(((each, name) for each in partitions for name in steps), start=1):
        this.check()
        done = done.plus(steps[name](partition, this))
        this.tell(Progress(stage="maintain", done=number, total=total, detail=name))
    return done
