"""Time expressions, resolved against the time at which they were said (R14)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from remegraph.language import times_en, times_zh
from remegraph.language.periods import Period, PeriodKind, at, day, hours, third
from remegraph.language.scripts import has_cjk
from remegraph.language.timewords import Clock, Meaning, Word

__all__ = ["TimeMention", "datetime_tool", "describe", "parse_range", "resolve"]


@dataclass(frozen=True, slots=True)
class TimeMention:
    """A time that a text speaks of: `text` is `original[start:end]`, and `begins <= t < ends`.

    An instant lasts a minute, a week begins on Monday, a range is anything else (a morning, a weekend, May to July).
    """

    start: int
    end: int
    text: str
    begins: datetime
    ends: datetime
    kind: PeriodKind


# What may stand between the words of one time: "3 pm on Tuesday", "昨天的下午".
_WITHIN = re.compile(r"[\s,，的]*(?:(?:at|on|in the|of|in|around)\s+)?", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*(?:to|until|till|through|and|[-–—~～至到])\s*", re.IGNORECASE)
_FROM = re.compile(r"(?:\b(?:from|between)\s+|从|自)\Z", re.IGNORECASE)
_SINCE = re.compile(r"(?:\bsince\s+|自从|自)\Z", re.IGNORECASE)
_SINCE_AFTER = re.compile("以来|至今")
_PREFIX = 10

# Characters that stand for one another, one for one, so that spans keep their places.
_VARIANTS = str.maketrans(
    "後週個點兩這禮鐘過來從內時號聖誕節０１２３４５６７８９：\u2019\u00a0",
    "后周个点两这礼钟过来从内时号圣诞节0123456789:' ",
)


def resolve(text: str, said_at: datetime) -> list[TimeMention]:
    """Find the times that `text` speaks of, in order, as they were meant when it was said.

    Knows English and Chinese. A weekday alone ("on Friday") is the coming one where the words around it speak of the
    future, else the last; a date without a year, or a month without one, is the nearest. "Last Friday" is the one
    before today, "next Friday" that of next week. What is not clear enough is left out.

    Args:
        text: Any text.
        said_at: When it was said, aware; the mentions are in its zone.
    """
    plain = text.translate(_VARIANTS)
    chinese = times_zh.words(plain, said_at) if has_cjk(plain) else ()
    words = _longest([*times_en.words(plain, said_at), *chinese])
    mentions: list[TimeMention] = []
    for word in _joined(plain, words):
        period = _period(word.says, said_at)
        if period is not None:
            spoken = text[word.start : word.end]
            mentions.append(TimeMention(word.start, word.end, spoken, period.begins, period.ends, period.kind))
    return _ranges(text, mentions, said_at)


def parse_range(text: str, now: datetime) -> TimeMention | None:
    """Return the longest time that a question speaks of, or None if it speaks of none.

    Args:
        text: The question.
        now: When it is asked, aware.
    """
    return max(resolve(text, now), key=lambda mention: mention.ends - mention.begins, default=None)


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def describe(said_at: datetime) -> str:
    """Return the anchor that relative dates in a prompt need, such as "2023-05-08 Monday 13:56 +00:00".

    Args:
        said_at: When the message was said, aware.
    """
    written = said_at.isoformat(sep=" ", timespec="minutes")
    return f"{written[:10]} {_WEEKDAYS[said_at.weekday()]} {written[11:16]} {written[16:]}"


def _longest(words: Iterable[Word]) -> list[Word]:
    """Return the words in order without those that overlap: the leftmost stay, of these the longest."""
    kept: list[Word] = []
    for word in sorted(words, key=lambda word: (word.start, -word.end)):
        if not kept or word.start >= kept[-1].end:
            kept.append(word)
    return kept


def _joined(text: str, words: Iterable[Word]) -> list[Word]:
    """Join words that make one time, such as a day, a part of the day and a clock time."""
    joined: list[Word] = []
    for word in words:
        last = joined[-1] if joined else None
        both = last and _WITHIN.fullmatch(text, last.end, word.start) and last.says.joined(word.says)
        if last and both:
            joined[-1] = Word(last.start, word.end, both)
        else:
            joined.append(word)
    return joined


def _period(says: Meaning, said_at: datetime) -> Period | None:
    if says.clock:
        if says.period or says.part or says.alone:
            return at(says.period or day(said_at), _hour(says.clock, says.part), says.clock.minute)
        return None
    if says.period is None:
        return None
    if says.third is not None:
        return third(says.period, says.third)
    return hours(says.period, *says.part) if says.part else says.period


def _hour(clock: Clock, part: tuple[int, int] | None) -> int:
    """Return the hour, 24 or more if it lies in the next day: "eight in the evening" is 20."""
    first, last = part or (0, 24)
    steps = (0, 24) if clock.exact else (0, 12, 24)
    return next((clock.hour + step for step in steps if first <= clock.hour + step < last), clock.hour)


def _ranges(text: str, mentions: list[TimeMention], said_at: datetime) -> list[TimeMention]:
    """Join two times into one range ("from May to July"), and stretch "since May" up to when it was said."""
    found: list[TimeMention] = []
    for mention in mentions:
        before = found[-1] if found else None
        if before is not None and before.begins < mention.begins and _spans(text, before, mention):
            start, end = before.start, mention.end
            found[-1] = TimeMention(start, end, text[start:end], before.begins, mention.ends, "range")
            continue
        since = _SINCE.search(text[max(0, mention.start - _PREFIX) : mention.start])
        after = _SINCE_AFTER.match(text, mention.end)
        if mention.begins < said_at and (since or after):
            mention = replace(mention, ends=max(said_at, mention.ends), kind="range")  # noqa: PLW2901
        found.append(mention)
    return found


def _spans(text: str, first: TimeMention, last: TimeMention) -> bool:
    between = text[first.end : last.start]
    if not _BETWEEN.fullmatch(between):
        return False
    return between.strip().lower() != "and" or bool(_FROM.search(text[max(0, first.start - _PREFIX) : first.start]))


def datetime_tool(text: str, said_at: datetime) -> str:
    """Say which days the times in `text` mean, for a prompt: `yesterday = 2023-05-07; next week = 2023-05-15 to 2023-05-21`.

    Args:
        text: Any text.
        said_at: When it was said, aware. Never the time at which the question is asked.

    Returns:
        The times in order, or an empty text where there are none.
    """
    return "; ".join(f"{mention.text} = {_days(mention)}" for mention in resolve(text, said_at))


def _days(mention: TimeMention) -> str:
    if mention.kind == "instant":
        return f"{mention.begins:%Y-%m-%d %H:%M}"
    first, last = mention.begins.date(), (mention.ends - timedelta(microseconds=1)).date()
    return f"{first}" if first == last else f"{first} to {last}"
