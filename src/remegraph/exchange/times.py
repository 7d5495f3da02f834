"""Message times, as the sources of conversations write them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, tzinfo

from remegraph.errors import MessageError, NaiveTimeError

__all__ = ["parse_time"]

NOON = time(12)
"""The hour of a day without one: it stays the same day in nearly every zone."""

LATEST_SECONDS = 1e11
"""Unix seconds of the year 5138; what is larger counts something smaller than seconds."""

_CHINESE = re.compile(
    r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})日"
    r"(?:\s*(?:周|星期|礼拜)[一二三四五六日天])?"
    r"(?:\s*(?P<hour>\d{1,2})[:：](?P<minute>\d{2})(?:[:：](?P<second>\d{2}))?)?"
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}")
_CURE = "Give an ISO 8601 time such as 2024-04-01T08:25:00Z, Unix seconds, or 2024年04月01日 周一 08:25."


def parse_time(value: object, *, timezone: tzinfo | None) -> datetime:
    """Read a time in any of the forms that message sources use.

    Args:
        value: An aware or naive datetime, a date, ISO 8601 text, Chinese text (`2024年04月01日 周一 08:25`), or Unix
            seconds. A day without an hour is taken at noon.
        timezone: The zone of times that name none.

    Returns:
        The aware time, in the zone it was written in.

    Raises:
        NaiveTimeError: The time names no zone and none is given.
        MessageError: It is no time.
    """
    if isinstance(value, bool):
        raise MessageError(f"The time {value!r} is no time.", _CURE)
    if isinstance(value, int | float):
        return _from_seconds(value)
    try:
        found = _read(value)
    except ValueError as error:
        raise MessageError(f"The time {value!r} cannot be read: {error}.", _CURE) from error
    if found.utcoffset() is not None:
        return found
    if timezone is None:
        raise NaiveTimeError(f"The time {str(value)!r} does not say its zone.")
    return found.replace(tzinfo=timezone)


def _from_seconds(value: float) -> datetime:
    if not abs(value) < LATEST_SECONDS:
        raise MessageError(f"The time {value!r} is too large for Unix seconds.", "Give seconds, not milliseconds.")
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise MessageError(f"The time {value!r} is out of range.", _CURE) from error


def _read(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, NOON)
    if not isinstance(value, str):
        raise ValueError(f"a {type(value).__name__} is no time")
    text = value.strip()
    if chinese := _CHINESE.fullmatch(text):
        day = datetime(int(chinese["year"]), int(chinese["month"]), int(chinese["day"]))  # noqa: DTZ001 - zone follows
        if chinese["hour"] is None:
            return datetime.combine(day, NOON)
        return day.replace(hour=int(chinese["hour"]), minute=int(chinese["minute"]), second=int(chinese["second"] or 0))
    found = datetime.fromisoformat(text)
    return datetime.combine(found, NOON) if _DAY.fullmatch(text) else found
