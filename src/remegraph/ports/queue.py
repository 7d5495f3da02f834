"""Background work: a durable queue, and what is known of the work in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import Literal, Protocol

from remegraph.models import BackgroundJob, Partition, QueueDepth
from remegraph.settings import CapturePolicy

__all__ = [
    "Courier",
    "Deliver",
    "Job",
    "JobQueue",
    "Outcome",
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


class JobQueue(Protocol):
    """A durable queue: at most one open job per kind and partition."""

    def enqueue(self, kind: str, partition: Partition, *, as_it_is: bool = False) -> None:
        """Add a job unless one waits already; one that sleeps wakes up.

        Args:
            kind: What to do.
            partition: Where.
            as_it_is: Whether it is done with the settings that it was made with, if there is one.
        """
        ...

    def claim(
        self,
        kind: str,
        owner: str,
        lease_seconds: float,
        *,
        asleep: bool = False,
        job_id: int | None = None,
    ) -> Job | None:
        """Take the oldest job that nobody holds, or whose lease ran out; those made with other settings are left.

        Args:
            kind: What the worker can do.
            owner: Names the worker.
            lease_seconds: How long it may take.
            asleep: Whether jobs that sleep are taken, too.
            job_id: This one, and no other.
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

    def release(self, owner: str) -> int:
        """Give back what a worker holds by its name, and does not do; return how many jobs."""
        ...

    def next_due(self, kind: str, job_id: int | None = None) -> datetime | None:
        """Return when the next job, or this one, can be claimed, as far as is known now; none: only once more is enqueued."""
        ...

    def waiting(self, kind: str) -> tuple[BackgroundJob, ...]:
        """Return the jobs that are not done, oldest first."""
        ...

    def depth(self) -> QueueDepth:
        """Return how much work of all kinds waits, and for how long."""
        ...

    def crowded(self, kind: str, most: int) -> bool:
        """Return whether so many jobs wait that are due, or more."""
        ...


Deliver = Callable[[str, int], datetime | None]
"""Does a job of a kind by its number, if it can be claimed; returns when to come again, if at all."""


class Courier(Protocol):
    """Brings jobs to workers, in place of workers that look for them; the queue stays the truth."""

    def work(self, deliver: Deliver, *, concurrency: int, policy: CapturePolicy, stop: Event) -> None:
        """Deliver jobs until `stop` is set, then wait for those at hand.

        Raises:
            SetupError: What it works with cannot be used.
        """
        ...
