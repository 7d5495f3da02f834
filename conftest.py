"""What all tests share: no network, a clean environment, real databases, figures, a time limit for slow tests."""

from __future__ import annotations

import gc
import ipaddress
import os
import re
import shutil
import sys
import tempfile
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql
from sqlalchemy import make_url

if TYPE_CHECKING:
    from remegraph.ledger.database import Database

_FOREIGN = ("ANTHROPIC_", "CHROMA_", "LANGCHAIN_", "LANGGRAPH_", "LANGSMITH_", "OPENAI_", "REMEGRAPH_")
"""Environment variables that would change what is tested, by prefix."""

_MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory. Thousands of small homes that wait for a disk were a third of the tests' time."""

if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4 * 2**30:
    os.environ["TMPDIR"], tempfile.tempdir = str(_MEMORY), None  # what processes of tests write, too

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # machines are busy
settings.load_profile("untimed")


gc.disable()  # what is imported and collected stays, and looking through it again and again took two fifths of that time


def pytest_collection_finish() -> None:
    """Spare the collector of cycles what stays to the end: looking through it took a sixth of the tests' time."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 10, 50)


# --------------------------------------------------------------------------------------------- network


class NetworkRefusedError(RuntimeError):
    """A test tried to leave this machine. No OSError: nothing may take it for a network that is down."""


def _is_local(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in (None, "", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(str(host))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


_TO_ADDRESS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
_LEAVING = _TO_ADDRESS | {"socket.getaddrinfo", "socket.gethostbyname"}


def _refuse_network(event: str, args: tuple[object, ...]) -> None:
    """Let loopback and unix sockets pass, and nothing else.

    An audit hook sees every socket of the process, also those made before pytest started and by
    subclasses of `socket.socket`. It is asked millions of times, at each `id`, too: so it looks only once.
    """
    if event not in _LEAVING:
        return
    if event in _TO_ADDRESS:
        address = args[1]
        if isinstance(address, tuple) and not _is_local(address[0]):
            raise NetworkRefusedError(f"Tests have no network: {event} to {address!r}.")
    elif not _is_local(args[0]):
        raise NetworkRefusedError(f"Tests have no network: {event} of {args[0]!r}.")


sys.addaudithook(_refuse_network)


# ----------------------------------------------------------------------------------------- environment


@pytest.fixture(scope="session", autouse=True)
def _clean_environment() -> Iterator[None]:
    """Nobody's keys, settings or home folder: tests run the same everywhere, subprocesses too."""
    home = Path(tempfile.mkdtemp(prefix="remegraph-home-"))
    with pytest.MonkeyPatch.context() as patch:
        for name in tuple(os.environ):
            if name.startswith(_FOREIGN):
                patch.delenv(name)
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_RUNTIME_DIR", str(home))
        yield
    shutil.rmtree(home)


@pytest.fixture(autouse=True)
def _patient_writes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a write gives its index up that would be there in a moment, and a test would see either."""
    if request.node.get_closest_marker("impatient") is None:
        monkeypatch.setattr("remegraph.ledger.index.projection._SHARE", 120.0)


# ------------------------------------------------------------------------------------------- databases


@pytest.fixture(scope="session", autouse=True)
def _migrated_once(_clean_environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A fresh ledger begins as a copy of one that this process migrated: a tenth of the time, thousands of times.

    Other processes migrate as ever, and so do the tests of the migrations, which begin with older ledgers.
    """
    from remegraph.ledger.database import Database

    template, really, one_at_a_time = tmp_path_factory.mktemp("migrated") / "ledger.sqlite", Database.open, Lock()
    really(f"sqlite:///{template}").close()

    def copied(_: type[Database], url: str, *options: Any, migrate: Literal["auto", "never"] = "auto") -> Database:
        if migrate == "never":
            return really(url, *options, migrate=migrate)
        path = Path(url.removeprefix("sqlite:///"))
        if url.startswith("sqlite:///") and path.parent.is_dir() and not path.exists():
            fresh = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
            shutil.copyfile(template, fresh)
            with suppress(FileExistsError):  # somebody was first, as with migrations
                os.link(fresh, path)
            fresh.unlink()
        elif url.startswith("postgresql"):
            with one_at_a_time:
                _copy_on_postgresql(url, really)
        return really(url, *options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "open", classmethod(copied))
        yield


def _copy_on_postgresql(url: str, really: Callable[[str], Database]) -> None:
    """Make a database that is empty a copy of a migrated one, which each server gets at its first ledger of a schema."""
    from remegraph.ledger import migrations

    place = make_url(url).set(drivername="postgresql").difference_update_query(["password_file"])
    migrated = f"migrated_{migrations.HEAD}"
    name, template = sql.Identifier(str(place.database)), sql.Identifier(migrated)
    try:
        with psycopg.connect(place.render_as_string(hide_password=False)) as connection:
            if connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public' LIMIT 1").fetchone():
                return
    except psycopg.OperationalError:
        return  # no server: the ledger says so better
    server = place.set(database="postgres").render_as_string(hide_password=False)
    with psycopg.connect(server, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [migrated]).fetchone():
            # A test that breaks off here must not leave half a template to the next.
            begun = f"begun_{uuid.uuid4().hex}"
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(begun)))
            really(make_url(url).set(database=begun).render_as_string(hide_password=False)).close()
            connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(begun), template))
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, template))


@pytest.fixture(scope="session")
def postgres_server(_clean_environment: None) -> Iterator[str]:
    """A real PostgreSQL, started when the first test asks for it; gives the URL of its own database."""
    from evals._servers import postgres

    with postgres() as url:
        yield url


@contextmanager
def _database(server: str) -> Iterator[str]:
    """Give the URL of an empty database, which is dropped at once: a thousand files cost more to remove in the end."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """SQLAlchemy URL of an empty PostgreSQL database of the test's own."""
    with _database(postgres_server) as url:
        yield url.replace("postgresql://", "postgresql+psycopg://")


_APP = "remegraph_app"
_GRANTS = Path(__file__).parent / "deploy" / "postgresql" / "grants.sql"


def _least_privileged(server: str, url: str, queue: Literal["ledger"] | None) -> str:
    """Migrate a ledger as its owner; return its URL for the role that serves, by the grants that are deployed."""
    from remegraph.kit.admin.doctor import migrate
    from remegraph.settings import Settings

    migrate(Settings(ledger_url=url, queue=queue), apply=True)
    with psycopg.connect(server, autocommit=True) as connection, suppress(psycopg.errors.DuplicateObject):
        connection.execute(f"CREATE ROLE {_APP} LOGIN")
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(_GRANTS.read_text(encoding="utf-8"))
    return make_url(url).set(username=_APP).render_as_string(hide_password=False)


@pytest.fixture
def app_url(postgres_server: str, postgres_url: str) -> str:
    """SQLAlchemy URL of a migrated PostgreSQL database, for a role that may change rows and no table."""
    return _least_privileged(postgres_server, postgres_url, "ledger")


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """SQLAlchemy URL of an empty database: the test runs once on SQLite, once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(scope="session")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Chroma server on a free loopback port."""
    from evals._servers import ChromaServer

    server = ChromaServer(tmp_path_factory.mktemp("chroma"))
    with server.running():
        yield server.url


@pytest.fixture(params=["sqlite", pytest.param("servers", marks=pytest.mark.slow)])
def setup(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where `tests.talk.open_kit` opens its homes: in files and in this process; then on PostgreSQL and a Chroma server."""
    from remegraph.ledger.journal import add_key
    from tests import talk

    where: str = request.param
    with ExitStack() as databases:
        if where == "servers":
            chroma, server = request.getfixturevalue("chroma_url"), request.getfixturevalue("postgres_server")
            urls: dict[Path, str] = {}

            def urls_of(home: Path) -> dict[str, str]:
                if home not in urls:
                    urls[home] = _least_privileged(server, databases.enter_context(_database(server)), None)
                    add_key(home, first=True)  # where others may share the ledger, none is made unasked
                return {"ledger_url": urls[home], "chroma_url": chroma}

            monkeypatch.setattr(talk, "urls_of", urls_of)
        yield where


# --------------------------------------------------------------------------------------------- figures
# Here and not beside the tests that have them: where tests run in other processes (pytest-xdist), the one that shows
# the figures has read this file alone.

Figure = Callable[[str, str | float], None]

_MARK = "figure: "


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """Note a figure under a heading: a text is counted, of numbers the range is shown.

    It travels with the report of the test, so that it arrives from other processes (pytest-xdist), too.
    """
    return lambda heading, told: record_property(_MARK + heading, told)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the figures."""
    noted: dict[str, list[object]] = defaultdict(list)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, told in report.user_properties:
                    if name.startswith(_MARK):
                        noted[name.removeprefix(_MARK)].append(told)
    for heading, values in sorted(noted.items()):
        terminalreporter.write_line(f"{heading}: {_summary(values)}")


def _summary(values: list[object]) -> str:
    numbers = [value for value in values if isinstance(value, float)]
    if numbers:
        return f"{min(numbers):.1f} to {max(numbers):.1f}, median {median(numbers):.1f}, of {len(numbers)}"
    counts = Counter(str(value) for value in values)
    return ", ".join(text if counts[text] == 1 else f"{counts[text]} x {text}" for text in sorted(counts))


# ------------------------------------------------------------------------------------------- time limit


_NO_TIME = "no time left (--slow-seconds)"
_PART = re.compile(r"\bpart (\d+) of \d+")


class SlowLimit:
    """Starts no further slow test once the time is up, and says how many were left out.

    Test order is random, so another run leaves out others. But what comes in parts waits: no second part of one test
    begins before the first part of every other, so that the limit cuts repetitions first. Failures stay failures.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put whole tests and first parts before second parts, and so on."""
        items.sort(key=_part)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip a slow test that would start too late."""
        if item.get_closest_marker("slow") and time.monotonic() > self.end:
            pytest.skip(_NO_TIME)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many tests the limit left out, in all processes (pytest-xdist)."""
        skipped = terminalreporter.stats.get("skipped", ())
        if left_out := sum(_NO_TIME in str(report.longrepr) for report in skipped):
            terminalreporter.write_line(
                f"--slow-seconds {self.seconds:g}: {left_out} slow tests were left out.", yellow=True
            )


def _part(item: pytest.Item) -> int:
    found = _PART.search(item.name)
    return int(found[1]) if found else 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --slow-seconds."""
    parser.addoption("--slow-seconds", type=float, metavar="N", help="start no slow test after N seconds")


def pytest_configure(config: pytest.Config) -> None:
    """Set the time limit, where one is asked for."""
    seconds = config.getoption("--slow-seconds")
    if seconds is not None:
        config.pluginmanager.register(SlowLimit(seconds), "slow-limit")
