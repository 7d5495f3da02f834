"""What comes whole from another ledger: memories with all their versions, and the words that they came from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from remegraph.errors import ConflictError, MessageChangedError
from remegraph.failpoints import FAILPOINTS, listen
from remegraph.models import Brought, BroughtBlock, ChangeSet, Memory, MemoryChange, Partition
from tests.ledger.conftest import ANN, BOB, Ledger, following

MOVED = Partition(tenant="t", user="ann", project="elsewhere")


def _learned(ledger: Ledger) -> Memory:
    """A memory in two versions."""
    memory = ledger.learn()
    ledger.wait(60)
    ledger.commit(following(memory, content="Ann likes green tea."))
    return ledger.head(memory)


def _carried(ledger: Ledger, memory: Memory, *, to: Partition, operation_id: str = "bring") -> ChangeSet:
    """The change set that takes a memory of Ann's to another place, under another id."""
    history = [_moved(each, to) for each in ledger.archive.versions([ANN], memory.memory_id)]
    blocks = ledger.archive.blocks([ANN], ids=memory.block_ids)
    said = [
        ledger.archive.messages([ANN], thread=each.thread, first_seq=each.first_seq, last_seq=each.last_seq)
        for each in blocks
    ]
    brought = Brought(
        partition=to,
        messages=tuple(message for each in said for message in each),
        blocks=tuple(
            BroughtBlock(block_id=block.block_id, thread=block.thread, message_ids=tuple(m.message_id for m in each))
            for block, each in zip(blocks, said, strict=True)
        ),
    )
    change = MemoryChange(memory=history[-1], expected_version=0, action="bring", history=tuple(history[:-1]))
    return ChangeSet(
        operation_id=operation_id,
        actor="pack",
        recorded_at=ledger.now,
        at_home=True,
        changes=(change,),
        brought=brought,
    )


def _moved(memory: Memory, to: Partition) -> Memory:
    return memory.evolve(partition=to, memory_id="moved", applies_to=to.applies_to)


@pytest.mark.requirement("K9")
def test_a_memory_comes_with_all_its_versions_and_their_times(ledger: Ledger) -> None:
    """What was once believed, and when it was recorded, is half of what is known of a memory."""
    memory = _learned(ledger)
    ledger.wait(3600)
    receipt = ledger.archive.commit(_carried(ledger, memory, to=MOVED))
    expected = [_moved(each, MOVED) for each in ledger.archive.versions([ANN], memory.memory_id)]
    assert list(ledger.archive.versions([MOVED], "moved")) == expected
    assert ledger.archive.memories([MOVED]) == (expected[-1],)
    assert (receipt.created, receipt.memory_ids) == (1, ("moved",))
    assert ledger.found(MOVED, "memory", "green") == {"moved"}
    events = ledger.archive.events([MOVED], record_id="moved")
    assert [(event.action, event.version) for event in events] == [("bring", 1), ("bring", 2)]


def test_the_words_come_to_the_letter_and_their_thread_goes_on_after_them(ledger: Ledger) -> None:
    """A block that the new home would cut again would be learned twice."""
    memory = _learned(ledger)
    ledger.archive.commit(_carried(ledger, memory, to=MOVED))
    (block,), (origin,) = ledger.archive.blocks([MOVED]), ledger.archive.blocks([ANN])
    assert block.block_id == origin.block_id
    assert (block.start_time, block.end_time) == (origin.start_time, origin.end_time)
    assert ledger.archive.tails(MOVED) == ()
    assert ledger.found(MOVED, "message", "tea") == set(ledger.found(ANN, "message", "tea"))
    ledger.block(MOVED, "Later.")
    assert [each.first_seq for each in ledger.archive.blocks([MOVED])] == [1, 2]


def test_bringing_the_same_again_changes_nothing(ledger: Ledger) -> None:
    """Whoever was interrupted simply does it again."""
    changes = _carried(ledger, _learned(ledger), to=MOVED)
    ledger.archive.commit(changes)
    before = ledger.archive.counts()
    assert ledger.archive.commit(changes).replayed
    assert ledger.archive.counts() == before


@pytest.mark.parametrize("place", [name for name in FAILPOINTS if name.startswith("commit.") and "after" not in name])
def test_what_is_interrupted_leaves_nothing(ledger: Ledger, place: str) -> None:
    """Words without their memories, or memories without their past, would be worse than neither."""
    changes = _carried(ledger, _learned(ledger), to=MOVED)
    before = ledger.archive.counts([ANN, MOVED])

    def stop(name: str) -> None:
        if name == place:
            raise KeyboardInterrupt

    listen(stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            ledger.archive.commit(changes)
    finally:
        listen(None)
    assert ledger.archive.counts([ANN, MOVED]) == before
    assert not ledger.archive.commit(changes).replayed


def _refused(ledger: Ledger, changes: ChangeSet, records: Sequence[str]) -> None:
    before = ledger.archive.counts()
    with pytest.raises(ConflictError) as caught:
        ledger.archive.commit(changes)
    assert caught.value.records == tuple(records)
    assert ledger.archive.counts() == before


def test_a_label_that_stands_for_other_words_here_is_named(ledger: Ledger) -> None:
    """Two blocks of one name would give each other's words as evidence."""
    changes = _carried(ledger, _learned(ledger), to=BOB)
    taken, _ = ledger.block(BOB, "Something else.")
    _refused(ledger, changes, [taken.block_id])


def test_a_thread_that_waits_for_its_blocks_is_left_alone(ledger: Ledger) -> None:
    """Its open end would count as cut, and never become memories."""
    changes = _carried(ledger, _learned(ledger), to=BOB)
    ledger.say(BOB, "Not in a block yet.")
    _refused(ledger, changes, ["main"])


def test_a_message_that_says_something_else_here_is_refused(ledger: Ledger) -> None:
    """The evidence of the one would be the words of the other."""
    changes = _carried(ledger, _learned(ledger), to=BOB)
    assert changes.brought is not None
    (message,) = changes.brought.messages
    ledger.archive.add_messages(BOB, [message.evolve(content="Other words.", thread="elsewhere")], ledger.now)
    before = ledger.archive.counts()
    with pytest.raises(MessageChangedError):
        ledger.archive.commit(changes)
    assert ledger.archive.counts() == before


def test_an_id_that_is_taken_is_named(ledger: Ledger) -> None:
    """Ids are unique in a ledger: one memory has one history."""
    memory = _learned(ledger)
    changes = _carried(ledger, memory, to=BOB)
    ledger.archive.commit(changes)
    _refused(ledger, _carried(ledger, memory, to=BOB, operation_id="another"), ["moved"])


def test_a_history_is_whole_or_refused(ledger: Ledger) -> None:
    """A gap between versions could hide what was once believed."""
    memory = ledger.memory()
    with pytest.raises(ValidationError, match="all its versions"):
        MemoryChange(memory=memory.evolve(version=3), expected_version=0, action="bring", history=(memory,))
    other = memory.evolve(memory_id="other", version=2)
    with pytest.raises(ValidationError, match="one memory"):
        MemoryChange(memory=other, expected_version=0, action="bring", history=(memory,))
    with pytest.raises(ValidationError, match="in a block"):
        Brought(
            partition=ANN, messages=(), blocks=(BroughtBlock(block_id="20240301_01", thread="t", message_ids=("x",)),)
        )
