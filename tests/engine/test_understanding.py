"""Understanding: between what was said and what is stored stand the entities and relations of it (MEK, 2.1.3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from remegraph import MemoryKit
from remegraph.models import Claim
from remegraph.testing import InMemoryVectorIndex
from tests.talk import ANN, said

pytestmark = pytest.mark.requirement("K3")


@pytest.mark.parametrize(
    ("words", "entities", "relations"),
    [
        (
            "I work at Siemens with Tom. My sister Lena lives in Porto.",
            {"Siemens", "Tom", "Lena", "Porto"},
            {("Ann", "works_at", "Siemens"), ("Ann's sister", "lives_in", "Porto")},
        ),
        ("我住在上海，在腾讯工作。", {"上海", "腾讯"}, {("Ann", "lives_in", "上海"), ("Ann", "works_at", "腾讯")}),
    ],
    ids=["en", "zh"],
)
def test_entities_and_relations_are_read_without_a_model(
    tmp_path: Path, words: str, entities: set[str], relations: set[tuple[str, str, str]]
) -> None:
    """What a block names is in its index entry; who is what to whom is in the memories, where code can compare it."""
    with MemoryKit.open(tmp_path, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        kit.add_messages([said(words)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        (entry,) = kit.blocks(scope=ANN)
        claims: list[Claim] = [claim for memory in kit.memories(scope=ANN) for claim in memory.claims]
    assert set(entry.entities) == entities
    assert {(claim.subject, claim.relation, claim.value) for claim in claims} == relations
