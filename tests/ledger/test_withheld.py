"""Words that are withheld: the row stays to the letter, and no reader of it sees them."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select

from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.ledger.schema import messages
from remegraph.models import BlockSummary, Evidence, Withholding, Work
from remegraph.models.remnants import MARK
from tests.ledger.conftest import ANN, BOB, Ledger, create, following

SECRET = "The vault opens with 4711."


def _withhold(ledger: Ledger, message_id: str, *phrases: str, operation_id: str = "forget") -> None:
    asked = Withholding(partition=ANN, message_id=message_id, phrases=phrases)
    ledger.archive.commit(ledger.set_of(operation_id=operation_id).evolve(withheld=(asked,)))


def _summary(ledger: Ledger, block_id: str, said: str) -> BlockSummary:
    return BlockSummary(block_id=block_id, partition=ANN, start_time=ledger.now, end_time=ledger.now, summary=said)


@pytest.mark.requirement("X14", "R1")
def test_withheld_words_are_in_the_row_and_nowhere_else(ledger: Ledger) -> None:
    """Nothing is lost from the ledger, and nothing of it is found, read or cut into a block."""
    (message,) = ledger.say(ANN, f"I like tea. {SECRET} I have a cat.")
    _withhold(ledger, message.message_id, SECRET)
    (row,) = ledger.archive.messages([ANN])
    assert row.text == f"I like tea. {MARK} I have a cat."
    assert [(note.reason, note.whole, note.cause) for note in row.withheld] == [("forgotten", False, "forget")]
    assert SECRET not in row.to_json()
    assert ledger.archive.messages([ANN], key_word="4711") == ()
    assert (ledger.found(ANN, "message", "4711"), ledger.found(ANN, "message", "cat")) == (set(), {message.message_id})
    (tail,) = ledger.archive.tails(ANN)
    assert tail.messages[0].text == row.text
    with ledger.archive.database.read() as connection:
        assert SECRET in json.loads(connection.execute(select(messages.c.body)).scalar_one())["content"]


def test_a_message_that_is_withheld_whole_keeps_its_place_and_loses_every_word(ledger: Ledger) -> None:
    """A conversation keeps its shape: calls have their results, and blocks their ends."""
    (message,) = ledger.say(ANN, SECRET)
    _withhold(ledger, message.message_id)
    (row,) = ledger.archive.messages([ANN])
    assert (row.text, row.hidden, row.dropped, row.seq) == (MARK, True, False, 1)
    assert ledger.found(ANN, "message", "vault", "4711") == set()
    assert ledger.archive.add_messages(ANN, [message], ledger.now).known == 1


def test_words_are_shown_again_once_nobody_withholds_them(ledger: Ledger) -> None:
    """Two operations may withhold the same words: taking one back is not enough."""
    (message,) = ledger.say(ANN, SECRET)
    for cause in ("one", "two"):
        _withhold(ledger, message.message_id, SECRET, operation_id=cause)
    for cause, shown in (("one", MARK), ("two", SECRET)):
        again = Withholding(partition=ANN, message_id=message.message_id, cause=cause)
        ledger.archive.commit(ledger.set_of().evolve(shown=(again,)))
        assert ledger.archive.messages([ANN])[0].text == shown
    assert ledger.found(ANN, "message", "4711") == {message.message_id}


def test_an_index_entry_that_was_made_again_is_put_back_with_its_words(ledger: Ledger) -> None:
    """What a model once wrote is not lost by a change of mind."""
    block, (message,) = ledger.block(ANN, SECRET)
    first = _summary(ledger, block.block_id, "Ann told how the vault opens: 4711.")
    ledger.archive.commit(ledger.set_of().evolve(summaries=(first,)))
    hidden = Withholding(partition=ANN, message_id=message.message_id)
    made = _summary(ledger, block.block_id, MARK)
    ledger.archive.commit(ledger.set_of(operation_id="forget").evolve(withheld=(hidden,), summaries=(made,)))
    assert ledger.archive.summaries([ANN])[0].summary == MARK
    assert ledger.found(ANN, "block", "4711", "withheld") == set()
    ledger.archive.commit(ledger.set_of().evolve(shown=(hidden.evolve(cause="forget"),)))
    assert ledger.archive.summaries([ANN]) == (first,)
    assert ledger.found(ANN, "block", "4711") == {block.block_id}


def test_what_was_made_of_words_that_are_withheld_by_now_is_refused(ledger: Ledger) -> None:
    """A model that was thinking while somebody forgot brings nothing back."""
    block, (message,) = ledger.block(ANN, SECRET)
    late = _summary(ledger, block.block_id, "The vault opens with 4711.")
    done = Work(partition=ANN, block_id=block.block_id, recipe="1", state="done")
    learned = ledger.set_of().evolve(summaries=(late,), work=(done,), seen={block.block_id: 0})
    _withhold(ledger, message.message_id)
    with pytest.raises(ConflictError, match="withheld meanwhile"):
        ledger.archive.commit(learned)
    assert ledger.archive.summaries([ANN]) == ()
    ledger.archive.commit(learned.evolve(summaries=(late.evolve(summary="Nothing."),), seen={block.block_id: 1}))


def test_no_memory_cites_words_that_are_withheld(ledger: Ledger) -> None:
    """Neither a late one, nor one that makes them up."""
    memory = ledger.memory("Ann opens the vault.", said=SECRET)
    (cited,) = memory.evidence
    _withhold(ledger, cited.message_id, SECRET)
    with pytest.raises(ConflictError, match="withheld meanwhile"):
        ledger.commit(create(memory))
    forged = Evidence(message_id=cited.message_id, quote="4712", block_id=cited.block_id)
    with pytest.raises(InputError, match="quote"):
        ledger.commit(create(memory.evolve(evidence=(forged,))))


@pytest.mark.requirement("X14")
def test_a_forgotten_memory_says_nothing_in_any_version_and_is_whole_beneath(ledger: Ledger) -> None:
    """All readers see that it was there; what restores it sees what it said."""
    memory = ledger.learn("Ann opens the vault with 4711.")
    ledger.commit(following(memory, content="Ann opens the vault with 4711 at noon."), operation_id="refine")
    ledger.commit(following(ledger.head(memory), status="deleted"), operation_id="forget")
    shown = (*ledger.archive.versions([ANN], memory.memory_id), ledger.head(memory))
    assert {version.content for version in shown} == {MARK}
    assert "4711" not in "".join(version.to_json() for version in shown)
    ((head, cause),) = ledger.archive.forgotten([ANN], memory.memory_id)
    assert (head.content, cause) == ("Ann opens the vault with 4711 at noon.", "forget")
    ((_, before),) = ledger.archive.operation([ANN], "forget")
    assert (before.status, before.version) == ("active", 2)
    assert ledger.archive.forgotten([BOB]) == ()
    assert ledger.archive.operation([BOB], "forget") == ()


def test_nobody_writes_over_a_memory_what_is_shown_of_it(ledger: Ledger) -> None:
    """A caller that read the mark must not make it the memory."""
    memory = ledger.learn("Ann opens the vault with 4711.")
    ledger.commit(following(memory, status="deleted"))
    with pytest.raises(InputError, match="withheld"):
        ledger.commit(following(ledger.head(memory), status="active"))


def test_what_is_not_there_is_not_withheld(ledger: Ledger) -> None:
    """Nor what is somebody else's."""
    (message,) = ledger.say(BOB, SECRET)
    with pytest.raises(NotFoundError, match=message.message_id):
        _withhold(ledger, message.message_id)
