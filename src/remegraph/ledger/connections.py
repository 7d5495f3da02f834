"""Connections to SQLite and PostgreSQL: how they are opened and set up, and what keeps them alive."""

from __future__ import annotations

import math
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event, exc, make_url
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.pool import StaticPool
from sqlalchemy.util import LRUCache

from remegraph.errors import LedgerUnavailableError, MissingExtraError, SetupError
from remegraph.settings import PoolPolicy, Settings, closed_to_others

if TYPE_CHECKING:
    from sqlalchemy import URL

__all__ = [
    "INHERITED",
    "LEDGER",
    "PASSWORD_FILE",
    "RELEASE",
    "SILENT",
    "Heartbeat",
    "engine_of",
    "file_of",
    "lacks_ledger",
    "ledger_url",
    "password_of",
    "watched",
]

LEDGER = "ledger.sqlite"
"""The file of a ledger, in a home."""

PASSWORD_FILE = "password_file"  # noqa: S105 - where it is, not what it is
"""Of a URL: the file that holds the password."""

_BUSY_MILLISECONDS = 30_000
_SWITCH_TRIES = 20

_SQLITE_SETTINGS = (
    "PRAGMA synchronous=FULL",  # WAL's default may lose the last commits when the power fails
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",  # deleted text is overwritten with zeros
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
_COMPILED: LRUCache[Any, Any] = LRUCache(1_000)  # statements of the ledgers on SQLite
SILENT = "gives no sign of life"
"""The message for a server that neither answers a statement nor accepts a connection."""

_LEAST_SILENCE = 1.0  # seconds; libpq waits no shorter for a connection
_BEAT = 1.0  # seconds between two signs of life in a transaction that computes

INHERITED: set[str] = set()
"""Files that were open when this process was forked: SQLite takes the parent's locks for its own, and loses writes."""


def ledger_url(settings: Settings) -> str:
    """Return the SQLAlchemy URL of the ledger."""
    return settings.ledger_url or f"sqlite:///{settings.home.expanduser() / LEDGER}"


def lacks_ledger(home: Path) -> bool:
    """Return whether no ledger is in a home, or an empty file in its place."""
    ledger = home / LEDGER
    return not (ledger.is_file() and ledger.stat().st_size)


def file_of(url: URL) -> str | None:
    """Return the file of a ledger on SQLite; none where it has none."""
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return None
    return os.path.realpath(str(url.database))


class _Alike(SQLiteDialect_pysqlite):
    """SQLite, where ledgers share compiled statements: SQLAlchemy keeps those by dialect, and makes one per ledger.

    Within a process all of them have the same library.
    """

    supports_statement_cache = True  # each class says so itself

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alike)

    def __hash__(self) -> int:
        return hash(_Alike)


registry.register("sqlite.remegraph", __name__, _Alike.__name__)


def engine_of(url: str, policy: PoolPolicy) -> Engine:
    """Return the engine of a ledger; nothing is opened yet.

    Raises:
        SetupError: The URL cannot be read, or the file was opened by the process that this one was forked from.
        MissingExtraError: The driver is not installed.
    """
    parsed = _parsed(url)
    if file_of(parsed) in INHERITED:
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
            engine = create_engine(
                parsed.set(drivername="sqlite+remegraph"),
                **pool,
                connect_args={"check_same_thread": False},
                execution_options={"compiled_cache": _COMPILED},
            )
            engine.url = parsed
            event.listen(engine, "connect", _set_up_sqlite)
        else:
            engine = create_engine(parsed, pool_pre_ping=True, connect_args=watched(parsed), **limits)
            event.listen(engine, "connect", _set_up_postgresql)
            if (password := password_of(parsed)) is not None:
                event.listen(engine, "do_connect", partial(_give_password, password))
            event.listen(engine, "do_connect", partial(_connect, max(policy.wait / 2, _LEAST_SILENCE)))
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The driver for {parsed.get_backend_name()} is not installed.", 'pip install "remegraph[postgres]"'
        ) from error
    return engine


def watched(url: URL) -> dict[str, int]:
    """Return by what a PostgreSQL server is noticed to be out of reach, where its URL does not say.

    Cut off without a word, as by a network, a server would be waited for as long as the system likes: two hours.
    """
    return {name: value for name, value in _WATCH.items() if name not in url.query}


def password_of(url: URL) -> Callable[[], str] | None:
    """Return what reads the password of a PostgreSQL server, each time it is called, where its URL names a file of it.

    The file holds the password alone, unlike libpq's `passfile`, which the group may not even read.
    """
    named = url.query.get(PASSWORD_FILE)
    return None if named is None else partial(_password_in, Path(str(named)))


def _password_in(path: Path) -> str:
    """Return what a file says.

    Raises:
        LedgerUnavailableError: It cannot be read now, as while it is exchanged.
        SetupError: Others can read it.
    """
    try:
        password = closed_to_others(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise LedgerUnavailableError(
            f"The password of the ledger, {path}, cannot be read ({type(error).__name__}).", "Put it back; then repeat."
        ) from error
    return password.rstrip("\r\n")


def _give_password(
    read: Callable[[], str], _dialect: object, _record: object, _args: object, given: dict[str, Any]
) -> None:
    """Have a new connection use the password as it is now."""
    given.pop(PASSWORD_FILE, None)
    given["password"] = read()


def _connect(silence: float, dialect: Any, _record: object, args: list[Any], given: dict[str, Any]) -> Any:
    """Open a connection that notices a frozen server."""
    connection = _listening(dialect.loaded_dbapi).connect(*args, **given)
    connection.silence = silence
    return connection


@cache
def _listening(driver: Any) -> Any:
    """Return the class of connections that `_Listening` describes; not every installation has its driver, psycopg."""
    return type("Listening", (_Listening, driver.Connection), {"driver": driver})


class _Listening:
    """Ends a call once the server is frozen; a busy one is waited for, however long.

    A frozen server's system still acknowledges what is sent, so TCP notices nothing, and the server's own time limits
    are frozen with it. Whether a statement only takes long is asked by another connection: a server that lives answers.
    """

    driver: Any
    info: Any
    close: Callable[[], None]
    silence = math.inf
    """Seconds without a word after which is asked, and that the answer may take."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **given: Any) -> Any:
        """Wait for the server, as a connection of psycopg does for each statement."""
        return super().wait(self._hearing(gen), *args, **given)  # type: ignore[misc]  # of the class that follows

    def _hearing(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Pass on what a statement waits for, and what came of it: nothing, each tenth of a second."""
        ready, heard = None, time.monotonic()
        while True:
            try:
                wanted = gen.send(ready)
            except StopIteration as over:
                return over.value
            ready = yield wanted
            late = time.monotonic() - heard > self.silence
            if late and not ready:
                self._ask()
            if late or ready:
                heard = time.monotonic()

    def _ask(self) -> None:
        """Return if the server answers, be it by a refusal; else end the connection."""
        told = self.info
        place = {**told.get_parameters(), "host": told.host, "port": told.port, "password": told.password}
        try:
            self.driver.connect(**{**place, "connect_timeout": math.ceil(self.silence)}).close()
        except self.driver.errors.ConnectionTimeout as error:
            self.close()
            raise self.driver.OperationalError(f"the server {SILENT}") from error
        except self.driver.OperationalError:
            return  # it answers, and lets no one in; if it is gone, the waiting connection notices that itself


_UNENCODED = re.compile(r"postgres[^:/]*://[^:/]*:[^@]*@.*@", re.DOTALL)


def _parsed(url: str) -> URL:
    cure = "Use sqlite:///path/to/file, or postgresql://user:password@host/database."
    if _UNENCODED.match(url):
        raise SetupError(
            "The ledger's URL has more than one @, so it is not known where its password ends.",
            "Write each @ of the password, and any after the host, as %40.",
        )
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):  # which may say a part of it
        raise SetupError("The ledger's URL cannot be read.", cure) from None
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


class Heartbeat:
    """Says something in transactions that last, so that PostgreSQL ends only those whose process is gone or frozen."""

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
                    with turn, suppress(self._errors):  # the next user of the connection gets the error
                        if id(turn) in self._open and driver.info.transaction_status.name == "INTRANS":
                            driver.execute("SELECT 1")
