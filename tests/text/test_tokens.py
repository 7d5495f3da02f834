"""What is indexed, and what is asked for."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.text.tokens import asked_tokens, estimate_tokens, query_tokens, token_counts, tokenize

pytestmark = pytest.mark.requirement("R10")

any_text = st.text(st.characters(codec=None), max_size=200)


def test_english_words_meet_in_their_stem() -> None:
    """Who asks for "painting" finds "painted"."""
    assert tokenize("Painted paintings, painting!") == ["paint", "paint", "paint"]


def test_chinese_is_indexed_by_characters_and_pairs() -> None:
    """Chinese has no spaces; pairs find words, characters what pairs miss."""
    assert tokenize("我爱北京") == ["我", "爱", "北", "京", "我爱", "爱北", "北京"]


def test_japanese_korean_and_thai_are_found_too() -> None:
    """Scripts that nobody tuned still work."""
    assert "カメ" in tokenize("カメラ")
    assert "한국" in tokenize("한국어")
    assert {"ภา", "า"} <= set(tokenize("ภาษา"))


def test_words_with_vowel_signs_stay_whole() -> None:
    """A Hindi word is one word, not its consonants."""
    assert len(tokenize("हिन्दी भाषा")) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＡＢＣ１２", "abc12"),
        ("José", "jose"),
        ("cafe\u0301", "café"),
        ("Straße", "STRASSE"),
        ("Melanie's", "melanie"),
        ("Melanie\u2019s", "Melanie's"),
        ("1,200 dollars", "1200 dollars"),
        ("search_flights", "search flights"),
    ],
)
def test_spellings_of_one_word_meet(one: str, other: str) -> None:
    """Width, case, accents, possessives and thousands marks are not what anyone searches for."""
    assert tokenize(one) == tokenize(other)


@pytest.mark.parametrize(
    ("question", "tokens"),
    [
        (
            "An welchen Tagen ist Leonie jetzt im Rehazentrum anzutreffen?",
            ["tagen", "leoni", "rehazentrum", "anzutreffen"],
        ),
        ("¿En qué ciudad vive ahora Marta y con quién?", ["ciudad", "vive", "ahora", "marta"]),
        ("Dans quelle ville est-ce qu'elle habite, et depuis quand?", ["vill", "habit"]),
        ("Did the man die in the war?", ["man", "die", "war"]),
        ("war die man", ["war", "die", "man"]),
        ("Wie hieß die?", ["hiess"]),
        ("AI年会", ["ai", "年", "会", "年会"]),
        ("Was ist das?", ["ist", "das"]),
    ],
)
def test_a_question_in_german_spanish_or_french_looks_for_what_it_is_about(question: str, tokens: list[str]) -> None:
    """Who asks "An welchen Tagen ..." means the days, and in English "die" and "war" are no small words."""
    assert asked_tokens(question) == tokens


def test_stop_words_are_dropped_from_questions_only() -> None:
    """Every message holds "the"; it finds nothing, but it must be found when nothing else is asked."""
    assert query_tokens("What did the dogs do in Paris, and the dogs?") == ["dog", "pari"]
    assert query_tokens("我的狗叫什么") == ["狗", "叫", "我的", "的狗", "狗叫", "叫什"]
    assert query_tokens("to be or not to be") == ["to", "be", "or", "not"]
    assert "the" in tokenize("the dog")


@given(any_text)
def test_no_token_can_break_an_index(text: str) -> None:
    """NUL, lone surrogates and white space in a token have broken full-text queries of others."""
    for token in tokenize(text):
        assert 0 < len(token) <= 64
        assert not any(character.isspace() or character in "\x00\"'*" for character in token)
        token.encode()


@given(any_text)
def test_a_question_asks_only_for_what_would_be_indexed(text: str) -> None:
    """A word that is asked for in another form than it is stored is never found."""
    asked = query_tokens(text)

    assert set(asked) <= set(tokenize(text))
    assert len(asked) == len(set(asked))
    assert bool(asked) == bool(tokenize(text))


@given(any_text)
def test_counts_add_up_to_the_tokens(text: str) -> None:
    """Document lengths in BM25 come from these."""
    assert sum(token_counts(text).values()) == len(tokenize(text))


def test_threads_do_not_mix_their_words() -> None:
    """The stemmer holds its word in itself: unguarded, threads would get each other's stems."""
    words = [f"paint{chr(97 + n % 26)}{chr(97 + n // 26)}ings" for n in range(400)]
    alone = [tokenize(word + "x") for word in words]
    got: list[list[list[str]]] = []
    threads = [threading.Thread(target=lambda: got.append([tokenize(word + "x") for word in words])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert got == [alone] * 4


def test_tokens_of_a_model_are_estimated_by_script() -> None:
    """A budget of 1,500 holds six times the characters in English as in Chinese - about four."""
    assert estimate_tokens("") == 0
    assert estimate_tokens("abcde") == 2
    assert estimate_tokens("你好世界") == 4
    assert estimate_tokens("你好 world") == 4


@given(any_text, any_text)
def test_the_estimate_never_shrinks_when_text_is_added(text: str, more: str) -> None:
    """A block that grows costs more."""
    assert max(estimate_tokens(text), estimate_tokens(more)) <= estimate_tokens(text + more)
    assert estimate_tokens(text + more) <= estimate_tokens(text) + estimate_tokens(more)


@pytest.mark.requirement("X17")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("der Zoliakie", "der Zöliakie"),  # German typed without its dots
        ("Strasse", "Straße"),
        ("l'école d’Angers", "école Angers"),  # French writes articles with the word
        ("dell'arte", "arte"),
        ("cumpleaños", "cumplean\u0303os"),  # NFC and NFD
        ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
        ("ﾀﾅｶ", "タナカ"),  # half width
        ("रहती", "रहता"),  # "she lives", "he lives"
        ("\u095bमीन", "\u091c\u093cमीन"),  # a letter with its dot, in one or two characters
        ("५० रुपये", "50 रुपये"),
        ("٣١ أكتوبر", "31 أكتوبر"),
        ("عمّان", "عمان"),  # a doubled letter is marked or not
        ("كـــتاب", "كتاب"),
        ("والكتاب", "كتاب"),  # "and the book"
        ("للبنك", "البنك"),
    ],
)
def test_words_of_other_languages_meet_however_they_are_written(one: str, other: str) -> None:
    """Marks, forms of characters, digits, articles and endings are not what anyone searches for."""
    assert tokenize(one) == tokenize(other)
