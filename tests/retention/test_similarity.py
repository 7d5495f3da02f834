"""Groups of similar sentences: what belongs together, and what a chain of neighbours does not make."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from remegraph.retention.conclusions import Lexicon, clusters, recurring

TEA = ("Ann drinks sencha tea from Uji.", "Ann keeps sencha tea at the office.", "Bob gave Ann sencha tea from Uji.")
RIVER = ("Ann jogs along the river.", "Ann jogs by the river with Rex.", "Her knee hurts by the river when she jogs.")
WORDS = "sencha kettle river bridge violin pottery guitar camera mountain bicycle garden library".split()


def grouped(*texts: str, least: int = 3, apart: frozenset[int] = frozenset()) -> list[tuple[int, ...]]:
    lexicon = Lexicon(texts, ["Ann"])
    said = [lexicon.words(text) for text in texts]
    return clusters(said, lexicon, threshold=0.3, least=least, apart=lambda one, other: {one, other} <= apart)


def test_sentences_about_one_matter_are_one_group() -> None:
    """Tea with tea, the river with the river, and a cat with neither."""
    assert grouped(*TEA, *RIVER, "Ann has a grey cat.") == [(0, 1, 2), (3, 4, 5)]


def test_too_few_are_no_group() -> None:
    """Two mentions are no habit."""
    assert grouped(*TEA[:2], *RIVER) == [(2, 3, 4)]
    assert grouped(*TEA[:2], *RIVER, least=2) == [(2, 3, 4), (0, 1)]


def test_what_contradicts_is_not_tied() -> None:
    """However alike two sentences are: what says the contrary is no second witness."""
    assert grouped(*TEA, apart=frozenset({0, 1, 2})) == []


def test_who_is_tied_to_a_group_by_one_neighbour_only_is_not_in_it() -> None:
    """A shares a word with B, and B another one with C: that A and C have nothing in common must count."""
    group = [
        f"sencha river harbour tower {word}" for word in ("violin", "kettle", "bridge", "garden", "guitar", "camera")
    ]
    assert grouped(*group, "violin pottery") == [(0, 1, 2, 3, 4, 5)]


def test_meaning_ties_what_words_tie_too_loosely() -> None:
    """An embedder that knows meaning raises what is near, and lowers what only shares a word."""
    texts = ("Ann enjoys sencha in the morning light.", "Ann ordered sencha again for her sister.", "Sencha, says Ann!")
    lexicon = Lexicon(texts, ["Ann"])
    said = [lexicon.words(text) for text in texts]

    def found(near: float) -> list[tuple[int, ...]]:
        return clusters(said, lexicon, threshold=0.3, least=3, apart=lambda *_: False, near=lambda *_: near)

    assert found(1.0) == [(0, 1, 2)]
    assert found(-1.0) == []


@settings(max_examples=40)
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), max_size=16))
def test_groups_are_apart_whole_and_always_the_same(texts: list[str]) -> None:
    """A run that is repeated must come to the same memories: nothing hangs on chance."""
    found = grouped(*texts)
    flat = [number for group in found for number in group]
    assert len(flat) == len(set(flat))
    assert all(len(group) >= 3 for group in found)
    assert found == grouped(*texts)
    lexicon = Lexicon(texts, ["Ann"])
    for group in found:
        said = [lexicon.words(texts[number]) for number in group]
        assert all(words & set(recurring(said, lexicon)) for words in said)


def test_telling_words_are_stems_in_english_and_pairs_of_characters_in_chinese() -> None:
    """Jogs and jogging are one word; a number or a filler is none."""
    assert Lexicon(["Jogging 12"], []).words("she jogs") == Lexicon(["she jogs"], []).words("Jogging 12") != frozenset()
    assert "龙井" in Lexicon(["我在杭州买了龙井。"], []).words("我在杭州买了龙井。")
    assert "=violin" in Lexicon(["Ann is happy about the violin."], ["Ann"]).words("Ann is happy about the violin.")
