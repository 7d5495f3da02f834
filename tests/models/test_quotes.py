"""Quotes are found again, and nothing else is."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from remegraph.models.quotes import find_copied, find_quote

TEXT = "I said: “Let’s go — now”, but she dislikes　Ｐｙｔｈｏｎ 3 since 2012.  我喜欢 Python，真的。"


@pytest.mark.requirement("X1")
@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("Let’s go — now", "Let’s go — now"),
        ('"let\'s go - now"', "Let’s go — now"),
        ("she dislikes python 3...", "she dislikes　Ｐｙｔｈｏｎ 3"),
        ("SHE  DISLIKES\nPYTHON", "she dislikes　Ｐｙｔｈｏｎ"),
        ("我喜欢Python, 真的", "我喜欢 Python，真的"),
        ("「我喜欢 python」…", "我喜欢 Python"),
    ],
)
def test_a_quote_is_found_despite_what_models_change(quote: str, words: str) -> None:
    """Models retype quotes with other marks, case and spaces; the user still sees the original words."""
    span = find_quote(quote, TEXT)
    assert span is not None
    assert TEXT[slice(*span)] == words


@pytest.mark.requirement("X6")
@pytest.mark.parametrize(
    "quote", ["likes Python", "she likes", "let's leave", "since 201", "hon 3", "", "  ", "...", "喜欢Java"]
)
def test_changed_words_are_never_found(quote: str) -> None:
    """A memory must not rest on words that nobody said."""
    assert find_quote(quote, TEXT) is None


@given(st.lists(st.text(alphabet="abcXYZ’é我们1　,.!-", min_size=1), min_size=1), st.data())
def test_words_of_the_text_are_found_to_the_letter(words: list[str], data: st.DataObject) -> None:
    """Evidence that was copied exactly is never refused."""
    text = " ".join(words)
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    quote = " ".join(words[first : last + 1])
    span = find_quote(quote, text)
    if quote.strip():
        assert span is not None
        assert text[slice(*span)] == quote


@given(st.text(), st.text())
def test_a_span_always_lies_in_the_text(quote: str, text: str) -> None:
    """Whatever was typed, a span can be cut out of the message."""
    span = find_quote(quote, text)
    assert span is None or 0 <= span[0] < span[1] <= len(text)


WRONG = tomllib.loads(Path(__file__).with_name("wrong_quotes.toml").read_text(encoding="utf-8"))["message"]
LETTER = "I'm Ann, and I don't eat **raw** fish; I realy like it cooked.\nSince 2012 I've lived in Porto, in my sister's house."


@pytest.mark.requirement("C9", "X1")
@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("I'm Ann … I don't eat raw fish", "I'm Ann, and I don't eat **raw** fish"),
        ("Since 2012 I've lived ... in my sister's house", "Since 2012 I've lived in Porto, in my sister's house"),
        ("I am Ann and I do not eat raw fish", "I'm Ann, and I don't eat **raw** fish"),
        ("I have lived, in Porto", "I've lived in Porto"),
        ("it cooked.\\nSince 2012", "it cooked.\nSince 2012"),
        ("I really like it cooked", "I realy like it cooked"),
        ("[...] I've lived in Porto, [...]", "I've lived in Porto"),
    ],
)
def test_a_copy_is_found_despite_what_models_do_when_they_copy(quote: str, words: str) -> None:
    """Each of these cost good memories; the evidence is what stands there, to the letter."""
    span = find_copied(quote, LETTER)
    assert span is not None
    assert LETTER[slice(*span)] == words


@pytest.mark.requirement("X6")
@pytest.mark.parametrize(
    ("text", "quote"), [(each["text"], quote) for each in WRONG for quote in each["wrong"]], ids=lambda each: each[:40]
)
def test_a_quote_that_says_something_else_is_never_found(text: str, quote: str) -> None:
    """However generously copies are read, a memory must not rest on words that nobody said."""
    assert find_copied(quote, text) is None


def test_there_are_enough_wrong_quotes_in_each_language() -> None:
    """A handful proves nothing."""
    assert sum(len(each["wrong"]) for each in WRONG) >= 100


SAID = (
    "My sister Giulia moved from Porto to a small village near Bologna last September because her husband found work there.",
    "We never travel with more than three suitcases and always book morning flights, unless the children are sick.",
    "Meine Tochter besucht seit Oktober eine andere Schule, weil die alte im Sommer geschlossen wurde.",
    "我姐姐去年九月从杭州搬到了苏州的一个小村子，因为她丈夫在那里找到了工作。",
    "我姊姊去年九月從台北搬到了台中的一個小村子，因為她先生在那裡找到了工作。",
)
OTHER_WORDS = (
    "brother cousin Julia Marco Lisbon Paris city town far October March wife lost stay always seldom four two boxes evening "
    "trains healthy parents Sohn Tochter November Kirche neue Winter eröffnet besuchte nicht kein no not without ohne 12 2024"
).split()
OTHER_CHARACTERS = "哥弟妹明后十八月年无不没沒別未北南东西大城市妻子妈失丢三二"


@pytest.mark.requirement("X6")
@given(st.sampled_from(SAID), st.data())
def test_a_word_exchanged_for_another_is_never_found(text: str, data: st.DataObject) -> None:
    """Whatever word of a quote is another, left out or put in: it is not what was said."""
    chinese = " " not in text
    words = list(text.rstrip("。")) if chinese else text.split()
    first = data.draw(st.integers(0, len(words) - 4))
    quote = words[first : data.draw(st.integers(first + 4, len(words)))]
    at = data.draw(st.integers(0, len(quote) - 1))
    other = data.draw(st.sampled_from(OTHER_CHARACTERS if chinese else OTHER_WORDS))
    assume(other not in text and quote[at].isalnum())
    kept = ("" if chinese else " ").join(quote)

    exchanged = ("" if chinese else " ").join([*quote[:at], other, *quote[at + 1 :]])
    put_in = ("" if chinese else " ").join([*quote[:at], other, *quote[at:]])

    assert find_copied(kept, text) is not None
    assert find_copied(exchanged, text) is None
    assert find_copied(put_in, text) is None


@given(st.sampled_from(SAID[:3]), st.data())
def test_a_word_left_out_without_a_mark_is_never_found(text: str, data: st.DataObject) -> None:
    """What is left out may be the "not"; where it is marked, no negation may be."""
    words = text.split()
    first = data.draw(st.integers(0, len(words) - 5))
    quote = words[first : first + 5]
    left = data.draw(st.integers(1, 3))
    assert find_copied(" ".join(quote[:left] + quote[left + 1 :]), text) is None


@given(st.text(), st.text())
def test_a_copys_span_always_lies_in_the_text(quote: str, text: str) -> None:
    """Whatever a model wrote, a span can be cut out of the message."""
    span = find_copied(quote, text)
    assert span is None or 0 <= span[0] < span[1] <= len(text)


@given(st.text(min_size=1), st.data())
def test_a_number_is_never_found_in_another(digits: str, data: st.DataObject) -> None:
    """12 is neither 12.5 nor 12:30 nor 112."""
    number = data.draw(st.integers(0, 9999))
    text = f"It costs {number}.5 or {number}:30 or {number},000 or 7{number}7 {digits if not digits.isdigit() else ''}"
    assert find_copied(f"costs {number}", text) is None


def test_a_number_after_the_line_feed_of_a_tools_json_is_a_word_of_its_own() -> None:
    """Its letters stand there as backslash and n: "n437" is no word that anybody wrote."""
    returned = '{"tail":"ok  52.870s\\n437 passed, 0 failed in 402 s"}'
    place = find_quote("437 passed, 0 failed", returned)
    assert place is not None
    assert returned[slice(*place)] == "437 passed, 0 failed"
    assert find_quote("otes", r"the file lies in C:\notes") is None


@pytest.mark.requirement("X17")
@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("نعم، وأنا مبتدئ في القواعد", "أنا مبتدئ في القواعد"),  # "and" is written with the next word
        ("أعيش في عمّان منذ سنة", "أعيش في عمان"),  # with and without what doubles a letter
        ("هذا كـــتاب جديد", "كتاب جديد"),  # drawn out
        ("मैं ज़मीन बेचता हूँ", "\u091c\u093cमीन बेचता"),
        ("Ich esse \u00fcberall K\u00e4se", "u\u0308berall Ka\u0308se"),
        ("Elle dit «\u00a0jamais de céleri\u00a0» !", '"jamais de céleri"'),
        ("Elle dit «\u00a0jamais de céleri\u00a0» à table", 'Elle dit "jamais de céleri" à table'),
        ("彼は「卵は食べない」と言った", "『卵は食べない』"),
        ("家賃は５万２千円です。", "家賃は5万2千円"),
        ("저는 해운대 살고 있어요", "해운대 살고"),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국"),
        ("¿Vives sola en Cuenca?", "Vives sola en Cuenca"),
    ],
)
def test_a_quote_of_another_language_is_found_however_it_is_written(text: str, quote: str) -> None:
    """Forms of characters, vowels that some write, marks of quotation and what is joined to a word are not the words."""
    assert find_copied(quote, text) is not None


@pytest.mark.requirement("X6", "X17")
@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("نعم، وأنا مبتدئ في القواعد", "بتدئ في القواعد"),
        ("मैं मांस नहीं खाता", "मैं मांस खाता"),
        ("je n'aime pas le céleri", "aime le céleri"),
        ("ich mag keine Pilze", "ich mag Pilze"),
        ("커피는 못 마셔", "커피는 마셔"),
    ],
)
def test_a_part_of_a_word_or_the_contrary_is_no_quote_in_any_language(text: str, quote: str) -> None:
    """What is folded is how words are written, never which they are."""
    assert find_copied(quote, text) is None
