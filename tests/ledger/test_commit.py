"""The one door for change: each rule of it, checked again inside the transaction."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.ledger.rows import digest
from remegraph.ledger.schema import dirty, memory_sources
from remegraph.models import (
    MOVES,
    ChangeSet,
    Evidence,
    Link,
    Memory,
    Message,
    Partition,
    Shelf,
    Status,
    ToolRecord,
    Topic,
    Work,
)
from remegraph.models.standing import TOMBSTONES
from tests.ledger.conftest import ANN, NOON, TOPIC, Ledger, create, following


def refused(ledger: Ledger, changes: ChangeSet, error: type[Exception], match: str | None = None) -> None:
    """Check that a change set is refused and leaves nothing behind."""
    before = ledger.archive.counts()
    heads = ledger.archive.memories(ledger.archive.partitions())
    with pytest.raises(error, match=match):
        ledger.archive.commit(changes)
    assert ledger.archive.counts() == before
    assert ledger.archive.memories(ledger.archive.partitions()) == heads


@pytest.mark.requirement("X1", "R4")
def test_a_committed_memory_is_whole(ledger: Ledger) -> None:
    """Head, version, sources, journal, dirty mark and full text are written together."""
    memory = ledger.memory().evolve(version=7, recorded_at=NOON - timedelta(days=1))
    ledger.wait(60)
    receipt = ledger.commit(create(memory))
    head = ledger.head(memory)
    assert head == memory.evolve(version=1, recorded_at=ledger.now, summary=memory.content)
    assert receipt.memory_ids == (memory.memory_id,)
    assert ledger.archive.versions([ANN], memory.memory_id) == (head,)
    assert ledger.archive.memories([ANN], block_ids=memory.block_ids) == (head,)
    assert ledger.found(ANN, "memory", "tea") == {memory.memory_id}
    (event,) = ledger.archive.events([ANN], record_id=memory.memory_id)
    assert (event.action, event.version, event.actor, event.time) == ("create", 1, "test", ledger.now)
    assert event.digest == ledger.archive.journal.digest(head.to_json()) != digest(head.to_json())
    assert event.operation_id == receipt.operation_id
    with ledger.archive.database.read() as connection:
        marks = connection.execute(select(dirty.c.kind, dirty.c.record_id)).all()
        sources = connection.execute(select(memory_sources.c.block_id, memory_sources.c.message_id)).all()
    assert [tuple(mark) for mark in marks] == [("memory", memory.memory_id)]
    assert [tuple(source) for source in sources] == [(memory.block_ids[0], memory.evidence[0].message_id)]


def test_nothing_is_overwritten(ledger: Ledger) -> None:
    """A new version follows the old one, which stays as it was; each change leaves another dirty mark."""
    first = ledger.learn()
    with ledger.archive.database.read() as connection:
        mark = connection.execute(select(dirty.c.mark)).scalar_one()
    ledger.commit(following(first, importance=0.7))
    second = ledger.head(first)
    assert ledger.archive.versions([ANN], first.memory_id) == (first, second)
    assert (second.version, second.importance) == (2, 0.7)
    assert [event.version for event in ledger.archive.events([ANN], record_id=first.memory_id)] == [1, 2]
    with ledger.archive.database.read() as connection:
        assert connection.execute(select(dirty.c.mark)).scalar_one() != mark


def test_the_journal_never_holds_content(ledger: Ledger) -> None:
    """What is erased later must not live on in the journal."""
    memory = ledger.memory("Ann likes xylophones.")
    other = ledger.memory("Ann has a xylophone.")
    link = Link(source_id=memory.memory_id, type="related", target_id=other.memory_id, reason="xylophone")
    changes = ledger.set_of(create(memory), create(other)).evolve(links=(link,))
    ledger.archive.commit(changes)
    assert "xylophone" not in json.dumps([event.to_json() for event in ledger.archive.events([ANN])])


@pytest.mark.requirement("X3")
def test_an_operation_committed_again_changes_nothing(ledger: Ledger) -> None:
    """A crash between commit and answer is repaired by asking again."""
    changes = ledger.set_of(create(ledger.memory()))
    first = ledger.archive.commit(changes)
    before = ledger.archive.counts()
    again = ledger.another()
    second = again.commit(changes)
    again.close()
    assert (first.replayed, second.replayed) == (False, True)
    assert second.memory_ids == first.memory_ids
    assert ledger.archive.counts() == before


@pytest.mark.requirement("X3")
def test_work_that_is_done_is_not_done_again(ledger: Ledger) -> None:
    """Two workers summarise one block under two operation ids: only one of them counts."""
    block, _ = ledger.block(ANN, "hello")
    work = Work(partition=ANN, block_id=block.block_id, topic=TOPIC.key, recipe="1", state="done")
    failed = work.evolve(topic="", state="failed", reason="no \x00 answer", attempts=2)
    ledger.archive.commit(ledger.set_of().evolve(work=(work, failed)))
    refused(ledger, ledger.set_of(create(ledger.memory())).evolve(work=(work,)), ConflictError, block.block_id)
    ledger.archive.commit(ledger.set_of().evolve(work=(work.evolve(recipe="2"), failed.evolve(state="done"))))
    assert ledger.archive.work([ANN], states=["failed"]) == ()
    done = ledger.archive.work([ANN], states=["done"])
    assert {(one.topic, one.recipe) for one in done} == {("", "1"), (TOPIC.key, "1"), (TOPIC.key, "2")}
    assert failed.evolve(state="done") in done


@pytest.mark.parametrize("expected", [0, 1, 3])
def test_a_change_that_follows_another_version_is_a_conflict(ledger: Ledger, expected: int) -> None:
    """Who has not seen the newest version may not replace it."""
    memory = ledger.learn()
    ledger.commit(following(memory, importance=0.6))
    change = following(memory, importance=0.1).evolve(expected_version=expected)
    with pytest.raises(ConflictError) as caught:
        ledger.commit(change)
    assert caught.value.records == (memory.memory_id,)
    assert ledger.head(memory).importance == 0.6


def test_a_change_of_what_does_not_exist_is_a_conflict(ledger: Ledger) -> None:
    """A model that invents an id changes nothing."""
    refused(ledger, ledger.set_of(following(ledger.memory())), ConflictError)


def test_one_bad_change_stops_the_whole_set(ledger: Ledger) -> None:
    """All of it, or nothing: half an answer is never committed."""
    good, bad = ledger.memory(), ledger.memory("Ann likes milk.")
    unproven = bad.evolve(evidence=(bad.evidence[0].evolve(quote="never said"),))
    refused(ledger, ledger.set_of(create(good), create(unproven)), InputError, "quote")


def test_a_set_that_changes_one_memory_twice_is_refused(ledger: Ledger) -> None:
    """The second would silently win."""
    memory = ledger.memory()
    refused(ledger, ledger.set_of(create(memory), create(memory.evolve(importance=0.1))), InputError, "twice")


_OF_AN_AGENT = ANN.evolve(agent="scout")
"""What is proposed where no agent owns it takes more than one change set: see the tests of consensus."""


@pytest.mark.parametrize("old", ["proposed", "active", "archived", "quarantined", "superseded", "deleted"])
def test_a_status_moves_as_the_machine_says(ledger: Ledger, old: Status) -> None:
    """One machine, one table: storage lets nothing else through."""
    news: tuple[Status, ...] = ("active", "low_priority", "archived", "deleted", "purged")
    for new in news:
        head = ledger.learn(f"Ann may become {new}.", partition=_OF_AN_AGENT, status=old)
        change = ledger.set_of(following(head, status=new))
        if old == "deleted" and new not in TOMBSTONES:
            refused(ledger, change, InputError, "withheld")  # restoring it is another action
        elif new == old or new in MOVES[old]:
            ledger.archive.commit(change)
            assert ledger.head(head).status == new
        else:
            refused(ledger, change, InputError, "cannot go")


def test_a_tombstone_stays_one(ledger: Ledger) -> None:
    """What was purged cannot come back, not even by a job that began before."""
    head = ledger.learn(status="deleted")
    ledger.commit(following(head, status="purged"))
    purged = ledger.head(head)
    for status in ("active", "purged", "erased"):
        refused(ledger, ledger.set_of(following(purged, status=status)), InputError, "for good")
    refused(ledger, ledger.set_of(create(ledger.memory("x").evolve(status="erased"))), InputError, "for good")


@pytest.mark.requirement("X1")
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"quote": "Ann likes coffee."}, InputError),
        ({"message_id": "unknown"}, NotFoundError),
        ({"block_id": "20000101_01"}, NotFoundError),
    ],
)
def test_evidence_must_hold(ledger: Ledger, change: dict[str, str], error: type[Exception]) -> None:
    """A model proposes; the words must stand in the message, and the message in the block."""
    memory = ledger.memory()
    evidence = memory.evidence[0].evolve(**change)
    refused(ledger, ledger.set_of(create(memory.evolve(evidence=(evidence,)))), error)


def test_a_message_outside_of_its_block_is_no_evidence(ledger: Ledger) -> None:
    """The trace from a memory leads through its block to the words: it must not end beside them."""
    other, _ = ledger.block(ANN, "Something else.")
    memory = ledger.memory()
    moved = memory.evidence[0].evolve(block_id=other.block_id)
    refused(ledger, ledger.set_of(create(memory.evolve(evidence=(moved,)))), NotFoundError, "holds message")


def test_blocks_must_exist(ledger: Ledger) -> None:
    """A memory that names a block is found by it, so the block must be there."""
    memory = ledger.memory()
    refused(ledger, ledger.set_of(create(memory.evolve(block_ids=("20000101_01",)))), NotFoundError, "20000101_01")


def test_sources_follow_the_head(ledger: Ledger) -> None:
    """Corroborated, a memory is found by both blocks; without the first, by the second only."""
    head = ledger.learn()
    block, (message,) = ledger.block(ANN, "Tea again, please.")
    more = Evidence(message_id=message.message_id, quote="Tea again", block_id=block.block_id)
    both = (*head.block_ids, block.block_id)
    ledger.commit(following(head, evidence=(*head.evidence, more), block_ids=both))
    for block_id in both:
        assert len(ledger.archive.memories([ANN], block_ids=[block_id])) == 1
    ledger.commit(following(ledger.head(head), evidence=(more,), block_ids=(block.block_id,)))
    assert ledger.archive.memories([ANN], block_ids=head.block_ids) == ()
    assert len(ledger.archive.memories([ANN], block_ids=[block.block_id])) == 1


@pytest.mark.requirement("R4")
def test_a_live_twin_is_a_conflict(ledger: Ledger) -> None:
    """The same words on the same shelf are one memory, however they are spaced and capitalised."""
    head = ledger.learn("Ann likes tea.")
    twin = ledger.memory("ann  likes TEA", said="ann likes TEA")
    with pytest.raises(ConflictError) as caught:
        ledger.commit(create(twin))
    assert caught.value.records == (head.memory_id,)
    first, second = ledger.memory("Two at once."), ledger.memory("two at once")
    refused(ledger, ledger.set_of(create(first), create(second)), ConflictError)


def test_no_twin_elsewhere_or_at_rest(ledger: Ledger) -> None:
    """The same words on another shelf, with another sense, or archived, are no twin; brought back they are."""
    head = ledger.learn("Ann likes C.", status="archived")
    for content, topic in (
        ("Ann likes C.", TOPIC),
        ("Ann likes C++.", TOPIC),
        ("Ann likes C.", Topic(type="task", target_name="Ann")),
    ):
        ledger.commit(create(ledger.memory(content).evolve(topic=topic)))
    refused(ledger, ledger.set_of(following(head, status="active")), ConflictError)


def test_a_replacement_may_say_the_same_in_the_same_set(ledger: Ledger) -> None:
    """The old one goes as the new one comes: seen after all writes, there is no twin."""
    old = ledger.learn()
    new = ledger.memory().evolve(supersedes=(old.memory_id,))
    ledger.commit(create(new), following(old, status="superseded"))
    assert [memory.memory_id for memory in ledger.archive.memories([ANN], statuses=["active"])] == [new.memory_id]


def test_shelves_are_made_once(ledger: Ledger) -> None:
    """Case and outer space do not make another shelf; a shelf may stand empty, in a partition of its own."""
    team = Partition(tenant="t")
    shelves = (
        Shelf(partition=ANN, topic=TOPIC.evolve(target_name=" ANN ", description="new")),
        Shelf(partition=team, topic=TOPIC),
    )
    memory = ledger.learn()
    ledger.archive.commit(ledger.set_of().evolve(shelves=shelves))
    assert ledger.archive.topics([team, ANN]) == (shelves[1], Shelf(partition=ANN, topic=TOPIC))
    assert ledger.archive.memories([ANN, team], topics=[TOPIC.evolve(target_name="ann")]) == (ledger.head(memory),)
    assert ledger.archive.memories([ANN], topics=[TOPIC.evolve(type="self")]) == ()


def test_links_are_made_once_and_need_both_ends(ledger: Ledger) -> None:
    """No edge leads nowhere."""
    one, two = ledger.learn("One."), ledger.memory("Two.")
    link = Link(source_id=one.memory_id, type="contradicts", target_id=two.memory_id, reason="why")
    refused(ledger, ledger.set_of().evolve(links=(link,)), NotFoundError)
    ledger.archive.commit(ledger.set_of(create(two)).evolve(links=(link,)))
    ledger.archive.commit(ledger.set_of().evolve(links=(link,)))
    for end in (one, two):
        assert ledger.archive.links([ANN], [end.memory_id]) == (link,)
    assert [event.action for event in ledger.archive.events([ANN])].count("link") == 1


def test_superseding_an_unknown_memory_is_refused(ledger: Ledger) -> None:
    """A version chain has no holes."""
    refused(ledger, ledger.set_of(create(ledger.memory().evolve(supersedes=("unknown",)))), NotFoundError)


@pytest.mark.requirement("R12")
def test_tool_calls_are_counted_in_sql(ledger: Ledger) -> None:
    """How reliable a tool is follows from its records; the same call recorded again counts once."""
    block, (message,) = ledger.block(ANN, "use it")
    record = ToolRecord(
        partition=ANN,
        block_id=block.block_id,
        message_id=message.message_id,
        call_id="1",
        tool="search \x00",
        ok=True,
        seconds=1.0,
        time=NOON,
    )
    failures = [
        record.evolve(call_id=str(n), ok=False, error=f"error {n}", seconds=3.0, time=NOON + timedelta(n))
        for n in (2, 3)
    ]
    unknown = record.evolve(call_id="4", ok=None, seconds=None, time=NOON - timedelta(1))
    other = record.evolve(call_id="5", tool="other", ok=None, seconds=None)
    for _ in range(2):
        ledger.archive.commit(ledger.set_of().evolve(tools=(record, *failures, unknown, other)))
    idle, search = ledger.archive.tool_stats([ANN])
    assert (search.tool, search.calls, search.succeeded, search.failed) == ("search \x00", 4, 1, 2)
    assert (search.success_rate, search.last_error) == (1 / 3, "error 3")
    assert search.mean_seconds == pytest.approx(7 / 3)
    assert search.last_called == NOON + timedelta(3)
    assert (idle.tool, idle.calls, idle.success_rate, idle.mean_seconds, idle.last_error) == (
        "other",
        1,
        None,
        None,
        "",
    )
    assert ledger.archive.tool_stats([ANN], ["other", "none"]) == (idle,)
    refused(ledger, ledger.set_of().evolve(tools=(record.evolve(message_id="unknown"),)), NotFoundError)


@pytest.mark.parametrize("field", ["work", "tools"])
def test_what_names_an_unknown_block_is_refused(ledger: Ledger, field: str) -> None:
    """No state of work and no tool record without the block that it was read from."""
    (message,) = ledger.say(ANN, "hello")
    work = Work(partition=ANN, block_id="20000101_01", recipe="1")
    tool = ToolRecord(
        partition=ANN, block_id="20000101_01", message_id=message.message_id, call_id="1", tool="x", ok=None, time=NOON
    )
    record = work if field == "work" else tool
    refused(ledger, ledger.set_of().evolve(**{field: (record,)}), NotFoundError)


def test_memories_are_found_by_every_condition(ledger: Ledger) -> None:
    """Newest said first; conditions narrow one another."""
    found: list[Memory] = []
    for number in range(4):
        memory = ledger.memory(f"Fact {number}.").evolve(canonical_topic=f"slot{number % 2}")
        ledger.commit(create(memory.evolve(status="archived" if number == 3 else "active")))
        found.append(ledger.head(memory))
        ledger.wait(60)
    read = ledger.archive.memories
    assert read([ANN]) == tuple(reversed(found))
    assert read([ANN], limit=2) == (found[3], found[2])
    assert read([ANN], canonical_topics=["slot1"], statuses=["active"]) == (found[1],)
    assert read([ANN], ids=[found[0].memory_id, found[2].memory_id] * 300, limit=1) == (found[2],)
    assert read([ANN], statuses=[]) == read([ANN], topics=[]) == ()


def test_an_empty_set_changes_nothing(ledger: Ledger) -> None:
    """Nothing to remember is an answer."""
    assert not ledger.archive.commit(ledger.set_of()).replayed
    assert set(ledger.archive.counts().values()) == {0}


def test_content_of_any_kind_comes_back(ledger: Ledger) -> None:
    """Quotes and payloads may hold NUL and lone surrogates; memories keep them."""
    odd = "odd \x00 \ud800 words"
    ledger.archive.add_messages(ANN, [Message(message_id="odd", role="user", content=odd, time=NOON)], NOON)
    memory = ledger.memory().evolve(payload={"odd": odd})
    ledger.commit(create(memory))
    assert ledger.head(memory).payload == {"odd": odd}


def test_a_memory_read_again_in_a_session_is_as_it_is_by_then(ledger: Ledger) -> None:
    """One snapshot reads it once, by whichever conditions; a change, of this call or of another, ends the snapshot."""
    first, archive = ledger.learn(), ledger.archive
    ids = [first.memory_id]

    def read(**conditions: Any) -> list[int]:
        return [each.version for each in archive.memories([ANN], ids=ids, **conditions)]

    with archive.session():
        assert read() == read(statuses=["active"]) == read(topics=[first.topic]) == read(layers=[first.layer]) == [1]
        assert read(statuses=["superseded"]) == read(canonical_topics=["cat:name"]) == []
        assert archive.memories([Partition(tenant=ANN.tenant, user="bob")], ids=ids) == (), (
            "another user has no part in what was read"
        )
        ledger.commit(following(first, importance=0.7))
        assert read() == [2]
        with ThreadPoolExecutor(1) as others:  # another call
            others.submit(ledger.commit, following(ledger.head(first), importance=0.8)).result()
        archive.away()
        assert read() == [3]
    assert read() == [3]
