"""Words that times are made of, and the tables of rules that find them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from remegraph.language.periods import Period

__all__ = ["Clock", "Meaning", "Rule", "Word", "find"]


@dataclass(frozen=True, slots=True)
class Clock:
    """A time on the clock."""

    hour: int
    minute: int = 0
    exact: bool = False
    """Whether the hour counts to 24; else eight may be in the evening."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a word says about a time: any of a period, a part of the day, a time on the clock, a part of the period."""

    period: Period | None = None
    part: tuple[int, int] | None = None
    """First and last hour of a part of the day; more than 24 lie in the next day."""
    clock: Clock | None = None
    third: int | None = None
    """Beginning (0), middle (1) or end (2) of the period."""
    alone: bool = False
    """Whether a clock time is one without a day too: that of today."""

    def joined(self, other: Meaning) -> Meaning | None:
        """Return what this and the following word say together, or None if they do not go together."""
        pairs = (
            (self.period, other.period),
            (self.part, other.part),
            (self.clock, other.clock),
            (self.third, other.third),
        )
        if any(mine is not None and theirs is not None for mine, theirs in pairs):
            return None
        period, part, clock = self.period or other.period, self.part or other.part, self.clock or other.clock
        third = other.third if self.third is None else self.third
        if third is not None and (part or clock or period is None or period.kind not in ("week", "month", "year")):
            return None
        if period is not None and (part or clock) and period.kind != "day":
            return None
        return Meaning(period, part, clock, third, self.alone or other.alone)


@dataclass(frozen=True, slots=True)
class Word:
    """A meaning, and where in the text it was found."""

    start: int
    end: int
    says: Meaning


Rule = tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Meaning | Period | None]]
"""A pattern, and what a match of it means when said at a time; None if it means none after all.

The word is the group "time" of the pattern where it has one, else the whole match.
"""


def find(rules: Sequence[Rule], text: str, said_at: datetime) -> Iterator[Word]:
    """Yield all words of a text; they may overlap.

    Args:
        rules: The rules of a language.
        text: Any text.
        said_at: When it was said.
    """
    for pattern, means in rules:
        for match in pattern.finditer(text):
            try:
                meaning = means(match, said_at)
            except (ValueError, OverflowError):  # the calendar holds no such day: 30 February, the year 12023
                continue
            start, end = match.span("time" if "time" in pattern.groupindex else 0)
            if meaning is not None:
                yield Word(start, end, Meaning(meaning) if isinstance(meaning, Period) else meaning)
