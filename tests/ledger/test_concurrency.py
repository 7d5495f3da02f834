"""Many writers at once: nothing lost, nothing doubled, no gaps."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from conftest import Figure
from remegraph.errors import ConflictError, MessageChangedError
from remegraph.ledger import partitions as partition_rows
from remegraph.ledger.archive import Archive
from remegraph.ledger.journal import KeyRing
from remegraph.ledger.schema import partitions
from remegraph.models import Message
from tests.ledger.conftest import ANN, BOB, KEY, NOON, Ledger, create, following

pytestmark = pytest.mark.requirement("X3")


USERS = [ANN.evolve(user=f"user {number}") for number in range(5)]


def say_fifty(url: str, name: str) -> int:
    """Record 50 messages one by one for two users; in a process of its own."""
    archive = Archive.open(url, keys=KeyRing([KEY]), clock=lambda: datetime.now(UTC), new_id=lambda: name)
    for number in range(50):
        message = Message(message_id=f"{name}-{number}", role="user", content=f"hello {number}", time=NOON)
        archive.add_messages((ANN, BOB)[number % 2], [message], NOON)
    archive.close()
    return 50


@pytest.mark.slow
def test_four_processes_lose_nothing_and_leave_no_gaps(ledger: Ledger) -> None:
    """Workers of one service share a ledger: every acknowledged message is there, in one order."""
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert sum(pool.starmap(say_fifty, [(ledger.url, f"p{number}") for number in range(4)])) == 200
    for home in (ANN, BOB):
        messages = ledger.archive.messages([home])
        assert [message.seq for message in messages] == list(range(1, 101))
        for process in range(4):
            mine = [int(one.message_id.split("-")[1]) for one in messages if one.message_id.startswith(f"p{process}")]
            assert mine == sorted(mine)
    (matches,) = ledger.archive.match([ANN], "message", ["hello"])
    assert (len(matches.record_ids), matches.total) == (100, 100)


def deliver_twice(url: str, name: str) -> tuple[int, int, list[float]]:
    """Record 100 messages for five users, each twice; in a process of its own.

    Returns:
        How many were new and known, and how long each took, in milliseconds.
    """
    archive = Archive.open(url, keys=KeyRing([KEY]), clock=lambda: datetime.now(UTC), new_id=lambda: name)
    added, known, took = 0, 0, list[float]()
    for number in range(100):
        message = Message(message_id=f"{name}-{number}", role="user", content=f"hello {number}", time=NOON)
        for _ in range(2):
            began = time.monotonic()
            receipt = archive.add_messages(USERS[number % 5], [message], NOON)
            took.append(1000 * (time.monotonic() - began))
            added, known = added + receipt.added, known + receipt.known
    archive.close()
    return added, known, took


@pytest.mark.slow
def test_eight_processes_that_deliver_everything_twice_record_it_once(ledger: Ledger, figure: Figure) -> None:
    """Queues deliver at least once, and services run in many processes."""
    with multiprocessing.get_context("spawn").Pool(8) as pool:
        counts = pool.starmap(deliver_twice, [(ledger.url, f"p{number}") for number in range(8)])
    assert [(added, known) for added, known, _ in counts] == [(100, 100)] * 8
    seqs = [[message.seq for message in ledger.archive.messages([user])] for user in USERS]
    assert seqs == [list(range(1, 161))] * 5
    waits = sorted(each for _, _, took in counts for each in took)
    bar, engine = ("04", "SQLite") if ledger.url.startswith("sqlite") else ("05", "PostgreSQL")
    figure(
        f"bar {bar}: 8 processes on {engine}",
        f"800 rows of 1,600 calls, 0 gaps; 99 of 100 calls within {waits[-16]:.0f} ms, all within {waits[-1]:.0f} ms",
    )


def test_threads_that_write_and_read_do_not_disturb_each_other(ledger: Ledger) -> None:
    """LangGraph runs its branches in threads."""

    def work(number: int) -> bool:
        home = (ANN, BOB)[number % 2]
        ledger.say(home, f"message {number}")
        seqs = [message.seq for message in ledger.archive.messages([home])]
        return seqs == list(range(1, len(seqs) + 1))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40)))


def test_who_failed_to_record_the_first_words_sees_what_another_process_recorded(ledger: Ledger) -> None:
    """A worker that took a place for its own that was rolled back would never summarise what is said there."""
    first = Message(message_id="first", role="user", content="hello", time=NOON)
    with pytest.raises(MessageChangedError):
        ledger.archive.add_messages(ANN, [first, first.evolve(content="hi")], NOON)
    with closing(ledger.another()) as other:
        other.add_messages(ANN, [first], NOON)
    assert [message.text for message in ledger.archive.messages([ANN])] == ["hello"]
    assert len(ledger.archive.tails(ANN)) == 1


def test_who_comes_back_after_another_process_erased_them_is_read_at_once(ledger: Ledger) -> None:
    """A service that had looked a person up before would else read an empty place, and never what they say now."""
    ledger.say(ANN, "forget me")
    assert len(ledger.archive.messages([ANN])) == 1
    with closing(ledger.another()) as other, other.database.write() as connection:
        connection.execute(update(partitions).values(partition_rows.anonymous(1)))
    ledger.say(ANN, "hello again")
    assert [message.text for message in ledger.archive.messages([ANN])] == ["hello again"]


def test_of_two_who_change_one_memory_one_is_told(ledger: Ledger) -> None:
    """Two Sub Agents refine the same memory: the second must read again, not overwrite."""
    head = ledger.learn()
    changes = [ledger.set_of(following(head, importance=number / 10)) for number in range(8)]

    def commit(number: int) -> bool:
        try:
            ledger.archive.commit(changes[number])
        except ConflictError as conflict:
            return conflict.records != (head.memory_id,)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(commit, range(8))) == 1
    assert [version.version for version in ledger.archive.versions([ANN], head.memory_id)] == [1, 2]


def test_one_operation_committed_by_many_at_once_is_done_once(ledger: Ledger) -> None:
    """A job that was delivered twice runs twice and changes once."""
    changes = ledger.set_of(create(ledger.memory()))
    with ThreadPoolExecutor(6) as pool:
        receipts = list(pool.map(ledger.archive.commit, [changes] * 6))
    assert sorted(receipt.replayed for receipt in receipts) == [False, True, True, True, True, True]
    assert len({receipt.memory_ids for receipt in receipts}) == 1
