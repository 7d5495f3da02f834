"""The middle layer: what no block holds yet, and blocks with their labels."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from remegraph.errors import ConflictError, InputError
from remegraph.models import BlockSummary, Message, Work
from tests.ledger.conftest import ANN, BOB, NOON, Ledger, whole

pytestmark = pytest.mark.requirement("R2")


def test_tails_hold_what_is_new_and_nothing_else(ledger: Ledger) -> None:
    """A second run slices only what is new; threads are cut apart from each other."""
    ledger.say(ANN, "a1", "a2", "a3", thread="a")
    ledger.say(ANN, "b1", thread="b")
    assert [(tail.thread, tail.after_seq, len(tail.messages)) for tail in ledger.archive.tails(ANN)] == [
        ("a", 0, 3),
        ("b", 0, 1),
    ]
    ledger.archive.add_blocks(ANN, [whole(0, 2, "a"), whole(0, 4, "b").evolve(first_seq=4)], "1")
    ledger.say(ANN, "a4", thread="a")
    (tail,) = ledger.archive.tails(ANN, overlap=5)
    assert (tail.thread, tail.after_seq) == ("a", 2)
    assert [message.text for message in tail.messages] == ["a3", "a4"]
    assert [message.text for message in tail.overlap] == ["a1", "a2"]
    assert ledger.archive.tails(ANN)[0].overlap == ()


def test_several_cuts_of_one_tail_become_several_blocks(ledger: Ledger) -> None:
    """Whether each cut names the end of the tail or of the cut before, all are kept, overlap included."""
    ledger.say(ANN, *"abcdef")
    cuts = [whole(0, 2), whole(0, 4).evolve(first_seq=2), whole(4, 6)]
    blocks = ledger.archive.add_blocks(ANN, cuts, "1")
    assert [(block.first_seq, block.last_seq) for block in blocks] == [(1, 2), (2, 4), (5, 6)]
    assert ledger.archive.tails(ANN) == ()
    assert {one.block_id for one in ledger.archive.work([ANN], states=["pending"], recipe="1")} == {
        block.block_id for block in blocks
    }
    assert [event.action for event in ledger.archive.events([ANN])] == ["add_block"] * 3


def test_a_cut_that_came_too_late_is_left_out(ledger: Ledger) -> None:
    """Two workers slice the same tail: its messages end up in one block, not in two."""
    ledger.say(ANN, "a", "b")
    assert len(ledger.archive.add_blocks(ANN, [whole(0, 2)], "1")) == 1
    ledger.say(ANN, "c")
    assert ledger.archive.add_blocks(ANN, [whole(0, 2), whole(0, 3)], "1") == ()
    assert ledger.archive.add_blocks(BOB, [whole(0, 2)], "1") == ()
    assert len(ledger.archive.blocks([ANN])) == 1


@pytest.mark.parametrize("cut", [whole(0, 9), whole(0, 3).evolve(first_seq=2), whole(0, 3, "other")])
def test_a_cut_that_leaves_messages_out_is_refused(ledger: Ledger, cut: object) -> None:
    """No message may fall between two blocks, and no block hold what was not said."""
    ledger.say(ANN, "a", "b", "c")
    with pytest.raises(InputError):
        ledger.archive.add_blocks(ANN, [cut], "1")  # type: ignore[list-item]
    assert ledger.archive.blocks([ANN]) == ()


def test_labels_count_the_day_where_it_was_said(ledger: Ledger) -> None:
    """Ann in Tokyo finds her morning under her own date; numbers may grow past two digits."""
    tokyo = datetime(2024, 3, 2, 1, tzinfo=timezone(timedelta(hours=9)))
    for number in range(101):
        ledger.archive.add_messages(ANN, [Message(message_id=f"n{number}", role="user", content="x", time=tokyo)], NOON)
        ledger.archive.add_blocks(ANN, [whole(number, number + 1)], "1")
    blocks = ledger.archive.blocks([ANN])
    assert [blocks[0].block_id, blocks[100].block_id] == ["20240302_01", "20240302_101"]
    assert blocks[0].start_time.utcoffset() == timedelta(hours=9)
    assert ledger.block(BOB, "hello")[0].block_id == "20240301_01"


def test_a_block_spans_its_messages_in_any_order_of_time(ledger: Ledger) -> None:
    """Imported histories come out of order: start and end are those of the earliest and latest word."""
    times = [NOON, NOON - timedelta(hours=2), NOON + timedelta(hours=1)]
    messages = [Message(message_id=str(time), role="user", content="x", time=time) for time in times]
    ledger.archive.add_messages(ANN, messages, NOON)
    (block,) = ledger.archive.add_blocks(ANN, [whole(0, 3)], "1")
    assert (block.start_time, block.end_time) == (times[1], times[2])
    assert ledger.archive.blocks([ANN]) == (block,)


def test_blocks_are_found_by_id_thread_message_and_time(ledger: Ledger) -> None:
    """The ways back from a memory, a message or a date to its conversation."""
    first, (said, *_) = ledger.block(ANN, "a", "b")
    ledger.wait(3600)
    second, _ = ledger.block(ANN, "c")
    read = ledger.archive.blocks
    assert read([ANN]) == (first, second)
    assert read([ANN], ids=[second.block_id, second.block_id]) == (second,)
    assert read([ANN], message_ids=[said.message_id]) == (first,)
    assert read([ANN], thread="other") == ()
    assert read([ANN], time_start=NOON + timedelta(minutes=30)) == (second,)
    assert read([ANN], time_end=NOON) == (first,)
    assert read([ANN], message_ids=[]) == ()


@pytest.mark.requirement("R3")
def test_index_entries_are_found_by_their_words(ledger: Ledger) -> None:
    """Each block has one entry; a new recipe replaces it, and the old words are found no more."""
    block, _ = ledger.block(ANN, "hello")
    entry = BlockSummary(
        block_id=block.block_id,
        partition=ANN,
        start_time=block.start_time,
        end_time=block.end_time,
        summary="A greeting.",
        entities=("Berlin",),
    )
    archive = ledger.archive
    archive.commit(ledger.set_of().evolve(summaries=(entry,)))
    assert archive.summaries([ANN]) == archive.summaries([ANN], ids=[block.block_id]) == (entry,)
    assert ledger.found(ANN, "block", "berlin") == {block.block_id}
    archive.commit(ledger.set_of().evolve(summaries=(entry.evolve(summary="A farewell.", entities=()),)))
    assert ledger.found(ANN, "block", "berlin", "greet") == set()
    assert archive.match([ANN], "block", ["farewel"])[0].total == 1
    assert archive.summaries([ANN], ids=["20000101_01"]) == ()


def test_blocks_are_found_by_who_read_them_the_newest_first(ledger: Ledger) -> None:
    """Only talk, only what did not fail, and never by words that merely look like the name of who read it."""
    archive = ledger.archive
    ledger.say(ANN, "a", "b", "c", "d")
    ledger.say(ANN, "e", thread="stated:e")
    cuts = [whole(at, at + 1) for at in range(4)]
    blocks = archive.add_blocks(ANN, [*cuts, whole(0, 5, "stated:e").evolve(first_seq=5)], "1")
    entries = [
        BlockSummary(
            block_id=block.block_id,
            partition=ANN,
            start_time=block.start_time + timedelta(minutes=number),
            end_time=block.end_time + timedelta(minutes=number),
            summary='It says "extractor": "extractive".',
            extractor="g_t" if number == 1 else "extractive",
        )
        for number, block in enumerate(blocks)
    ]
    failed = Work(partition=ANN, block_id=blocks[2].block_id, recipe="1", state="failed", reason="no")
    archive.commit(ledger.set_of().evolve(summaries=tuple(entries), work=(failed,)))

    labels = [block.block_id for block in blocks]
    assert archive.read_by([ANN], "extractive", "1") == (labels[3], labels[0])
    assert archive.read_by([ANN], "extractive", "2") == (labels[3], labels[2], labels[0])
    assert archive.read_by([ANN], "g_t", "1") == (labels[1],)
    assert archive.read_by([ANN], "gpt", "1") == archive.read_by([BOB], "extractive", "1") == ()
    assert archive.read_by([], "extractive", "1") == ()


def test_a_block_is_read_again_only_after_whom_it_is_thought_to_have_been_read_by(ledger: Ledger) -> None:
    """Two that read it again at the same time: the second finds that it is done."""
    block, _ = ledger.block(ANN, "hello")
    entry = BlockSummary(
        block_id=block.block_id,
        partition=ANN,
        start_time=block.start_time,
        end_time=block.end_time,
        summary="A greeting.",
    )
    done = Work(partition=ANN, block_id=block.block_id, recipe="1", state="done")
    first = ledger.set_of().evolve(summaries=(entry,), work=(done,))
    ledger.archive.commit(first)
    again = first.evolve(operation_id="again", summaries=(entry.evolve(extractor="gpt"),))
    with pytest.raises(ConflictError, match="done already"):
        ledger.archive.commit(again)

    again = again.evolve(again={block.block_id: "extractive"})
    ledger.archive.commit(again)
    with pytest.raises(ConflictError) as caught:
        ledger.archive.commit(again.evolve(operation_id="and again"))
    assert caught.value.records == (block.block_id,)
