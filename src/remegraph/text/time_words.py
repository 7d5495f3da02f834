"""Calendar arithmetic around a moment in its own zone, words that times are made of, and the tables of rules that find them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from remegraph.text import table

__all__ = [
    "UNSETTLED",
    "Clock",
    "Meaning",
    "Means",
    "Period",
    "PeriodKind",
    "Unit",
    "Word",
    "agreed",
    "at",
    "day",
    "day_from",
    "day_of_month",
    "days",
    "find",
    "hours",
    "month",
    "months",
    "on",
    "shifted",
    "stretch",
    "tense",
    "third",
    "week",
    "weekday",
    "weekend",
    "year",
    "yearly",
]

PeriodKind = Literal["instant", "day", "week", "month", "year", "range"]

Unit = Literal["minute", "hour", "day", "week", "weekend", "month", "year"]

_MONTHS_A_YEAR = 12


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time: `begins <= t < ends`."""

    begins: datetime
    ends: datetime
    kind: PeriodKind


def _days(said: datetime, first: date, last: date, kind: PeriodKind) -> Period:
    """Return the whole days from `first` up to, not including, `last`."""
    zone = said.tzinfo
    return Period(datetime.combine(first, time(), zone), datetime.combine(last, time(), zone), kind)


def on(said: datetime, year: int, month: int | None = None, day: int | None = None) -> Period:
    """Return a day, month or year of the calendar, in the zone of `said`."""
    if month is None:
        return _days(said, date(year, 1, 1), date(year + 1, 1, 1), "year")
    if day is None:
        return _days(said, date(year, month, 1), date(year + month // 12, month % 12 + 1, 1), "month")
    return _days(said, date(year, month, day), date(year, month, day) + timedelta(1), "day")


def day(said: datetime, days: int = 0) -> Period:
    """Return the day that lies `days` after that of `said`."""
    first = said.date() + timedelta(days)
    return _days(said, first, first + timedelta(1), "day")


def week(said: datetime, weeks: int = 0) -> Period:
    """Return the week, from Monday, that lies `weeks` after that of `said`."""
    monday = said.date() + timedelta(7 * weeks - said.weekday())
    return _days(said, monday, monday + timedelta(7), "week")


def weekday(said: datetime, number: int, weeks: int = 0) -> Period:
    """Return a day of the week (0 is Monday) that lies `weeks` after that of `said`."""
    return day(said, 7 * weeks - said.weekday() + number)


def weekend(said: datetime, weeks: int = 0) -> Period:
    """Return Saturday and Sunday of the week that lies `weeks` after that of `said`."""
    saturday = said.date() + timedelta(7 * weeks + 5 - said.weekday())
    return _days(said, saturday, saturday + timedelta(2), "range")


def month(said: datetime, months: int = 0) -> Period:
    """Return the month that lies `months` after that of `said`."""
    years, index = divmod(said.month - 1 + months, _MONTHS_A_YEAR)
    return on(said, said.year + years, index + 1)


def year(said: datetime, years: int = 0) -> Period:
    """Return the year that lies `years` after that of `said`."""
    return on(said, said.year + years)


def months(said: datetime, year_number: int, first: int, count: int = 3) -> Period:
    """Return some months of a year from the `first` on, such as a quarter, or a season of the northern year."""
    begins = month(on(said, year_number).begins, first - 1).begins
    return Period(begins, month(begins, count).begins, "range")


def days(said: datetime, year_number: int, month_number: int, first: int, last: int) -> Period:
    """Return the days of a month from the first to the last.

    Raises:
        ValueError: It ends before it begins, or the month has no such days.
    """
    if last <= first:
        raise ValueError(f"{last} is not behind {first}")
    begins, ends = (on(said, year_number, month_number, number) for number in (first, last))
    return Period(begins.begins, ends.ends, "range")


def agreed(near: Sequence[Period], step: int, said: datetime) -> Period | None:
    """Return which of three "last" (-1), "this" (0) or "next" (1) means, or None where people read it in two ways.

    Said on a Wednesday, "next Friday" is in two days for some and in nine for others; "next Tuesday" is in six for all.
    """
    last, this, following = near
    if step < 0:
        return last if this.ends > said else None
    return this if step == 0 else following if this.begins <= said else None


def hours(period: Period, first: int, last: int) -> Period:
    """Return the part of a day between two hours; what of a night lies in the next day belongs to neither."""
    return Period(_at(period, first, 0), _at(period, min(last, 24), 0), "range")


def at(period: Period, hour: int, minute: int) -> Period:
    """Return a minute of a day."""
    begins = _at(period, hour, minute)
    return Period(begins, begins + timedelta(minutes=1), "instant")


def _at(period: Period, hour: int, minute: int) -> datetime:
    more, hour = divmod(hour, 24)
    return datetime.combine(period.begins.date() + timedelta(more), time(hour, minute), period.begins.tzinfo)


def third(period: Period, index: int) -> Period:
    """Return the first ten days of a month (0), the second ten (1), those after (2), or its last day (3)."""
    if index > 2:
        return day(period.ends, -1)
    ends = period.ends if index == 2 else period.begins + timedelta(10 * index + 10)
    return Period(period.begins + timedelta(10 * index), ends, "range")


def shifted(said: datetime, unit: Unit, amount: int) -> Period:
    """Return what lies `amount` units after `said`: a minute, a day, a weekend, a calendar month or year.

    Weeks are counted in days: two weeks ago is that day, a fortnight back.
    """
    if unit in ("minute", "hour"):
        begins = _moment(said, unit, amount).replace(second=0, microsecond=0)
        return Period(begins, begins + timedelta(minutes=1), "instant")
    if unit == "weekend":
        return weekend(said, amount)
    if unit == "month":
        return month(said, amount)
    if unit == "year":
        return year(said, amount)
    return day(said, amount * (7 if unit == "week" else 1))


def stretch(said: datetime, unit: Unit, first: int, last: int) -> Period:
    """Return the time from `first` to `last` units after `said`, whole days unless hours or minutes are counted."""
    begins, ends = _moment(said, unit, first), _moment(said, unit, last)
    if unit not in ("minute", "hour"):
        begins = day(begins).begins if first else begins
        ends = day(ends).ends if last else ends
    return Period(begins, ends, "range")


def _moment(said: datetime, unit: Unit, amount: int) -> datetime:
    """Return the moment that lies `amount` units after `said`, by the clock on the wall except for hours and minutes."""
    if unit in ("minute", "hour"):
        delta = timedelta(minutes=amount) if unit == "minute" else timedelta(hours=amount)
        return (said.astimezone(UTC) + delta).astimezone(said.tzinfo)
    if unit in ("month", "year"):
        first = month(said, amount * (_MONTHS_A_YEAR if unit == "year" else 1))
        last_day = (first.ends - timedelta(1)).day
        return said.replace(year=first.begins.year, month=first.begins.month, day=min(said.day, last_day))
    return said + timedelta(amount * (1 if unit == "day" else 7))


_SLEEP = 4
"""Before this hour, a night may go on: what is "tomorrow" then may begin with the next sleep."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A time on the clock."""

    hour: int
    minute: int = 0
    exact: bool = False
    """Whether the hour counts to 24; else eight may be in the evening."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a word for a time: any of a period, a part of the day, a time on the clock, a part of the period."""

    choices: tuple[Period, ...] = ()
    """The periods that it may mean, in order; of several the tense of its clause decides."""
    weekday: int | None = None
    """The day of the week where it names nothing else."""
    usual: Period | None = None
    """Which of the choices it is where no tense decides; None for one that is clearly nearer than the other."""
    part: tuple[int, int] | None = None
    """First and last hour of a part of the day; more than 24 lie in the next day."""
    clock: Clock | None = None
    third: int | None = None
    """Beginning (0), middle (1), last third (2) or last day (3) of a month."""
    any_month: bool = False
    """Whether it is a day of any month: of that named before it, if there is one."""
    dated: bool = False
    """Whether it is the same day whenever it is said."""
    story: bool = False
    """Whether it counts from the day in question, where the clause is in the past: "three days later"."""

    def joined(self, other: Meaning) -> Meaning | None:
        """Return what this and the following word say together, or None if they do not go together."""
        pairs = (self.part, other.part), (self.clock, other.clock), (self.third, other.third)
        if any(mine is not None and theirs is not None for mine, theirs in pairs):
            return None
        if not (self.known and other.known):
            return None
        date = self if self.choices else other
        if self.choices and other.choices:
            date, beside = (self, other) if other.weekday is not None or other.kind in _WHOLE else (other, self)
            choices = _within(date, beside) if beside.weekday is None else _on_weekday(date, beside.weekday)
            if choices is None:
                return None
            date = replace(date, choices=choices, usual=None)
        third = other.third if self.third is None else self.third
        both = replace(date, part=self.part or other.part, clock=self.clock or other.clock, third=third)
        if both.third is not None:
            return both if both.choices and not (both.part or both.clock) else None
        days = all(choice.kind == "day" for choice in both.choices)
        return both if days or not (both.part or both.clock) else None

    known: bool = True
    """Whether it is known which time it is; if not, it has no other meaning either."""

    @property
    def whole(self) -> bool:
        """Whether it is a time by itself, and not a part of one, or points and not hours."""
        return bool(self.choices or not self.known or (self.clock and (self.clock.exact or self.part)))

    @property
    def kind(self) -> str:
        """The kind of the only choice; empty if there are several."""
        return self.choices[0].kind if len(self.choices) == 1 else ""

    def within(self, period: Period) -> Period | None:
        """Return the part of one of the choices that is meant, or None if that is not certain."""
        if self.third is not None:
            return third(period, self.third) if period.kind == "month" else None
        if self.clock and (self.part or self.clock.exact or self.dated):
            hour = self._hour(self.clock)
            if hour < 24:  # the hours after midnight of a night belong to two days
                return at(period, hour, self.clock.minute)
        return hours(period, *self.part) if self.part else period

    def _hour(self, clock: Clock) -> int:
        """Return the hour, 24 or more if it lies in the next day: "eight in the evening" is 20."""
        first, last = self.part or (0, 24)
        steps = (0, 24) if clock.exact else (0, 12, 24)
        return next((clock.hour + step for step in steps if first <= clock.hour + step < last), clock.hour)


UNSETTLED = Meaning(known=False)
"""A time that people read in two ways."""


def _on_weekday(date: Meaning, number: int) -> tuple[Period, ...] | None:
    """Return the choices that are that day of the week, or all: an explicit date beats the words beside it."""
    kinds = {choice.kind for choice in date.choices}
    if kinds == {"week"}:
        return tuple(weekday(choice.begins, number) for choice in date.choices)
    if kinds != {"day"} or date.weekday is not None:
        return None
    return tuple(choice for choice in date.choices if choice.begins.weekday() == number) or date.choices


_WHOLE = ("year", "month")


def _within(date: Meaning, beside: Meaning) -> tuple[Period, ...] | None:
    """Return the choice that lies in a year or month: "12 April next year"."""
    if beside.kind not in _WHOLE or len(date.choices) < 2:
        return None
    (whole,) = beside.choices
    return tuple(each for each in date.choices if whole.begins <= each.begins < whole.ends) or None


def day_from(said: datetime, days: int, part: tuple[int, int] | None = None) -> Meaning:
    """Return the day that is called by its distance from `said`, such as "tomorrow", or the part of it."""
    if days > 0 and said.hour < _SLEEP:
        return UNSETTLED
    return Meaning((day(said, days),), part=part)


def day_of_month(said: datetime, number: int) -> Meaning:
    """Return what a day of that number means: of this month, the one before or the next; of this one if to come."""
    near: list[Period] = []
    for months in (-1, 0, 1):
        first = month(said, months).begins
        with suppress(ValueError):  # such as 30 February
            near.append(on(said, first.year, first.month, number))
    ahead = (each for each in near if said < each.begins < month(said).ends)
    return Meaning(tuple(near), usual=next(ahead, None), any_month=True)


def yearly(said: datetime, year: int | None, period: Callable[[int], Period]) -> Meaning:
    """Return the period of that year, or without a year, the periods of this year, the one before and the next.

    `period` gives the period of a year, or raises ValueError where there is none, such as 29 February.
    """
    near: list[Period] = []
    for each in (year,) if year else range(said.year - 1, said.year + 2):
        with suppress(ValueError):
            near.append(period(each))
    if not near:
        raise ValueError("the calendar holds no such day")
    return Meaning(tuple(near), dated=year is not None)


class Word(NamedTuple):
    """A meaning, and where in the text it was found."""

    start: int
    end: int
    says: Meaning


Means = Callable[[re.Match[str], datetime], Meaning | Period | Sequence[Period] | None]
"""Return the meaning of a match said at a time; None if it is not a time after all."""

Rule = tuple[re.Pattern[str], Means]
"""A pattern and what it means.

The word is the group "time" of the pattern where it has one, else the whole match. Of several periods the tense decides.
"""


def find(rules: Sequence[Rule], text: str, said_at: datetime) -> Iterator[Word]:
    """Yield all words of a text; they may overlap."""
    for pattern, means in rules:
        for match in pattern.finditer(text):
            try:
                says = means(match, said_at)
            except (ValueError, OverflowError):  # the calendar holds no such day: 30 February, the year 12023
                continue
            if says is None:
                continue
            if not isinstance(says, Meaning):
                says = Meaning((says,) if isinstance(says, Period) else tuple(says))
            yield Word(*match.span("time" if "time" in pattern.groupindex else 0), says)


_SOMEBODY, _NOTES, _BEHIND = 1.2, 2, 3
"""How many times nearer than the other a time must be that no tense decides: ahead if the clause is about a person,
or in the style of notes; or behind."""

_LONGEST_CLAUSE = 200
"""Characters on either side of a time in which its clause ends: a table has no clauses, and would be read once for each time."""

_WORD = re.compile(r"\w")
_COMMAS = ",，、 "


@dataclass(frozen=True, slots=True)
class Tense:
    """How the clauses of a language show whether they speak of the past or the future."""

    breaks: re.Pattern[str]
    """Separators of clauses."""
    signs: re.Pattern[str]
    """Signs in front of a time; the names of its groups begin with past, future or unsure."""
    signs_behind: re.Pattern[str]
    """The same behind it, where nothing in front decides."""
    somebody: re.Pattern[str]
    """Signs that a clause is not in the style of notes: "9 April: one prefix per test", "a new record on Sunday"."""
    bare_past: bool
    """Whether a clause without a sign may speak of the past."""
    leaves: re.Pattern[str]
    """Words of a clause that make a day or month no single one: "every"."""
    apart: re.Pattern[str]
    """Words right in front of a time that make it none of ours, such as a lunar month."""
    idle: re.Pattern[str]
    """Words in front of a future day that make it uncertain: "keeps saying", "I wish it were Friday"."""

    def settles(self, text: str, word: Word, said_at: datetime) -> Period | None:
        """Return which of the times that a word may mean is meant, or None where that is not certain."""
        says, choices = word.says, word.says.choices
        start, end = self._clause(text, word)
        front, back = text[start : word.start], text[word.end : end]
        back = back.removeprefix("'s").removeprefix("那天")  # "Friday's meeting" is no "Friday is meeting"
        if not choices or self.apart.search(front):
            return None
        if says.dated and len(choices) == 1:
            return choices[0]
        if choices[-1].begins > said_at and self.idle.search(front):
            return None
        alone = not _WORD.search(front + back)
        sense = self._beside(text, start, end) if alone else self._sense(front, back)
        if len(choices) == 1:
            told = says.story and (sense == -1 or (sense is None and front.strip()))
            return None if told else choices[0]
        spoken = bool(self.somebody.search(front + back)) or text[end : end + 1] == "?"
        note = says.weekday is not None and not (sense or spoken or self.bare_past)
        if note or self.leaves.search(f"{front}|{back}"):
            return None
        chosen = self._chosen(says, sense, said_at, _SOMEBODY if spoken else _NOTES)
        # "August the third, and I am to arrange it": the clause beside it may be about something else.
        doubtful = alone and sense and chosen != (_nearest(choices, said_at, _BEHIND, may_be_past=True) or chosen)
        today = chosen and says.weekday is not None and chosen.begins <= said_at < chosen.ends
        return None if today or doubtful else chosen  # today has another name

    def _clause(self, text: str, word: Word) -> tuple[int, int]:
        first, last = max(0, word.start - _LONGEST_CLAUSE), min(len(text), word.end + _LONGEST_CLAUSE)
        start = max((found.end() for found in self.breaks.finditer(text, first, word.start)), default=first)
        after = self.breaks.search(text, word.end, last)
        return start, after.start() if after else last

    def _sense(self, front: str, back: str) -> int | None:
        """Return -1 for the past, 1 for the future, 0 if nothing decides, None if it may be either.

        The nearest sign in front decides, or else the first behind.
        """
        signs = list(self.signs.finditer(front)) or list(self.signs_behind.finditer(back))[:1]
        told = (signs[-1].lastgroup or "") if signs else ""
        return {"past": -1, "future": 1, "unsure": None}.get(told.rstrip("0123456789"), 0)

    def _beside(self, text: str, start: int, end: int) -> int | None:
        """Return the sense of the clause after one that states only the time, or else of the one before it."""
        following = self.breaks.split(text[end : end + _LONGEST_CLAUSE].lstrip(_COMMAS), maxsplit=1)[0]
        previous = self.breaks.split(text[max(0, start - _LONGEST_CLAUSE) : start].rstrip(_COMMAS))[-1]
        told = " " in following or self.bare_past  # one word, as "noted", is an answer
        return (self._sense("", following) if told else 0) or self._sense(previous, "")

    def _chosen(self, says: Meaning, sense: int | None, said_at: datetime, clearly: float) -> Period | None:
        if sense:
            return _towards(says.choices, sense, said_at)
        usual = None if sense is None else says.usual
        if usual or says.weekday is not None or says.any_month:
            return usual
        return _nearest(says.choices, said_at, clearly, may_be_past=self.bare_past)


def _nearest(choices: Sequence[Period], said_at: datetime, clearly: float, *, may_be_past: bool) -> Period | None:
    behind, ahead = _towards(choices, -1, said_at), _towards(choices, 1, said_at)
    if behind is None or ahead is None or behind == ahead:
        return ahead if behind else None
    since, until = said_at - behind.ends, ahead.begins - said_at
    if until * clearly <= since:
        return ahead
    return behind if may_be_past and max(since, timedelta()) * _BEHIND <= until else None


def _towards(choices: Sequence[Period], sense: int, said_at: datetime) -> Period | None:
    """Return the last of the choices that has begun, or the next that is not over."""
    if sense < 0:
        return next((choice for choice in reversed(choices) if choice.begins <= said_at), None)
    return next((choice for choice in choices if choice.ends > said_at), None)


@cache
def tense(language: str) -> Tense:
    """Return how a language marks its tense."""
    told: Mapping[str, Any] = table("tenses")[language]

    def pattern(text: str) -> re.Pattern[str]:
        for name, words in told.get("names", {}).items():
            text = text.replace(f"<{name}>", words)
        return re.compile(text if language == "zh" else text.replace(" ", r"\s+"), re.IGNORECASE)

    signs = pattern(_either(told["signs"]))
    return Tense(
        signs=signs,
        signs_behind=pattern(_either(told["signs_behind"])) if "signs_behind" in told else signs,
        bare_past=told["bare_past"],
        **{name: pattern(told[name]) for name in ("breaks", "leaves", "apart", "idle", "somebody")},
    )


def _either(signs: Sequence[tuple[str, str]]) -> str:
    """Return one pattern of them all, with a group for each that has a sense."""
    return "|".join(f"(?P<{sense}{at}>{sign})" if sense else f"(?:{sign})" for at, (sense, sign) in enumerate(signs))
