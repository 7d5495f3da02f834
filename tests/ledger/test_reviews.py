"""When memories came back, as the ledger tells it, and why they were changed."""

from __future__ import annotations

import pytest

from remegraph.models import Access, MemoryChange, Review
from tests.ledger.conftest import ANN, BOB, Ledger


@pytest.mark.requirement("B4")
def test_the_ledger_tells_when_a_memory_was_learned_and_each_time_it_was_reviewed(ledger: Ledger) -> None:
    """What fades is computed from nothing else; what merely came along, and other people's ledgers, do not count."""
    began, memory = ledger.now, ledger.learn()
    never = ledger.learn("Ann has a cat.")
    ledger.wait(60)
    change = MemoryChange(memory=memory.evolve(merges=1), expected_version=1, action="corroborate", reason="said again")
    ledger.commit(change)
    first = ledger.now
    ledger.wait(60)
    mine, theirs = Review(partition=ANN, memory_id=memory.memory_id, at=ledger.now), ledger.learn(partition=BOB)
    ledger.archive.add_reviews([mine, mine.evolve(at=first, kind="used"), mine.evolve(kind="seen")])
    ids = [memory.memory_id, never.memory_id, theirs.memory_id]
    assert ledger.archive.accesses([ANN], ids) == {
        (ANN, memory.memory_id): (Access(began), Access(first, used=True), Access(ledger.now)),
        (ANN, never.memory_id): (Access(began),),
    }
    counted = ledger.archive.reviews([ANN], ids)[ANN, memory.memory_id]
    assert (counted.count, counted.used, counted.last) == (2, 1, ledger.now)
    assert ledger.archive.events([ANN], record_id=memory.memory_id)[-1].reason == "said again"
