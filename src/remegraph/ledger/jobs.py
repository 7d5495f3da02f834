"""The durable queue: one row per kind and partition, a lease and a fence; and the work on blocks that its jobs take up.

A job that sleeps is due never: it is taken when it is asked for, or enqueued awake. A job says that something waits; what
it is, and how far it is, the work says.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from sqlalchemy import (
    Case,
    ColumnElement,
    Connection,
    Insert,
    Row,
    Update,
    and_,
    case,
    false,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.sql.dml import ReturningInsert

from remegraph.errors import ConflictError
from remegraph.files import lives
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.database import Database
from remegraph.ledger.partitions import partition_of
from remegraph.ledger.rows import chunks, digest, from_micros, micros, upsert
from remegraph.ledger.schema import jobs, partitions, summaries, work
from remegraph.models import BackgroundJob, Block, BlockSummary, Partition, QueueDepth, Work, WorkState
from remegraph.ports import Call, Clock, Job, Outcome
from remegraph.settings import Settings

if TYPE_CHECKING:
    from remegraph.ledger.blocks import Extents  # health reads the queue, and does without what searches words

__all__ = [
    "ASLEEP",
    "BELL",
    "JobQueue",
    "Stamps",
    "await_work",
    "check_open",
    "claimable",
    "enqueue",
    "failed",
    "pending",
    "read_work",
    "set_work",
]

ASLEEP = 2**63 - 1
"""When a job that sleeps is due."""

BELL = "remegraph_bell"
"""Execution option of the engine: given each `Call`, and when it is due, in the transaction that enqueues it."""

_SECOND = 1_000_000
_FIRST_DELAY = _SECOND
_LONGEST_DELAY = 3600 * _SECOND

_UNHELD = (jobs.c.id, jobs.c.fence, jobs.c.lease_until)
Unheld = tuple[int, int, int]
"""A job that no one holds, how often it was taken, and how often it was asked for since."""

_REFUSED = and_(jobs.c.state == "waiting", jobs.c.attempts == 0, jobs.c.reason != "")
"""What a limit refuses is no attempt, and has a reason."""

_NEW = {"state": "waiting", "again": False, "attempts": 0, "owner": "", "lease_until": 0, "fence": 0, "reason": ""}


def enqueue(connection: Connection, due: Mapping[str, int], partition_id: int, stamp: str = "") -> None:
    """Ask for jobs: open a closed one, wake one that sleeps, leave a waiting one, and have a running one run again.

    Args:
        due: When each kind is, in microseconds: now, later, or `ASLEEP`.
        stamp: Of the settings that they are done with; it stays as it was unless given.
    """
    bell = connection.get_execution_options().get(BELL)
    for kind, at in due.items():
        row = {"partition_id": partition_id, "kind": kind, "due_at": at, "stamp": stamp, **_NEW}
        job = connection.execute(_enqueue(connection.dialect.name), row).one()
        if bell is not None and job.due_at == at < ASLEEP:  # for what is due sooner, it was rung then
            bell(connection, Call(kind, job.id, partition_id, job.stamp), at)


def claimable(now: int, *, asleep: bool = False) -> ColumnElement[bool]:
    """Return the condition that a job can be taken.

    Args:
        now: In microseconds.
        asleep: Whether jobs that sleep are taken, too.
    """
    due = jobs.c.due_at <= now
    return or_(
        and_(jobs.c.state == "waiting", or_(due, jobs.c.due_at == ASLEEP) if asleep else due),
        and_(jobs.c.state == "running", jobs.c.lease_until <= now, true() if asleep else jobs.c.due_at < ASLEEP),
    )


_EFFORT = frozenset({"max_attempts", "max_concurrency", "timeout", "repairs", "retries", "backoff", "longest_wait"})
"""Settings of the summary that say how hard it is tried, and not what comes of it."""


def _stamp(settings: Settings, agent: str | None) -> str:
    """Return the fingerprint of what decides what is learned from an agent's conversations, and how it lives on.

    That is how the agent writes and keeps, where threads are cut, how blocks become memories, what is read of attachments
    and tools, what is redacted, and who shares. Not: when blocks are cut, models and embedders of the kit, how long and
    how often something is tried, how much is recalled.
    """
    memory = settings.for_agent(agent)
    told: list[tuple[BaseModel, Collection[str]]] = [
        (settings.slicing, ()),
        (settings.summary, _EFFORT),
        (memory.extraction, {"trigger", "idle", "min_turns"}),
        (memory.lifecycle, ()),
        (settings.tools, {"heard"}),
        (settings.perception, {"folder", "max_bytes", "max_message_bytes"}),
        (memory, {"enabled", "extraction", "lifecycle", "retrieval"}),
    ]
    # What has its default is left out: so a setting that a release adds changes no stamp.
    found = [each.model_dump(exclude_defaults=True, exclude=set(left)) for each, left in told]
    own = settings.model_dump(exclude_defaults=True, include={"redact", "trust_boundary"})
    return digest(json.dumps([*found, own], default=_plain, sort_keys=True))[:16]


def _plain(value: object) -> object:
    return sorted(value) if isinstance(value, frozenset) else str(value)


class Stamps:
    """Which jobs are done here: those with the stamp of these settings, or without one."""

    def __init__(self, settings: Settings) -> None:
        self.of = cache(partial(_stamp, settings))
        self._others = {name: own for name in settings.agents if (own := self.of(name)) != self.of(None)}

    @property
    def every(self) -> frozenset[str]:
        """All stamps of these settings."""
        return frozenset({self.of(None), *self._others.values()})

    def fit(self) -> ColumnElement[bool]:
        """Return the condition that a job is done here."""
        own: ColumnElement[str] = literal(self.of(None))
        if self._others:
            here = partitions.c.id == jobs.c.partition_id
            found = case(self._others, value=partitions.c.agent, else_=own)
            own = select(found).where(here).correlate(jobs).scalar_subquery()
        return or_(jobs.c.stamp == "", jobs.c.stamp == own)


@cache
def _enqueue(dialect: str) -> ReturningInsert[tuple[int, str, int]]:
    closed = jobs.c.state.in_(("done", "dead"))
    running = jobs.c.state == "running"
    statement = upsert(dialect, jobs)
    given = statement.excluded
    told = statement.on_conflict_do_update(
        index_elements=["partition_id", "kind"],
        set_={
            "state": case((closed, given.state), else_=jobs.c.state),
            "attempts": case((closed, given.attempts), else_=jobs.c.attempts),
            "reason": case((closed, given.reason), else_=jobs.c.reason),
            "due_at": case(
                (closed, given.due_at),
                # What waits after a failure keeps its delay; what sleeps or runs never gets sleepier.
                (and_(or_(running, jobs.c.due_at == ASLEEP), given.due_at < jobs.c.due_at), given.due_at),
                else_=jobs.c.due_at,
            ),
            "again": or_(jobs.c.again, running),
            # What no one holds has no lease: who settles it sees by this count whether more was asked for meanwhile.
            "lease_until": case((running, jobs.c.lease_until), else_=jobs.c.lease_until + 1),
            "stamp": case((given.stamp == "", jobs.c.stamp), else_=given.stamp),
        },
    )
    return told.returning(jobs.c.id, jobs.c.stamp, jobs.c.due_at)


class JobQueue:
    """A durable queue, at most one open job per kind and partition, in the ledger's own table: work is queued in the transaction that causes it.

    Args:
        clock: Used to know when leases run out.
        stamps: Say which jobs are done here.
    """

    def __init__(self, database: Database, clock: Clock, stamps: Stamps) -> None:
        self._database = database
        self._clock = clock
        self._stamps = stamps
        self._fits = stamps.fit()

    def enqueue(self, kind: str, partition: Partition, *, as_it_is: bool = False) -> None:
        """Add a job unless one waits already; one that sleeps wakes up.

        Args:
            as_it_is: Whether it is done with the settings that it was made with, if there is one.
        """
        with self._database.write() as connection:
            partition_id = partition_rows.ensure(connection, [partition])[partition]
            stamp = "" if as_it_is else self._stamps.of(partition.agent)
            enqueue(connection, {kind: micros(self._clock())}, partition_id, stamp)

    def ready(self, kinds: Collection[str], *, asleep: bool = False) -> frozenset[str]:
        """Return the kinds with a job that can be claimed; see `claim`."""
        there = (jobs.c.kind.in_(kinds), claimable(micros(self._clock()), asleep=asleep), self._fits)
        with self._database.read() as connection:
            return frozenset(connection.execute(select(jobs.c.kind).where(*there).distinct()).scalars())

    def claim(
        self,
        kind: str,
        owner: str,
        lease_seconds: float,
        *,
        asleep: bool = False,
        job_id: int | None = None,
        after: Collection[str] = (),
    ) -> Job | None:
        """Take the job that waits longest and no one holds, or whose lease ran out; those made with other settings are left.

        Args:
            kind: What the worker can do.
            lease_seconds: How long it may take.
            asleep: Whether jobs that sleep are taken, too.
            job_id: This one, and no other.
            after: Kinds that come first: where one of these is under way, nothing is taken.
        """
        now = micros(self._clock())
        oldest = (
            select(jobs.c.id)
            .where(jobs.c.kind == kind, claimable(now, asleep=asleep), self._fits, _only(job_id), _alone(now, after))
            .order_by(jobs.c.due_at, jobs.c.fence, jobs.c.id)
            .limit(1)
            .with_for_update(skip_locked=True)  # PostgreSQL: two workers take two jobs
        )
        take = (
            update(jobs)
            .where(jobs.c.id == oldest.scalar_subquery())
            .values(
                state="running",
                again=False,  # what was asked for until now is what this run does
                owner=owner,
                lease_until=_lease(now, lease_seconds),
                fence=jobs.c.fence + 1,
                attempts=jobs.c.attempts + 1,
            )
            .returning(jobs.c.id, jobs.c.partition_id, jobs.c.attempts, jobs.c.fence)
        )
        with self._database.write() as connection:
            row = connection.execute(take).one_or_none()
            if row is None:
                return None
            where = connection.execute(select(partitions).where(partitions.c.id == row.partition_id)).one()
        return Job(row.id, kind, partition_of(where), row.attempts, row.fence)

    def renew(self, job: Job, lease_seconds: float) -> bool:
        """Hold a job for longer, from now on; false where the fence says that another worker has it."""
        return self._update(job, {"lease_until": _lease(micros(self._clock()), lease_seconds)})

    def finish(self, job: Job, outcome: Outcome, reason: str = "", *, again: datetime | None = None) -> bool:
        """Close a job; false where the fence says that another worker has it now.

        Args:
            outcome: `retry` waits twice as long each time; `back`, not tried, waits for the next worker.
            reason: Why it did not work.
            again: When a job that is done is due again.
        """
        now = micros(self._clock())
        delay = min(_FIRST_DELAY << min(job.attempts - 1, 32), _LONGEST_DELAY)
        values: dict[str, Any]
        if outcome == "retry":
            due = case((jobs.c.due_at == ASLEEP, ASLEEP), else_=now + delay)
            values = {"state": "waiting", "due_at": due, "reason": reason}
        elif outcome == "back":
            values = {"state": "waiting", "attempts": jobs.c.attempts - 1}
        elif again is not None:
            values = {"state": "waiting", "due_at": micros(again), "attempts": 0, "reason": reason}
        else:
            values = {
                "state": case((jobs.c.again == true(), "waiting"), else_=outcome),
                "attempts": case((jobs.c.again == true(), 0), else_=jobs.c.attempts),
                "reason": reason,
            }
        return self._update(job, {"again": false(), "owner": "", "lease_until": 0, **values})

    def unheld(self, kinds: Collection[str], partition: Partition) -> Sequence[Unheld]:
        """Return the open jobs of a partition that no worker holds, as they are now: see `settle`."""
        with self._database.read() as connection:
            here = jobs.c.partition_id.in_(partition_rows.known(connection, [partition]))
            open_ = (jobs.c.kind.in_(kinds), jobs.c.state.in_(("waiting", "dead")), self._fits)
            rows = connection.execute(select(*_UNHELD).where(here, *open_)).all()
        return [(row.id, row.fence, row.lease_until) for row in rows]

    def settle(self, seen: Sequence[Unheld]) -> None:
        """Close jobs whose work was done without them, unless they were taken or asked for since.

        Args:
            seen: From `unheld`, before it was looked whether there was work left.
        """
        if not seen:
            return
        same = tuple_(*_UNHELD).in_(seen)
        settled = update(jobs).where(jobs.c.state.in_(("waiting", "dead")), same)
        with self._database.write() as connection:
            connection.execute(settled.values(state="done", reason=""))

    def refused(self, kinds: Collection[str]) -> Mapping[int, Partition]:
        """Return the jobs that wait until a limit allows them, by number, each with where it is."""
        later = (jobs.c.kind.in_(kinds), _REFUSED, jobs.c.due_at > micros(self._clock()), self._fits)
        query = select(jobs.c.id, partitions).join_from(jobs, partitions, jobs.c.partition_id == partitions.c.id)
        with self._database.read() as connection:
            return {row[0]: partition_of(row) for row in connection.execute(query.where(*later))}

    def hasten(self, job_ids: Sequence[int]) -> None:
        """Have jobs that a limit refused be due now, unless they were taken since."""
        now = micros(self._clock())
        for some in chunks(job_ids):
            early = update(jobs).where(jobs.c.id.in_(some), _REFUSED, jobs.c.due_at > now)
            with self._database.write() as connection:
                connection.execute(early.values(due_at=now, reason=""))

    def release(self, worker: str) -> tuple[Call, ...]:
        """Have jobs wait again that a worker holds and does not do; return them.

        Args:
            worker: Its name, or the beginning of it: a machine, or a process of one.
        """
        own = or_(jobs.c.owner == worker, jobs.c.owner.startswith(f"{worker}/", autoescape=True))
        free = {"state": "waiting", "owner": "", "lease_until": 0, "attempts": jobs.c.attempts - 1}
        return self._updated(update(jobs).where(own, jobs.c.state == "running").values(**free))

    def _updated(self, change: Update) -> tuple[Call, ...]:
        with self._database.write() as connection:
            rows = connection.execute(change.returning(jobs.c.kind, jobs.c.id, jobs.c.partition_id, jobs.c.stamp)).all()
        return tuple(Call(*row) for row in rows)

    def reclaim(self) -> tuple[Call, ...]:
        """End the leases of workers whose process has ended for certain; return their jobs, which can be claimed at once."""
        now = micros(self._clock())
        held = (jobs.c.state == "running", jobs.c.lease_until > now)
        with self._database.read() as connection:
            owners = connection.execute(select(jobs.c.owner).where(*held).distinct()).scalars().all()
        gone = [owner for owner in owners if lives(owner) is False]
        ended = update(jobs).where(*held, jobs.c.owner.in_(gone)).values(lease_until=now)
        return self._updated(ended) if gone else ()

    def next_due(self, kind: str, job_id: int | None = None, *, partition: Partition | None = None) -> datetime | None:
        """Return when the next job, or this one, can be claimed, as far as is known now; none: only once more is enqueued.

        Args:
            kind: What is to be done.
            job_id: Only this one.
            partition: Only there.
        """
        due = case((jobs.c.state == "running", jobs.c.lease_until), else_=jobs.c.due_at)
        open_ = (
            jobs.c.kind == kind,
            jobs.c.state.in_(("waiting", "running")),
            jobs.c.due_at < ASLEEP,
            self._fits,
            _only(job_id),
        )
        with self._database.read() as connection:
            query = select(func.min(due)).where(*open_)
            if partition is not None:
                query = query.where(jobs.c.partition_id.in_(partition_rows.known(connection, [partition])))
            soonest = connection.execute(query).scalar_one()
        return None if soonest is None else from_micros(soonest)

    def waiting(self, kind: str) -> tuple[BackgroundJob, ...]:
        """Return the jobs that are not done, oldest first."""
        now = micros(self._clock())
        query = (
            select(
                jobs,
                _state(now).label("shown"),
                (~self._fits).label("foreign"),
                *(partitions.c[name] for name in Partition.model_fields),
            )
            .join_from(jobs, partitions, jobs.c.partition_id == partitions.c.id)
            .where(jobs.c.kind == kind, jobs.c.state != "done")
            .order_by(jobs.c.due_at, jobs.c.id)
        )
        with self._database.read() as connection:
            return tuple(map(_waiting, connection.execute(query)))

    def depth(self) -> QueueDepth:
        """Return how much work of all kinds waits, and for how long."""
        now = micros(self._clock())
        state = _state(now).label("state")
        waiting = (jobs.c.state == "waiting", jobs.c.due_at < ASLEEP)
        left = and_(jobs.c.state == "running", jobs.c.lease_until <= now, jobs.c.due_at < ASLEEP)  # its worker is gone
        since = case((jobs.c.state == "running", jobs.c.lease_until), else_=jobs.c.due_at)
        failed = (jobs.c.state.in_(("waiting", "dead")), jobs.c.reason != "")
        foreign = func.count(case((and_(*waiting, jobs.c.due_at <= now, ~self._fits), 1))).label("foreign")
        counted = select(state, func.count().label("jobs"), foreign).where(jobs.c.state != "done").group_by(state)
        tried = (
            select(jobs.c.reason, jobs.c.attempts).where(*failed).order_by(jobs.c.attempts.desc(), jobs.c.id).limit(1)
        )
        with self._database.read() as connection:
            found = connection.execute(counted).all()
            oldest = connection.execute(select(func.min(since)).where(or_(and_(*waiting), left))).scalar_one()
            reason, attempts = connection.execute(tried).one_or_none() or ("", 1)
        overdue = 0 if oldest is None else max(0, now - oldest) / _SECOND
        counts = {row.state: row.jobs for row in found}
        return QueueDepth(
            **counts,
            overdue_seconds=overdue,
            reason=reason,
            refused=not attempts,  # what a limit refuses is no attempt
            foreign=sum(row.foreign for row in found),
        )

    def crowded(self, kind: str, most: int) -> bool:
        """Return whether at least this many due jobs wait."""
        due = (jobs.c.kind == kind, jobs.c.state == "waiting", jobs.c.due_at <= micros(self._clock()))
        with self._database.read() as connection:
            return connection.execute(select(jobs.c.id).where(*due).offset(most - 1).limit(1)).first() is not None

    def _update(self, job: Job, values: Mapping[str, Any]) -> bool:
        """Change a job that is still its holder's; false where it is not."""
        held = (jobs.c.id == job.job_id, jobs.c.fence == job.fence, jobs.c.state == "running")
        with self._database.write() as connection:
            return connection.execute(update(jobs).where(*held).values(**values)).rowcount == 1


def _lease(now: int, seconds: float) -> int:
    return now + round(seconds * _SECOND)


def _only(job_id: int | None) -> ColumnElement[bool]:
    return true() if job_id is None else jobs.c.id == job_id


def _alone(now: int, kinds: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that no one does a job of these kinds in the same partition."""
    if not kinds:
        return true()
    other = jobs.alias()
    held = (other.c.state == "running", other.c.lease_until > now)
    return (
        ~select(other.c.id).where(other.c.partition_id == jobs.c.partition_id, other.c.kind.in_(kinds), *held).exists()
    )


def _state(now: int) -> Case[str]:
    """Return the state of a job as it is reported, which of the waiting ones are due."""
    return case(
        (jobs.c.state != "waiting", jobs.c.state),
        (jobs.c.due_at == ASLEEP, "asleep"),
        (jobs.c.due_at > now, "later"),
        else_="waiting",
    )


def _waiting(row: Row[Any]) -> BackgroundJob:
    return BackgroundJob(
        kind=row.kind,
        partition=partition_of(row),
        state=row.shown,
        due_at=None if row.due_at == ASLEEP else from_micros(row.due_at),
        attempts=row.attempts,
        worker=row.owner,
        reason=row.reason,
        foreign=row.foreign,
    )


# ------------------------------------------------------------------------------------------ work on blocks


def await_work(connection: Connection, partition_id: int, new: Sequence[Block], recipe: str) -> None:
    """Mark new blocks as waiting for a way of summarising."""
    waiting = {"topic": "", "recipe": recipe, "state": "pending", "reason": json.dumps(""), "attempts": 0}
    if new:
        connection.execute(
            insert(work), [{"partition_id": partition_id, "block_id": block.block_id, **waiting} for block in new]
        )


def set_work(connection: Connection, numbers: Mapping[Partition, int], there: Extents, wanted: Sequence[Work]) -> None:
    """Write how far work is.

    Args:
        there: The blocks that are there.

    Raises:
        NotFoundError: There is no such block.
    """
    for one in wanted:
        there.require(numbers[one.partition], one.block_id)
    rows = [
        {
            "partition_id": numbers[one.partition],
            **one.model_dump(include={"block_id", "topic", "recipe", "state", "attempts"}),
            "reason": json.dumps(one.reason),
        }
        for one in wanted
    ]
    if rows:
        connection.execute(_worked(connection.dialect.name), rows)


@cache
def _worked(dialect: str) -> Insert:
    statement = upsert(dialect, work)
    given = {name: statement.excluded[name] for name in ("state", "reason", "attempts")}
    return statement.on_conflict_do_update(index_elements=["partition_id", "block_id", "topic", "recipe"], set_=given)


def check_open(
    connection: Connection,
    numbers: Mapping[Partition, int],
    there: Extents,
    wanted: Sequence[Work],
    again: Mapping[str, str],
) -> None:
    """Check that none of this work is done, unless its block is read again, and that no one else has done that.

    Args:
        there: The blocks that are there.
        again: Blocks that are read again, by label, each with who read it last.

    Raises:
        ConflictError: Some of it is done.
    """
    places = [(one, (numbers[one.partition], one.block_id)) for one in wanted]
    done = [
        f"{one.block_id} {one.topic}".strip()
        for one, place in places
        if one.block_id not in again and place in there and (one.topic, one.recipe) in there[place].done
    ]
    reread = {place for one, place in places if one.block_id in again}
    done += [label for number, label in reread if _reader(connection, number, label) != again[label]]
    if done:
        raise ConflictError(done, "This work is done already: take it off the list.")


def _reader(connection: Connection, partition_id: int, block_id: str) -> str | None:
    """Return what read a block, by its index entry; none where it has none."""
    here = (summaries.c.partition_id == partition_id, summaries.c.block_id == block_id)
    body = connection.execute(select(summaries.c.body).where(*here)).scalar_one_or_none()
    return None if body is None else BlockSummary.from_json(body).extractor


def read_work(
    connection: Connection, places: Mapping[int, Partition], states: Sequence[WorkState], recipe: str | None
) -> tuple[Work, ...]:
    """Return work in these states, by partition, block and topic."""
    query = select(work).where(work.c.partition_id.in_(list(places)), work.c.state.in_(states))
    if recipe is not None:
        query = query.where(work.c.recipe == recipe)
    order = {partition_id: rank for rank, partition_id in enumerate(places)}
    rows = sorted(
        connection.execute(query).all(),
        key=lambda row: (order[row.partition_id], _label(row.block_id), row.topic, row.recipe),
    )
    return tuple(
        Work(
            partition=places[row.partition_id],
            block_id=row.block_id,
            topic=row.topic,
            recipe=row.recipe,
            state=row.state,
            reason=json.loads(row.reason),
            attempts=row.attempts,
        )
        for row in rows
    )


def pending(connection: Connection, recipe: str, partition_ids: Sequence[int] | None) -> int:
    """Return how many blocks wait for a way of summarising, in all partitions or in some."""
    query = select(func.count()).select_from(work).where(work.c.state == "pending", work.c.recipe == recipe)
    if partition_ids is not None:
        query = query.where(work.c.partition_id.in_(partition_ids))
    return connection.execute(query).scalar_one()


def failed(connection: Connection, recipe: str) -> int:
    """Return of how many blocks something failed in a way of summarising, in all partitions."""
    blocks = select(work.c.partition_id, work.c.block_id).where(work.c.state == "failed", work.c.recipe == recipe)
    return connection.execute(select(func.count()).select_from(blocks.distinct().subquery())).scalar_one()


def _label(block_id: str) -> tuple[str, int, str]:
    """Order labels by day and number: 20260101_100 comes after 20260101_99."""
    return block_id[:8], len(block_id), block_id
