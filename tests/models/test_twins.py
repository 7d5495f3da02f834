"""Which memories are one memory, and what becomes of their words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from remegraph.models import Evidence, Memory, Partition, Topic
from remegraph.models.supersession import folded_together, twins
from tests.talk import NOON

pytestmark = pytest.mark.requirement("F5")


def memory(name: str, content: str = "Ann lives in Lisbon.", **fields: object) -> Memory:
    said = Memory(
        memory_id=name,
        partition=Partition(tenant="t", user="ann"),
        topic=Topic(type="personal", target_name="Ann"),
        content=content,
        canonical_topic="ann:lives_in",
        slot_value="Lisbon",
        evidence=(Evidence(message_id=name, quote=content, block_id=f"block {name}"),),
        block_ids=(f"block {name}",),
        said_at=NOON,
        recorded_at=NOON,
    )
    return said.evolve(**fields)


def test_what_states_the_same_or_says_the_same_is_one() -> None:
    """Two notes of one fact take two places among ten hits, and each fades as if it stood alone."""
    near = memory("b", "Ann lives in Lisbon, near the river.")
    word, again = (memory(name, f"Tea{end}", slot_value="") for name, end in (("c", ""), ("d", ".")))
    other = memory("e", "Ann has a cat.", slot_value="")
    assert [(kept.memory_id, [each.memory_id for each in others]) for kept, others in twins([memory("a"), near])] == [
        ("a", ["b"])
    ]
    assert [kept.memory_id for kept, _ in twins([word, again, other])] == ["c"]


@pytest.mark.parametrize(
    "fields",
    [
        {"topic": Topic(type="personal", target_name="Bob")},
        {"slot_value": "Porto"},
        {"slot_value": ""},
        {"canonical_topic": "ann:works_in"},
        {"status": "disputed"},
        {"usage": "knowledge"},
        {"layer": "procedural"},
        {"perspective": "first-person"},
        {"valid_to": NOON},
    ],
)
def test_what_differs_in_anything_that_counts_is_left_alone(fields: dict[str, object]) -> None:
    """Merging what is not the same loses a fact: in doubt both stay."""
    assert list(twins([memory("a"), memory("b", "Ann lives in Lisbon, near the river.", **fields)])) == []


def test_the_one_that_stays_holds_all_words_and_all_evidence() -> None:
    """Nothing that was said is lost, a core rule stays one, and nobody counts a copy as a witness."""
    later = NOON + timedelta(days=3)
    small = memory("a", merges=1, trust=0.5, tags=("home",))
    core = memory("b", "Ann lives in Lisbon, near the river.", importance=0.9, said_at=later, tags=("city",))
    ((kept, others),) = twins([small, core])
    one = folded_together(kept, others)
    assert (one.memory_id, one.version, one.importance, one.supersedes) == ("b", 2, 0.9, ("a",))
    assert one.content == "Ann lives in Lisbon, near the river.\nAnn lives in Lisbon."
    assert [item.message_id for item in one.evidence] == ["b", "a"]
    assert (one.block_ids, one.tags) == (("block b", "block a"), ("city", "home"))
    assert (one.merges, one.trust, one.said_at) == (0, 0.5, later)
    both = folded_together(
        memory("a", "Ann lives in Lisbon. She is from Kyiv."), [memory("b", "Ann likes it in Lisbon.")]
    )
    assert both.content == "Ann lives in Lisbon. She is from Kyiv.\nAnn likes it in Lisbon."
