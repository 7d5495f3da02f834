"""Understanding: between what was said and what is stored stand the entities and relations of it (MEK, 2.1.3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from remegraph import MemoryKit
from remegraph.testing import InMemoryVectorIndex
from tests.talk import ANN, create, digest, open_kit, proposal, said

pytestmark = pytest.mark.requirement("K3")

WORDS = "I work at Siemens with Tom. My sister Lena lives in Porto."


def test_entities_are_read_without_a_model_and_relations_are_not_guessed(tmp_path: Path) -> None:
    """What a block names is in its index entry; no grammar says who is what to whom."""
    with MemoryKit.open(tmp_path, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        kit.add_messages([said(WORDS)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        (entry,) = kit.sources.blocks(scope=ANN)
        (memory,) = kit.memories(scope=ANN)
    assert set(entry.entities) >= {"Siemens", "Tom", "Lena", "Porto"}
    assert (memory.canonical_topic, memory.slot_value) == ("", "")


def test_relations_are_the_slots_that_a_model_names(tmp_path: Path) -> None:
    """Whose attribute it is, in a form that code can compare."""
    made = create("Ann works at Siemens.", 1, "I work at Siemens", slot="works_at")
    answers = {"DigestAnswer": digest("personal:Ann"), "ProposalAnswer": proposal(made)}
    with open_kit(tmp_path, answers, reviser="rules") as kit:
        kit.add_messages([said(WORDS)], scope=ANN)
        kit.summarize(scope=ANN, close=True)
        (memory,) = kit.memories(scope=ANN)
    assert memory.canonical_topic == "ann:works_at"
