"""Rows that an older version wrote are read as they are meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, select

from remegraph.ledger.connections import LEDGER
from remegraph.ledger.schema import memories, versions
from remegraph.models import ChangeSet, Memory, MemoryChange
from tests.talk import ANN, NOON, open_kit


class OldMemory(Memory):
    """A memory as it was written when slots were read out of its words."""

    claims: tuple[dict[str, Any], ...] = ({"subject": "ann", "attribute": "lives_in", "value": "lisbon"},)


def test_a_memory_with_claims_is_read_without_them_changed_and_verified(tmp_path: Path) -> None:
    """An upgrade must not cost what was remembered, nor the journal's word for it; a guess of then decides nothing now."""
    with open_kit(tmp_path) as kit:
        first = kit.save("home", "Ann lives in Lisbon.", scope=ANN).memory
        assert first is not None
        old = OldMemory.model_validate(first.model_dump() | {"version": 2, "importance": 0.6})
        change = MemoryChange(memory=old, expected_version=1, action="refine")
        kit.context.parts().archive.commit(
            ChangeSet(operation_id="old", actor="remy", recorded_at=NOON, changes=(change,))
        )
    ledger = create_engine(f"sqlite:///{tmp_path / LEDGER}")
    with ledger.connect() as connection:
        for table in (memories, versions):
            *_, body = connection.execute(select(table.c.body).order_by(table.c.version)).scalars()
            assert '"claims"' in body
    ledger.dispose()
    with open_kit(tmp_path) as kit:
        kit.admin.rebuild()  # the index of these tests is gone with the process
        (memory,) = kit.memories(scope=ANN)
        assert type(memory) is Memory
        assert memory == first.evolve(version=2, importance=0.6)
        assert [hit.text for hit in kit.recall("Where does Ann live?", scope=ANN).memories] == [memory.content]
        assert kit.admin.verify().healthy

        porto = kit.save("home", "Ann lives in Porto.", scope=ANN, slot="ann:lives_in", value="Porto")
        assert (porto.outcome, porto.superseded, porto.contradicts) == ("new", (), ())
        again = kit.save("home", "ann lives in lisbon", scope=ANN)
        assert again.outcome == "merged"
        assert len(kit.trace(memory.memory_id, scope=ANN).versions) == 3
        assert kit.admin.verify().healthy
