"""`kit.admin`: health, proof and repair, erasure, and backups of an open kit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from remegraph.errors import BackupError, InputError, NotFoundError, SetupError
from remegraph.kit.admin.examination import CHECKS, KEYS, compared, many, mended, requeue, seen
from remegraph.kit.admin.export import export
from remegraph.kit.facade import Facade, twin
from remegraph.kit.governance import heads_of
from remegraph.kit.health import INDEX_SECONDS, LEDGER_SECONDS, answered, queue_of
from remegraph.kit.validation import File, check_choice, check_text, required
from remegraph.kit.worker import KIND, KINDS, Cancel, OnProgress
from remegraph.ledger.attachments import BlobFolder
from remegraph.ledger.backup import BackupRun
from remegraph.models import (
    AgentHoldings,
    AuditHead,
    BackgroundJob,
    Backup,
    Diagnosis,
    Erasure,
    ErasureRequest,
    Export,
    HealthReport,
    JobState,
    Mismatch,
    Progress,
    QueueDepth,
    Scope,
    Subject,
    Tenant,
    TenantHoldings,
    TenantUsage,
    ThreadHoldings,
    Unrecorded,
    UserHoldings,
    Verification,
)

__all__ = ["Admin", "folder_path"]


_SECRET = {"journal_key", "former_journal_keys", "ledger_url", "chroma_url"}
"""Settings that are secrets, or hold passwords."""


class Admin(Facade):
    """Looks at the whole home, across all scopes: for its operator, never for an agent.

    Args:
        context: What the verbs of the kit share.
    """

    def verify(self, progress: OnProgress | None = None, heads: Sequence[AuditHead] | File = ()) -> Verification:
        """Prove that the ledger and its projections agree, and that the journal was not rewritten.

        Every block resolves to messages, every memory to blocks and to words of a message,
        the journal is one chain in each partition and every version what was committed,
        the index holds what the ledger holds, and every vector finds itself.

        Args:
            progress: Told after each partition.
            heads: Of exports of the journal, or a file with some, kept where no one could change them: the journal must still hold these.

        Raises:
            FileFormatError: The file cannot be read, or holds none.
        """
        parts = self._parts()
        counts = Counter(messages=0, blocks=0, memories=0, events=parts.archive.counts()["events"])
        cut = [_cut(head) for head in heads_of(heads) if not parts.trail.holds(head)]
        differences = compared(parts, counts, progress)
        vectors, mismatches = parts.projection.verify()
        return Verification(**counts, vectors=vectors, differences=(*cut, *differences, *mismatches))

    averify = twin(verify)

    def rebuild(self, progress: OnProgress | None = None) -> int:
        """Rebuild the vector index from the ledger; return how many vectors were written.

        Args:
            progress: Told after each batch.
        """
        return self._parts().projection.rebuild(progress=_steps("rebuild", progress))

    arebuild = twin(rebuild)

    def reindex(self, progress: OnProgress | None = None) -> int:
        """Embed everything with the embedder of this kit, then make it the current one; resumes where it stopped.

        Args:
            progress: Told after each batch.
        """
        parts = self._parts()
        return parts.projection.reindex(parts.embedder, progress=_steps("reindex", progress))

    areindex = twin(reindex)

    def seal_journal(self, reason: str = "", *, despite: bool = False) -> tuple[Mismatch, ...]:
        """Seal the journal with the newest key of this kit from now on; return what did not fit.

        What older keys have sealed stays as it is and is verified by them: keep them in `former_journal_keys`. What fits
        no key, as one is lost or it was changed, is chained again where that is asked for. Exported heads then no
        longer fit, and the journal records in each partition that, when and why: `examine` reports it from then on.

        Args:
            reason: Why, for the journal.
            despite: Also seal what does not fit. After that, what was rewritten can no longer be told from the truth.

        Raises:
            SetupError: Something does not fit, or the newest key seals already; nothing was changed.
        """
        check_text(reason=reason)
        parts = self._parts()
        found = tuple(each for place in parts.archive.partitions() for each in parts.trail.differences(place))
        if found and not despite:
            raise SetupError(
                f"The journal is inconsistent in {many(found)}.",
                f"{KEYS} To seal it anyway, which the journal records: despite=True, or `remegraph admin key rotate --despite`.",
            )
        if not found and parts.archive.journal.newest_seals:
            raise SetupError(
                "The newest of these keys seals the journal already.",
                "Make a new one (`remegraph admin key make`), or give it as `journal_key` and the old one in `former_journal_keys`.",
            )
        noted = f"{reason} (did not fit: {many(found)})".strip() if found else reason
        parts.trail.seal(parts.clock(), parts.new_id(), noted, despite=bool(found))
        return found

    aseal_journal = twin(seal_journal)

    def stats(self) -> Mapping[str, int | str]:
        """Return row counts by table, what waits, what went wrong in this kit, and what it works with."""
        parts = self._parts()
        jobs = Counter(job.state for job in parts.jobs.waiting(KIND))
        return {
            **parts.archive.counts(),
            **{f"jobs_{state}": jobs[state] for state in get_args(JobState)},
            "erasures_unfinished": len(parts.eraser.unfinished()),
            "blocks_pending": parts.archive.pending(self._settings.summary.recipe),
            "blocks_failed": parts.archive.failed(self._settings.summary.recipe),
            **self._context.health.stats(),
            "threads_unrecorded": len(self.unrecorded()),
            **{"model" if agent is None else f"model:{agent}": name for agent, name in parts.thinkers.names().items()},
            "embedder": parts.embedder.name,
            "index": parts.projection.searched,
            "home": str(self._settings.home.expanduser()),
        }

    astats = twin(stats)

    def examine(self, *, fix: bool = False) -> Diagnosis:
        """Return what is wrong, how bad it is and what to do; `remegraph doctor` also looks from outside.

        Args:
            fix: Repair what can be repaired without loss and without a model: apply what waits, rebuild the index, take
                dead jobs up again. The findings then say how it is afterwards, and what was done.
        """
        parts = self._parts()
        found = tuple(mended(seen(parts), fix=fix))
        done = tuple(finding for finding in found if finding.done)
        if done:
            left = {
                (each.check, each.what): each for each in found if not each.done
            }  # with why it could not be repaired
            again = mended(seen(parts), fix=False)
            found = (*done, *(left.get((each.check, each.what), each) for each in again))
        return Diagnosis(checks=CHECKS, findings=found)

    aexamine = twin(examine)

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

        The ledger has two seconds to answer, the index one. What is wrong is reported, never raised.
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
        """Return the conversations with a turn that this process could not record, as long as the ledger lacks it.

        The next capture of the conversation records it; so does `capture` of what the host's checkpoint holds.
        """
        return self._parts().unrecorded.look()

    aunrecorded = twin(unrecorded)

    def jobs(self, state: JobState | None = None) -> tuple[BackgroundJob, ...]:
        """Return the jobs that are not done, in the order of their kinds, each kind oldest first.

        Args:
            state: Only those; `dead`: the ones that gave up.

        Raises:
            InputError: There is no such state.
        """
        if state is not None:
            check_choice(JobState, state=state)
        found = (job for kind in KINDS for job in self._parts().jobs.waiting(kind))
        return tuple(job for job in found if state in (None, job.state))

    ajobs = twin(jobs)

    def requeue(self, which: Literal["dead", "foreign"] = "dead") -> int:
        """Requeue jobs that no worker does; return how many there were.

        Args:
            which: dead: those that gave up; foreign: those that were made with other settings, which are then done with
                those of this kit, as after a change of settings that should also apply to earlier messages.

        Raises:
            InputError: It is neither.
        """
        if which not in {"dead", "foreign"}:
            raise InputError(f"There are no {which!r} jobs.", "Give dead or foreign.")
        return requeue(self._parts(), which)

    arequeue = twin(requeue)

    def release(self, worker: str) -> int:
        """Give the jobs of a dead worker to others now, without waiting for its lease to end; return how many.

        A worker that is alive after all finds out at its next block, and leaves the job.

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

    def erase(
        self,
        whom: Subject | Tenant | Scope,
        *,
        thread: str | None = None,
        message_ids: Sequence[str] = (),
        memory_ids: Sequence[str] = (),
        full: bool = False,
    ) -> Erasure:
        """Erase a person or a tenant, or, of the place that a scope writes to, a thread, messages or memories; prove it.

        What was made of erased words goes with them: index entries, memories in all versions, vectors, links, notes
        of tools, jobs. A memory that other words support stays, rebuilt from those. Stubs without content and
        the events of the journal stay. It is done step by step; if it was interrupted, the next call finishes it.

        Args:
            whom: The person, wherever their rows live; the tenant, with all its users and agents; or the scope of the place.
            thread: All messages of this thread, and what was made of them.
            message_ids: These messages, and what was made of them.
            memory_ids: These memories; the messages that they came from stay.
            full: On PostgreSQL, whether tables are rewritten (VACUUM FULL), which locks them meanwhile; `resume` does it later.

        Returns:
            The receipt: each place with counts, what a check found left, whether tables were rewritten, what is not covered.

        Raises:
            InputError: A scope without what to erase in it, or a person or tenant with a thread or ids.
            NotFoundError: There is no such person, tenant, thread, message or memory; nothing was erased.
            IndexOwnedError: Another process owns the index: the rows are gone, and it finishes the rest by `resume`.
            VectorIndexError: The index failed: the rows are gone; repeat `resume`.
            SetupError: The ledger or a file cannot be used; repeat `resume`.
        """
        request = self._request(whom, thread, message_ids, memory_ids)
        self._context.write_noted()
        eraser = self._parts().eraser
        erasure_id = eraser.ask(request)
        for name in eraser.unfinished():
            self._run(name, full=full)
        return self._run(erasure_id, full=full)  # where it is done already, this only returns the receipt

    aerase = twin(erase)

    def resume(self, *, full: bool = False) -> tuple[Erasure, ...]:
        """Finish the erasures that were stopped; return their receipts.

        Args:
            full: On PostgreSQL, whether tables are rewritten, also for erasures that were done without; returns their receipts, too.

        Raises:
            IndexOwnedError: Another process owns the index.
            VectorIndexError: The index failed; repeat.
            SetupError: The ledger or a file cannot be used; repeat.
        """
        eraser = self._parts().eraser
        finished = [self._run(name, full=False) for name in eraser.unfinished()]
        rewritten = eraser.rewrite() if full else ()  # once for all
        return tuple({each.erasure_id: each for each in (*finished, *rewritten)}.values())

    aresume = twin(resume)

    def receipts(self, erasure_id: str = "") -> tuple[Erasure, ...]:
        """Return the receipts of erasures, the newest first: the ledger keeps them, without a name of what was erased.

        Args:
            erasure_id: The id of one, or its beginning; unless given, all.

        Returns:
            The receipts; of an erasure that is not done, when it was asked for and its `stage`.

        Raises:
            NotFoundError: There is none of this id.
        """
        check_text(erasure_id=erasure_id)
        found = self._parts().eraser.receipts(erasure_id)
        if erasure_id and not found:
            raise NotFoundError(
                f"There is no receipt {erasure_id!r} here.", "List all of them: `remegraph admin receipts`."
            )
        return found

    areceipts = twin(receipts)

    # ------------------------------------------------------------------------------------------- tenants

    def tenants(self) -> tuple[TenantHoldings, ...]:
        """Return the tenants, and how much the ledger holds of each."""
        return self._parts().tenants.tenants()

    atenants = twin(tenants)

    def users(self, tenant: str = "default") -> tuple[UserHoldings, ...]:
        """Return the users of a tenant, and how much the ledger holds of each.

        Args:
            tenant: The tenant.
        """
        check_text(tenant=tenant)
        return self._parts().tenants.users(tenant)

    ausers = twin(users)

    def agents(self, tenant: str = "default") -> tuple[AgentHoldings, ...]:
        """Return the agents of a tenant, and how much the ledger holds of what each remembers.

        Args:
            tenant: The tenant.
        """
        check_text(tenant=tenant)
        return self._parts().tenants.agents(tenant)

    aagents = twin(agents)

    def threads(self, person: Subject) -> tuple[ThreadHoldings, ...]:
        """Return the conversations of a person, the newest first.

        Args:
            person: The person.
        """
        return self._parts().tenants.threads(person.tenant, person.user)

    athreads = twin(threads)

    def usage(self, tenant: str = "default", *, since: datetime) -> TenantUsage:
        """Return what each user of a tenant has used: messages, bytes, calls and tokens of chat models, refused calls.

        Args:
            tenant: The tenant.
            since: From this time on. Calls are counted by days of UTC: those of its whole day are among them.

        Raises:
            InputError: The time names no zone.
        """
        check_text(tenant=tenant)
        if since.tzinfo is None:
            raise InputError("The time names no zone.", "Give an aware time.")
        return self._parts().tenants.usage(tenant, since)

    ausage = twin(usage)

    def export(
        self,
        whom: Subject | Tenant,
        path: str | Path,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> Export:
        """Write what is recorded of a person, for them to read, or of a tenant, for other programs.

        That is what was said, blocks, memories with their evidence and all versions, links, items of stores, and the events
        of the journal. Of a person it is one JSON document, of a tenant JSON lines; the last line counts them. Words
        that are withheld are left out. An export that was interrupted leaves no file; repeat it.

        Args:
            whom: The person, wherever their rows live, or the tenant.
            path: The file, which must not exist yet; only its owner can read it.
            progress: Told before each place.
            cancel: Asked again and again whether to stop.

        Raises:
            NotFoundError: Nothing is recorded of them.
            FileFormatError: The file exists, or cannot be written.
            CancelledError: `cancel` said so; nothing is left.
        """
        self._context.write_noted()
        return export(self._parts(), whom, Path(path).expanduser(), progress, cancel)

    aexport = twin(export)

    def _run(self, erasure_id: str, *, full: bool) -> Erasure:
        receipt = self._parts().eraser.run(erasure_id, full=full)
        self._context.forget_sensed()
        return receipt

    def _request(
        self, whom: Subject | Tenant | Scope, thread: str | None, message_ids: Sequence[str], memory_ids: Sequence[str]
    ) -> ErasureRequest:
        for name in (*(() if thread is None else (thread,)), *message_ids, *memory_ids):
            check_text(id=name)
        part = thread is not None or bool(message_ids) or bool(memory_ids)
        archive = self._parts().archive
        if isinstance(whom, Subject | Tenant):
            if part:
                raise InputError(
                    "A person or a tenant is erased whole.", "Give a scope to erase a thread, messages or memories."
                )
            return ErasureRequest(subject=whom) if isinstance(whom, Subject) else ErasureRequest(tenant=whom)
        place = required(whom).partition()
        if not part:
            raise InputError(
                "What to erase is missing.",
                "Name a thread, messages or memories; for a person add `--person`, in Python give a Subject.",
            )
        if place not in archive.partitions():
            raise NotFoundError("Nothing is recorded in this scope.")
        return ErasureRequest(
            partition=place, thread=thread, message_ids=tuple(message_ids), memory_ids=tuple(memory_ids)
        )

    def backup(
        self,
        folder: str | Path,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ) -> Backup:
        """Copy the ledger, the attachments and the journal's key to a new folder, without locking out readers or writers.

        It holds all that was acknowledged before, as one snapshot. The vector index is left out: `doctor.restore_backup`
        needs none. Anyone who has the backup can read every memory, and write a journal that fits.

        Args:
            folder: Must be missing or empty; in the end it is complete, or not there at all.
            progress: Called with how far it is.
            cancel: Asked again and again whether to stop.

        Raises:
            BackupError: The ledger is on PostgreSQL or is damaged, or the folder cannot be written.
            CancelledError: `cancel` said so; nothing is left.
        """
        parts = self._parts()
        settings, blobs = parts.settings, parts.settings.blobs
        taking = BackupRun(
            parts.archive.database,
            settings.home.expanduser(),
            None if blobs is None else BlobFolder(blobs),
            progress=progress,
            cancel=cancel,
        )
        shown = settings.model_dump(mode="json", exclude=_SECRET)
        return taking.run(folder_path(folder), at=parts.clock(), settings=shown)

    abackup = twin(backup)


def _cut(head: AuditHead) -> Mismatch:
    return Mismatch(
        where="journal", record_id="", problem=f"it lacks the event that an export ended with: {head.chain}"
    )


def _steps(stage: str, progress: OnProgress | None) -> Callable[[int, int], None] | None:
    if progress is None:
        return None

    def step(done: int, total: int) -> None:
        progress(Progress(stage=stage, done=done, total=total))

    return step


def folder_path(given: object) -> Path:
    """Return the path of a folder.

    Raises:
        BackupError: It is none.
    """
    if not isinstance(given, str | Path) or not str(given) or "\x00" in str(given):
        raise BackupError(f"{given!r} is no folder.", "Give a path.")
    return Path(given).expanduser()
