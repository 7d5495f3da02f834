"""The durable queue: one row per kind and partition, a lease and a fence (DESIGN, section 5)."""

from __future__ import annotations

from functools import cache
from typing import Literal

from sqlalchemy import Connection, Insert, and_, case, false, or_, select, true, update

from remegraph.models import Partition
from remegraph.ports import Clock, Job
from remegraph.storage.database import Database, upsert
from remegraph.storage.interning import Interning, partition_of
from remegraph.storage.rows import micros
from remegraph.storage.tables import jobs, partitions

__all__ = ["SqlJobQueue", "enqueue"]

_SECOND = 1_000_000
_FIRST_DELAY = _SECOND
_LONGEST_DELAY = 3600 * _SECOND

_NEW = {"state": "waiting", "again": False, "attempts": 0, "owner": "", "lease_until": 0, "fence": 0, "reason": ""}


def enqueue(connection: Connection, kind: str, partition_id: int, now: int) -> None:
    """Ask for a job: wake a closed one, leave a waiting one, and have a running one run again.

    Args:
        connection: A write transaction.
        kind: What to do.
        partition_id: Where.
        now: In microseconds.
    """
    row = {"partition_id": partition_id, "kind": kind, "due_at": now, **_NEW}
    connection.execute(_enqueue(connection.dialect.name), row)


@cache
def _enqueue(dialect: str) -> Insert:
    closed = jobs.c.state.in_(("done", "dead"))
    statement = upsert(dialect, jobs)
    given = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=["partition_id", "kind"],
        set_={
            "state": case((closed, given.state), else_=jobs.c.state),
            "attempts": case((closed, given.attempts), else_=jobs.c.attempts),
            "due_at": case((closed, given.due_at), else_=jobs.c.due_at),
            "again": or_(jobs.c.again, jobs.c.state == "running"),
        },
    )


class SqlJobQueue:
    """Fills `ports.JobQueue` over the ledger's own table, so that work is queued in the transaction that causes it.

    Args:
        database: The ledger.
        clock: Tells when leases run out.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._interning = Interning()

    def enqueue(self, kind: str, partition: Partition) -> None:
        """Add a job unless one waits already; a running one will run again."""
        with self._database.write() as connection:
            partition_id = self._interning.ensure(connection, [partition])[partition]
            enqueue(connection, kind, partition_id, micros(self._clock()))

    def claim(self, kind: str, owner: str, lease_seconds: float) -> Job | None:
        """Take the oldest job that nobody holds, or whose lease ran out.

        Args:
            kind: What the worker can do.
            owner: Names the worker.
            lease_seconds: How long it may take.
        """
        now = micros(self._clock())
        ready = or_(
            and_(jobs.c.state == "waiting", jobs.c.due_at <= now),
            and_(jobs.c.state == "running", jobs.c.lease_until <= now),
        )
        oldest = (
            select(jobs.c.id)
            .where(jobs.c.kind == kind, ready)
            .order_by(jobs.c.due_at, jobs.c.id)
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
                lease_until=now + round(lease_seconds * _SECOND),
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

    def finish(self, job: Job, outcome: Literal["done", "retry", "dead"], reason: str = "") -> bool:
        """Close a job; false where the fence says that another worker has it now.

        Args:
            job: As it was claimed.
            outcome: `retry` waits twice as long each time; asked for again meanwhile, `done` and `dead` wait anew.
            reason: Why it did not work.
        """
        now = micros(self._clock())
        delay = min(_FIRST_DELAY << min(job.attempts - 1, 32), _LONGEST_DELAY)
        values = (
            {"state": "waiting", "due_at": now + delay}
            if outcome == "retry"
            else {
                "state": case((jobs.c.again == true(), "waiting"), else_=outcome),
                "attempts": case((jobs.c.again == true(), 0), else_=jobs.c.attempts),
                "due_at": now,
            }
        )
        close = (
            update(jobs)
            .where(jobs.c.id == job.job_id, jobs.c.fence == job.fence, jobs.c.state == "running")
            .values(again=false(), owner="", lease_until=0, reason=reason, **values)
        )
        with self._database.write() as connection:
            return connection.execute(close).rowcount == 1
