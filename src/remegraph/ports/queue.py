"""Background work: a durable queue, and what is known of the work in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from remegraph.models import Partition

__all__ = [
    "Job",
    "JobQueue",
    "JobState",
    "Outcome",
    "Waiting",
]


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed piece of background work."""

    job_id: int
    kind: str
    partition: Partition
    attempts: int
    fence: int
    """Grows with every claim: who holds an older one has lost the job."""


Outcome = Literal["done", "retry", "back", "dead"]
"""What became of a job; `back`: nobody tried."""


JobState = Literal["asleep", "waiting", "running", "dead"]
"""Where a job stands that is not done; one that sleeps is due when it is asked for."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A piece of background work that is not done."""

    partition: Partition
    state: JobState
    due_at: datetime | None
    """When it can be claimed; never, while it sleeps."""
    attempts: int
    reason: str
    """Why it did not work the last time."""


class JobQueue(Protocol):
    """A durable queue: at most one open job per kind and partition."""

    def enqueue(self, kind: str, partition: Partition) -> None:
        """Add a job unless one waits already; one that sleeps wakes up."""
        ...

    def claim(self, kind: str, owner: str, lease_seconds: float, *, asleep: bool = False) -> Job | None:
        """Take the oldest job that nobody holds, or whose lease ran out.

        Args:
            kind: What the worker can do.
            owner: Names the worker.
            lease_seconds: How long it may take.
            asleep: Whether jobs that sleep are taken, too.
        """
        ...

    def renew(self, job: Job, lease_seconds: float) -> bool:
        """Hold a job for longer, from now on; false where the fence says that another worker has it."""
        ...

    def finish(self, job: Job, outcome: Outcome, reason: str = "", *, again: datetime | None = None) -> bool:
        """Close a job; false where the fence says that another worker has it now.

        Args:
            job: As it was claimed.
            outcome: `retry` waits twice as long each time; `back`, not tried, waits for whoever comes next.
            reason: Why it did not work.
            again: When a job that is done is due once more.
        """
        ...

    def next_due(self, kind: str) -> datetime | None:
        """Return when the next job can be claimed, as far as is known now; none: only once more is enqueued."""
        ...

    def waiting(self, kind: str) -> tuple[Waiting, ...]:
        """Return the jobs that are not done, oldest first."""
        ...
