"""Calendar arithmetic: days, weeks, months and years around a moment, in its own zone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

__all__ = [
    "Period",
    "PeriodKind",
    "Unit",
    "agreed",
    "at",
    "day",
    "days",
    "hours",
    "month",
    "months",
    "on",
    "shifted",
    "stretch",
    "third",
    "week",
    "weekday",
    "weekend",
    "year",
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
