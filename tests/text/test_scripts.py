"""Which language a text is in."""

from __future__ import annotations

import pytest

from remegraph.text.scripts import has_cjk, language_of, simplified


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("12:30!", "en"),
        ("Hello, how are you?", "en"),
        ("你好，最近怎么样？", "zh"),
        ("我用 Python 写代码", "zh"),
        ("The word 你好 means hello", "en"),
        ("こんにちは、元気ですか", "en"),
        ("안녕하세요", "en"),
        ("Привет, как дела?", "en"),
        ("\x00\ud800", "en"),
    ],
)
def test_a_text_is_in_the_language_of_most_of_its_words(text: str, language: str) -> None:
    """A summary should be written in the language that people spoke."""
    assert language_of(text) == language


def test_cjk_is_seen_anywhere() -> None:
    """One Chinese name in an English text is enough to need Chinese handling."""
    assert has_cjk("I met 李明.")
    assert has_cjk("カメラ")
    assert not has_cjk("Привет, café")


def test_traditional_characters_become_simplified_ones_place_by_place() -> None:
    """Patterns are written once, and what they find stands at the same place in the text as it was said."""
    text = "我們過去的歷史該選哪個？Ünïcode 日本語 kept."
    told = simplified(text)
    assert told == "我们过去的历史该选哪个？Ünïcode 日本语 kept."
    assert len(told) == len(text)
    assert simplified(told) == told
    assert simplified("plain") == "plain"
