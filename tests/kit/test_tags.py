"""Tags that lead from what a question names to what stands beside it (F7)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from remegraph import MemoryKit, RecallFilter, Scope
from remegraph.models import Hit
from tests.talk import ANN, open_kit

pytestmark = pytest.mark.requirement("F7")

TEXTS = ("The stove leaks.", "Mr Hale rang twice.", "Gerald eats rye.", "Page four is missing.", "Slugs came in May.")
TAGS = ("camping", "tent", "露营", "note")
_users = count()


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    with open_kit(tmp_path_factory.mktemp("tags")) as opened:
        yield opened


def keep(kit: MemoryKit, scope: Scope, tags: list[set[str]]) -> None:
    for text, some in zip(TEXTS, tags, strict=False):
        kit.save("kept", text, scope=scope, tags=sorted(some))


def recalled(kit: MemoryKit, question: str, scope: Scope, only: RecallFilter | None = None) -> dict[str, Hit]:
    return {hit.text: hit for hit in kit.recall(question, scope=scope, mode="associative", only=only).memories}


async def test_a_question_that_names_one_tag_finds_what_carries_only_one_beside_it(kit: MemoryKit) -> None:
    """Who asks about camping wants what was noted of the tent; each hit says that tags brought it."""
    leaks, rang, rye = TEXTS[:3]
    keep(kit, ANN, [{"camping", "tent"}, {"tent"}, {"note"}])

    by_words = kit.recall("Camping again?", scope=ANN).memories
    assert rang not in {hit.text for hit in by_words if "text" in hit.contributions}

    found = recalled(kit, "Camping again?", ANN)
    assert list(found)[:2] == [leaks, rang]
    assert found[rang].score < found[leaks].score
    assert "tags" in found[rang].why
    assert "tags" not in {*found[leaks].contributions, *found[rye].contributions}
    assert list((await kit.arecall("Camping again?", scope=ANN, mode="associative")).memories) == list(found.values())

    others = recalled(kit, "Camping again?", ANN, only=RecallFilter(tags=("note",)))
    assert rang not in others, "what tags lead to is filtered as anything else"


def test_a_forgotten_memory_ties_no_tags_and_is_not_led_to(kit: MemoryKit) -> None:
    """What somebody took back must not go on working in the dark."""
    scope = Scope(user="cleo", agent="remy")
    keep(kit, scope, [{"camping", "tent"}, {"tent"}, {"camping"}])
    question = "Camping again?"
    assert "tags" in recalled(kit, question, scope)[TEXTS[1]].contributions
    kit.forget(recalled(kit, question, scope)[TEXTS[0]].record_id, scope=scope)
    assert not [hit for hit in recalled(kit, question, scope).values() if "tags" in hit.contributions]


_KEPT = st.lists(st.sets(st.sampled_from(TAGS)), min_size=2, max_size=4)


@example(anns=[{"camping", "tent"}, {"tent"}], bens=[{"tent"}, {"camping", "tent"}], tag="camping")
@settings(max_examples=4)
@given(anns=_KEPT, bens=_KEPT, tag=st.sampled_from(TAGS))
@pytest.mark.slow
def test_what_another_user_tags_is_never_shown_and_ties_nothing(
    kit: MemoryKit, anns: list[set[str]], bens: list[set[str]], tag: str
) -> None:
    """How one person's matters hang together is theirs alone: not even an order may tell another of it."""
    number = next(_users)
    ann, ben = Scope(user=f"ann {number}", agent="remy"), Scope(user=f"ben {number}", agent="remy")
    keep(kit, ann, anns)
    alone = recalled(kit, f"{tag}?", ann)
    keep(kit, ben, bens)
    keep(kit, ben.evolve(tenant="acme"), bens)
    assert recalled(kit, f"{tag}?", ann) == alone
    assert {hit.partition for hit in alone.values()} <= {ann.partition()}
