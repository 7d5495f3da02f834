"""Opening: fresh homes, newer schemas, other people's files, and errors that say what to do."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from contextvars import copy_context
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import insert, select, text
from sqlalchemy.engine.interfaces import CacheStats
from sqlalchemy.exc import ProgrammingError

from remegraph.errors import LedgerUnavailableError, SchemaTooNewError, SetupError
from remegraph.ledger import connections, migrations
from remegraph.ledger import database as door
from remegraph.ledger.database import EVERYBODY, Database
from remegraph.ledger.schema import metadata, partitions
from remegraph.models import Message
from remegraph.settings import PoolPolicy
from tests.ledger.conftest import ANN, NOON, Ledger
from tests.reliability.released import LATER, later, revision_of, stepping


def open_and_close(url: str) -> str:
    """Open a ledger; in a process of its own."""
    Database.open(url).close()
    return "opened"


def test_the_migrated_schema_is_the_declared_one(ledger_url: str) -> None:
    """A ledger made by the revisions and the tables that the code reads must not drift apart."""
    database = Database.open(ledger_url)
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": migrations.VERSION_TABLE})
        differences = [str(one) for one in compare_metadata(context, metadata)]
        script = ScriptDirectory.from_config(migrations.config(connection))
    database.close()
    ours = ("texts_fts", "Column('terms'")  # the full text index of either engine
    assert [one for one in differences if not any(name in one for name in ours)] == []
    assert script.get_current_head() == migrations.HEAD
    assert {revision.revision for revision in script.walk_revisions()} == migrations.KNOWN


def test_a_ledger_beside_another_one_compiles_no_statement_again(tmp_path: Path) -> None:
    """A process may have a home for each of its users, and most of what a first call costs is the making of SQL."""
    known = []
    for name in ("first", "second"):
        database = Database.open(f"sqlite:///{tmp_path / name}")
        with database.write() as connection:
            added = connection.execute(insert(partitions).values(tenant=name, key="kept"))
            read = connection.execute(select(partitions.c.tenant).where(partitions.c.key == "kept"))
            known.append([CacheStats.CACHE_HIT is one.context.cache_hit for one in (added, read)])
            assert read.scalars().all() == [name]
        database.close()
    assert known[1] == [True, True]


def test_a_ledger_of_an_earlier_release_is_brought_up_to_date(ledger_url: str) -> None:
    """An upgrade of the package must not cost anybody her memories."""
    database = Database.open(ledger_url)
    with database.write() as connection:
        connection.execute(insert(partitions).values(tenant="t", key="kept"))
    database.close()
    with later():
        database = Database.open(ledger_url)
    with database.read() as connection:
        assert connection.execute(select(partitions.c.key)).scalars().all() == ["kept"]
        assert connection.execute(text("SELECT * FROM stars")).all() == []
        assert revision_of(connection) == LATER
    database.close()


def test_a_fresh_ledger_is_made_in_about_as_many_statements_as_it_has_tables_and_indexes() -> None:
    """A service opens a home for each tenant: to ask of each table whether it is there doubles the time of its first call."""
    with stepping(lambda _: None) as steps:
        Database.open("sqlite://").close()
    ours = sum(1 + len(one.indexes) for one in metadata.tables.values())
    assert ours < steps() < ours + 20


@pytest.mark.slow
def test_processes_that_open_a_fresh_home_at_once_do_not_collide(ledger_url: str) -> None:
    """Three workers start after a deployment: all must come up, none with half a schema."""
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert pool.map(open_and_close, [ledger_url] * 3, chunksize=1) == ["opened"] * 3


def test_threads_that_open_a_fresh_home_at_once_do_not_collide(ledger_url: str) -> None:
    """The same within one process."""
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(open_and_close, [ledger_url] * 4)) == ["opened"] * 4


def test_fresh_homes_that_are_opened_at_once_all_open() -> None:
    """A service that opens a home per tenant starts several at a time; Alembic, which makes the schema, is made for one."""
    with ThreadPoolExecutor(5) as pool:  # in memory: nothing is copied from a ledger that was made before
        assert list(pool.map(open_and_close, ["sqlite://"] * 20)) == ["opened"] * 20


def test_a_file_that_another_is_setting_up_is_waited_for(tmp_path: Path) -> None:
    """SQLite refuses the switch to a write-ahead log at once where another has begun to write; a start must not fail."""
    file = tmp_path / "ledger.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as first, closing(sqlite3.connect(file)) as second:
        first.execute("BEGIN IMMEDIATE")
        second.set_trace_callback(lambda statement: first.execute("COMMIT") if statement.startswith("BEGIN") else None)
        connections._set_up_sqlite(second, None)
        assert second.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
        assert not first.in_transaction


def test_a_newer_schema_is_refused(ledger_url: str) -> None:
    """An old program must not write into a ledger that it does not understand."""
    database = Database.open(ledger_url)
    with database.write() as connection:
        connection.execute(text("UPDATE remegraph_schema SET version_num = '9999'"))
    database.close()
    with pytest.raises(SchemaTooNewError, match="Upgrade remegraph"):
        Database.open(ledger_url)


def test_a_schema_from_before_the_first_release_is_refused(ledger_url: str) -> None:
    """To take it for the released one would fail at some later statement, with words that help nobody."""
    database = Database.open(ledger_url)
    with database.write() as connection:
        connection.execute(text("UPDATE remegraph_schema SET version_num = '0007'"))
    database.close()
    with pytest.raises(SetupError, match=r"0007, which no release has\. Open another home") as refused:
        Database.open(ledger_url)
    assert not isinstance(refused.value, SchemaTooNewError)


def test_a_database_of_another_program_is_refused(ledger_url: str) -> None:
    """A mistyped URL must not mix our tables with those of a shop."""
    database = Database(Database.open(ledger_url).engine)
    with database.write() as connection:
        connection.execute(text("DROP TABLE remegraph_schema"))
    database.close()
    with pytest.raises(SetupError, match="Give the ledger its own database"):
        Database.open(ledger_url)


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    """A mistyped path must not cost the user her notes."""
    path = tmp_path / "notes.txt"
    path.write_text("My notes. " * 200, encoding="utf-8")
    with pytest.raises(SetupError, match="move that file away") as caught:
        Database.open(f"sqlite:///{path}")
    assert caught.value.__cause__ is not None
    assert path.read_text(encoding="utf-8") == "My notes. " * 200


@pytest.mark.parametrize(
    ("url", "cure", "retryable"),
    [
        ("sqlite:////no/such/folder/ledger.db", "folder exists", False),
        ("postgresql://ann:secret@127.0.0.1:1/none", "server runs", True),
        ("mysql://localhost/x", "Use sqlite", False),
        ("nonsense", "Use sqlite", False),
    ],
)
def test_what_cannot_be_opened_says_the_cure_and_whether_to_try_again(url: str, cure: str, *, retryable: bool) -> None:
    """The first minute with a package decides; a password never stands in a message."""
    with pytest.raises(SetupError, match=cure) as caught:
        Database.open(url)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value), "one line of a log; libpq asks whether the server runs on another one"
    assert caught.value.retryable is retryable


@pytest.mark.parametrize(("asked", "idle"), [("", "10"), ("&keepalives_idle=77", "77")])
def test_a_server_that_is_cut_off_is_not_waited_for_as_long_as_the_system_likes(
    postgres_url: str, asked: str, idle: str
) -> None:
    """That is two hours: an agent would hang as long. Who knows the network better says so in the URL."""
    database = Database.open(postgres_url + asked)
    with database.read() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        used = driver.info.get_parameters()
    database.close()
    assert (used["keepalives_idle"], used["tcp_user_timeout"], used["connect_timeout"]) == (idle, "25000", "10")


SETTLED = ("idle_in_transaction_session_timeout", "lock_timeout", "client_connection_check_interval")


def settled(url: str) -> tuple[list[str], list[str]]:
    """The limits that a session of ours has, in milliseconds; and which of TCP's were set (on a socket, all are 0)."""
    query = (
        "SELECT name, setting FROM pg_settings WHERE name = ANY(:names) OR (name LIKE 'tcp%' AND source = 'session')"
    )
    with closing(Database.open(url)) as database, database.read() as connection:
        found = {row.name: row.setting for row in connection.execute(text(query), {"names": list(SETTLED)})}
    return [found.pop(name) for name in SETTLED], sorted(found)


@contextmanager
def frozen(url: str) -> Iterator[None]:
    """Stop PostgreSQL with all its processes, as when its machine hangs: its connections stay, and nothing is answered."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        (folder,) = connection.execute("SHOW data_directory").fetchone() or ()
    first = (Path(folder) / "postmaster.pid").read_text().split()[0]
    os.kill(int(first), signal.SIGSTOP)
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", first], capture_output=True, text=True, check=True)
    processes = [int(first), *map(int, listed.stdout.split())]
    try:
        _signal(processes, signal.SIGSTOP)
        yield
    finally:
        _signal(processes, signal.SIGCONT)


def _signal(processes: list[int], number: signal.Signals) -> None:
    for each in processes:
        with suppress(ProcessLookupError):  # that of the question above has ended
            os.kill(each, number)


@pytest.mark.slow
def test_a_server_that_stands_still_ends_a_call_within_the_wait_and_is_used_again_once_it_goes_on(
    postgres_url: str,
) -> None:
    """The system of a frozen server acknowledges what is sent: without an end of its own, a turn waits as long as that lasts."""
    database = Database.open(postgres_url, PoolPolicy(wait=4))
    with database.read() as connection:
        before = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    for use in (database.read, database.write):
        with frozen(postgres_url):
            began = time.monotonic()
            with pytest.raises(LedgerUnavailableError, match=r"stands still|timeout"), use() as connection:
                connection.execute(text("SELECT 1"))
            assert time.monotonic() - began < 4 + 10 + 2, "the wait, and the one for another connection"
        with use() as connection:
            assert connection.execute(text("SELECT pg_backend_pid()")).scalar_one() != before
    database.close()


@pytest.mark.slow
def test_a_server_that_stops_under_a_statement_ends_it_and_the_connection(postgres_url: str) -> None:
    """What is under way when it happens waits longest."""
    database = Database.open(postgres_url, PoolPolicy(wait=4))
    seen: list[int] = []

    def ask() -> None:
        with database.write() as connection:
            seen.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
            with frozen(postgres_url):
                connection.execute(text("SELECT 1"))

    began = time.monotonic()
    with pytest.raises(LedgerUnavailableError, match=r"no sign of life.*once it goes on, repeat"):
        ask()
    assert time.monotonic() - began < 4 + 2
    with database.read() as connection:
        assert connection.execute(text("SELECT pg_backend_pid()")).scalar_one() not in seen
    database.close()


@pytest.mark.slow
def test_a_statement_that_takes_longer_than_the_wait_is_not_cut_off_while_the_server_lives(
    postgres_server: str, postgres_url: str
) -> None:
    """A migration, a VACUUM and an export of a large ledger take their time, also where the server lets no more connections in."""
    database = Database.open(postgres_url, PoolPolicy(wait=2))
    with database.read() as connection:
        assert connection.execute(text("SELECT 'over', pg_sleep(4)")).first() == ("over", "")
        name = connection.engine.url.database
        with psycopg.connect(postgres_server, autocommit=True) as owner:
            owner.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        assert connection.execute(text("SELECT 'over', pg_sleep(4)")).first() == ("over", "")
    database.close()


def test_the_server_is_told_to_let_go_of_what_a_vanished_client_had_locked(postgres_url: str) -> None:
    """Its own limits are none at all, and two hours. Who knows better says so in the URL, or of the role."""
    tcp = ["tcp_keepalives_count", "tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_user_timeout"]
    assert settled(postgres_url) == (["5000", "30000", "2000"], tcp)
    asked = "&options=-c%20idle_in_transaction_session_timeout%3D8s%20-c%20tcp_user_timeout%3D9s"
    assert settled(postgres_url + asked) == (["8000", "30000", "2000"], tcp[:3])
    with closing(Database.open(postgres_url)) as database, database.write() as connection:
        name = database.engine.url.database
        connection.exec_driver_sql(f'ALTER DATABASE "{name}" SET lock_timeout = 7')
    assert settled(postgres_url) == (["5000", "7", "2000"], tcp)


@pytest.mark.slow
def test_a_transaction_that_computes_for_long_is_not_taken_for_one_whose_client_is_gone(postgres_url: str) -> None:
    """A long history is read in one snapshot and made of it what is to be made, however long that takes here."""
    asked = "&options=-c%20idle_in_transaction_session_timeout%3D3s"
    with closing(Database.open(postgres_url + asked)) as database, database.write([1]) as connection:
        assert not threading.Event().wait(5)
        assert connection.execute(select(text("1"))).scalar_one() == 1


def test_what_was_held_up_too_long_is_told_so_and_can_be_repeated(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that slept comes back to a transaction that is gone: nothing of it was written."""
    monkeypatch.setattr(connections, "_BEAT", 60)

    def stand_still(database: Database) -> None:
        with database.write([1]) as connection:
            connection.exec_driver_sql("SET idle_in_transaction_session_timeout = 50")
            assert not threading.Event().wait(0.5)
            connection.execute(select(text("1")))

    with (
        closing(Database.open(postgres_url)) as database,
        pytest.raises(LedgerUnavailableError, match="held up for seconds") as told,
    ):
        stand_still(database)
    assert told.value.retryable


def test_whoever_waits_too_long_for_another_is_told_so_and_not_where_that_one_migrates(postgres_url: str) -> None:
    """A write gives up after half a minute and can be repeated; an upgrade may take longer than that."""
    with closing(Database.open(postgres_url)) as one, closing(Database.open(postgres_url)) as other:
        for database in (one, other):
            with database.write() as connection:
                connection.exec_driver_sql("SET lock_timeout = 50")
        with one.write([door.EVERYBODY]):
            with pytest.raises(LedgerUnavailableError, match="Another process holds"), other.write([door.EVERYBODY]):
                pass
            with other.write() as connection:
                connection.execute(door._PATIENT, {"here": True})
                assert connection.exec_driver_sql("SHOW lock_timeout").scalar_one() == "0"
        with other.write() as connection:
            assert connection.exec_driver_sql("SHOW lock_timeout").scalar_one() == "50ms"


def test_a_full_disk_is_told_and_costs_nothing(tmp_path: Path) -> None:
    """What was acknowledged stays readable, and the error says to free some space."""
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger.say(ANN, "kept")
    with ledger.archive.database.read() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
    ledger.archive.close()
    ledger.archive = ledger.another()
    with ledger.archive.database.write() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    big = Message(message_id="big", role="user", content="x" * 1_000_000, time=NOON)
    with pytest.raises(LedgerUnavailableError, match="Free some space"):
        ledger.archive.add_messages(ANN, [big], NOON)
    assert [message.text for message in ledger.archive.messages([ANN])] == ["kept"]
    ledger.archive.close()


def test_a_failed_write_leaves_nothing(ledger_url: str) -> None:
    """All or nothing, whatever goes wrong inside."""
    database = Database.open(ledger_url)

    def fail() -> None:
        with database.write() as connection:
            connection.execute(insert(partitions).values(tenant="t", key="k"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with database.read() as connection:
        assert connection.execute(select(partitions)).all() == []
    database.close()


def test_a_read_is_one_snapshot(ledger_url: str) -> None:
    """Two queries of one read must agree, whatever others commit between them."""
    database = Database.open(ledger_url)
    with database.read() as connection:
        before = connection.execute(select(partitions)).all()

        def write() -> None:
            with database.write() as other:
                other.execute(insert(partitions).values(tenant="t", key="k"))

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        assert connection.execute(select(partitions)).all() == before
    with database.read() as connection:
        assert len(connection.execute(select(partitions)).all()) == 1
    database.close()


def test_sqlite_is_set_up_to_keep_what_it_acknowledged(tmp_path: Path) -> None:
    """Durability, references and overwriting of deleted text are settings that SQLite leaves off."""
    database = Database.open(f"sqlite:///{tmp_path / 'ledger.db'}")
    with database.read() as connection:
        names = ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
        assert [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names] == ["wal", 2, 1, 1]
    database.close()


def test_a_ledger_in_memory_serves_many_keys() -> None:
    """Fakes and tests use it as they use the real one."""
    ledger = Ledger("sqlite://")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ledger.say(ANN, f"message {number}"), range(40)))
        assert all(len(found) == 40 for found in pool.map(lambda _: ledger.archive.messages([ANN]), range(8)))
    assert [message.seq for message in ledger.archive.messages([ANN])] == list(range(1, 41))
    ledger.archive.close()


@pytest.mark.requirement("X9")
def test_of_several_processes_one_at_a_time_does_what_needs_no_second(ledger_url: str) -> None:
    """Four workers that bring the same changes into the index do it four times, and mark each other's work anew."""
    with closing(Database.open(ledger_url)) as one, closing(Database.open(ledger_url)) as other:
        with one.first(1) as mine, other.first(1) as yours, other.first(2) as another:
            assert (mine, yours, another) == (True, False, True)
        with other.first(1) as yours:
            assert yours


def _keys(database: Database) -> int:
    with database.read() as connection:
        return len(connection.execute(select(partitions.c.key)).all())


def _add(database: Database, key: str) -> None:
    with database.write([EVERYBODY]) as connection:
        connection.execute(insert(partitions).values(tenant="t", key=key))


def test_what_a_call_reads_is_one_snapshot_in_whichever_thread(ledger_url: str) -> None:
    """A recall reads in some twenty places: of a change meanwhile it shows all or nothing, and it waits for one connection."""
    with closing(Database.open(ledger_url, PoolPolicy(size=1, overflow=1, wait=1))) as database:
        with database.session():
            assert _keys(database) == 0
            with ThreadPoolExecutor(1) as others:  # another call
                others.submit(_add, database, "new").result()
            with ThreadPoolExecutor(4) as pool:
                found = [pool.submit(copy_context().run, _keys, database) for _ in range(8)]
                assert [each.result() for each in found] == [0] * 8
            with database.read() as one, database.read() as another:
                assert one is another
            database.away()
            assert _keys(database) == 1, "what it was away for took time; it sees what is there now"
        assert _keys(database) == 1


@pytest.mark.parametrize(("patience", "waits"), [(5.0, True), (0.05, False)])
def test_calls_that_read_sqlite_at_once_take_turns_and_wait_for_none_that_dawdles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float, *, waits: bool
) -> None:
    """They compute under one interpreter lock: all at once, sixteen recalls cost nearly twice what they cost in turn."""
    monkeypatch.setattr("remegraph.ledger.database._IN_LINE", patience)
    read = threading.Event()

    def ask(database: Database) -> None:
        with database.session():
            _keys(database)
            read.set()

    with closing(Database.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}")) as database, ThreadPoolExecutor(1) as others:
        with database.session():
            _keys(database)
            asked = others.submit(ask, database)
            assert read.wait(0.3) is not waits
            database.away()
            assert read.wait(5), "who is away lets the next one in"
        asked.result()


def test_what_a_call_writes_it_reads_afterwards_with_a_single_connection(ledger_url: str) -> None:
    """A save reads, writes and reads again: it must not wait for the connection that it holds itself, nor see its past."""
    with closing(Database.open(ledger_url, PoolPolicy(size=1, overflow=0, wait=1))) as database, database.session():
        assert database.once("keys", lambda _: _keys(database)) == 0
        _add(database, "new")
        assert (_keys(database), database.once("keys", lambda _: _keys(database))) == (1, 1)


def test_with_no_wait_a_call_that_gets_no_connection_at_once_fails_and_the_next_one_works(ledger_url: str) -> None:
    """0 might be taken for no limit: a host that says it wants an answer now, or none."""
    with closing(Database.open(ledger_url, PoolPolicy(size=1, overflow=0, wait=0))) as database:
        with database.read(), ThreadPoolExecutor(1) as others:
            began = time.monotonic()
            with pytest.raises(LedgerUnavailableError, match="pool"):
                others.submit(_keys, database).result()
            assert time.monotonic() - began < 1
        assert _keys(database) == 0


def test_what_is_asked_once_in_a_session_is_asked_anew_in_the_next(ledger_url: str) -> None:
    with closing(Database.open(ledger_url)) as database:
        asked: list[int] = []

        def ask(_: object) -> int:
            asked.append(1)
            return len(asked)

        with database.session():
            assert [database.once("how often", ask) for _ in range(3)] == [1, 1, 1]
        assert [database.once("how often", ask) for _ in range(2)] == [2, 3], "outside of any, each time"


def test_a_session_goes_on_after_an_error(ledger_url: str) -> None:
    """PostgreSQL refuses whatever is asked in a transaction after an error: the next read has another one."""
    with closing(Database.open(ledger_url)) as database, database.session():
        assert _keys(database) == 0
        with pytest.raises((LedgerUnavailableError, ProgrammingError)), database.read() as connection:
            connection.execute(text("SELECT nothing FROM nowhere"))
        assert _keys(database) == 0


@pytest.mark.slow
def test_a_session_whose_connection_the_server_ends_is_told_so_and_goes_on(postgres_url: str) -> None:
    """Servers are restarted and passwords exchanged while people ask: it is an outage, and may be tried again."""
    with closing(Database.open(postgres_url)) as database, database.session():
        with pytest.raises(LedgerUnavailableError), database.read() as connection:
            connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
        assert _keys(database) == 0


def test_a_thread_that_outlives_a_session_reads_by_itself(ledger_url: str) -> None:
    """An embedder that was waited for too long answers in the end, and what it then does must not fail."""
    with closing(Database.open(ledger_url)) as database:
        with database.session():
            assert _keys(database) == 0
            late = copy_context()
        assert late.run(_keys, database) == 0
        with closing(Database.open(ledger_url)) as other, database.session():
            assert _keys(other) == _keys(database) == 0, "a session is of one ledger"
