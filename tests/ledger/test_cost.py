"""What a read costs, in steps of SQLite's machine: they do not depend on how busy the computer is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from remegraph import MemoryKit, Scope, Settings
from remegraph.ledger.archive import Archive
from remegraph.ledger.index import vectors
from remegraph.ledger.index.vectors import Key
from tests.ledger.conftest import ANN, Ledger, create
from tests.talk import said

_FEW = 60
_MANY = 300


def steps(archive: Archive, call: Callable[[], object]) -> int:
    """Return how many steps, in hundreds, SQLite takes for what a call asks of it."""
    taken = 0

    def step() -> None:
        nonlocal taken
        taken += 1

    def count(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_progress_handler(step, 100)

    def stop(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_progress_handler(None, 0)

    engine = archive.database.engine
    listeners = (("checkout", count), ("checkin", stop))
    for moment, listener in listeners:
        event.listen(engine, moment, listener)
    call()
    for moment, listener in listeners:
        event.remove(engine, moment, listener)
    return taken


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")


@pytest.mark.slow
def test_reading_a_few_messages_by_id_costs_no_more_with_a_long_history(ledger: Ledger) -> None:
    """Recall reads sixty of them: it must not go through ten thousand in search of those."""
    few = [message.message_id for message in ledger.say(ANN, *map(str, range(_FEW)))]

    def read() -> object:
        return ledger.archive.messages([ANN], ids=few)

    before = steps(ledger.archive, read)
    ledger.say(ANN, *(f"text {number}" for number in range(_MANY)))
    assert steps(ledger.archive, read) <= before + 1
    ledger.archive.close()


@pytest.mark.slow
def test_reading_links_costs_no_more_with_many_memories(ledger: Ledger) -> None:
    """Each recall asks what contradicts its hits: it must not list all that a user has told."""
    few = [ledger.memory(f"Ann likes tea {number}.") for number in range(_FEW)]
    ledger.commit(*map(create, few))

    def read() -> object:
        return ledger.archive.links([ANN], [memory.memory_id for memory in few])

    before = steps(ledger.archive, read)
    ledger.commit(*(create(ledger.memory(f"Ann likes cake {number}.")) for number in range(_MANY)))
    assert steps(ledger.archive, read) <= before + 1
    ledger.archive.close()


def test_a_recall_costs_no_more_however_much_others_have_said(tmp_path: Path) -> None:
    """One statement that went through everybody's messages took 72 ms of a recall with 100,000 of them."""
    with MemoryKit.open(settings=Settings(home=tmp_path), model=None, embedder=None) as kit:

        def talk(user: str, messages: int) -> None:
            scope = Scope(user=user, agent="remy")
            kit.add_messages([said(f"I like tea number {number}.") for number in range(messages)], scope=scope)
            kit.summarize(scope=scope, close=True)

        def recall() -> object:
            return kit.recall("Which tea does Ann like?", scope=Scope(user="Ann", agent="remy"), depth="messages")

        talk("Ann", 20)
        recall()
        before = steps(kit.context.parts().archive, recall)
        for number in range(5):
            talk(f"user {number}", 100)
        recall()
        assert steps(kit.context.parts().archive, recall) <= 1.1 * before + 1


def test_naming_records_of_many_users_is_the_same_statement_as_naming_ten(ledger: Ledger) -> None:
    """Most users have told little: to put statements together for each takes the indexer longer than to run them."""
    engine = ledger.archive.database.engine

    def said(users: int) -> set[str]:
        keys = [Key(number, "memory", f"memory {number}") for number in range(users)]
        statements: set[str] = set()

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            statements.add(statement)

        event.listen(engine, "before_cursor_execute", note)
        with ledger.archive.database.read() as connection:
            vectors.live_bodies(connection, keys)
            vectors.embedded_digests(connection, 1, keys)
            vectors.read(connection, 1, keys)
        event.remove(engine, "before_cursor_execute", note)
        return statements

    assert said(1) == said(8)
    assert said(10) == said(250)
    ledger.archive.close()


@contextmanager
def asked(ledger: Ledger) -> Iterator[list[str]]:
    """Give the statements that reach the database meanwhile."""
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(ledger.archive.database.engine, "before_cursor_execute", note)
    yield statements
    event.remove(ledger.archive.database.engine, "before_cursor_execute", note)


def test_what_is_new_is_written_in_few_round_trips(ledger: Ledger) -> None:
    """A server far away makes each of them felt: a block's extent, work and entry are one, and so are all open threads."""
    ledger.commit(create(ledger.memory("Ann likes tea.")))  # partitions and topics are there
    memory = ledger.memory("Ann likes coffee.")
    ledger.say(ANN, "I like cake.", thread="one")
    ledger.say(ANN, "I like pie.", thread="two")
    with asked(ledger) as reading:
        assert len(ledger.archive.tails(ANN, overlap=2)) == 2
    with asked(ledger) as committing:
        ledger.commit(create(memory))
    assert (len(reading), len(committing)) == (2, 15), "BEGIN counts, too"
    ledger.archive.close()
