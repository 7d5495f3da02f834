"""The journal as a chain: whoever changes the past without the key is found out."""

from __future__ import annotations

import random
import stat
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import case, delete, insert, select, update

from remegraph.errors import SetupError
from remegraph.ledger.archive import Archive
from remegraph.ledger.audit import AuditTrail
from remegraph.ledger.database import Database
from remegraph.ledger.journal import Journal, KeyRing, add_key
from remegraph.ledger.rows import digest
from remegraph.ledger.schema import events, memories, partitions, seals, versions
from remegraph.models import AuditHead, Mismatch, Partition
from tests.ledger.conftest import ANN, BOB, KEY, Ledger, following

_Row = dict[str, Any]

pytestmark = pytest.mark.requirement("B14")


@pytest.fixture
def told(ledger: Ledger) -> Ledger:
    """A ledger in which two persons have a history."""
    for number in range(2):
        head = ledger.learn(f"Ann likes tea {number}.")
        ledger.commit(following(head, importance=0.6))
        ledger.learn(f"Bob likes tea {number}.", partition=BOB)
    return ledger


def trail(ledger: Ledger) -> AuditTrail:
    return AuditTrail(ledger.archive.database, ledger.archive.journal)


def found(ledger: Ledger, partition: Partition = ANN) -> list[Mismatch]:
    return list(trail(ledger).differences(partition))


def rows_of(database: Database) -> list[_Row]:
    with database.read() as connection:
        return [row._asdict() for row in connection.execute(select(events).order_by(events.c.id))]


def write(database: Database, rows: list[_Row]) -> None:
    with database.write() as connection:
        connection.execute(delete(events))
        connection.execute(insert(events), rows)


def head_of(ledger: Ledger) -> AuditHead:
    """What an export of Ann's events ends with; its seal does not matter here."""
    entries = [entry for page in trail(ledger).pages(ANN, None, None) for entry in page]
    first, last = entries[0], entries[-1]
    return AuditHead(partition=ANN, events=len(entries), previous=first.previous, chain=last.event.chain, seal="unused")


def _change(rows: list[_Row], chance: random.Random) -> None:
    row = chance.choice(rows)
    column = chance.choice(("time", "actor", "action", "record_id", "version", "operation_id", "digest", "reason"))
    row[column] = row[column] + 1 if isinstance(row[column], int) else f"{row[column]}x"


def _swap(rows: list[_Row], chance: random.Random) -> None:
    one, two = chance.sample(rows, 2)
    one["id"], two["id"] = two["id"], one["id"]


def _drop(rows: list[_Row], chance: random.Random) -> None:
    rows.pop(chance.randrange(len(rows) - 1))  # the last one is cut, not dropped


def test_a_changed_moved_or_dropped_event_is_found_every_time(told: Ledger) -> None:
    """An audit that misses one forgery in a hundred proves nothing."""
    chance, database = random.Random(7), told.archive.database
    honest = rows_of(database)
    caught = 0
    for trial in range(100):
        rows = [dict(row) for row in honest]
        mine = [row for row in rows if row["partition_id"] == rows[0]["partition_id"]]
        others = [row for row in rows if row not in mine]
        (_change, _swap, _drop)[trial % 3](mine, chance)
        write(database, sorted([*mine, *others], key=lambda row: row["id"]))
        caught += bool(found(told)) and not found(told, BOB)
    assert caught == 100
    write(database, honest)
    assert found(told) == found(told, BOB) == []


def test_the_histories_of_two_persons_cannot_be_exchanged(told: Ledger) -> None:
    """Each chain begins with its place: another's is whole, and does not fit."""
    database = told.archive.database
    with database.read() as connection:
        (ann, her_head), (bob, his_head) = connection.execute(
            select(partitions.c.id, partitions.c.journal_head).order_by(partitions.c.user)
        ).all()
    with database.write() as connection:
        place = case((events.c.partition_id == ann, bob), else_=ann)
        connection.execute(update(events).values(partition_id=place))
        for number, head in ((ann, his_head), (bob, her_head)):
            connection.execute(update(partitions).where(partitions.c.id == number).values(journal_head=head))
    assert len(found(told)) == len(found(told, BOB)) == 1, "the first event of each"


def test_a_cut_end_is_found_against_an_exported_head(told: Ledger) -> None:
    """Who may write the ledger may set its head back, too: only what was carried out of the house tells."""
    database, head = told.archive.database, head_of(told)
    mine = [row for row in rows_of(database) if row["chain"] in _chains(told)]
    with database.write() as connection:
        connection.execute(delete(events).where(events.c.id == mine[-1]["id"]))
    assert [each.problem for each in found(told)] == ["its newest events were taken away, or its head was changed"]
    with database.write() as connection:
        connection.execute(
            update(partitions).where(partitions.c.id == mine[0]["partition_id"]).values(journal_head=mine[-2]["chain"])
        )
    assert found(told) == []
    assert not trail(told).holds(head)


def _chains(ledger: Ledger) -> set[str]:
    return {entry.event.chain for page in trail(ledger).pages(ANN, None, None) for entry in page}


def test_an_exported_head_holds_while_the_journal_grows(told: Ledger) -> None:
    """It is an anchor, not a picture of the end."""
    head = head_of(told)
    told.learn("Ann likes cake.")
    assert trail(told).holds(head)
    assert not trail(told).holds(head.evolve(partition=BOB))


def test_after_the_words_are_erased_the_chain_still_holds(told: Ledger) -> None:
    """To forget for good must not look like forgery, nor leave the words behind."""
    with told.archive.database.write() as connection:
        connection.execute(update(versions).values(body=""))
    assert found(told) == found(told, BOB) == []
    with told.archive.database.write() as connection:
        connection.execute(delete(versions))
    assert found(told) == found(told, BOB) == []


def test_a_version_that_is_not_what_was_committed_is_found(told: Ledger) -> None:
    """The journal says what was written; the words must be those."""
    (memory, *_) = told.archive.memories([ANN])
    with told.archive.database.write() as connection:
        body = memory.evolve(content="Ann likes coffee.").to_json()
        connection.execute(update(versions).where(versions.c.body == memory.to_json()).values(body=body))
    (mismatch,) = found(told)
    assert mismatch.problem == f"version {memory.version} of {memory.memory_id} is not what was committed"


def test_the_same_words_leave_another_digest_in_another_ledger(ledger: Ledger) -> None:
    """Short contents could be guessed from a plain digest, by whoever gets an export."""
    other = Journal([KEY], "another salt")
    assert other.digest("Ann likes tea.") != ledger.archive.journal.digest("Ann likes tea.")


def test_events_of_an_earlier_release_are_chained_at_the_first_open(told: Ledger) -> None:
    """Their history is worth no less; the digests that they had get their salt."""
    database = told.archive.database
    with database.write() as connection:
        connection.execute(delete(seals))
        connection.execute(update(events).values(chain="", digest=digest("of a block")))
        for body, record_id, version in connection.execute(select(versions.c.body, *_OF_VERSION).join(memories)).all():
            event = (events.c.record_id == record_id, events.c.version == version)
            connection.execute(update(events).where(*event).values(digest=digest(body)))
        connection.execute(update(partitions).values(journal_head=""))
    assert found(told)
    before = {row["digest"] for row in rows_of(database)}
    told.archive.close()
    told.archive = told.another()
    assert found(told) == found(told, BOB) == []
    assert before.isdisjoint(row["digest"] for row in rows_of(told.archive.database))


_OF_VERSION = (memories.c.memory_id, versions.c.version)


def test_another_key_is_told_and_can_seal_anew(told: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    """A lost key must not cost the memory, and never passes unseen."""
    told.archive.close()
    told.archive = Archive.open(told.url, keys=KeyRing([b"another"]), clock=lambda: told.now, new_id=lambda: "new")
    assert "another key" in caplog.text
    assert [each.problem for each in found(told)] == [
        "it is sealed with another key than this one, so it cannot be checked"
    ]
    trail(told).seal(told.now, "operation", "the key is lost", despite=True)
    assert found(told) == found(told, BOB) == []
    assert trail(told).sealed_despite() == (told.now, "the key is lost")


def test_an_empty_journal_takes_whichever_key_comes(ledger: Ledger) -> None:
    """A template of a ledger is copied without its key."""
    ledger.archive.close()
    ledger.archive = Archive.open(
        ledger.url, keys=KeyRing([b"another"]), clock=lambda: ledger.now, new_id=lambda: f"id{next(ledger.ids)}"
    )
    ledger.learn()
    assert found(ledger) == []


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    """Whoever has it can write a history that fits."""
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(partial(add_key, first=True), [tmp_path / "home"] * 8))
    assert len(keys) == 1
    (file,) = (tmp_path / "home").iterdir()
    assert (file.name, stat.S_IMODE(file.stat().st_mode), len(keys.pop())) == ("journal.key", 0o600, 64)
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="REMEGRAPH_JOURNAL_KEY"):
        add_key(tmp_path / "file")
