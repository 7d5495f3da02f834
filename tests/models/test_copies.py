"""Whether a text repeats another: six words in a row, two Chinese characters for each."""

from __future__ import annotations

import pytest

from remegraph.models.quotes import copied

SAID = "Well, I keep my sencha tea at the office, don't you?"


@pytest.mark.parametrize(
    ("text", "source", "run"),
    [
        ("Ann said: KEEP my sencha - tea at the office", SAID, "keep my sencha tea at the"),
        ("Ann keeps her sencha tea at the office", SAID, ""),
        ("sencha tea at the office", SAID, ""),
        ("keep my sencha tea at theirs", SAID, ""),
        ("结论是我每天早上在办公室喝抹茶拿铁", "我每天早上在办公室喝抹茶拿铁。", "我 每 天 早 上 在 办 公 室 喝 抹 茶"),
        ("她早上喝抹茶拿铁", "我每天早上在办公室喝抹茶拿铁。", ""),
        ("", SAID, ""),
    ],
)
def test_a_run_of_six_words_is_a_quote(text: str, source: str, run: str) -> None:
    """Case and punctuation do not hide a quote, and words that merely recur are none."""
    assert copied(text, source) == run
