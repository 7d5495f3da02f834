"""BM25 over matches and over windows composed from them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.engine.retrieval.scores import CosineSpread, MessageSigns, TextMatch, bm25, columns, message_signs
from remegraph.models import Partition
from remegraph.ports import Layout, Meant, TextMatches


def _store(
    texts: Sequence[str], tokens: Sequence[str], threads: Sequence[int] | None = None
) -> tuple[TextMatches, Layout]:
    counts = [Counter(text.split()) for text in texts]
    lengths = [sum(each.values()) for each in counts]
    matches = tuple(
        TextMatch(f"m{row}", row + 1, lengths[row], {token: each[token] for token in tokens if token in each})
        for row, each in enumerate(counts)
        if any(token in each for token in tokens)
    )
    layout = Layout(
        seqs=np.arange(1, len(texts) + 1, dtype=np.int32),
        threads=np.array(threads if threads is not None else [0] * len(texts)),
        lengths=np.array(lengths),
        asks=np.array([text.endswith("?") for text in texts]),
        users=np.array([row % 2 == 0 for row in range(len(texts))]),
    )
    return columns(Partition(tenant="t"), matches, len(texts), sum(lengths)), layout


def test_bm25_is_the_published_formula() -> None:
    """Scores can be checked by hand against the paper."""
    matches, _ = _store(["red red car", "blue car", "a green tree house"], ["red", "car"])
    n, mean = 3, 9 / 3

    def part(tf: int, df: int, length: int) -> float:
        return math.log(1 + (n - df + 0.5) / (df + 0.5)) * tf / (tf + 0.9 * (0.6 + 0.4 * length / mean))

    bound = math.log(1 + 2.5 / 1.5) + math.log(1 + 1.5 / 2.5)
    scores = bm25(matches, ["red", "car", "car"])
    assert scores == pytest.approx({"m0": (part(2, 1, 3) + part(1, 2, 3)) / bound, "m1": part(1, 2, 2) / bound})


def _signs(texts: Sequence[str], tokens: Sequence[str], threads: Sequence[int] | None = None) -> MessageSigns:
    return message_signs(*_store(texts, tokens, threads), tokens)


def _of(signs: MessageSigns, name: str) -> dict[str, float]:
    values = zip(signs.seqs, signs.columns.get(name, []), strict=True) if name in signs.columns else ()
    return {f"m{seq - 1}": float(value) for seq, value in values if value > 0}


def test_windows_end_where_the_thread_ends() -> None:
    """Another conversation that runs at the same time lends no words."""
    signs = _signs(["kayak", "x", "y", "z"], ["kayak"], threads=[0, 1, 0, 1])
    assert list(_of(signs, "window of 3")) == ["m0", "m2"]
    assert list(_of(signs, "thread")) == ["m0", "m2"]


def test_coverage_counts_rare_words_more() -> None:
    """A name says more of what is meant than a word that everybody uses."""
    covered = _of(_signs(["the kayak", "the lake", "the hill"], ["the", "kayak"]), "coverage")
    assert covered["m0"] == pytest.approx(1)
    assert covered["m1"] < 0.5


def test_what_follows_a_question_counts_as_its_answer() -> None:
    """How often she runs is answered by "Every other day", without one word of the question."""
    texts = ["do you run often?", "every other day", "nice"]
    assert list(_of(_signs(texts, ["run", "often"]), "answers")) == ["m1"]
    assert _of(_signs(["you run often", "every other day"], ["run"]), "answers") == {}
    assert _of(_signs(texts, ["run"], threads=[0, 1, 1]), "answers") == {}


def test_who_goes_on_speaking_does_not_answer_their_own_question() -> None:
    """One person may say "Guess what?" in one message, and what in the next."""
    matches, layout = _store(["do you run ?", "me too"], ["run"])
    alone = replace(layout, users=np.array([True, True]))
    assert _of(message_signs(matches, layout, ["run"]), "answers") == {"m1": 1.0}
    assert _of(message_signs(matches, alone, ["run"]), "answers") == {}


def test_words_count_as_much_as_they_are_told_to() -> None:
    """What only leads up to a question finds less than the question."""
    texts = ["kayak", "lake", "kayak lake"]
    matches, layout = _store(texts, ["kayak", "lake"])
    asked = {"kayak": 1.0, "lake": 0.5}
    for shares in (bm25(matches, asked), _of(message_signs(matches, layout, asked), "coverage")):
        assert shares["m2"] > shares["m0"] > shares["m1"] > 0


def test_nothing_found_is_an_empty_list() -> None:
    """A question about nothing known is answered with nothing."""
    matches, layout = _store(["a", "b"], ["kayak"])
    assert message_signs(matches, layout, ["kayak"]).seqs.size == 0
    assert bm25(matches, ["kayak"]) == {}


def test_a_message_newer_than_the_layout_does_no_harm() -> None:
    """Recall goes on while others write."""
    matches, _ = _store(["kayak", "kayak"], ["kayak"])
    _, layout = _store(["kayak"], ["kayak"])
    assert message_signs(matches, layout, ["kayak"]).seqs.tolist() == [1]


_TEXTS = st.lists(
    st.tuples(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6), st.integers(0, 2)), min_size=1, max_size=30
)


@given(_TEXTS)
def test_windows_rank_as_if_each_had_been_stored(drawn: list[tuple[list[str], int]]) -> None:
    """Composing windows at query time is a saving, not an approximation."""
    texts, threads = [" ".join(words) for words, _ in drawn], [thread for _, thread in drawn]
    tokens = ["a", "b"]
    signs = _signs(texts, tokens, threads)
    for width in (3, 5):
        windows = []
        for row, thread in enumerate(threads):
            own = [other for other in range(len(texts)) if threads[other] == thread]
            at = own.index(row)
            windows.append(own[max(0, at - width // 2) : at + width // 2 + 1])
        stored, _ = _store([" ".join(texts[row] for row in window) for window in windows], tokens)
        scores = bm25(stored, tokens)
        best = {
            f"m{row}": max(scores.get(f"m{at}", 0.0) for at, window in enumerate(windows) if row in window)
            for row in range(len(texts))
        }
        assert _of(signs, f"window of {width}") == pytest.approx({key: score for key, score in best.items() if score})


@given(_TEXTS)
def test_threads_rank_as_if_each_had_been_stored(drawn: list[tuple[list[str], int]]) -> None:
    """A message counts more where the whole conversation is about what is asked."""
    texts, threads = [" ".join(words) for words, _ in drawn], [thread for _, thread in drawn]
    numbers = {thread: number for number, thread in enumerate(dict.fromkeys(threads))}
    whole = [" ".join(text for text, at in zip(texts, threads, strict=True) if at == thread) for thread in numbers]
    scores = bm25(_store(whole, ["a", "b"])[0], ["a", "b"])
    signs = _signs(texts, ["a", "b"], [numbers[thread] for thread in threads])
    expected = {f"m{row}": scores.get(f"m{numbers[thread]}", 0.0) for row, thread in enumerate(threads)}
    found = _of(signs, "thread")
    assert found == pytest.approx({record_id: expected[record_id] for record_id in found})
    assert set(_of(signs, "coverage")) <= set(found)


def _meant(cosines: Sequence[float], seqs: Sequence[int] | None = None) -> Meant:
    at = range(1, len(cosines) + 1) if seqs is None else seqs
    return Meant(np.array(at, dtype=np.int32), np.array(cosines, dtype=np.float64))


def test_a_message_that_shares_no_word_is_found_by_what_it_means() -> None:
    """People ask in words that nobody said."""
    matches, layout = _store(["tea", "kayak", "milk"], ["boat"])
    signs = message_signs(matches, layout, ["boat"], _meant([0.1, 0.7, 0.1]))
    assert list(_of(signs, "meaning")) == ["m1"]
    assert _of(message_signs(None, layout, ["boat"], _meant([0.1, 0.7, 0.1])), "meaning").keys() == {"m1"}
    assert not any(_of(signs, name) for name in ("coverage", "density", "thread", "window of 3"))


def test_meaning_is_lent_to_the_thread_and_to_no_other() -> None:
    """What stands out lights up its conversation; the next conversation has no part in it."""
    _, layout = _store(["a"] * 5, [], threads=[0, 0, 1, 1, 1])
    signs = message_signs(None, layout, [], _meant([0.9, 0.2, 0.1, 0.1, 0.1]))
    thread = _of(signs, "thread meaning")
    assert thread.keys() == {"m0", "m1"}
    assert thread["m0"] == thread["m1"] > 0


def test_what_has_no_vector_yet_is_ranked_by_its_words_among_those_that_have_one() -> None:
    """A message that was recorded a moment ago is found at once, and lends no meaning."""
    matches, layout = _store(["kayak", "tea", "kayak"], ["kayak"])
    signs = message_signs(matches, layout, ["kayak"], _meant([0.2, 0.8], [1, 2]))
    assert _of(signs, "coverage").keys() == {"m0", "m2"}
    assert "m2" not in _of(signs, "meaning")
    newer = message_signs(matches, layout, ["kayak"], _meant([0.2, 0.8, 0.3, 0.9], [1, 2, 3, 4]))
    assert newer.seqs.tolist() == [1, 2, 3]


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=40), st.floats(0.05, 1))
def test_how_much_meaning_tells_does_not_depend_on_the_scale_of_an_embedder(
    cosines: list[float], factor: float
) -> None:
    """Embedders spread their cosines as they like; what counts is how far the best stands out from the rest."""
    one, other = CosineSpread.of(np.array(cosines)), CosineSpread.of(np.array(cosines) * factor)
    assert (one.apart, one.peaked) == pytest.approx((other.apart, other.peaked))
    assert one.share(np.array(cosines)) == pytest.approx(other.share(np.array(cosines) * factor))
    assert 0 <= one.apart <= 1
    assert 0 <= one.peaked <= 1
    assert one.share(np.array(cosines)).max() == pytest.approx(1)


def test_meaning_tells_little_where_all_texts_look_alike() -> None:
    """An embedder that does not know a language finds all of it alike: its order of the messages is chance."""
    telling, blind = CosineSpread.of(np.array([0.6, *[0.1] * 9])), CosineSpread.of(np.array([0.62, *[0.6] * 9]))
    assert telling.apart > 2 * blind.apart
    assert telling.peaked > blind.peaked


def test_a_short_message_is_denser_than_a_long_one_with_the_same_words() -> None:
    """A question of four words is about its words; an answer of a thousand mentions many."""
    long = "kayak " + " ".join(f"w{number}" for number in range(99))
    signs = _signs(["kayak trip", long], ["kayak"])
    dense = _of(signs, "density")
    assert dense["m0"] == pytest.approx(dense["m1"] * math.sqrt(50))
    assert _signs(["kayak trip"] * 9, ["kayak"]).long < 0.1
    assert _signs([long] * 9, ["kayak"]).long == pytest.approx(0.5)
