"""Several releases on one ledger: who may change its schema, who goes on beside whom, and who stops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from sqlalchemy import insert, inspect, select

from remegraph.errors import SchemaTooNewError, SchemaTooOldError
from remegraph.ledger import database as module
from remegraph.ledger import migrations
from remegraph.ledger.database import Database
from remegraph.ledger.schema import partitions
from tests.reliability.released import FIRST, WIDER, later, make, revision_of, wider

pytestmark = pytest.mark.requirement("X3", "X9")


@pytest.fixture(autouse=True)
def _look_at_each_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it is every few seconds that a process looks."""
    monkeypatch.setattr(module, "_LOOK", 0.0)


def note(database: Database, key: str) -> None:
    with database.write() as connection:
        connection.execute(insert(partitions).values(tenant="t", key=key))


def noted(database: Database) -> list[str]:
    with database.read() as connection:
        return list(connection.execute(select(partitions.c.key).order_by(partitions.c.id)).scalars())


@contextmanager
def opened(url: str) -> Iterator[Database]:
    with closing(Database.open(url)) as database:
        yield database


def test_who_may_not_migrate_refuses_an_earlier_ledger_with_the_cure_and_changes_nothing(ledger_url: str) -> None:
    """A health check of a new image must not bring the schema up under the old one."""
    with pytest.raises(SchemaTooOldError, match="remegraph migrate --apply"):
        Database.open(ledger_url, migrate="never")
    with closing(Database.as_it_is(ledger_url)) as database, database.read() as connection:
        assert inspect(connection).get_table_names() == []
    with later():
        make(ledger_url, FIRST)
        with pytest.raises(SchemaTooOldError, match=f"schema {FIRST}"):
            Database.open(ledger_url, migrate="never")
        with closing(Database.as_it_is(ledger_url)) as database, database.read() as connection:
            assert revision_of(connection) == FIRST
        Database.open(ledger_url).close()
        Database.open(ledger_url, migrate="never").close()


def test_a_process_goes_on_beside_the_next_release_where_that_only_adds_and_may_be_started_again(
    ledger_url: str,
) -> None:
    """Of a rolling upgrade, half of the processes are old for a while; some of them are started again meanwhile."""
    with opened(ledger_url) as old:
        note(old, "before")
        with wider(), opened(ledger_url) as new:
            note(new, "by the new one")
            with new.read() as connection:
                assert revision_of(connection) == WIDER
        note(old, "by the old one")
        with closing(Database.open(ledger_url, migrate="never")) as again:
            note(again, "by one that was started again")
        assert noted(old) == ["before", "by the new one", "by the old one", "by one that was started again"]


def test_a_process_of_an_earlier_release_stops_writing_once_the_schema_has_changed_and_says_so(
    ledger_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It would write rows that nobody reads as they are meant."""
    with opened(ledger_url) as old:
        note(old, "before")
        with later(), opened(ledger_url) as new:
            note(new, "by the new one")
        for _ in range(2):
            with pytest.raises(SchemaTooNewError, match="Upgrade remegraph"):
                note(old, "too late")
        assert noted(old) == ["before", "by the new one"]
    told = [each for each in caplog.records if vars(each).get("event.name") == "remegraph.schema.changed"]
    assert [each.levelname for each in told] == ["ERROR"]


def test_a_process_of_a_later_release_stops_writing_where_an_earlier_ledger_was_brought_back_and_goes_on_after(
    ledger_url: str,
) -> None:
    """A restore under a running service: what it writes then would have columns that are not there."""
    with wider(), opened(ledger_url) as new:
        with new.write() as connection:
            connection.exec_driver_sql(f"UPDATE {migrations.VERSION_TABLE} SET version_num = '{FIRST}'")
        with pytest.raises(SchemaTooOldError, match="remegraph migrate --apply"):
            note(new, "too early")
        with closing(Database.as_it_is(ledger_url)) as raw, raw.write() as connection:
            connection.exec_driver_sql(f"UPDATE {migrations.VERSION_TABLE} SET version_num = '{WIDER}'")
        note(new, "again")
        assert noted(new) == ["again"]


@pytest.mark.parametrize(
    ("ours", "theirs", "fits"),
    [
        ("0020", "0020", True),
        ("0020", "0020.1", True),
        ("0020.2", "0020.10", True),
        ("0020.10", "0020.2", False),
        ("0020.1", "0020", False),
        ("0020.1", "0021", False),
        ("0021", "0020.1", False),
    ],
)
def test_code_fits_its_own_revision_and_those_that_only_add_to_it(
    monkeypatch: pytest.MonkeyPatch, ours: str, theirs: str, fits: bool
) -> None:
    """The number says it, so that code that is older than a revision knows, too."""
    monkeypatch.setattr(migrations, "HEAD", ours)
    assert migrations.fits(theirs) is fits
