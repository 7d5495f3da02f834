"""A ledger to try things on, and short ways to fill it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread, current_thread

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import event, select, update

from remegraph.ledger.archive import Archive
from remegraph.ledger.database import Database
from remegraph.ledger.journal import KeyRing
from remegraph.ledger.partitions import anonymous
from remegraph.ledger.schema import metadata, partitions
from remegraph.models import (
    Block,
    ChangeSet,
    Cut,
    Evidence,
    Memory,
    MemoryChange,
    Message,
    Partition,
    Receipt,
    Status,
    Topic,
)

ANN = Partition(tenant="t", user="ann")
BOB = Partition(tenant="t", user="bob")
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
KEY = b"of all ledgers in these tests"
TOPIC = Topic(type="personal", target_name="Ann")


@dataclass
class Ledger:
    """An archive with a clock that tests move, and builders of its records."""

    url: str
    now: datetime = NOON
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    archive: Archive = field(init=False)

    def __post_init__(self) -> None:
        self.archive = self.another()

    def another(self) -> Archive:
        """Open the same ledger once more, as another process would."""
        return Archive.open(self.url, keys=KeyRing([KEY]), clock=lambda: self.now, new_id=lambda: f"id{next(self.ids)}")

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def say(self, partition: Partition, *texts: str, thread: str = "main", asleep: bool = False) -> list[Message]:
        """Record texts as messages of the user."""
        messages = [
            Message(message_id=f"m{next(self.ids)}", role="user", content=text, time=self.now, thread=thread)
            for text in texts
        ]
        self.archive.add_messages(partition, messages, self.now, asleep=asleep)
        return messages

    def block(self, partition: Partition, *texts: str) -> tuple[Block, list[Message]]:
        """Record texts and make one block of them."""
        messages = self.say(partition, *texts)
        (tail,) = self.archive.tails(partition)
        (block,) = self.archive.add_blocks(partition, [whole(tail.after_seq, tail.messages[-1].seq)], "1")
        return block, messages

    def memory(self, content: str = "Ann likes tea.", *, partition: Partition = ANN, said: str = "") -> Memory:
        """Build a memory whose evidence is recorded first."""
        block, (message,) = self.block(partition, said or content)
        return Memory(
            memory_id=f"memory{next(self.ids)}",
            partition=partition,
            topic=TOPIC,
            content=content,
            evidence=(Evidence(message_id=message.message_id, quote=message.text, block_id=block.block_id),),
            block_ids=(block.block_id,),
            said_at=self.now,
            recorded_at=self.now,
        )

    def learn(
        self, content: str = "Ann likes tea.", *, partition: Partition = ANN, status: Status = "active"
    ) -> Memory:
        """Commit a new memory; return its head."""
        memory = self.memory(content, partition=partition).evolve(status=status)
        self.commit(create(memory))
        return self.head(memory)

    def head(self, memory: Memory) -> Memory:
        """Read the head version of a memory."""
        (head,) = self.archive.memories([memory.partition], ids=[memory.memory_id])
        return head

    def commit(self, *changes: MemoryChange, operation_id: str = "") -> Receipt:
        """Commit changes of memories."""
        return self.archive.commit(self.set_of(*changes, operation_id=operation_id))

    def set_of(self, *changes: MemoryChange, operation_id: str = "") -> ChangeSet:
        """Build a change set."""
        return ChangeSet(
            operation_id=operation_id or f"operation{next(self.ids)}",
            actor="test",
            recorded_at=self.now,
            at_home=True,
            changes=changes,
        )

    def lose_names(self, during: Callable[[], object]) -> None:
        """Take the names from all partitions, as another process does that erases, while somebody waits to write."""
        waits, writer = Event(), Thread(target=during)
        engine = self.archive.database.engine

        def about_to_wait(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if current_thread() is writer and ("advisory" in statement or "IMMEDIATE" in statement):
                waits.set()

        event.listen(engine, "before_cursor_execute", about_to_wait)
        with closing(self.another()) as other:
            with other.database.read() as connection:
                numbers = connection.execute(select(partitions.c.id)).scalars().all()
            with other.database.write(numbers) as connection:
                for number in numbers:
                    here = partitions.c.id == number
                    connection.execute(update(partitions).where(here).values(anonymous(number)))
                writer.start()
                assert waits.wait(30)
        writer.join(30)
        event.remove(engine, "before_cursor_execute", about_to_wait)

    def found(self, partition: Partition, kind: str, *tokens: str) -> set[str]:
        """Return the ids of the records that hold a token."""
        assert kind in {"memory", "block", "message"}
        found = self.archive.match([partition], kind, tokens)  # type: ignore[arg-type]
        return {record_id for matches in found for record_id in matches.record_ids}


def whole(after_seq: int, last_seq: int, thread: str = "main") -> Cut:
    """A cut of everything after a seq."""
    return Cut(thread=thread, after_seq=after_seq, first_seq=after_seq + 1, last_seq=last_seq)


def create(memory: Memory) -> MemoryChange:
    """A change that makes a memory."""
    return MemoryChange(memory=memory, expected_version=0, action="create")


def following(memory: Memory, **changes: object) -> MemoryChange:
    """A change that follows the head version given."""
    return MemoryChange(memory=memory.evolve(**changes), expected_version=memory.version, action="refine")


@pytest.fixture(scope="session")
def shared_postgres(postgres_server: str) -> Iterator[tuple[str, Database]]:
    """URL of a PostgreSQL ledger that each test leaves empty, which is faster than a database for each."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE shared_ledger")
    url = postgres_server.replace("/postgres?", "/shared_ledger?")
    database = Database.open(url)
    yield url, database
    database.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A ledger on SQLite, then on PostgreSQL."""
    if request.param == "sqlite":
        opened = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
        yield opened
        opened.archive.close()
        return
    url, database = request.getfixturevalue("shared_postgres")
    opened = Ledger(url)
    yield opened
    opened.archive.close()
    tables = sql.SQL(", ").join(map(sql.Identifier, metadata.tables))
    with database.write() as connection:
        connection.exec_driver_sql(sql.SQL("TRUNCATE {} RESTART IDENTITY").format(tables).as_string())
