"""A copy of a ledger is told from its original, whose collections on a server it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from remegraph.failpoints import listen
from remegraph.ledger.backup import declare_copy, settle_copy
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.ledger.index.placement import namespace
from remegraph.ledger.index.projection import VectorProjection
from remegraph.testing import InMemoryVectorIndex
from tests.ledger.projections import ANN, Ledger

pytestmark = pytest.mark.requirement("X2", "X9")


def connect(url: str, database: str | None = None) -> psycopg.Connection:
    """Connect past remegraph, to this database or another on its server."""
    place = make_url(url).set(drivername="postgresql")
    place = place.set(database=database or place.database)
    return psycopg.connect(place.render_as_string(hide_password=False), autocommit=True)


@contextmanager
def copied(url: str) -> Iterator[str]:
    """Copy a database on PostgreSQL, as its tools do; give the URL of the copy."""
    place = make_url(url)
    name = f"{place.database}_copy"
    with connect(url, "postgres") as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(str(place.database)))
        )
        yield place.set(database=name).render_as_string(hide_password=False)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def at_work(url: str, index: InMemoryVectorIndex, *texts: str) -> Iterator[VectorProjection]:
    """Open a ledger, learn something, and bring the index up to date."""
    ledger = Ledger(url)
    with closing(ledger.database):
        settle_copy(ledger.database)
        if texts:
            ledger.remember(ANN, {text: text for text in texts})
        projection = VectorProjection.open(ledger.database, index, HashedEmbedder(64))
        projection.sync()
        yield projection


def test_a_copied_database_draws_names_of_its_own_and_a_ledger_at_home_keeps_them(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A ledger that is tried out beside its original must not cost the original its index; opened again, it stays put."""
    index = InMemoryVectorIndex()  # stands for the server
    with at_work(postgres_url, index, "tea", "sea"):
        (name,) = index.collections()
    with copied(postgres_url) as url:
        with at_work(url, index, "bread") as copy:
            assert f"those named {namespace(name)}-" in caplog.text
            assert copy.verify()[1] == ()
            assert copy.rebuild() == 3
        names = index.collections()
        caplog.clear()
        with at_work(postgres_url, index) as original, at_work(url, index) as copy:
            assert original.verify() == (2, ())
            assert copy.verify() == (3, ())
        assert (index.collections(), caplog.text) == (names, "")


def test_a_server_that_keeps_its_number_to_itself_is_used_all_the_same(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Who runs databases for others may take away rights that everybody has; an agent must start there, too."""
    index = InMemoryVectorIndex()
    url = make_url(postgres_url).update_query_dict({"options": "-c role=tenant"}).render_as_string(hide_password=False)
    with at_work(postgres_url, index, "tea"), connect(postgres_url) as connection:
        connection.execute("CREATE ROLE tenant")
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO tenant")
        with at_work(url, index) as theirs:
            assert theirs.verify() == (1, ())
        connection.execute("DROP OWNED BY tenant")
        connection.execute("DROP ROLE tenant")
    assert caplog.text == ""


def test_a_copy_that_is_stopped_on_its_way_is_still_one(tmp_path: Path) -> None:
    """Half a copy would write into the index of its original, or search one that holds nothing."""
    index, url = InMemoryVectorIndex(), f"sqlite:///{tmp_path / 'ledger.sqlite'}"

    def stop(place: str) -> None:
        if place == "copy.marked":
            raise KeyboardInterrupt

    with at_work(url, index, "tea") as original:
        (name,) = index.collections()
        database = original._database
        declare_copy(database)
        listen(stop)
        try:
            with pytest.raises(KeyboardInterrupt):
                settle_copy(database)
        finally:
            listen(None)
        settle_copy(database)
        assert original.lag() == 1
        original.sync()
        assert original.verify() == (1, ())
        assert index.ids(name) == {"1:memory:tea"}
        assert len(index.collections()) == 2
