"""What a worker does: take the waiting jobs one by one, by precedence of their kinds, then by how long they wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from remegraph.errors import CancelledError, LedgerUnavailableError, RateLimitError, RemegraphError
from remegraph.files import worker_name
from remegraph.models import BackgroundJob, Partition, Progress, Scope, SummaryReport, Usage
from remegraph.ports import Job, Outcome

if TYPE_CHECKING:
    from remegraph.kit.components import Parts

__all__ = [
    "CUT",
    "FOREIGN",
    "KIND",
    "KINDS",
    "REREAD",
    "UPKEEP",
    "Cancel",
    "Done",
    "Duty",
    "OnProgress",
    "Turn",
    "Worker",
    "drain",
    "held_cure",
    "holders",
    "readmit",
]

Cancel = Callable[[], bool]
"""Asked whether to stop."""

OnProgress = Callable[[Progress], None]
"""Called with how far something is."""

KINDS = CUT, KIND, UPKEEP, REREAD = "cut", "summarize", "maintain", "reread"
"""The jobs that are done here, by precedence."""

FOREIGN = (
    "They were made with other settings than this worker has, and are left to one that has them: give both the same file "
    "(REMEGRAPH_SETTINGS), or take them over as they are with `remegraph work jobs --adopt`."
)


class Done(NamedTuple):
    """What became of a job."""

    report: SummaryReport
    after: timedelta | None = None
    """After what time it is due again, if it is."""


class Turn:
    """How far a job may go on, from block to block: not where it was cancelled, must give way, or belongs to another.

    Args:
        hold: Holds the job for longer; false where another worker has it.
        cancel: Whether all work is to end.
        must_wait: Whether jobs are due that come before those of this kind.
        others: Whether jobs of this kind are due.
    """

    def __init__(self, hold: Cancel, cancel: Cancel, must_wait: Cancel, others: Cancel) -> None:
        self._hold = hold
        self._cancel = cancel
        self._must_wait = must_wait
        self._others = others
        self.lost = False
        self.gave_way = False
        self.passed = False
        """Whether it was left to others, for now."""

    def over(self) -> bool:
        """Return whether to stop; else hold the job for longer."""
        if self._cancel():
            return True
        self.gave_way = self._must_wait()
        self.lost = not self.gave_way and not self._hold()
        return self.gave_way or self.lost

    def passes(self) -> bool:
        """Return whether others wait, so that what is left of this job is done after them."""
        self.passed = self._others()
        return self.passed


Duty = Callable[[Scope, Turn], Done]
"""Does the job of one scope; asks again and again whether its turn is over, and after each block whether it passes."""


class Worker:
    """Does one job at a time, and holds its lease from block to block.

    Args:
        parts: The parts of the kit.
        duties: What to do, by kind of job: while there is one of the first, none of the second is begun or continued.
        shares: Whether a job of many blocks lets others have their turn in between.
    """

    def __init__(self, parts: Parts, duties: Mapping[str, Duty], *, shares: bool = True) -> None:
        self._parts = parts
        self._jobs = parts.jobs
        self._clock = parts.clock
        self._lease = parts.settings.capture.lease
        self._most = parts.settings.capture.max_attempts
        self._owner = worker_name()
        self._looked = False
        self._owes = False
        self._duties = duties
        self._shares = shares
        self._job: Job | None = None

    def next(self, cancel: Cancel, *, asleep: bool) -> SummaryReport | None:
        """Take a job and do it; return nothing where none waits. See `claim` and `do`."""
        job = self.claim(asleep=asleep)
        return None if job is None else self.do(job, cancel) or SummaryReport()

    def claim(self, *, asleep: bool) -> Job | None:
        """Take the oldest job of the first kind that has one; return none where none waits.

        Args:
            asleep: Whether jobs that sleep are taken, too.
        """
        self.settle()
        if not self._looked:
            self._jobs.reclaim()
            readmit(self._parts, self._duties)
            self._looked = True
        kinds = list(self._duties)
        ready = self._jobs.ready(kinds, asleep=asleep)  # who has nothing to do only reads
        for at, kind in enumerate(kinds):
            if kind in ready and (job := self._claim(kind, asleep=asleep, after=kinds[:at])) is not None:
                return job
        return None

    def claim_one(self, kind: str, job_id: int) -> Job | None:
        """Take this job, if it can be claimed."""
        return self._claim(kind, job_id=job_id)

    def _claim(self, kind: str, **which: Any) -> Job | None:
        self.settle()
        with self._owing():
            self._job = self._jobs.claim(kind, self._owner, self._lease, **which)
        return self._job

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

    def do(self, job: Job, cancel: Cancel) -> SummaryReport | None:
        """Do a job that was claimed; return nothing where it is given back, or belongs to another worker by now.

        A job whose run fails waits again with its reason, or gives up, one that is cancelled is given back, and the
        error goes to the caller. Where others wait, what is left of a job goes to the end of the line after each block.

        Raises:
            CancelledError: `cancel` said so.
        """
        with self._owing():
            return self._done(job, cancel)

    def _done(self, job: Job, cancel: Cancel) -> SummaryReport | None:
        turn = Turn(
            lambda: self._jobs.renew(job, self._lease),
            cancel,
            lambda: self._must_wait(job.kind),
            lambda: self._shares and self._is_due(job.kind),
        )
        scope = _scope(job.partition)
        try:
            done = Done(SummaryReport()) if scope is None else self._duties[job.kind](scope, turn)
        except CancelledError:
            if turn.lost:
                return None
            self.give_back()
            if turn.gave_way:
                return None
            raise
        except RateLimitError as error:  # not an attempt: it is due again when it may be
            self._jobs.finish(job, "done", str(error), again=error.retry_at)
            raise
        except Exception as error:
            outcome: Outcome = "retry" if job.attempts < self._most else "dead"
            self._jobs.finish(job, outcome, _reason(error))
            raise
        except BaseException:  # Ctrl-C: not an attempt
            self.give_back()
            raise
        after = timedelta(0) if turn.passed and done.report.pending else done.after
        if after is None:
            self._jobs.finish(job, "done")
        else:
            self._jobs.finish(job, "done", again=self._clock() + after)
        return done.report

    def next_due(self) -> datetime | None:
        """Return when the next job can be claimed, as far as is known now; none: only once more is enqueued."""
        times = [self._jobs.next_due(kind) for kind in self._duties]
        return min((time for time in times if time is not None), default=None)

    def _must_wait(self, kind: str) -> bool:
        """Return whether a job of a kind that comes before this one is due."""
        return any(map(self._is_due, takewhile(kind.__ne__, self._duties)))

    def _is_due(self, kind: str) -> bool:
        time = self._jobs.next_due(kind)
        return time is not None and time <= self._clock()

    def give_back(self) -> None:
        """Leave the current job to the next worker, if this one still has it."""
        if self._job is not None:
            self._jobs.finish(self._job, "back")


def readmit(parts: Parts, kinds: Collection[str]) -> None:
    """Have jobs that a limit refused be due again, where the limits of this process allow them: they may be other limits."""
    refused = parts.jobs.refused(kinds)
    parts.jobs.hasten([job_id for job_id, place in refused.items() if parts.tenants.allows_calls(place)])


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
    found = parts.jobs.waiting(KIND)
    held = [job for job in found if job.state == "running"]
    waiting = [job for job in found if job.state == "waiting" or (job.state == "later" and job.reason)]
    delayed = [job for job in waiting if not job.foreign]
    foreign = [f"{len(waiting) - len(delayed)} jobs. {FOREIGN}"] if len(delayed) < len(waiting) else []
    lease = parts.settings.capture.lease
    left = SummaryReport(
        pending=parts.archive.pending(recipe, [job.partition for job in (*waiting, *held)]),
        degraded=(
            *(f"waits for its next try: {job.reason}" for job in delayed),
            *foreign,
            *(
                f"held by worker {name}. {held_cure(f'`remegraph work release {name}`', lease)}"
                for name in holders(held)
            ),
        ),
    )
    return _add(total.evolve(pending=0), left) if waiting or held else total


def _reason(error: Exception) -> str:
    """Return why a job failed; without a cure that says who tries again: that is the queue's to say."""
    brief = error.what if isinstance(error, RemegraphError) and error.retryable else str(error)
    return brief or type(error).__name__


def holders(held: Iterable[BackgroundJob]) -> tuple[str, ...]:
    """Return the processes that hold these jobs, each once, as `remegraph work release` takes them."""
    return tuple(dict.fromkeys("/".join(job.worker.split("/")[:2]) for job in held))


def held_cure(release: str, lease: float) -> str:
    """Return what frees the jobs of a worker that is gone, if it is: what `release` names, or time."""
    return (
        f"If it is gone, {release} gives its jobs to others at once; else they wait until its lease is over, {lease:g} "
        "seconds after its last step."
    )


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
        refused=dict(Counter(one.refused) + Counter(other.refused)),
        warnings=one.warnings + other.warnings,
        pending=one.pending + other.pending,
        degraded=tuple(dict.fromkeys(one.degraded + other.degraded)),
        usage=Usage(calls=one.usage.calls + other.usage.calls),
    )
