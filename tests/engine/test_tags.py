"""How tags are named and tied: pure, over the words of tags."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.engine.retrieval.companions import Tag, named, tag_of, ties
from remegraph.text.tokens import query_tokens

pytestmark = pytest.mark.requirement("F7")

CAMPING, TENT, NOTE, BANK = map(tag_of, ("camping", "tent", "note", "bank"))
KEPT = [{CAMPING, TENT, NOTE}, {CAMPING, NOTE}, {TENT}, {BANK, NOTE}, {BANK, NOTE}]


@pytest.mark.parametrize(
    ("label", "question", "is_named"),
    [
        ("Camping", "What did I pack for camping?", True),
        ("house purchase", "Which purchases for the house?", True),
        ("house purchase", "Whose house is it?", False),
        ("露营", "露营要带什么？", True),
        ("户外露营", "露营要带什么？", False),
        ("!!!", "What did I pack?", False),
        ("", "What did I pack?", False),
    ],
)
def test_a_question_names_a_tag_where_it_holds_all_of_its_words(label: str, question: str, is_named: bool) -> None:
    """Half a tag is another matter, and a tag of signs alone must not be in every question."""
    assert named([tag_of(label)], query_tokens(question)) == (frozenset({tag_of(label)}) if is_named else frozenset())


def test_tags_are_tied_by_how_often_they_stand_together_and_less_where_one_stands_everywhere() -> None:
    """Else every question would lead to what is tagged "note"."""
    tied = ties(KEPT, {CAMPING}, most=16)
    strengths = tied.strengths({TENT: 2, NOTE: 40}, {CAMPING: 0.8})
    assert strengths == {TENT: pytest.approx(0.8 / sqrt(2 * 2)), NOTE: pytest.approx(0.8 * 2 / sqrt(2 * 40))}
    assert strengths[TENT] > strengths[NOTE]
    assert BANK not in strengths
    assert ties(KEPT, {CAMPING}, most=1).beside.keys() == {NOTE}
    assert ties(KEPT, {tag_of("piano")}, most=16).beside == {}


_TAGS = st.sets(st.sampled_from([CAMPING, TENT, NOTE, BANK, Tag()]))


@given(carried=st.lists(_TAGS), sources=_TAGS, often=st.dictionaries(st.sampled_from([TENT, NOTE]), st.integers(0, 9)))
def test_what_spreads_is_never_more_than_the_named_tag_has(
    carried: list[set[Tag]], sources: set[Tag], often: dict[Tag, int]
) -> None:
    """What only stands beside the asked-for must not come before it."""
    strengths = ties(carried, sources - {Tag()}, most=3).strengths(often, dict.fromkeys(sources, 0.7))
    assert len(strengths) <= 3
    assert strengths.keys().isdisjoint({*sources, Tag()})
    assert all(0 < strength <= 0.7 + 1e-9 for strength in strengths.values())
