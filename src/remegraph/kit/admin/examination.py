"""`kit.admin.examine`: what is wrong in an open home, found and mended, and whether the work in the background keeps up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from remegraph.errors import InputError, RemegraphError, VectorIndexError
from remegraph.kit.components import INDEX
from remegraph.kit.context import Facade, twin
from remegraph.kit.health import INDEX_SECONDS, LEDGER_SECONDS, answered, queue_of
from remegraph.kit.validation import check_text
from remegraph.kit.worker import FOREIGN, KINDS
from remegraph.ledger.checkup import newest
from remegraph.ledger.files import holder
from remegraph.ledger.index.chroma import stranded
from remegraph.models import (
    BackgroundJob,
    Check,
    Diagnosis,
    Finding,
    HealthReport,
    JobState,
    Mismatch,
    QueueDepth,
    Severity,
    Unrecorded,
)

if TYPE_CHECKING:
    from remegraph.kit.components import Parts

__all__ = ["Examination", "Seen", "many", "mended"]

Seen = tuple[Finding, Callable[[], str] | None]
"""A finding, and what mends it; that says what it did."""

_CHECKS: tuple[Check, ...] = (
    "owner", "embedder", "index", "backlog", "records", "attachments", "journal", "jobs", "work", "clock",
)  # fmt: skip
_TRIES = 3  # a job that failed so often does not come right by itself
_OVERDUE = timedelta(days=1)
_SKEW = timedelta(minutes=5)

_OF_RECORDS: dict[str, tuple[Check, str]] = {
    "blocks": ("records", "Restore a backup that has them: what they were made from is gone."),
    "memories": ("records", "Restore a backup that has them; until then, mistrust these memories."),
    "partitions": ("records", "Somebody changed the ledger past remegraph: compare with a backup."),
    "attachments": ("attachments", "Bring the folder back from a backup; messages and memories are whole without it."),
    "journal": ("journal", "Somebody changed the ledger past remegraph, or the key is another: compare with a backup."),
}


class Examination(Facade, ABC):
    """Verbs of `kit.admin` that look for whatever is wrong, and at the queue, which all processes on this ledger share."""

    @abstractmethod
    def rebuild(self) -> int:
        """Rebuild the vector index."""

    @abstractmethod
    def _compare(self, counts: Counter[str]) -> Sequence[Mismatch]:
        """Return what differs in the ledger itself; count what was read."""

    def examine(self, *, fix: bool = False) -> Diagnosis:
        """Look for whatever is wrong, and say how bad it is and what to do; `remegraph doctor` also looks from outside.

        Args:
            fix: Mend what can be mended without loss and without a model: apply what waits, rebuild the index, take
                dead jobs up again. What is told then is how it is afterwards, and what was done.
        """
        found = tuple(mended(self._seen(), fix=fix))
        done = tuple(finding for finding in found if finding.done)
        if done:
            found = (*done, *mended(self._seen(), fix=False))
        return Diagnosis(checks=_CHECKS, findings=found)

    aexamine = twin(examine)

    def _seen(self) -> Iterator[Seen]:
        parts = self._parts()
        yield from self._owner(parts)
        yield from self._index(parts)
        yield from _of_records(self._compare(Counter()))
        yield from _sealed_despite(parts)
        yield from self._queue(parts)
        yield from _work(parts)
        yield from _unread(parts)
        yield from _clock(parts)

    def _owner(self, parts: Parts) -> Iterator[Seen]:
        if not parts.has_index and (error := stranded()):
            yield _finding("owner", "warning", f"{error.what} It recalls from SQL.", error.cure)
        elif not parts.has_index:
            process = holder(self._settings.home.expanduser() / INDEX)
            who = "Another process" if process is None else f"Process {process}"
            what = f"{who} owns the vector index: this one recalls from SQL, and cannot look at the index."
            yield _finding("owner", "note", what, "Close that process to examine the index, or use a Chroma server.")

    def _index(self, parts: Parts) -> Iterator[Seen]:
        """Compare index and ledger; a damaged index is opened in a child process."""
        if not parts.projection.is_current():
            what = f"The ledger's vectors come from another embedder than {parts.embedder.name}."
            yield _finding(
                "embedder", "error", what, "Open with the recorded one, or change over: kit.admin.reindex()."
            )
            return
        try:
            _, differences = parts.projection.verify()
        except VectorIndexError as error:
            yield _finding("index", "error", error.what, error.cure)
            return
        waiting = [each for each in differences if each.where == "dirty set"]
        wrong = [each for each in differences if each.where != "dirty set"] if parts.has_index else []
        if wrong:
            what = f"The index differs from the ledger in {many(wrong)}."
            yield _finding("index", "warning", what, "Make it anew: remegraph admin rebuild.", self._rebuild)
        elif waiting and parts.has_index:
            what = f"{len(waiting)} records wait for the index; until then recall searches them in SQL."
            yield _finding(
                "backlog", "warning", what, "Whatever writes next brings them in; so does `fix`.", lambda: _sync(parts)
            )
        elif waiting:
            what = f"{len(waiting)} records wait for the process that owns the index."
            yield _finding("backlog", "note", what, "Nothing, while that process lives.")

    def _rebuild(self) -> str:
        return f"made the index anew, with {self.rebuild()} vectors"

    def _queue(self, parts: Parts) -> Iterator[Seen]:
        """Look for jobs that gave up, that keep failing, or that no worker takes."""
        now = parts.clock()
        for kind in KINDS:
            waiting = parts.jobs.waiting(kind)
            dead = [job for job in waiting if job.state == "dead"]
            failing = [job for job in waiting if job.state == "waiting" and job.attempts >= _TRIES]
            overdue = [job for job in waiting if job.state == "waiting" and job.due_at and job.due_at < now - _OVERDUE]
            foreign = [job for job in waiting if job.foreign and job.state != "asleep"]
            if dead:
                what = f"{len(dead)} jobs ({kind}) gave up: {dead[0].reason}"
                yield _finding(
                    "jobs", "warning", what, "Take them up again: remegraph work jobs --revive.", self._revive
                )
            if failing:
                what = f"{len(failing)} jobs ({kind}) fail again and again: {failing[0].reason}"
                yield _finding(
                    "jobs", "warning", what, "Put right what the reason names; they are tried by themselves."
                )
            if foreign:
                what = f"{len(foreign)} jobs ({kind}) were made with other settings than these."
                yield _finding("jobs", "note", what, FOREIGN)
            if overdue:
                what = f"{len(overdue)} jobs ({kind}) wait for more than a day."
                yield _finding(
                    "jobs",
                    "warning",
                    what,
                    "Nobody does them: run `remegraph worker`, or `remegraph work drain` as a cron job.",
                )

    def _revive(self) -> str:
        return f"took {self.requeue()} jobs up again"

    def ready(self) -> bool:
        """Return whether the ledger answers within two seconds and fits this release: for probes, which ask all the time.

        Nothing else is asked, and nothing is raised.
        """
        _, problem = answered(self._ping, None, LEDGER_SECONDS)
        return not problem

    aready = twin(ready)

    def _ping(self) -> None:
        self._parts().archive.database.ping()

    def health(self) -> HealthReport:
        """Ask ledger and index whether they answer, and count what waits; cheap enough for every few seconds.

        The ledger has two seconds to answer, the index one. What is wrong is told, and never raised.
        """
        parts = self._parts()
        queue, problem = answered(partial(queue_of, parts.archive.database, parts.jobs), QueueDepth(), LEDGER_SECONDS)
        _, silent = answered(parts.projection.ping, None, INDEX_SECONDS)
        return HealthReport(
            ledger="sqlite" if parts.archive.database.is_sqlite else "postgresql",
            ready=not problem,
            index="down" if silent else parts.projection.searched,
            problem=problem or silent,
            queue=queue,
            unrecorded=len(parts.unrecorded if problem else self.unrecorded()),
        )

    ahealth = twin(health)

    def unrecorded(self) -> tuple[Unrecorded, ...]:
        """Return the conversations of which this process could not record a turn, as long as the ledger lacks it.

        The next capture of the conversation records it; so does `capture` of what the host's checkpoint holds.
        """
        return self._parts().unrecorded.look()

    aunrecorded = twin(unrecorded)

    def jobs(self, state: JobState | None = None) -> tuple[BackgroundJob, ...]:
        """Return the jobs that are not done, by the precedence of their kinds, each kind oldest first.

        Args:
            state: Only those; `dead`: the ones that gave up.

        Raises:
            InputError: There is no such state.
        """
        if state is not None and state not in get_args(JobState):
            raise InputError(f"There is no state {state!r}.", f"Give one of {', '.join(get_args(JobState))}.")
        found = (job for kind in KINDS for job in self._parts().jobs.waiting(kind))
        return tuple(job for job in found if state in (None, job.state))

    ajobs = twin(jobs)

    def requeue(self, which: Literal["dead", "foreign"] = "dead") -> int:
        """Take up jobs that nobody does; return how many there were.

        Args:
            which: dead: those that gave up; foreign: those that were made with other settings, which are done with those of
                this kit then, as after a change of settings that is meant to hold for what was said before, too.

        Raises:
            InputError: It is neither.
        """
        if which not in {"dead", "foreign"}:
            raise InputError(f"There are no {which!r} jobs.", "Give dead or foreign.")
        found = [job for job in self.jobs() if (job.foreign if which == "foreign" else job.state == "dead")]
        for job in found:
            self._parts().jobs.enqueue(job.kind, job.partition, as_it_is=which == "dead")
        return len(found)

    arequeue = twin(requeue)

    def release(self, worker: str) -> int:
        """Give the jobs of a worker that is dead to others at once, not only when its lease is over; return how many.

        A worker that lives after all finds out at its next block, and leaves the job.

        Args:
            worker: Whose, as `jobs` names it: `machine/process/worker`, or the beginning, up to a slash.
        """
        check_text(worker=worker)
        parts = self._parts()
        calls = parts.jobs.release(worker)
        if parts.courier is not None:
            parts.courier.again(calls)
        return len(calls)

    arelease = twin(release)


def mended(seen: Iterator[Seen], *, fix: bool) -> Iterator[Finding]:
    """Yield findings, mended where that is wanted and can be."""
    for finding, mend in seen:
        if not fix or mend is None:
            yield finding
            continue
        try:
            yield finding.evolve(done=mend())
        except RemegraphError as error:
            yield finding.evolve(cure=f"It could not be mended ({error.what}): {error.cure or finding.cure}")


def _finding(check: Check, severity: Severity, what: str, cure: str, mend: Callable[[], str] | None = None) -> Seen:
    return Finding(check=check, severity=severity, what=what, cure=cure, fixable=mend is not None), mend


def many(differences: Sequence[Mismatch]) -> str:
    """Tell how many there are, and the first."""
    first = differences[0]
    name = f" {first.record_id}" if first.record_id else ""
    places = "1 place" if len(differences) == 1 else f"{len(differences)} places"
    return f"{places}; the first: {first.where}{name}, {first.problem}"


def _sync(parts: Parts) -> str:
    return f"brought {parts.projection.sync()} records into the index"


def _of_records(differences: Sequence[Mismatch]) -> Iterator[Seen]:
    for where, (check, cure) in _OF_RECORDS.items():
        if found := [each for each in differences if each.where == where]:
            yield _finding(check, "error", f"The ledger does not hold together in {many(found)}.", cure)


def _sealed_despite(parts: Parts) -> Iterator[Seen]:
    if (last := parts.trail.sealed_despite()) is not None:
        at, reason = last
        what = f"The journal was sealed anew on {at:%Y-%m-%d} although it did not fit: {reason}"
        yield _finding("journal", "note", what, "What stood there before is not proven; nothing else is wrong.")


def _work(parts: Parts) -> Iterator[Seen]:
    """Look for what was not summarised; trying it again may call a model, so that is not mended here."""
    found = parts.archive.work(parts.archive.partitions(), states=["failed", "review"])
    failed = [each for each in found if each.state == "failed"]
    if failed:
        users = sorted({str(each.partition.user) for each in failed})
        what = (
            f"{len(failed)} pieces of work failed ({', '.join(users[:3])}{' …' * (len(users) > 3)}): {failed[0].reason}"
        )
        yield _finding("work", "warning", what, f"Try again: remegraph work retry --user {users[0]}.")
    if review := len(found) - len(failed):
        yield _finding("work", "note", f"{review} pieces of work wait for a person.", "See `remegraph work list`.")


def _unread(parts: Parts) -> Iterator[Seen]:
    """Count what was read without a model, where there is one; the doctor opens the kit without that of the settings."""
    if parts.settings.model is None and set(parts.thinkers.names().values()) == {"extractive"}:
        return
    archive, recipe = parts.archive, parts.settings.summary.recipe
    if blocks := sum(len(archive.read_by([place], "extractive", recipe)) for place in archive.partitions()):
        what = f"{blocks} blocks were read without a model, and there is one now."
        cure = "`remegraph work reread --dry-run` says what it would cost to have it read them, `remegraph work reread` has it done."
        yield _finding("work", "note", what, cure)


def _clock(parts: Parts) -> Iterator[Seen]:
    """Look whether the ledger knows a later time than this machine does."""
    last, now = newest(parts.archive.database), parts.clock()
    if last is not None and last > now + _SKEW:
        what = (
            f"The newest record is of {last:%Y-%m-%d %H:%M} UTC, which is {last - now} ahead of this machine's clock."
        )
        cure = "Set the clock (NTP). The order of the ledger holds; leases and forgetting go by the clock."
        yield _finding("clock", "warning", what, cure)
