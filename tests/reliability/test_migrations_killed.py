"""Upgrades of the schema that are stopped: every release's ledger reaches this one's schema, and keeps every row."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Connection, create_engine

from conftest import Figure
from remegraph.ledger import migrations
from remegraph.ledger.database import Database
from tests.reliability.host import ROOT
from tests.reliability.released import (
    EMPTY,
    FIRST,
    RELEASES,
    Columns,
    columns,
    hashes,
    later,
    make,
    revision_of,
    stepping,
)

pytestmark = pytest.mark.requirement("X3")

Copy = Callable[[], str]


@pytest.fixture(autouse=True)
def _later() -> Iterator[None]:
    """Code of a later release opens the ledgers."""
    with later():
        yield


class StoppedError(RuntimeError):
    """The process ends here."""


@contextmanager
def looking(url: str) -> Iterator[Connection]:
    """Look at a ledger as it is, of whatever release."""
    engine = create_engine(url)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@dataclass(frozen=True)
class Kept:
    """What a ledger of a release held."""

    release: str
    columns: Columns
    hashes: Mapping[str, str]

    @classmethod
    def of(cls, url: str, release: str) -> Self:
        """Look at a ledger that nobody has opened since."""
        if release == EMPTY:
            return cls(release, {}, {})
        with looking(url) as connection:
            found = columns(connection)
            return cls(release, found, hashes(connection, found))

    def check(self, url: str, *revisions: str) -> None:
        """All of it is still there, in a ledger of one of these revisions."""
        with looking(url) as connection:
            assert revision_of(connection) in revisions
            assert hashes(connection, self.columns) == self.hashes

    def check_upgrade(self, url: str) -> None:
        """The ledger is still of its release, or of this one; once it is opened, it is of this one."""
        if self.release != EMPTY:
            self.check(url, self.release, migrations.HEAD)
        Database.open(url).close()
        self.check(url, migrations.HEAD)


def test_an_upgrade_that_stops_leaves_the_ledger_as_it_was(ledger_url: str) -> None:
    """A deployment that is rolled back in the middle must find the ledger that it knew."""
    make(ledger_url, FIRST)
    kept = Kept.of(ledger_url, FIRST)

    def reached(step: int) -> None:
        if step == 20:
            raise StoppedError

    with stepping(reached), pytest.raises(StoppedError):
        Database.open(ledger_url)
    kept.check(ledger_url, FIRST)
    kept.check_upgrade(ledger_url)


# --------------------------------------------------------------------------------------------- slow


@pytest.fixture(scope="module")
def foreman() -> Iterator[Callable[[str, int], tuple[int, int]]]:
    """Open a ledger in a process that is killed at a step; return how it ended, and how many steps there were."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.reliability.released"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        orders, answers = process.stdin, process.stdout

        def order(url: str, step: int) -> tuple[int, int]:
            orders.write(json.dumps({"url": url, "step": step}) + "\n")
            orders.flush()
            steps = 0
            for line in answers:
                told = json.loads(line)
                if isinstance(told, dict):
                    return told["ended"], steps
                steps = told
            raise AssertionError("the foreman died")

        yield order
        process.kill()


@contextmanager
def templates(engine: str, release: str, folder: Path, server: str) -> Iterator[tuple[str, Copy]]:
    """Give a ledger of a release, and what makes copies of it."""
    if engine == "sqlite":
        template = folder / f"{release}.sqlite"

        def copy() -> str:
            path = folder / f"{uuid.uuid4().hex}.sqlite"
            if template.exists():
                shutil.copyfile(template, path)
            return f"sqlite:///{path}"

        yield f"sqlite:///{template}", copy
        return
    name = f"release_{release}"
    url = server.replace("postgresql://", "postgresql+psycopg://")
    copies: list[str] = []
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

        def copy() -> str:
            copies.append(f"copy_{uuid.uuid4().hex}")
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(copies[-1]), sql.Identifier(name))
            )
            return url.replace("/postgres?", f"/{copies[-1]}?")

        yield url.replace("/postgres?", f"/{name}?"), copy
        for each in (*copies, name):
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(each)))


def points(release: str, steps: int, engine: str, rng: random.Random) -> list[int]:
    """The steps at which to kill: on SQLite all from the first release on, every third from nothing, else some."""
    if engine == "postgresql":
        return sorted(rng.sample(range(1, steps), 6))
    if release == FIRST:
        return list(range(1, steps + 1))
    return [*range(rng.randint(1, 3), steps, 3), steps]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_ledgers_of_every_release_reach_this_schema_through_any_kill(
    engine: str,
    foreman: Callable[[str, int], tuple[int, int]],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    figure: Figure,
) -> None:
    """The power fails during the one upgrade that cannot be repeated: it must be one that can."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")  # noqa: T201 - shown where it fails
    rng, kills = random.Random(seed), 0
    server = "" if engine == "sqlite" else request.getfixturevalue("postgres_server")
    for release in RELEASES:
        with templates(engine, release, tmp_path, server) as (template, copy):
            make(template, release)
            kept = Kept.of(template, release)
            whole = copy()
            ended, steps = foreman(whole, 0)
            assert ended == 0
            assert steps > 3
            kept.check_upgrade(whole)
            for step in points(release, steps, engine, rng):
                killed = copy()
                ended, _ = foreman(killed, step)
                assert ended == -signal.SIGKILL
                kept.check_upgrade(killed)
                kills += 1
    figure(
        "bar 16: migrations",
        f"{engine}, seed {seed}: {kills} kills on the way from {len(RELEASES) - 1} releases and from nothing, no row lost",
    )
