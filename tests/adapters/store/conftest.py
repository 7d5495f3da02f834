"""Kits on both databases, shared by tests that keep to a tenant of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from langchain_core.embeddings import Embeddings

from remegraph import MemoryKit, Scope, Settings
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.adapters.store.reference import TableEmbeddings
from tests.talk import SHARED_KEY


@pytest.fixture(scope="session")
def clock() -> FrozenClock:
    """The clock of the shared kits, which tests move on."""
    return FrozenClock()


@pytest.fixture(scope="session")
def sqlite_kit(tmp_path_factory: pytest.TempPathFactory, clock: FrozenClock) -> Iterator[MemoryKit]:
    """A kit on SQLite."""
    with _open(tmp_path_factory.mktemp("home"), clock) as kit:
        yield kit


@pytest.fixture(scope="session")
def postgres_kit(
    postgres_server: str, tmp_path_factory: pytest.TempPathFactory, clock: FrozenClock
) -> Iterator[MemoryKit]:
    """A kit on PostgreSQL."""
    with _open(tmp_path_factory.mktemp("home"), clock, url=_new_database(postgres_server)) as kit:
        yield kit


@pytest.fixture(params=["sqlite", "postgres"])
def kit(request: pytest.FixtureRequest) -> MemoryKit:
    """A kit on SQLite, then on PostgreSQL."""
    kit: MemoryKit = request.getfixturevalue(f"{request.param}_kit")
    return kit


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def table_kit(request: pytest.FixtureRequest, tmp_path: Path, clock: FrozenClock) -> Iterator[MemoryKit]:
    """A kit in which many texts are equally near."""
    url = _new_database(request.getfixturevalue("postgres_server")) if request.param == "postgres" else None
    with _open(tmp_path, clock, TableEmbeddings(), url=url) as kit:
        yield kit


@pytest.fixture
def ann() -> Scope:
    """A user of a tenant that no other test knows."""
    return Scope(user="ann", tenant=uuid4().hex)


def _open(home: Path, clock: FrozenClock, embedder: Embeddings | None = None, *, url: str | None = None) -> MemoryKit:
    settings = Settings(home=home, ledger_url=url, journal_key=SHARED_KEY)
    return MemoryKit.open(settings=settings, model=None, embedder=embedder, index=InMemoryVectorIndex(), clock=clock)


def _new_database(server: str) -> str:
    name = f"adapters_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))
    return server.replace("/postgres?", f"/{name}?")
