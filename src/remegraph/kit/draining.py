"""What a worker does: take the waiting jobs one by one, by precedence of their kinds, then oldest first."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from remegraph.errors import CancelledError, LedgerUnavailableError
from remegraph.models import Partition, Scope, SummaryReport, Usage
from remegraph.ports import Job, Outcome

if TYPE_CHECKING:
    from remegraph.kit.parts import Parts

__all__ = ["FOREIGN", "KIND", "UPKEEP", "Cancel", "Done", "Duty", "Worker", "drain"]

Cancel = Callable[[], bool]

KIND, UPKEEP = "summarize", "maintain"
"""The jobs that are done here."""

FOREIGN = (
    "They were made with other settings than this worker has, and are left to one that has them: give both the same file "
    "(REMEGRAPH_SETTINGS), or take them over as they are with `remegraph jobs --adopt`."
)


class Done(NamedTuple):
    """What became of a job."""

    report: SummaryReport
    after: timedelta | None = None
    """In what time it is due again, if it is."""


Duty = Callable[[Scope, Cancel], Done]
"""Does the job of one scope; asks again and again whether to stop."""


class Worker:
    """Does one job at a time, and holds its lease from block to block.

    Args:
        parts: The parts of the kit.
        duties: What to do, by kind of job: while there is one of the first, none of the second is begun or gone on with.
    """

    def __init__(self, parts: Parts, duties: Mapping[str, Duty]) -> None:
        self._jobs = parts.jobs
        self._clock = parts.clock
        self._lease = parts.settings.capture.lease
        self._most = parts.settings.capture.max_attempts
        self._owner = f"process {os.getpid()} of {platform.node()}, worker {uuid4().hex}"
        self._owes = False
        self._duties = duties
        self._job: Job | None = None

    def next(self, cancel: Cancel, *, asleep: bool) -> SummaryReport | None:
        """Do the oldest job of the first kind that has one; return nothing where none waits.

        A job whose run fails waits again with its reason, or gives up, one that is cancelled is given back, and the
        error goes to the caller. A job that another worker took over is left to it, one that must give way is given
        back.

        Args:
            cancel: Asked before each block.
            asleep: Whether jobs that sleep are done, too.

        Raises:
            CancelledError: `cancel` said so.
        """
        self.settle()
        with self._owing():
            claims = (self._jobs.claim(kind, self._owner, self._lease, asleep=asleep) for kind in self._duties)
            return self._do(next((job for job in claims if job is not None), None), cancel)

    def take(self, kind: str, job_id: int, cancel: Cancel) -> SummaryReport | None:
        """Do this job, if it can be claimed; see `next`.

        Args:
            kind: What is to be done.
            job_id: The job.
            cancel: Asked before each block.

        Raises:
            CancelledError: `cancel` said so.
        """
        self.settle()
        with self._owing():
            return self._do(self._jobs.claim(kind, self._owner, self._lease, job_id=job_id), cancel)

    def settle(self) -> None:
        """Give back what the ledger takes this worker to do, and it does not: it did not hear how that ended.

        Raises:
            SetupError: The ledger still does not answer.
        """
        if self._owes:
            self._jobs.release(self._owner)
            self._owes = False

    @contextmanager
    def _owing(self) -> Iterator[None]:
        try:
            yield
        except LedgerUnavailableError:
            self._owes = True
            raise

    def _do(self, job: Job | None, cancel: Cancel) -> SummaryReport | None:
        self._job = job
        if job is None:
            return None
        lease = _Lease(lambda: self._jobs.renew(job, self._lease), cancel, lambda: self._must_wait(job.kind))
        scope = _scope(job.partition)
        try:
            done = Done(SummaryReport()) if scope is None else self._duties[job.kind](scope, lease.over)
        except CancelledError:
            if lease.lost:
                return SummaryReport()
            self.give_back()
            if lease.gave_way:
                return SummaryReport()
            raise
        except Exception as error:
            outcome: Outcome = "retry" if job.attempts < self._most else "dead"
            self._jobs.finish(job, outcome, str(error) or type(error).__name__)
            raise
        except BaseException:  # Ctrl-C: nobody tried
            self.give_back()
            raise
        if done.after is None:
            self._jobs.finish(job, "done")
        else:
            self._jobs.finish(job, "done", again=self._clock() + done.after)
        return done.report

    def next_due(self) -> datetime | None:
        """Return when the next job can be claimed, as far as is known now; none: only once more is enqueued."""
        times = [self._jobs.next_due(kind) for kind in self._duties]
        return min((time for time in times if time is not None), default=None)

    def _must_wait(self, kind: str) -> bool:
        """Return whether a job of a kind that comes before this one is due."""
        before = takewhile(kind.__ne__, self._duties)
        times = [self._jobs.next_due(each) for each in before]
        return any(time is not None and time <= self._clock() for time in times)

    def give_back(self) -> None:
        """Leave the job at hand to whoever comes next, if this worker still has it."""
        if self._job is not None:
            self._jobs.finish(self._job, "back")


class _Lease:
    """Stops a run that was cancelled, that must give way, or whose job another worker has."""

    def __init__(self, renew: Callable[[], bool], cancel: Cancel, must_wait: Callable[[], bool]) -> None:
        self._renew = renew
        self._cancel = cancel
        self._must_wait = must_wait
        self.lost = False
        self.gave_way = False

    def over(self) -> bool:
        """Return whether to stop; else hold the job for longer."""
        if self._cancel():
            return True
        self.gave_way = self._must_wait()
        self.lost = not self.gave_way and not self._renew()
        return self.gave_way or self.lost


def drain(parts: Parts, worker: Worker, cancel: Cancel) -> SummaryReport:
    """Do every job that waits or sleeps; return the reports added up, with what waits for its next try.

    Args:
        parts: The parts of the kit.
        worker: Does them.
        cancel: Asked before each block.
    """
    total = SummaryReport()
    while (report := worker.next(cancel, asleep=True)) is not None:
        total = _add(total, report)
    recipe = parts.settings.summary.recipe
    waiting = [job for job in parts.jobs.waiting(KIND) if job.state == "waiting"]
    delayed = [job for job in waiting if not job.foreign]
    foreign = [f"{len(waiting) - len(delayed)} jobs. {FOREIGN}"] if len(delayed) < len(waiting) else []
    left = SummaryReport(
        pending=parts.archive.pending(recipe, [job.partition for job in waiting]),
        degraded=(*(f"waits for its next try: {job.reason}" for job in delayed), *foreign),
    )
    return _add(total.evolve(pending=0), left) if waiting else total


def _scope(partition: Partition) -> Scope | None:
    """The scope whose own partition this is; none for what belongs to no user and is never talked into."""
    if partition.user is None:
        return None
    return Scope(tenant=partition.tenant, user=partition.user, agent=partition.agent, project=partition.project)


def _add(one: SummaryReport, other: SummaryReport) -> SummaryReport:
    return SummaryReport(
        blocks=one.blocks + other.blocks,
        memory_ids=tuple(dict.fromkeys(one.memory_ids + other.memory_ids)),
        created=one.created + other.created,
        updated=one.updated + other.updated,
        work=one.work + other.work,
        objections=one.objections + other.objections,
        notes=one.notes + other.notes,
        warnings=one.warnings + other.warnings,
        pending=one.pending + other.pending,
        degraded=tuple(dict.fromkeys(one.degraded + other.degraded)),
        usage=Usage(calls=one.usage.calls + other.usage.calls),
    )
