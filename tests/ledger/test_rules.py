"""Rules as the ledger finds them, on both engines."""

from __future__ import annotations

from datetime import timedelta

import pytest

from remegraph.models import Memory, Partition
from tests.ledger.conftest import ANN, BOB, Ledger, create, following

PROJECT = ANN.evolve(project="atlas")


@pytest.mark.requirement("G1", "G8")
def test_the_weightiest_come_first_and_only_live_ones_of_these_partitions(ledger: Ledger) -> None:
    """What an agent is given at every turn must be what somebody wants it to have, and nothing else."""

    def learn(name: str, importance: float, partition: Partition = PROJECT, **fields: object) -> Memory:
        memory = ledger.memory(f"Say {name}.", partition=partition)
        said_at = ledger.now + timedelta(days=len(known))
        ledger.commit(create(memory.evolve(importance=importance, said_at=said_at, **fields)))
        known[memory.memory_id] = name
        return ledger.head(memory)

    def found(*applies_to: str, core: bool, limit: int | None = None) -> list[str]:
        rules = ledger.archive.rules([PROJECT, ANN], applies_to, core=core, limit=limit)
        return [known[rule.memory_id] for rule in rules]

    known: dict[str, str] = {}
    learn("core", 0.9)
    learn("newer core", 0.9)
    learn("core of all projects", 1.0, partition=ANN)
    learn("another's", 1.0, partition=BOB)
    gone = learn("gone", 0.95)
    ledger.commit(following(gone, version=2, status="superseded"))
    learn("note", 0.8)
    learn("policy", 0.1, memory_class="policy")
    learn("python", 0.5, partition=ANN, applies_to="lang:python")
    learn("everywhere", 0.5, partition=ANN)

    assert found(core=True) == ["core of all projects", "newer core", "core"]
    assert found("project:atlas", core=False) == ["policy", "note"]
    assert found("project:atlas", "lang:python", core=False) == ["policy", "note", "python"]
    assert found("project:atlas", "lang:python", core=False, limit=2) == ["policy", "note"]
    assert found("lang:go", core=False) == []
    assert ledger.archive.rules([], ["global"], core=False) == ()
    ledger.commit(
        following(next(rule for rule in ledger.archive.rules([PROJECT], core=True)), version=2, importance=0.2)
    )
    assert found(core=True) == ["core of all projects", "core"], "a rule whose weight is lowered is none"
