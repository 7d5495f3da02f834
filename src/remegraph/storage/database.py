"""One door to the database, SQLite or PostgreSQL: opening, transactions, locks, and errors in our own words."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import (
    Connection,
    Engine,
    Table,
    create_engine,
    event,
    exc,
    insert,
    make_url,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import StaticPool

from remegraph.errors import LedgerUnavailableError, MissingExtraError, OutcomeUnknownError, RemegraphError, SetupError
from remegraph.settings import PoolPolicy, without_passwords
from remegraph.storage import migrations
from remegraph.storage.owner import AFTER_FORK, alone, give_up_at_fork, keep_at_fork

if TYPE_CHECKING:
    from sqlalchemy import URL

__all__ = ["EVERYBODY", "RELEASE", "Database", "insert_rows", "upsert", "watched"]

EVERYBODY = 0
"""To lock where a write concerns no partition alone, as one of the schema: no partition has this number."""

_LOCK_NAMESPACE = 0x72656D65  # "reme": keeps our advisory locks apart from those of a host
_TASK_NAMESPACE = _LOCK_NAMESPACE + 1
_BUSY_MILLISECONDS = 30_000
_SWITCH_TRIES = 20

_SQLITE_SETTINGS = (
    "PRAGMA synchronous=FULL",  # WAL's default may lose the last commits when the power fails
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",  # deleted text is overwritten with zeros
)

# What an operational error of either engine tells, and what to do about it: first what stays as it is, then what may pass.
_DEFECTS = (
    ("not a database", "Another file lies there: open another home, or move that file away."),
    ("malformed", "The file is damaged: restore a backup, or salvage it with `sqlite3 FILE .recover`."),
    ("readonly", "Make the file and its folder writable."),
    ("read-only", "Make the file and its folder writable."),
    ("unable to open", "Make sure that the folder exists and is writable."),
    ("index row", "Use shorter names and ids: PostgreSQL takes about 2,600 bytes. Nothing was written."),
)
_OUTAGES = (
    ("disk is full", "Free some space and repeat: nothing of this operation was written."),
    ("no space left", "Free some space and repeat: nothing of this operation was written."),
    ("disk i/o error", "Check the disk and repeat: nothing of this operation was written."),
    ("queuepool limit", "Repeat, or let this process have more connections: the settings' `pool`."),
    ("is locked", "Another process holds the ledger: repeat, or close that process."),
    ("lock timeout", "Another process holds these records for long: repeat."),
    ("idle-in-transaction timeout", "This process was held up for seconds, and nothing was written: repeat."),
)
_WATCH = {
    "connect_timeout": 10,  # seconds
    "keepalives_idle": 10,  # seconds of silence after which a sign of life is asked for,
    "keepalives_interval": 5,  # again after so many,
    "keepalives_count": 3,  # so often
    "tcp_user_timeout": 25_000,  # milliseconds that what was sent may go unheard
}
RELEASE = """
DO $$
DECLARE wanted record;
BEGIN
  FOR wanted IN
    SELECT name, value
    FROM (VALUES
      ('idle_in_transaction_session_timeout', '5s'),
      ('lock_timeout', '30s'),
      ('client_connection_check_interval', '2s'),
      ('tcp_keepalives_idle', '5'),
      ('tcp_keepalives_interval', '2'),
      ('tcp_keepalives_count', '3'),
      ('tcp_user_timeout', '10s')
    ) AS ours (name, value)
    JOIN pg_settings USING (name)
    WHERE source NOT IN ('client', 'database', 'user', 'database user')
  LOOP
    BEGIN
      PERFORM set_config(wanted.name, wanted.value, false);
    EXCEPTION WHEN invalid_parameter_value THEN
      NULL;
    END;
  END LOOP;
END $$
"""
"""Sets a session of PostgreSQL up so that what a client had locked is free again within seconds after it vanished.

What the URL, the role or the database says comes first; what a server's system cannot do is left out.
"""
_PATIENT = text(  # where the limit is ours, and nobody's who wants it
    "SELECT set_config('lock_timeout', '0', :here) FROM pg_settings WHERE name = 'lock_timeout' AND source = 'session'"
)
_BEAT = 1.0  # seconds between two signs of life in a transaction that computes
_REFUSED = "FATAL"  # PostgreSQL answers, and lets nobody in
_PASSING = ("too many", "remaining connection slots", "starting up", "no more connections")
"""How it refuses what it may grant a moment later, also to whom it never let in."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.1  # seconds between two requests for a connection
_UNKNOWN_CURE = "Check that the server runs and that the URL, the user and the password are right; then repeat."


def upsert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT that can say ON CONFLICT.

    Args:
        dialect: `connection.dialect.name`.
        table: Where to.
    """
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows that name the same columns. On SQLite past SQLAlchemy, which costs as much per row as the insert.

    Args:
        connection: From `write`.
        table: Where to.
        rows: At least one; values as the driver takes them.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(insert(table), rows)
        return
    statement, columns = _sqlite_insert(table, tuple(rows[0]))
    connection.exec_driver_sql(statement, list(map(itemgetter(*columns), rows)))


@cache
def _sqlite_insert(table: Table, columns: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return the statement, and the columns in the order of its places."""
    compiled = insert(table).compile(dialect=sqlite.dialect(), column_keys=list(columns))
    return str(compiled), list(compiled.positiontup or ())


_USUAL = PoolPolicy()


class Database:
    """A pool of connections with two kinds of transaction: `read` is a snapshot, `write` excludes other writers.

    Safe to share between threads. Transactions do not nest: finish one before the next in the same thread.

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
        self._beats = None if self.is_sqlite else _Heartbeat(engine.dialect.loaded_dbapi.Error)
        self._refusal: RemegraphError | None = None
        self.given_up = False
        """Whether this is a child of the process that opened it."""
        give_up_at_fork(self)

    @classmethod
    def open(cls, url: str, pool: PoolPolicy = _USUAL) -> Self:
        """Open a ledger, and bring its schema up to date.

        Args:
            url: SQLAlchemy URL: `sqlite:///path`, `sqlite://` (in memory) or `postgresql://...`.
            pool: How many connections there are, and how long a call waits for one.

        Raises:
            SetupError: The URL, the file or the server cannot be used.
            SchemaTooNewError: A newer remegraph wrote it.
            MissingExtraError: The driver is not installed.
        """
        database = cls(_engine(url, pool), pool.wait)
        with ExitStack() as unless_ready:
            unless_ready.callback(database.close)
            database._migrate()
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
        return cls(_engine(url, _USUAL))

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite (else PostgreSQL)."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection whose queries all see the same snapshot.

        Raises:
            SetupError: The database cannot be used.
        """
        with self._translated(), self._readers or nullcontext(), self._connected() as connection:
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
        with (
            self._translated() as course,
            self._writers or nullcontext(),
            self._connected() as connection,
            connection.begin(),
            self._alive(connection),
        ):
            self._begin(connection, "BEGIN IMMEDIATE")
            self.lock(connection, partition_ids)
            yield connection
            course.committing = True

    def lock(self, connection: Connection, partition_ids: Iterable[int]) -> None:
        """Lock partitions until the transaction ends, always in the same order, so that two writers cannot embrace.

        Args:
            connection: From `write`.
            partition_ids: All partitions that the transaction writes.
        """
        if self.is_sqlite:  # BEGIN IMMEDIATE has locked them all
            return
        for partition_id in sorted(set(partition_ids)):
            connection.execute(
                text("SELECT pg_advisory_xact_lock(:namespace, :partition)"),
                {"namespace": _LOCK_NAMESPACE, "partition": partition_id},
            )

    @contextmanager
    def first(self, task: int) -> Iterator[bool]:
        """Give whether no other process does this task now; until the end, no other gets to.

        Args:
            task: Its number.

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

    def shred(self, *, full: bool = False) -> None:
        """Give the bytes of deleted rows back: out of the full text, the tables and the log.

        Args:
            full: On PostgreSQL, whether tables are written anew, which locks them meanwhile; else their space is
                freed for new rows, and what was in it stays until those come.

        Raises:
            SetupError: The database cannot be used, or another process reads an old state of it.
        """
        with self._translated(), self._writers or nullcontext(), self._connected() as connection:
            if not self.is_sqlite:
                own = connection.execution_options(isolation_level="AUTOCOMMIT")
                own.detach()  # closed at the end: the next line is for nobody else
                own.execute(_PATIENT, {"here": False})  # another one may do the same, for minutes
                own.exec_driver_sql("VACUUM FULL" if full else "VACUUM")
                return
            connection.exec_driver_sql("INSERT INTO texts_fts (texts_fts) VALUES ('optimize')")
            connection.exec_driver_sql("VACUUM")
            busy, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            if busy:
                raise LedgerUnavailableError(
                    "Another process reads an old state of the ledger, so that its log cannot be emptied.",
                    "Let it finish, or close it; then resume.",
                )

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
        file = _file(self.engine.url)
        _INHERITED.update([file] if file is not None else ())

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

        Whoever waits may get one that others of this process give back meanwhile. Nothing was done yet, so it is safe.
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

    def _migrate(self) -> None:
        with self.read() as connection:
            if migrations.is_current(connection):
                return
        with self.write() as connection:
            if not self.is_sqlite:
                connection.execute(_PATIENT, {"here": True})  # whoever migrates now may take minutes
            self.lock(connection, [EVERYBODY])
            migrations.upgrade(connection)

    @contextmanager
    def _translated(self) -> Iterator[_Course]:
        """Tell trouble with the file or the server in our own words, here and nowhere else."""
        self.check()
        course = _Course()
        try:
            yield course
        except (exc.DBAPIError, exc.TimeoutError) as error:
            cause = error.orig if isinstance(error, exc.DBAPIError) else error
            told = without_passwords(str(cause).strip())
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


class _Heartbeat:
    """Says something in transactions that last, so that PostgreSQL ends only those whose process is gone or stands still.

    Args:
        errors: What the driver raises.
    """

    def __init__(self, errors: type[Exception]) -> None:
        self._errors = errors
        self._open: dict[int, tuple[float, Any, threading.Lock]] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    @contextmanager
    def during(self, connection: Connection) -> Iterator[None]:
        """Keep a transaction alive until the end of the block, whatever this process computes meanwhile."""
        if self._thread is None:
            self._start()
        turn = threading.Lock()
        self._open[id(turn)] = (time.monotonic(), connection.connection.driver_connection, turn)
        try:
            yield
        finally:
            with turn:
                del self._open[id(turn)]

    def close(self) -> None:
        """End the thread."""
        self._ended.set()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="remegraph-heartbeat", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(_BEAT):
            late = time.monotonic() - _BEAT
            for began, driver, turn in self._open.copy().values():
                if began < late:
                    with turn, suppress(self._errors):  # whoever uses the connection next is told
                        if id(turn) in self._open and driver.info.transaction_status.name == "INTRANS":
                            driver.execute("SELECT 1")


@dataclass(slots=True)
class _Course:
    """How far a transaction has come."""

    committing: bool = False
    """From here on, the server may have done it though its answer never came."""


_OPERATIONAL = (exc.OperationalError, exc.InterfaceError, exc.TimeoutError)


def _cure(signs: Iterable[tuple[str, str]], told: str) -> str | None:
    return next((cure for sign, cure in signs if sign in told.lower()), None)


_INHERITED: set[str] = set()
"""Files that were open when this process was forked: SQLite takes the parent's locks for its own, and loses writes."""


def _file(url: URL) -> str | None:
    """Return the file of a ledger on SQLite; none where it has none."""
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return None
    return os.path.realpath(str(url.database))


def _engine(url: str, policy: PoolPolicy) -> Engine:
    parsed = _parsed(url)
    if _file(parsed) in _INHERITED:
        raise SetupError(
            "This ledger was open in the process that this one was forked from, and SQLite's locks did not come along.",
            "Close it before the fork, or start processes by spawn.",
        )
    limits: dict[str, Any] = {
        "pool_size": policy.size,
        "max_overflow": policy.overflow,
        "pool_timeout": policy.wait,
        "hide_parameters": True,
    }
    try:
        if parsed.get_backend_name() == "sqlite":
            in_memory = parsed.database in (None, "", ":memory:")
            pool: dict[str, Any] = {"poolclass": StaticPool, "hide_parameters": True} if in_memory else limits
            engine = create_engine(parsed, **pool, connect_args={"check_same_thread": False})
            event.listen(engine, "connect", _set_up_sqlite)
        else:
            engine = create_engine(parsed, pool_pre_ping=True, connect_args=watched(parsed), **limits)
            event.listen(engine, "connect", _set_up_postgresql)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The driver for {parsed.get_backend_name()} is not installed.", 'pip install "remegraph[postgres]"'
        ) from error
    return engine


def watched(url: URL) -> dict[str, int]:
    """Return by what a PostgreSQL server is noticed to be out of reach, where its URL does not say.

    Cut off without a word, as by a network, a server would be waited for as long as the system likes: two hours.

    Args:
        url: Of the ledger.
    """
    return {name: value for name, value in _WATCH.items() if name not in url.query}


def _parsed(url: str) -> URL:
    cure = "Use sqlite:///path/to/file, or postgresql://user:password@host/database."
    try:
        parsed = make_url(url)
    except exc.ArgumentError as error:
        raise SetupError("The ledger's URL cannot be read.", cure) from error
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        return parsed
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    raise SetupError(f"The ledger cannot be kept in {parsed.drivername}.", cure)


def _set_up_postgresql(connection: Any, _record: object) -> None:
    """Set a new connection up, in one round trip."""
    connection.autocommit = True
    connection.execute(RELEASE)
    connection.autocommit = False


def _set_up_sqlite(connection: Any, _record: object) -> None:
    """Set a new connection up; `isolation_level = None` leaves every BEGIN to us (SQLAlchemy's recipe for pysqlite)."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={_BUSY_MILLISECONDS}")  # first: the next ones may have to wait
    _write_ahead(cursor)
    for setting in _SQLITE_SETTINGS:
        cursor.execute(setting)
    cursor.close()


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Let the file have a write-ahead log.

    Of several processes that switch a fresh file at once, SQLite turns all but one away without waiting. A transaction
    does wait: once it begins, whoever switches is through, and the file is switched or ours to switch.
    """
    for tries_left in range(_SWITCH_TRIES, -1, -1):
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if not tries_left or error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("COMMIT")
        else:
            return
