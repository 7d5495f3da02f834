"""The sentences that speak of times, and the bars for the days that they mean."""

from __future__ import annotations

from collections import Counter

import pytest

from evals.dates import expressions, figures


@pytest.mark.requirement("R14")
def test_nearly_all_times_are_right_and_hardly_any_wrong() -> None:
    """Of both languages, with what must be left alone among them."""
    data = list(expressions())

    assert Counter((each.language, each.days is None) for each in data).keys() == {
        (language, alone) for language in ("en", "zh") for alone in (True, False)
    }
    assert [figure.name for figure in figures(data) if figure.verdict != "PASS"] == []


def test_the_bars_are_missed_where_everything_is_read_a_year_later() -> None:
    """An eval that cannot fail measures nothing."""
    data = [each._replace(said_at=each.said_at.replace(year=each.said_at.year + 4)) for each in expressions()]

    assert {figure.verdict for figure in figures(data)} == {"FAIL"}
