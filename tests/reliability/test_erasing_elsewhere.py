"""Erasure where somebody else has a hand in it: bytes that others hold, notes that wait, an index that another owns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from remegraph import MemoryKit, Message, Scope, Settings
from remegraph.errors import IndexOwnedError
from remegraph.files import IndexOwner
from remegraph.ledger.schema import injections, metadata, reviews, tool_calls
from remegraph.models import Reading, Review, Subject
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.pictures import image, png, sha
from tests.talk import ANN, NOON, SHARED_KEY, called, returned, said

pytestmark = pytest.mark.requirement("X7")

PERSON = Subject(user="ann")
BOB = Scope(user="bob", agent="remy")
ROWS, TEA = "I keep a rowing boat in Zanzibar.", "I love green tea from Uji."


@pytest.fixture
def clock() -> FrozenClock:
    """What all processes of a test read."""
    return FrozenClock(NOON)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Where the processes of a test meet: a folder, and a ledger in it or on a server."""
    url: str | None = None if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    return Settings(home=tmp_path, ledger_url=url, journal_key=SHARED_KEY)


@pytest.fixture
def kit(home: Settings, clock: FrozenClock) -> Iterator[MemoryKit]:
    """The process that erases."""
    with opened(home, clock, InMemoryVectorIndex()) as kit:
        kit.add_messages([said(ROWS, message_id="rows", thread="trip"), said(TEA, message_id="tea")], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        yield kit


@pytest.fixture
def other(kit: MemoryKit, clock: FrozenClock) -> Iterator[MemoryKit]:
    """Another process on the same home."""
    with opened(kit.settings, clock, InMemoryVectorIndex()) as other:
        other.recall("tea", scope=ANN)
        yield other


def opened(home: Settings, clock: FrozenClock, index: InMemoryVectorIndex | None) -> MemoryKit:
    return MemoryKit.open(settings=home, model=None, embedder=None, index=index, clock=clock)


def everything(kit: MemoryKit) -> str:
    """All text that the ledger holds, of all tables."""
    with kit.context.parts().archive.database.read() as connection:
        rows = (row for table in metadata.tables.values() for row in connection.execute(select(table)))
        return "\n".join(str(tuple(row)) for row in rows).lower()


def noted(kit: MemoryKit) -> dict[str, int]:
    """How many rows there are of what is noted first and written later."""
    counts = kit.context.parts().archive.counts()
    return {table.name: counts[table.name] for table in (tool_calls, injections, reviews) if counts[table.name]}


# ------------------------------------------------------------------------------------ notes that waited


def hear(kit: MemoryKit, call_id: str) -> None:
    """Note a tool call that failed; it is not written yet."""
    kit.tools.record("book", scope=ANN, args={}, call_id=call_id, ok=False, result="no boat in Zanzibar")


def test_what_another_process_had_noted_of_a_person_is_not_written_after_the_erasure(
    kit: MemoryKit, other: MemoryKit, clock: FrozenClock
) -> None:
    """A tool's error, a thread's name, a review: each is noted in memory and written later, by who knows of no erasure."""
    hear(other, "c9")
    other.governance.injected({"m": 1}, scope=ANN, thread="trip to zanzibar")
    other.context.reviews.add([Review(partition=ANN.partition(), memory_id="m", kind="hit", at=clock())])
    assert kit.admin.erase(PERSON).complete
    other.context.write_noted()
    assert noted(kit) == {}
    assert "zanzibar" not in everything(kit)
    assert "ann" not in {place.user for place in kit.context.parts().archive.partitions()}
    clock.move(timedelta(seconds=1))
    hear(other, "c9")  # of whoever comes back under the name
    other.context.write_noted()
    assert noted(kit) == {"tool_calls": 1}


def test_what_another_process_had_noted_of_a_thread_is_not_written_after_the_erasure(
    kit: MemoryKit, other: MemoryKit, clock: FrozenClock
) -> None:
    """Of a part, too; what was noted of the rest, or is noted later, is none of it."""
    kit.add_messages(
        [each.evolve(thread="trip") for each in (called("book", "c1"), returned("c1", "no boat", ok=False))], scope=ANN
    )
    kit.summarize(scope=ANN, close=True)
    hear(other, "c1")
    hear(other, "of another thread")
    other.governance.injected({"m": 1}, scope=ANN, thread="trip")
    other.governance.injected({"m": 1}, scope=ANN, thread="main")
    assert kit.admin.erase(ANN, thread="trip").complete
    other.context.write_noted()
    assert [call.call_id for call in kit.context.parts().archive.tool_calls([ANN.partition()], last=9)] == [
        "of another thread"
    ]
    assert [
        each.thread for each in kit.context.parts().trail.shown(ANN.partition(), thread=None, run_id=None, turn=None)
    ] == ["main"]
    clock.move(timedelta(seconds=1))
    hear(other, "c1")  # some models count their calls from one in each conversation
    other.context.write_noted()
    assert noted(kit)["tool_calls"] == 2


# ------------------------------------------------------------------------------------------- attachments


def shows(data: bytes, message_id: str) -> Message:
    """A message with a picture."""
    return said([{"type": "text", "text": "Look."}, image(data)], message_id=message_id)  # type: ignore[arg-type]


def blobs(home: Path) -> set[str]:
    return {path.name for path in (home / "blobs").rglob("*") if path.is_file()}


def test_the_bytes_of_an_attachment_go_where_nobody_else_holds_the_same(kit: MemoryKit, tmp_path: Path) -> None:
    """A photo is the person; the same meme, sent by two, stays the other's."""
    own, shared = png(1), png(2)
    kit.add_messages([shows(own, "photo"), shows(shared, "meme")], scope=ANN)
    kit.add_messages([shows(shared, "meme")], scope=BOB)
    assert len(blobs(tmp_path)) == 2
    receipt = kit.admin.erase(ANN, message_ids=["photo"])
    assert (receipt.complete, {place.place: place.removed for place in receipt.places}["attachments"]) == (True, 1)
    assert len(blobs(tmp_path)) == 1
    assert sha(own) not in everything(kit)
    assert kit.admin.erase(PERSON).complete
    assert kit.sources.attachment(sha(shared), scope=BOB) == shared
    assert kit.admin.erase(Subject(user="bob")).complete
    assert blobs(tmp_path) == set()


def test_who_looks_at_a_picture_that_is_erased_meanwhile_writes_nothing_of_it(kit: MemoryKit, other: MemoryKit) -> None:
    """A model takes seconds to look; what it saw must not be written beside nothing, nor stop the run."""
    kit.add_messages([shows(png(1), "photo")], scope=ANN)
    other.recall("Look.", scope=ANN, depth="messages")
    assert kit.admin.erase(PERSON).complete
    seen = Reading(sha256=sha(png(1)), text="a boat in Zanzibar", reader="model")
    other.context.parts().archive.attachments.describe(ANN.partition(), {"photo": [seen]})
    assert "zanzibar" not in everything(kit)


# ------------------------------------------------------------------------------------- the index of another


def test_who_does_not_own_the_index_erases_the_rows_and_the_owner_finishes(
    kit: MemoryKit, tmp_path: Path, clock: FrozenClock
) -> None:
    """Several processes share a home; whoever is asked must not claim that vectors are gone which it cannot reach."""
    kit.context.parts().projection.sync()
    lock = IndexOwner.acquire(tmp_path / "index")
    assert lock is not None
    with opened(kit.settings, clock, None) as guest:
        assert guest.admin.stats()["index"] == "sql"
        with pytest.raises(IndexOwnedError) as refused:
            guest.admin.erase(PERSON)
        assert refused.value.cure
        assert "zanzibar" not in everything(guest)
        assert guest.admin.stats()["erasures_unfinished"] == 1
    lock.close()
    (receipt,) = kit.admin.resume()
    assert (receipt.complete, receipt.left) == (True, 0)
    assert kit.admin.verify().differences == ()
