"""The sentences that say when memory should be asked, and the bars for the half that was set aside."""

from __future__ import annotations

from collections import Counter

import pytest

from evals.triggers import figures, sentences


@pytest.mark.requirement("G2")
def test_the_half_that_was_set_aside_reaches_the_bars() -> None:
    """Rules that were made for one half hold in the other: English and Chinese have bars, German and Spanish figures."""
    data = list(sentences())
    assert Counter((each.language, each.aside) for each in data) == {
        (language, aside): 50 if language in {"en", "zh"} else 14
        for language in ("en", "zh", "de", "es")
        for aside in (True, False)
    }
    measured = list(figures(data))
    assert [figure.name for figure in measured if figure.verdict == "FAIL"] == []
    assert sum(figure.verdict == "PASS" for figure in measured) == 4


def test_the_bars_are_missed_where_everything_fires() -> None:
    """An eval that cannot fail measures nothing."""
    data = [each for each in sentences() if each.label or each.aside]
    wrong = [
        type(each)(each.language, "What did we say? " + each.text, each.label, each.known, each.aside) for each in data
    ]
    missed = [figure.name for figure in figures(wrong) if figure.verdict == "FAIL"]
    assert missed == ["en, set aside: precision", "zh, set aside: precision"]
