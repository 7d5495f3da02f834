"""One door to the database, SQLite or PostgreSQL: transactions, snapshots, locks, and errors in our own words."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    exc,
    text,
)
from sqlalchemy.pool import StaticPool

from remegraph.deadlines import Gate
from remegraph.errors import LedgerUnavailableError, OutcomeUnknownError, RemegraphError, SetupError
from remegraph.files import AFTER_FORK, alone, give_up_at_fork, keep_at_fork
from remegraph.ledger import migrations
from remegraph.ledger.connections import INHERITED, SILENT, Heartbeat, engine_of, file_of
from remegraph.settings import PoolPolicy, without_passwords
from remegraph.telemetry import event

__all__ = ["EVERYBODY", "Database"]

EVERYBODY = 0
"""To lock where a write concerns no partition alone, as one of the schema: no partition has this number."""

T = TypeVar("T")

_LOCK_NAMESPACE = 0x72656D65  # "reme": keeps our advisory locks apart from those of a host
_TASK_NAMESPACE = _LOCK_NAMESPACE + 1
_GRANTS = (
    "Let this account read and write rows: run deploy/postgresql/grants.sql as the owner of the tables, who also runs what "
    "makes or changes them (docs/operations.md, Least privilege)."
)
# What an operational error of either engine says, and what to do about it: first lasting defects, then passing outages.
_DEFECTS = (
    ("not a database", "Another file lies there: open another home, or move that file away."),
    ("malformed", "The file is damaged: restore a backup, or salvage it with `sqlite3 FILE .recover`."),
    ("readonly", "Make the file and its folder writable."),
    ("read-only", "Make the file and its folder writable."),
    ("unable to open", "Make sure that the folder exists and is writable."),
    ("permission denied for table", _GRANTS),
    ("permission denied for sequence", _GRANTS),
    ("permission denied", "This account may not do that: what makes or changes tables is run as their owner."),
    ("must be owner", "This account may not do that: what makes or changes tables is run as their owner."),
    ("index row", "Use shorter names and ids: PostgreSQL takes about 2,600 bytes. Nothing was written."),
)
_OUTAGES = (
    ("disk is full", "Free some space and repeat: nothing of this operation was written."),
    ("no space left", "Free some space and repeat: nothing of this operation was written."),
    ("disk i/o error", "Check the disk and repeat: nothing of this operation was written."),
    ("queuepool limit", "Repeat, or let this process have more connections: the settings' `pool`."),
    (SILENT, "The server stands still: once it goes on, repeat."),
    ("is locked", "Another process holds the ledger: repeat, or close that process."),
    ("lock timeout", "Another process holds these records for long: repeat."),
    ("idle-in-transaction timeout", "This process was held up for seconds, and nothing was written: repeat."),
)
_PATIENT = text(  # where the limit is ours, and no one's who wants it
    "SELECT set_config('lock_timeout', '0', :here) FROM pg_settings WHERE name = 'lock_timeout' AND source = 'session'"
)
_FILES = text(  # of the ledger's tables and its owner's others; a table has another one after it was rewritten
    "SELECT relname, pg_relation_filenode(oid), CAST(CAST(oid AS regclass) AS text) AS quoted FROM pg_class "
    "WHERE relkind = 'r' AND (relowner, relnamespace) = "
    "(SELECT relowner, relnamespace FROM pg_class WHERE oid = CAST('messages' AS regclass))"
)
_CLEAR_STATISTICS = text(  # of tables that are empty now: to count nothing leaves what was counted before
    "SELECT pg_clear_attribute_stats(CAST(schemaname AS text), CAST(tablename AS text), CAST(attname AS text), inherited) "
    "FROM pg_stats JOIN pg_namespace ON nspname = schemaname JOIN pg_class ON (relnamespace, relname) = (pg_namespace.oid, tablename) "
    "WHERE reltuples = 0 AND has_table_privilege(pg_class.oid, 'MAINTAIN') AND (relowner, relnamespace) = "
    "(SELECT relowner, relnamespace FROM pg_class WHERE oid = CAST('messages' AS regclass))"
)
_CLEARS_STATISTICS = (18,)
"""Version of PostgreSQL from which on it clears them on demand."""
_LOCK = text("SELECT pg_advisory_xact_lock(:namespace, each) FROM unnest(CAST(:partitions AS int[])) AS each")
_REFUSED = "FATAL"  # PostgreSQL answers, and lets no one in
_PASSING = ("too many", "remaining connection slots", "starting up", "no more connections")
"""How it refuses what it may grant a moment later, also to whom it never let in."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.1  # seconds between two requests for a connection
_UNKNOWN_CURE = "Check that the server runs and that the URL, the user and the password are right; then repeat."


_USUAL = PoolPolicy()
_LOOK = 3.0
"""Seconds for which a schema is taken to be as it was; then the next write looks."""
_IN_LINE = 1.0
"""Seconds that a call waits for its turn: no other call holds it up for longer."""
_REVISION = "SELECT version_num FROM remegraph_schema"

_log = logging.getLogger(__name__)


class _Session:
    """One snapshot that the reads of a call share. It is taken by the first of them; one thread reads at a time."""

    def __init__(self, snapshot: Callable[[], AbstractContextManager[Connection]]) -> None:
        self.known: dict[Hashable, Any] = {}
        self.records: dict[Hashable, Any] = {}
        self._snapshot = snapshot
        self._turn = threading.RLock()
        self._held = ExitStack()
        self._connection: Connection | None = None
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give the connection. After an error it is not used again: PostgreSQL refuses whatever comes after one."""
        with self._turn, ExitStack() as unless_read:
            if self._closed:  # by a thread that outlived the call
                yield unless_read.enter_context(self._snapshot())
                return
            unless_read.push(self._fail)
            if self._connection is None:
                self._connection = self._held.enter_context(self._snapshot())
            yield self._connection
            unless_read.pop_all()

    def give_back(self) -> None:
        """End the snapshot; the next read takes another one."""
        with self._turn:
            self._connection = None
            self.records.clear()
            self._held.close()

    def _fail(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the snapshot by the error of a read: what the server has ended itself cannot be ended as if all were well."""
        self._connection = None
        self.records.clear()
        self._held.__exit__(kind, error, at)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """End the snapshot before a write of the same call, so that it need not wait for itself; what follows sees it."""
        self.give_back()
        try:
            yield
        finally:
            self.give_back()
            self.known.clear()

    def close(self) -> None:
        """End it for good."""
        with self._turn:
            self._closed = True
            self.give_back()


_SESSIONS: ContextVar[Mapping[int, _Session]] = ContextVar("remegraph_sessions", default={})  # noqa: B039 - never written to
"""The sessions of the call at hand, by the database that they read."""


class Database:
    """A pool of connections with two kinds of transaction: `read` is a snapshot, `write` excludes other writers.

    Safe to share between threads. Transactions do not nest: finish one before the next in the same thread. Reads of one
    call may share a snapshot: see `session`.

    Args:
        engine: A set-up engine; see `open`.
        wait: Seconds that a call waits for a connection that the server refuses for now.
    """

    def __init__(self, engine: Engine, wait: float = _USUAL.wait) -> None:
        self.engine = engine
        self._wait = wait
        self._known = False
        # Waiting in line here is fair and cheap; SQLite's own busy handler is neither. A ledger in memory is one
        # connection, so there reads wait in the same line.
        self._writers = threading.Lock() if self.is_sqlite else None
        self._readers = self._writers if isinstance(engine.pool, StaticPool) else None
        # SQLite is read by who computes, and one interpreter lock lets one thread compute: 16 recalls at once took 44 ms of
        # processor each, 25 in turn, and the slowest half as long.
        self._line = Gate(1) if self.is_sqlite else None
        self._beats = None if self.is_sqlite else Heartbeat(engine.dialect.loaded_dbapi.Error)
        self._refusal: RemegraphError | None = None
        self._look_at = math.inf
        self._fits = True
        self.given_up = False
        """Whether this is a child of the process that opened it."""
        give_up_at_fork(self)

    @classmethod
    def open(cls, url: str, pool: PoolPolicy = _USUAL, *, migrate: Literal["auto", "never"] = "auto") -> Self:
        """Open a ledger, and bring its schema up to date.

        Args:
            url: SQLAlchemy URL: `sqlite:///path`, `sqlite://` (in memory) or `postgresql://...`.
            pool: How many connections there are, and how long a call waits for one.
            migrate: never: leave its schema as it is.

        Raises:
            SetupError: The URL, the file or the server cannot be used.
            SchemaTooNewError: A newer remegraph wrote it.
            SchemaTooOldError: It is of an earlier release, and is to be left as it is.
            MissingExtraError: The driver is not installed.
        """
        database = cls(engine_of(url, pool), pool.wait)
        with ExitStack() as unless_ready:
            unless_ready.callback(database.close)
            database._settle(migrate)
            database._look_at = time.monotonic() + _LOOK
            unless_ready.pop_all()
        return database

    @classmethod
    def as_it_is(cls, url: str) -> Self:
        """Give a ledger whose schema is neither looked at nor changed: for those who examine it.

        Args:
            url: See `open`.

        Raises:
            SetupError: The URL cannot be read.
            MissingExtraError: The driver is not installed.
        """
        return cls(engine_of(url, _USUAL))

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite (else PostgreSQL)."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def session(self) -> Iterator[None]:
        """Let all that is read from here on see one snapshot, in whichever thread of the call: it costs one transaction.

        A write ends the snapshot, and what is read after it sees it. A ledger in memory is one connection, which no one
        may keep for so long: there each read is its own.
        """
        if self._readers is not None or self._session() is not None:
            yield
            return
        session = _Session(self._in_turn)
        token = _SESSIONS.set({**_SESSIONS.get(), id(self): session})
        try:
            yield
        finally:
            _SESSIONS.reset(token)
            with self._translated():  # the server may have ended it meanwhile
                session.close()

    def away(self) -> None:
        """Give the connection of the session back while something slow is waited for; the next read takes another one."""
        if (session := self._session()) is not None:
            with self._translated():
                session.give_back()

    def once(self, key: Hashable, query: Callable[[Connection], T], connection: Connection | None = None) -> T:
        """Return what a query gives; within a session it is asked once.

        Args:
            key: Names the query, and all that it depends on.
            query: Asks, by the connection that it is given.
            connection: That of the read at hand, where there is one: a ledger in memory has no other.

        Raises:
            SetupError: The database cannot be used.
        """
        known = {} if (session := self._session()) is None else session.known
        if key not in known:
            with self.read() if connection is None else nullcontext(connection) as reading:
                known[key] = query(reading)
        found: T = known[key]
        return found

    def records(self) -> dict[Hashable, Any]:
        """Return what the snapshot of the session was read into, by key; without a session, nothing that is kept."""
        return {} if (session := self._session()) is None else session.records

    def _session(self) -> _Session | None:
        return _SESSIONS.get().get(id(self))

    @contextmanager
    def read(self, *, apart: bool = False) -> Iterator[Connection]:
        """Give a connection whose queries all see the same snapshot: that of the session, where there is one.

        Args:
            apart: Beside the session: a read that is given up while it lasts must not hold up those that follow.

        Raises:
            SetupError: The database cannot be used.
        """
        session = None if apart else self._session()
        with self._translated(), self._snapshot() if session is None else session.reading() as connection:
            yield connection

    @contextmanager
    def _in_turn(self) -> Iterator[Connection]:
        """Give a snapshot that is kept for a while, where SQLite is read by one such call after the other."""
        with nullcontext() if self._line is None else self._line.inside(_IN_LINE), self._snapshot() as connection:
            yield connection

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        with self._readers or nullcontext(), self._connected() as connection:
            if not self.is_sqlite:
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin(), self._alive(connection):
                self._begin(connection, "BEGIN")
                yield connection

    def refuse(self, error: RemegraphError | None) -> None:
        """Let no memory be written from now on; what follows from it can be, as the index and its marks.

        Args:
            error: Why; none: let it be written again.
        """
        self._refusal = error

    def check_writable(self) -> None:
        """Return if memory may be written.

        Raises:
            RemegraphError: See `refuse`.
        """
        if self._refusal is not None:
            raise type(self._refusal)(self._refusal.what, self._refusal.cure)

    @contextmanager
    def write(self, partition_ids: Iterable[int] = (), *, derived: bool = False) -> Iterator[Connection]:
        """Give a connection that may write; commit at the end, roll back on any error.

        On SQLite no other writer runs meanwhile, on PostgreSQL no other writer of these partitions.

        Args:
            partition_ids: The partitions to lock; more of them with `lock`, before anything is read.
            derived: Whether it only writes what follows from the ledger, as what concerns `EVERYBODY` does.

        Raises:
            SetupError: The database cannot be used, or memory may not be written.
        """
        if not (derived or partition_ids == [EVERYBODY]):
            self.check_writable()
        session = self._session()
        with (
            self._translated() as course,
            nullcontext() if session is None else session.writing(),
            self._writers or nullcontext(),
            self._connected() as connection,
            connection.begin(),
            self._alive(connection),
        ):
            self._begin(connection, "BEGIN IMMEDIATE")
            self.lock(connection, partition_ids)
            if time.monotonic() >= self._look_at:
                self._check_schema(connection)
            yield connection
            course.committing = True

    def lock(self, connection: Connection, partition_ids: Iterable[int]) -> None:
        """Lock partitions until the transaction ends, always in the same order, so that two writers cannot embrace.

        Args:
            partition_ids: All partitions that the transaction writes.
        """
        if self.is_sqlite:  # BEGIN IMMEDIATE has locked them all
            return
        if wanted := sorted(set(partition_ids)):
            connection.execute(_LOCK, {"namespace": _LOCK_NAMESPACE, "partitions": wanted})

    @contextmanager
    def first(self, task: int) -> Iterator[bool]:
        """Give whether no other process does this task now; until the end, no other gets to.

        Raises:
            SetupError: The database cannot be used.
        """
        if self.is_sqlite:
            with self._first_on_sqlite(task) as mine:
                yield mine
            return
        key = {"namespace": _TASK_NAMESPACE, "task": task}
        with self._translated(), self._connected() as connection:
            own = connection.execution_options(isolation_level="AUTOCOMMIT")
            mine = own.execute(text("SELECT pg_try_advisory_lock(:namespace, :task)"), key).scalar_one()
            try:
                yield bool(mine)
            finally:
                if mine:
                    own.execute(text("SELECT pg_advisory_unlock(:namespace, :task)"), key)

    def _first_on_sqlite(self, task: int) -> AbstractContextManager[bool]:
        """Lock a file beside the database; what is in memory is of this process alone."""
        in_memory = isinstance(self.engine.pool, StaticPool)
        return nullcontext(enter_result=True) if in_memory else alone(Path(f"{self.engine.url.database}-task{task}"))

    def shred(self, *, full: bool = False) -> str:
        """Give the bytes of deleted rows back: out of the full text, the tables and the log.

        Args:
            full: On PostgreSQL, whether tables are rewritten, which locks them meanwhile; else their space is
                freed for new rows, and what was in it stays until those come.

        Returns:
            Why not all files of tables were rewritten; nothing where they were.

        Raises:
            SetupError: The database cannot be used, or another process reads an old state of it.
        """
        session = self._session()
        with (
            self._translated(),
            nullcontext() if session is None else session.writing(),
            self._writers or nullcontext(),
            self._connected() as connection,
        ):
            if not self.is_sqlite:
                own = connection.execution_options(isolation_level="AUTOCOMMIT")
                own.detach()  # closed at the end: the next line is for no one else
                own.execute(_PATIENT, {"here": False})  # another one may do the same, for minutes
                return _vacuumed(own, full=full)
            connection.exec_driver_sql("INSERT INTO texts_fts (texts_fts) VALUES ('optimize')")
            connection.exec_driver_sql("VACUUM")
            busy, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            if busy:
                raise LedgerUnavailableError(
                    "Another process reads an old state of the ledger, so that its log cannot be emptied.",
                    "Let it finish, or close it; then resume.",
                )
            return ""

    def ping(self) -> None:
        """Return if the ledger answers, and this code fits its schema.

        Raises:
            SetupError: It cannot be used, or has another schema.
        """
        with self.read() as connection:
            migrations.check_fit(migrations.recorded(connection))

    def close(self) -> None:
        """Give all connections back, and the statements that were put together for them."""
        if self.given_up:
            return
        keep_at_fork(self)
        if self._beats is not None:
            self._beats.close()
        self.engine.dispose()
        self.engine.clear_compiled_cache()

    def give_up(self) -> None:
        """Leave all connections to the parent, in a forked child; what it had locked of a file, a child has not."""
        self.given_up = True
        file = file_of(self.engine.url)
        INHERITED.update([file] if file is not None else ())

    def check(self) -> None:
        """Refuse to be used in a child of the process that opened it.

        Raises:
            SetupError: It is.
        """
        if self.given_up:
            raise SetupError("The memory was opened by the process that this one was forked from.", AFTER_FORK)

    def _alive(self, connection: Connection) -> AbstractContextManager[None]:
        """Let PostgreSQL know during a transaction that this process lives, however long it computes."""
        return nullcontext() if self._beats is None else self._beats.during(connection)

    def _connected(self) -> Connection:
        """Return a connection; one that the server refuses for now is asked for again, until the wait is over.

        A waiting call may get one that another thread returns meanwhile. Nothing was done yet, so it is safe.
        """
        end, pause = time.monotonic() + self._wait, _FIRST_PAUSE
        while True:
            try:
                connection = self.engine.connect()
            except exc.OperationalError as error:
                told = str(error.orig)
                passing = _REFUSED in told and (self._known or any(sign in told for sign in _PASSING))
                if not passing or time.monotonic() + pause > end:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self._known = True
                return connection

    def _begin(self, connection: Connection, command: str) -> None:
        """Begin on SQLite, where SQLAlchemy leaves it to us; a listener for it would cost time at every statement."""
        if self.is_sqlite:
            connection.exec_driver_sql(command)

    def _check_schema(self, connection: Connection) -> None:
        """Look whether this code still fits the schema, in the transaction that writes; the driver itself asks, as that is cheap.

        Raises:
            SchemaTooNewError: A newer remegraph has changed it since.
            SchemaTooOldError: An earlier ledger was brought back.
        """
        driver: Any = connection.connection.driver_connection
        try:
            (revision,) = driver.execute(_REVISION).fetchone()
        except self.engine.dialect.loaded_dbapi.Error as error:
            raise exc.OperationalError(_REVISION, None, error) from error
        try:
            migrations.check_fit(revision)
        except SetupError as error:
            if self._fits:
                _log.error("Nothing is written any more: %s", error, extra=event("schema.changed", error))
            self._fits = False
            raise
        self._fits, self._look_at = True, time.monotonic() + _LOOK

    def _settle(self, migrate: Literal["auto", "never"]) -> None:
        with self.read() as connection:
            if migrations.is_current(connection):
                return
            if migrate == "never":
                migrations.check_fit(migrations.recorded(connection))
        with self.write() as connection:
            if not self.is_sqlite:
                connection.execute(_PATIENT, {"here": True})  # a migration may take minutes
            self.lock(connection, [EVERYBODY])
            migrations.upgrade(connection)

    @contextmanager
    def _translated(self) -> Iterator[_Course]:
        """Translate errors of the file or the server into our own, here and nowhere else."""
        self.check()
        course = _Course()
        try:
            yield course
        except (exc.DBAPIError, exc.TimeoutError) as error:
            cause = error.orig if isinstance(error, exc.DBAPIError) else error
            told = without_passwords(" ".join(str(cause).split())).rstrip(".?")  # libpq's has lines, and asks
            defect, outage = _cure(_DEFECTS, told), _cure(_OUTAGES, told)
            if not (defect or outage or isinstance(error, _OPERATIONAL)):
                raise  # a defect of ours, not of the database
            where = without_passwords(self.engine.url.render_as_string(hide_password=True))
            what = f"The ledger {where} cannot be used: {told}."
            if defect:
                raise SetupError(what, defect) from error
            if course.committing and isinstance(error, exc.DBAPIError) and error.connection_invalidated:
                raise OutcomeUnknownError(f"{what} Whether the change was recorded is not known.") from error
            raise LedgerUnavailableError(what, outage or _UNKNOWN_CURE) from error


@dataclass(slots=True)
class _Course:
    """How far a transaction has come."""

    committing: bool = False
    """From here on, the server may have done it though its answer never came."""


_OPERATIONAL = (exc.OperationalError, exc.InterfaceError, exc.TimeoutError)


def _cure(signs: Iterable[tuple[str, str]], told: str) -> str | None:
    return next((cure for sign, cure in signs if sign in told.lower()), None)


def _vacuumed(connection: Connection, *, full: bool) -> str:
    """Vacuum the ledger's tables in PostgreSQL, and recompute the statistics of their columns, which contain words from them.

    Returns:
        Why tables keep their files, if so. It skips what an account may not with a warning.
    """
    tables = connection.execute(_FILES).all()
    how = "FULL, ANALYZE" if full else "ANALYZE"
    connection.exec_driver_sql(f"VACUUM ({how}) {', '.join(row.quoted for row in tables)}")
    if (connection.dialect.server_version_info or ()) >= _CLEARS_STATISTICS:
        connection.execute(_CLEAR_STATISTICS)
    if not full:
        return "It was not asked for; `remegraph admin erase --resume --full` does it, also afterwards."
    before = {row.pg_relation_filenode for row in tables}
    same = sorted(row.relname for row in connection.execute(_FILES) if row.pg_relation_filenode in before)
    if not same:
        return ""
    return (
        f"This account may not write {len(same)} of {len(tables)} tables anew ({', '.join(same[:5])}{', …' * (len(same) > 5)}); "
        "`remegraph admin erase --resume --full` does it as their owner."
    )
