"""Ledgers as each release left them, with rows in every table; and a process that brings one up to date and is killed.

As nothing is released yet, the releases after the first are made up: see `later`, and the folder `revisions`.

Run as a program, this is a foreman: for each line of JSON, `{"url": ..., "step": n}`, it forks a process that opens the
ledger and is killed at the n-th statement or commit; then it says how that ended, and how many steps there were.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    column,
    create_engine,
    event,
    insert,
    select,
    table,
    text,
)

from remegraph.ledger import migrations
from remegraph.ledger.database import Database
from remegraph.ledger.schema import metadata

ROWS = 3
EMPTY = "nothing"
"""Before the first release."""
FIRST = migrations.HEAD
RELEASES = (EMPTY, FIRST, "0021")
LATER = "0022"
"""The revision of code that is of two releases later."""
WIDER = "0020.1"
"""The revision of code of the next release, where that only adds something."""

Columns = Mapping[str, Sequence[str]]

_VALUES: tuple[tuple[type, Callable[[int], object]], ...] = (
    (Boolean, lambda number: number % 2 == 0),
    (Integer, lambda number: number),
    (Float, lambda number: number / 8),
    (LargeBinary, lambda number: bytes([number, 0, 255])),
)

_MEMORY = {"importance": 0.95, "partition": {"project": "atlas"}, "content": "I love tea."}


@contextmanager
def later() -> Iterator[None]:
    """Let this code be of two releases later."""
    with _of(Path(__file__).parent / "revisions", FIRST, "0021", LATER):
        yield


@contextmanager
def wider() -> Iterator[None]:
    """Let this code be of the next release, which only adds to the schema."""
    with _of(Path(__file__).parent / "expansions", FIRST, WIDER):
        yield


@contextmanager
def _of(more: Path, *revisions: str) -> Iterator[None]:
    plain = migrations.config

    def config(connection: Connection) -> Config:
        configured = plain(connection)
        folders = (Path(migrations.__file__).parent / "versions", more)
        configured.set_main_option("path_separator", "os")
        configured.set_main_option("version_locations", os.pathsep.join(map(str, folders)))
        return configured

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "HEAD", revisions[-1])
        patch.setattr(migrations, "KNOWN", frozenset(revisions))
        patch.setattr(migrations, "config", config)
        yield


def make(url: str, revision: str) -> None:
    """Make a ledger of a release, and fill all its tables; to be called within `later`."""
    if revision == EMPTY:
        return
    engine = create_engine(url)
    with engine.begin() as connection:
        command.upgrade(migrations.config(connection), revision)
        for found in _tables(connection):
            rows = [{each.name: value(each, number) for each in found.c} for number in range(1, ROWS + 1)]
            connection.execute(insert(found), rows)
    engine.dispose()


def value(of: Column[object], number: int) -> object:
    """Return what a row has in a column: a key refers to the row of the same number."""
    for key in of.foreign_keys:
        return value(key.column, number)
    for kind, made in _VALUES:
        if isinstance(of.type, kind):
            return made(number)
    return None if of.nullable and number == 1 else _text(of, number)


def _text(of: Column[object], number: int) -> str:
    if of.name == "terms":  # PostgreSQL's full text
        return f"'tea':{number}"
    if of.name == "body":
        return json.dumps({**_MEMORY, "of": f"{of.table.name} {number}"})
    return f"{of.table.name} {of.name} {number}"


def columns(connection: Connection) -> Columns:
    """Return the columns of each table, which later releases add to."""
    return {found.name: [column.name for column in found.c] for found in _tables(connection)}


def hashes(connection: Connection, wanted: Columns) -> dict[str, str]:
    """Return a hash of what stands in these columns, by table; of a ledger of any release."""
    found: dict[str, str] = {}
    for name, names in wanted.items():
        selected: list[ColumnElement[Any]] = [column(each) for each in names]
        query = select(*selected).select_from(table(name))
        told = sorted(repr(tuple(row)) for row in connection.execute(query))
        found[name] = hashlib.sha256("\n".join(told).encode()).hexdigest()
    return found


def revision_of(connection: Connection) -> str:
    """Return the revision of a ledger."""
    return str(connection.execute(text("SELECT version_num FROM remegraph_schema")).scalar_one())


def _tables(connection: Connection) -> list[Table]:
    reflected = MetaData()
    reflected.reflect(connection, only=lambda name, _: name in metadata.tables)
    return reflected.sorted_tables


@contextmanager
def stepping(reached: Callable[[int], None]) -> Iterator[Callable[[], int]]:
    """Tell before each statement and each commit of any engine, by its number; give what counts them."""
    steps = 0

    def step(*_: object) -> None:
        nonlocal steps
        steps += 1
        reached(steps)

    for name in ("before_cursor_execute", "commit"):
        event.listen(Engine, name, step)
    try:
        yield lambda: steps
    finally:
        for name in ("before_cursor_execute", "commit"):
            event.remove(Engine, name, step)


def _open(url: str, step: int) -> None:
    def reached(number: int) -> None:
        if number == step:
            os.kill(os.getpid(), signal.SIGKILL)

    with stepping(reached) as steps:
        Database.open(url).close()
        print(json.dumps(steps()), flush=True)  # noqa: T201 - the answer


def _main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _open(order["url"], order["step"])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"ended": os.waitstatus_to_exitcode(status)}), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    with later():
        _main()
