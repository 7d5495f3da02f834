"""Rows of tool calls: heard, read, or both; counted once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from remegraph.ledger.archive import Archive
from remegraph.ledger.database import Database
from remegraph.ledger.journal import KeyRing
from remegraph.models import ToolRecord, ToolStats
from tests.ledger.conftest import ANN, BOB, KEY, NOON, Ledger

pytestmark = pytest.mark.requirement("R12")


def record(ledger: Ledger, *calls: ToolRecord) -> ToolStats:
    """Commit these; return the statistics of their tool."""
    for call in calls:
        ledger.archive.commit(ledger.set_of().evolve(tools=(call,)))
    (stats,) = ledger.archive.tool_stats([ANN], ["search"], last=9)
    return stats


@pytest.fixture
def read(ledger: Ledger) -> ToolRecord:
    """A call as its messages tell it: all were recorded when the run was over."""
    block, (message,) = ledger.block(ANN, "look it up")
    return ToolRecord(
        partition=ANN,
        block_id=block.block_id,
        message_id=message.message_id,
        call_id="1",
        tool="search",
        digest="d",
        ok=True,
        seconds=0.0,
        time=NOON,
    )


@pytest.fixture
def heard(read: ToolRecord) -> ToolRecord:
    """The same call as it was heard."""
    return read.evolve(block_id="", message_id="", seconds=2.5, input_tokens=7, time=NOON - timedelta(seconds=3))


@pytest.mark.parametrize("first", ["heard", "read"])
def test_what_was_heard_and_what_was_read_is_one_row_in_any_order(
    ledger: Ledger, read: ToolRecord, heard: ToolRecord, first: str
) -> None:
    """The summariser may come before what was heard is written, or after; nothing may count twice, or get lost."""
    order = (heard, read) if first == "heard" else (read, heard)
    stats = record(ledger, *order, *order)
    assert (stats.calls, stats.succeeded) == (1, 1)
    (row,) = ledger.archive.tool_calls([ANN], last=9)
    assert row == heard.evolve(block_id=read.block_id, message_id=read.message_id)


def test_a_failure_that_one_of_them_saw_holds(ledger: Ledger, read: ToolRecord, heard: ToolRecord) -> None:
    """A framework that falls back calls the result a success; the tool failed."""
    stats = record(ledger, heard.evolve(ok=False, error="Timeout"), read)
    assert (stats.failed, stats.last_error) == (1, "Timeout")


def test_of_what_was_heard_twice_the_newer_counts(ledger: Ledger, heard: ToolRecord) -> None:
    """A retried call that comes off in the end came off."""
    stats = record(ledger, heard.evolve(ok=False, error="Timeout"), heard)
    assert (stats.calls, stats.succeeded, stats.failed, stats.last_error) == (1, 1, 0, "")


def test_other_arguments_and_other_messages_are_other_calls(
    ledger: Ledger, read: ToolRecord, heard: ToolRecord
) -> None:
    """Some models number their calls anew with each answer: the id alone tells nothing."""
    block, (message,) = ledger.block(ANN, "again")
    again = read.evolve(block_id=block.block_id, message_id=message.message_id)
    stats = record(ledger, heard, heard.evolve(digest="e"), read, again)
    assert (stats.calls, stats.distinct) == (3, 2)


def test_the_same_id_of_another_user_is_another_call(ledger: Ledger, heard: ToolRecord) -> None:
    """Providers promise nothing across users."""
    record(ledger, heard)
    ledger.archive.commit(ledger.set_of().evolve(tools=(heard.evolve(partition=BOB, ok=False),)))
    assert [each.failed for each in ledger.archive.tool_stats([ANN])] == [0]
    assert [each.failed for each in ledger.archive.tool_stats([BOB])] == [1]


def test_the_newest_calls_come_by_tool(ledger: Ledger, heard: ToolRecord) -> None:
    """Errors of last year must not speak against a tool that was mended."""
    calls = [
        heard.evolve(call_id=f"{tool}{n}", tool=tool, digest=str(n % 2), time=NOON + timedelta(n))
        for n in range(4)
        for tool in ("search", "mail")
    ]
    record(ledger, *calls)
    found = ledger.archive.tool_calls([ANN], last=2)
    assert [call.call_id for call in found] == ["mail3", "mail2", "search3", "search2"]
    assert [call.call_id for call in ledger.archive.tool_calls([ANN], ["mail"], last=9, digest="0")] == [
        "mail2",
        "mail0",
    ]


def test_calls_without_a_digest_stay_and_are_not_counted_again(tmp_path: Path) -> None:
    """Their block may be summarised anew under another recipe."""
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    old = ToolRecord(
        partition=ANN, block_id="b", message_id="m", call_id="1", tool="search", ok=True, seconds=1.0, time=NOON
    )
    database = Database.open(url)
    with database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO partitions (id, tenant, key) VALUES (1, 't', '[\"t\", \"ann\", null, null]')"
        )
        connection.exec_driver_sql(
            "INSERT INTO tool_calls (partition_id, message_id, call, digest, tool, ok, seconds, time, body)"
            " VALUES (1, 'm', '\"1\"', '', '\"search\"', 1, 1.0, 0, ?)",
            (old.to_json(),),
        )
        connection.exec_driver_sql("UPDATE partitions SET user = 'ann'")
    database.close()
    archive = Archive.open(url, keys=KeyRing([KEY]), clock=lambda: NOON, new_id=lambda: "id")
    (stats,) = archive.tool_stats([ANN])
    assert (stats.calls, stats.mean_seconds) == (1, 1.0)
    (row,) = archive.tool_calls([ANN], last=9)
    assert row == old
    archive.close()
