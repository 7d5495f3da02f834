"""What a worker does: take the waiting jobs one by one, oldest first."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from remegraph.errors import CancelledError
from remegraph.models import Partition, Scope, SummaryReport, Usage
from remegraph.ports import Job

if TYPE_CHECKING:
    from remegraph.kit.parts import Parts

__all__ = ["KIND", "Cancel", "Summarize", "Worker", "drain"]

Cancel = Callable[[], bool]

KIND = "summarize"
"""The jobs that are done here."""

Summarize = Callable[[Scope, Cancel], SummaryReport]
"""Summarises one scope; asks before each block whether to stop."""


class Worker:
    """Does one job at a time, and holds its lease from block to block.

    Args:
        parts: The parts of the kit.
        summarize: Summarises one scope.
    """

    def __init__(self, parts: Parts, summarize: Summarize) -> None:
        self._jobs = parts.jobs
        self._lease = parts.settings.capture.lease
        self._owner = f"process {os.getpid()}"
        self._summarize = summarize
        self._job: Job | None = None

    def next(self, cancel: Cancel, *, asleep: bool) -> SummaryReport | None:
        """Do the oldest job; return nothing where none waits.

        A job whose run fails waits again with its reason, one that is cancelled is given back, and the error goes to
        the caller. A job that another worker took over is left to it.

        Args:
            cancel: Asked before each block.
            asleep: Whether jobs that sleep are done, too.

        Raises:
            CancelledError: `cancel` said so.
        """
        job = self._job = self._jobs.claim(KIND, self._owner, self._lease, asleep=asleep)
        if job is None:
            return None
        lease = _Lease(lambda: self._jobs.renew(job, self._lease), cancel)
        scope = _scope(job.partition)
        try:
            report = SummaryReport() if scope is None else self._summarize(scope, lease.over)
        except CancelledError:
            if lease.lost:
                return SummaryReport()
            self.give_back()
            raise
        except Exception as error:
            self._jobs.finish(job, "retry", str(error) or type(error).__name__)
            raise
        except BaseException:  # Ctrl-C: nobody tried
            self.give_back()
            raise
        self._jobs.finish(job, "done")
        return report

    def give_back(self) -> None:
        """Leave the job at hand to whoever comes next, if this worker still has it."""
        if self._job is not None:
            self._jobs.finish(self._job, "back")


class _Lease:
    """Stops a run that was cancelled, or whose job another worker has."""

    def __init__(self, renew: Callable[[], bool], cancel: Cancel) -> None:
        self._renew = renew
        self._cancel = cancel
        self.lost = False

    def over(self) -> bool:
        """Return whether to stop; else hold the job for longer."""
        if self._cancel():
            return True
        self.lost = not self._renew()
        return self.lost


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
    delayed = [job for job in parts.jobs.waiting(KIND) if job.state == "waiting"]
    left = SummaryReport(
        pending=parts.archive.pending(recipe, [job.partition for job in delayed]),
        degraded=tuple(f"waits for its next try: {job.reason}" for job in delayed),
    )
    return _add(total.evolve(pending=0), left) if delayed else total


def _scope(partition: Partition) -> Scope | None:
    """The scope whose own partition this is; none for what belongs to no user and is never talked into."""
    if partition.user is None:
        return None
    return Scope(tenant=partition.tenant, user=partition.user, agent=partition.agent, project=partition.project)


def _add(one: SummaryReport, other: SummaryReport) -> SummaryReport:
    return SummaryReport(
        blocks=one.blocks + other.blocks,
        created=one.created + other.created,
        updated=one.updated + other.updated,
        work=one.work + other.work,
        objections=one.objections + other.objections,
        warnings=one.warnings + other.warnings,
        pending=one.pending + other.pending,
        degraded=tuple(dict.fromkeys(one.degraded + other.degraded)),
        usage=Usage(calls=one.usage.calls + other.usage.calls),
    )
