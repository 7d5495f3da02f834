"""Quotes are found again, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.rules.quotes import find_quote

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
