"""Procrastinate brings work to workers as it comes: PostgreSQL notifies them, in the transaction that causes it.

It carries the number of a job and nothing else. Whether there is something to do, and who may do it, the ledger's own row
says, by its lease and its fence. So a delivery may come twice, too early, or from a worker that was taken for dead: it
finds nothing to claim, and leaves the rest to the next one. A delivery that never comes is made up for by a sweep.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event
from time import monotonic
from typing import Any, Literal, Self

import psycopg
from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.exceptions import ConnectorException, ProcrastinateException
from procrastinate.jobs import DeleteJobCondition, Status
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from sqlalchemy import (
    Connection,
    DateTime,
    Integer,
    bindparam,
    case,
    column,
    delete,
    func,
    literal_column,
    select,
    table,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB

from remegraph.errors import LedgerUnavailableError, SetupError
from remegraph.ledger.connections import PASSWORD_FILE, RELEASE, password_of, watched
from remegraph.ledger.database import EVERYBODY, Database
from remegraph.ledger.jobs import BELL, Stamps, claimable
from remegraph.ledger.migrations import DELIVERIES, lacks_procrastinate
from remegraph.ledger.rows import from_micros, micros
from remegraph.ledger.schema import jobs
from remegraph.ports import Call, Clock, Deliver
from remegraph.settings import CapturePolicy

__all__ = ["Procrastinate"]

_NAME = "remegraph"
_OWNER = "Run `remegraph migrate --apply` as the owner of the tables."
_DELIVERIES = table(
    DELIVERIES,
    *map(column, ("queue_name", "task_name", "priority", "lock", "queueing_lock", "status")),
    column("scheduled_at", DateTime(timezone=True)),
    column("args", JSONB),
)
_DELIVER = (
    postgresql.insert(_DELIVERIES)
    .values({name: bindparam(name) for name in _DELIVERIES.c.keys() if name != "status"})  # noqa: SIM118 - no mapping
    .on_conflict_do_nothing(index_elements=["queueing_lock"], index_where=literal_column("status = 'todo'"))
)
"""A delivery that waits for the same job does for this one, too. Procrastinate's own way fails there: PostgreSQL would log it."""

_LOOKS = 3  # polls between two looks for what is due later, which causes no notification
_RECONNECT = 4.0  # seconds until a pool that cannot connect is given up for a new one, which tries at once
_BEATS = 6  # heartbeats, and sweeps, in the time of a lease
_GONE = 20  # leases after which procrastinate forgets a worker, and ends it should it come back
_NOTED = 2 * _RECONNECT  # seconds within which procrastinate has noted the end of a delivery, or failed to
_TICK = 1.0  # until it is noticed that procrastinate ended
_LOGGERS = ("procrastinate.worker", "procrastinate.utils", "psycopg", "psycopg.pool")
_LOST = (psycopg.Error, ConnectorException, PoolTimeout, LedgerUnavailableError)


class Procrastinate:
    """Fills `ports.Courier`. Once it is made, it learns of every job that is enqueued.

    Args:
        database: The ledger, on PostgreSQL; procrastinate's tables are made in it where they are missing.
        stamps: Say which jobs are done here.
        migrate: never: its tables are there, or it is refused.

    Raises:
        SchemaTooOldError: They are not.
        SetupError: This account may not make them.
    """

    def __init__(
        self, database: Database, clock: Clock, stamps: Stamps, *, migrate: Literal["auto", "never"] = "auto"
    ) -> None:
        self._database = database
        self._clock = clock
        self._stamps = stamps
        self._returned: dict[int, float] = {}  # deliveries that are over, and when; their end may not be noted yet
        with database.write([EVERYBODY]) as connection:
            if (lacks := lacks_procrastinate(connection)) is not None:
                if migrate == "never":
                    raise lacks
                try:
                    _driver(connection).execute(_new_app().schema_manager.get_schema())
                except psycopg.errors.InsufficientPrivilege as error:
                    raise SetupError("This account may not make the tables of procrastinate.", _OWNER) from error
        database.engine.update_execution_options(**{BELL: self._ring})

    def work(
        self,
        deliver: Deliver,
        *,
        concurrency: int,
        policy: CapturePolicy,
        stop: Event,
        alive: Callable[[], object],
    ) -> None:
        """Deliver jobs until `stop` is set, then wait for those at hand.

        Args:
            deliver: Does a job, if it can be claimed; returns when to come again, if at all.
            policy: How long a silent worker is believed, and how often is looked should PostgreSQL not be heard.
            stop: Set it to end the work.
            alive: Called while it listens.

        Raises:
            LedgerUnavailableError: The database cannot be used.
        """
        with _quiet(), ThreadPoolExecutor(concurrency, thread_name_prefix="remegraph-worker") as pool:
            try:
                asyncio.run(
                    self._work(
                        partial(self._deliver, deliver),
                        pool,
                        concurrency=concurrency,
                        policy=policy,
                        stop=stop,
                        alive=alive,
                    )
                )
            except (ProcrastinateException, psycopg.Error) as error:
                told = type(error.__cause__ or error).__name__
                raise LedgerUnavailableError(
                    f"Procrastinate cannot use the ledger ({told}).",
                    "Check that the server runs; a worker goes on by itself once it does.",
                ) from error

    # ------------------------------------------------------------------------------------------- inside

    def _pool(self) -> AsyncConnectionPool:
        url = self._database.engine.url.set(drivername="postgresql")
        password = password_of(url)
        return AsyncConnectionPool(
            url.difference_update_query([PASSWORD_FILE]).render_as_string(hide_password=False),
            connection_class=psycopg.AsyncConnection if password is None else _connecting(password),
            kwargs=watched(url),
            configure=_set_up,
            check=AsyncConnectionPool.check_connection,
            timeout=_RECONNECT,
            reconnect_timeout=_RECONNECT,
            open=False,
        )

    def _ring(self, connection: Connection, call: Call, due: int) -> None:
        """Have a job delivered when it is due, if this transaction is committed.

        Of what has one lock, procrastinate holds back all that has less priority, even where the other is not due yet.
        What workers with other settings do has a queue and locks of its own: it holds nothing back here.
        """
        now = due <= micros(self._clock())
        stamp = call.stamp and f" {call.stamp}"
        delivery = {
            "task_name": _NAME,
            "queue_name": f"{_NAME}{stamp}",
            "lock": f"{_NAME} {call.partition_id}{stamp}",
            "queueing_lock": f"{_NAME} {call.job_id}{stamp}{'' if now else ' later'}",
            "priority": int(now),
            "scheduled_at": None if now else from_micros(due),
            "args": call._asdict(),
        }
        connection.execute(_DELIVER, delivery)

    def again(self, calls: Sequence[Call]) -> None:
        """Have jobs delivered again whose worker is gone: its deliveries would otherwise hold them back until it expires."""
        with self._database.write() as connection:
            for call in calls:
                held = (_DELIVERIES.c.status == literal_column("'doing'"), _DELIVERIES.c.task_name == _NAME)
                mine = _DELIVERIES.c.args["job_id"].as_integer() == call.job_id
                connection.execute(delete(_DELIVERIES).where(*held, mine))
                self._ring(connection, call, micros(self._clock()))

    def _deliver(self, deliver: Deliver, call: Call) -> None:
        again = deliver(call.kind, call.job_id)
        if again is not None:
            due = micros(max(again, self._clock()))
            with self._database.write() as connection:
                self._ring(connection, call, due)

    async def _work(
        self,
        deliver: partial[None],
        pool: Executor,
        *,
        concurrency: int,
        policy: CapturePolicy,
        stop: Event,
        alive: Callable[[], object],
    ) -> None:
        app = _new_app()
        asyncio.get_running_loop().set_exception_handler(_unheard)

        @app.task(name=_NAME, queue=_NAME, pass_context=True)
        async def delivered(context: JobContext, kind: str, job_id: int, partition_id: int, stamp: str = "") -> None:
            call = Call(kind, job_id, partition_id, stamp)
            try:
                await asyncio.get_running_loop().run_in_executor(pool, deliver, call)
            finally:
                if context.job.id is not None:
                    self._returned[context.job.id] = monotonic()

        async with self._pool() as connections, app.open_async(connections):
            await connections.wait(_RECONNECT)
            worker = app.run_worker_async(
                queues=[_NAME, *(f"{_NAME} {stamp}" for stamp in sorted(self._stamps.every))],
                concurrency=concurrency,
                install_signal_handlers=False,
                delete_jobs=DeleteJobCondition.ALWAYS,
                fetch_job_polling_interval=_LOOKS * policy.poll,
                update_heartbeat_interval=policy.lease / _BEATS,
                stalled_worker_timeout=_GONE * policy.lease,
            )
            upkeep = (self._keep_sweeping(app, policy.lease), self._keep_ending(), self._keep_freeing())
            tasks = [asyncio.create_task(each) for each in (worker, *upkeep)]
            while not (any(task.done() for task in tasks) or await asyncio.to_thread(stop.wait, _TICK)):
                alive()
            for task in tasks:
                task.cancel()  # the worker waits for the jobs at hand
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(outcome, Exception):
                    raise outcome

    async def _keep_sweeping(self, app: App, lease: float) -> None:
        while True:
            for each in await app.job_manager.get_stalled_jobs(task_name=_NAME, seconds_since_heartbeat=lease):
                with suppress(ConnectorException):  # another sweep was first, or the worker itself
                    await app.job_manager.finish_job(each, Status.FAILED, delete_job=True)  # it holds the next one back
            await asyncio.to_thread(self._sweep)
            await asyncio.sleep(lease / _BEATS)

    async def _keep_ending(self) -> None:
        """End deliveries whose end could not be noted: while their worker lives, they would hold the next ones back."""
        while True:
            await asyncio.sleep(_TICK)
            over = [each for each, at in self._returned.items() if monotonic() - at > _NOTED]
            if over:
                with suppress(LedgerUnavailableError):  # it still cannot be noted: the next look is soon
                    await asyncio.to_thread(self._end, over)
                    for each in over:
                        del self._returned[each]

    async def _keep_freeing(self) -> None:
        """End deliveries whose job no worker does: the worker died before it had the job, or after it was done."""
        idle: set[int] = set()
        while True:
            with suppress(LedgerUnavailableError):
                seen = await asyncio.to_thread(self._idle)
                if over := idle & seen:
                    await asyncio.to_thread(self._end, list(over))
                    await asyncio.to_thread(self._sweep)
                idle = seen - over
            await asyncio.sleep(_NOTED)

    def _idle(self) -> set[int]:
        job = jobs.c.id == _DELIVERIES.c.args["job_id"].as_integer()
        at_work = select(jobs.c.id).where(job, jobs.c.state == "running").exists()
        begun = (_DELIVERIES.c.status == literal_column("'doing'"), _DELIVERIES.c.task_name == _NAME)
        with self._database.read() as connection:
            return set(
                connection.execute(
                    select(literal_column("procrastinate_jobs.id", Integer))
                    .select_from(_DELIVERIES)
                    .where(*begun, ~at_work)
                ).scalars()
            )

    def _end(self, deliveries: Sequence[int]) -> None:
        held = (_DELIVERIES.c.status == literal_column("'doing'"), column("id", Integer).in_(deliveries))
        with self._database.write() as connection:
            connection.execute(delete(_DELIVERIES).where(*held))

    def _sweep(self) -> None:
        """Notify workers of jobs that can be claimed and have no delivery: their worker died, or they were enqueued before."""
        now = micros(self._clock())
        stamp = case((jobs.c.stamp == "", ""), else_=func.concat(" ", jobs.c.stamp))
        told = select(_DELIVERIES).where(
            _DELIVERIES.c.status == literal_column("'todo'"),
            _DELIVERIES.c.queueing_lock == func.concat(f"{_NAME} ", jobs.c.id, stamp),
        )
        wanted = (jobs.c.kind, jobs.c.id, jobs.c.partition_id, jobs.c.stamp)
        left = select(*wanted).where(claimable(now), self._stamps.fit(), ~told.exists())
        with self._database.read() as connection:
            found = connection.execute(left).all()
        for row in found:
            with self._database.write() as connection:
                self._ring(connection, Call(*row), now)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let procrastinate and its pool log an outage in detail at DEBUG alone: the worker logs it in one line."""
    loggers, lowered = [logging.getLogger(name) for name in _LOGGERS], partial(_lowered)
    for each in loggers:
        each.addFilter(lowered)
    try:
        yield
    finally:
        for each in loggers:  # the filter of another kit of this process stays: each has an object of its own
            each.removeFilter(lowered)


def _lowered(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if record.levelno >= logging.WARNING and (record.name.startswith("psycopg") or isinstance(error, _LOST)):
        record.levelno, record.levelname = logging.DEBUG, "DEBUG"
    return logging.getLogger(record.name).isEnabledFor(record.levelno)


def _unheard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Spare the log what procrastinate left unheard of an outage."""
    if not isinstance(context.get("exception"), _LOST):
        loop.default_exception_handler(context)


def _new_app() -> App:
    return App(connector=PsycopgConnector(configure=_set_up))


def _connecting(password: Callable[[], str]) -> type[psycopg.AsyncConnection]:
    """Return connections that use the password as it is when they are made."""

    class Connection(psycopg.AsyncConnection):
        @classmethod
        async def connect(cls, conninfo: str = "", **given: Any) -> Self:
            return await super().connect(conninfo, **given, password=password())

    return Connection


async def _set_up(connection: psycopg.AsyncConnection) -> None:
    await connection.execute(RELEASE)
    await connection.commit()


def _driver(connection: Connection) -> psycopg.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver
