"""The eval of tags: its data gives words no way around them, and its figures tell help from harm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evals import tags
from evals.tags import Asked, Kept, Person
from remegraph import MemoryKit, Settings
from remegraph.engine.retrieval.companions import tag_of
from remegraph.testing import InMemoryVectorIndex
from remegraph.text.tokens import tokenize

LEAKS, RANG, CHAMPION = "The stove leaks.", "Mr Hale rang twice.", "Gerald is a champion."
ANN = Person(
    "Ann",
    "en",
    (Kept(LEAKS, ("camping", "tent")), Kept(RANG, ("tent",)), Kept(CHAMPION, ("flour",))),
    tuple(
        Asked(kind, text, frozenset({gold}))
        for kind, text, gold in (
            ("beside", "Camping again?", RANG),
            ("plain", "Does the stove leak?", LEAKS),
            ("within", "Tent: who rang?", RANG),
            ("aside", "Not camping: who is a champion?", CHAMPION),
            ("vague", "Gerald, not camping?", CHAMPION),
        )
    ),
)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    settings = Settings(home=tmp_path_factory.mktemp("tags"))
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as opened:
        yield opened


def test_the_same_seed_gives_the_same_people_and_no_text_holds_a_tag() -> None:
    """Else words would find what the eval says that tags found."""
    everybody = list(tags.people(7))
    assert everybody == list(tags.people(7)) != list(tags.people(8))
    for person in everybody:
        labels = {tag_of(tag) for kept in person.kept for tag in kept.tags}
        texts = [kept.text for kept in person.kept] + [each.text for each in person.questions if each.kind == "plain"]
        assert not [text for text in texts if any(label.issubset(tokenize(text)) for label in labels)]
        assert {question.kind for question in person.questions} == set(tags.KINDS)
        assert {text for question in person.questions for text in question.gold} <= {kept.text for kept in person.kept}


def test_the_table_and_the_figures_tell_what_tags_gain(kit: MemoryKit) -> None:
    """A table that cannot tell with from without would keep what earns nothing."""
    outcomes = tags.measure(kit, [ANN])
    (beside,) = (line for line in tags.table(outcomes) if line.startswith("| beside | 1 |"))
    assert beside.endswith("| 0.333 | 0.500 |"), "MRR: letters shared with camping no longer win"
    found = {figure.name: figure for figure in tags.figures(outcomes)}
    assert found["beside: R@5 gained"].verdict == "FAIL", "all three are among the first five anyway"
    assert {found[f"{kind}: R@5 gained"].verdict for kind in tags.KINDS[1:]} == {"PASS"}


def test_a_text_that_is_like_another_one_is_refused(kit: MemoryKit) -> None:
    """Two texts in one memory would have the tags of both."""
    twice = Person("Ben", "en", (Kept(LEAKS, ("camping",)), Kept(LEAKS, ("tent",))), ())
    with pytest.raises(ValueError, match="stove"):
        tags.keep(kit, twice)
