"""The verbs of `kit.admin` for the work in the background: whether it keeps up, and what gave up."""

from __future__ import annotations

from typing import get_args

from remegraph.errors import InputError, SetupError, VectorIndexError
from remegraph.kit.calling import twin
from remegraph.kit.draining import KIND, UPKEEP
from remegraph.kit.facade import Facade
from remegraph.models import BackgroundJob, HealthReport, JobState, Unrecorded

__all__ = ["Queueing"]


class Queueing(Facade):
    """Looks at the queue, which all processes on this ledger share."""

    def health(self) -> HealthReport:
        """Ask ledger and index whether they answer, and count what waits; cheap enough for every few seconds.

        Raises:
            SetupError: The ledger does not answer.
        """
        parts = self._parts()
        problem = ""
        try:
            parts.projection.ping()
        except (VectorIndexError, SetupError) as error:
            problem = str(error)
        return HealthReport(
            ledger="sqlite" if parts.archive.database.is_sqlite else "postgresql",
            index="down" if problem else "chroma" if parts.has_index else "sql",
            problem=problem,
            queue=parts.jobs.depth(),
            unrecorded=len(self.unrecorded()),
        )

    ahealth = twin(health)

    def unrecorded(self) -> tuple[Unrecorded, ...]:
        """Return the conversations of which this process could not record a turn, as long as the ledger lacks it.

        The next capture of the conversation records it; so does `capture` of what the host's checkpoint holds.
        """
        return self._parts().unrecorded.look()

    aunrecorded = twin(unrecorded)

    def jobs(self, state: JobState | None = None) -> tuple[BackgroundJob, ...]:
        """Return the jobs that are not done, summaries first, each kind oldest first.

        Args:
            state: Only those; `dead`: the ones that gave up.

        Raises:
            InputError: There is no such state.
        """
        if state is not None and state not in get_args(JobState):
            raise InputError(f"There is no state {state!r}.", f"Give one of {', '.join(get_args(JobState))}.")
        found = (job for kind in (KIND, UPKEEP) for job in self._parts().jobs.waiting(kind))
        return tuple(job for job in found if state in (None, job.state))

    ajobs = twin(jobs)

    def revive(self) -> int:
        """Take up the jobs that gave up; return how many there were."""
        dead = self.jobs("dead")
        for job in dead:
            self._parts().jobs.enqueue(job.kind, job.partition, as_it_is=True)
        return len(dead)

    arevive = twin(revive)

    def adopt(self) -> int:
        """Let jobs that were made with other settings be done with those of this kit; return how many there were.

        After a change of settings that is meant to hold for what was said before, too.
        """
        foreign = [job for job in self.jobs() if job.foreign]
        for job in foreign:
            self._parts().jobs.enqueue(job.kind, job.partition)
        return len(foreign)

    aadopt = twin(adopt)
