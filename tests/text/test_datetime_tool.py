"""Relative dates, as a prompt shows them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from remegraph.text.times import datetime_tool

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=timezone(timedelta(hours=8)))


@pytest.mark.requirement("R14")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("I went there yesterday.", "yesterday = 2023-05-07"),
        ("We leave next week", "next week = 2023-05-15 to 2023-05-21"),
        ("昨天去了，下周再去", "昨天 = 2023-05-07; 下周 = 2023-05-15 to 2023-05-21"),
        ("No time at all.", ""),
    ],
)
def test_relative_dates_are_told_as_they_were_meant_when_said(text: str, meant: str) -> None:
    """'Yesterday' in a message of May is a day of May, whenever the model reads it."""
    assert datetime_tool(text, MONDAY) == meant
