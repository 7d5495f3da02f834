"""Time expressions, resolved against the time at which they were said (R14)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter

from remegraph.text import times_en, times_zh
from remegraph.text.scripts import has_cjk, has_kana_or_hangul, language_of, simplified
from remegraph.text.time_words import Period, PeriodKind, Word, day, tense

__all__ = ["TimeMention", "datetime_tool", "describe", "parse_range", "resolve", "time_words", "times_asked"]

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TimeMention:
    """A time that a text speaks of: `text` is `original[start:end]`, and `begins <= t < ends`.

    An instant lasts a minute, a week begins on Monday, a night ends at midnight, a range is anything else (a morning, a
    weekend, May to July).
    """

    start: int
    end: int
    text: str
    begins: datetime
    ends: datetime
    kind: PeriodKind


# What may come between the words of one time: "3 pm on Tuesday", "昨天的下午", "3月24日（周二）".
_WITHIN = re.compile(r"[\s,，的(（]*(?:(?:at|on|in the|of|in|around)\s+(?:the\s+)?)?", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*(?:to|until|till|through|and|[-–—~～至到])\s*(?:on\s+)?", re.IGNORECASE)
_FROM = re.compile(r"(?:\b(?:from|between)\s+(?:on\s+)?|从|自)\Z", re.IGNORECASE)
_SINCE = re.compile(r"(?:\bsince\s+|自从|自|从)\Z", re.IGNORECASE)
_SINCE_AFTER = re.compile("以来|至今")
_MOVED = re.compile(r"\b(?:mov|chang|switch|push|shift|reschedul|postpon|swap)\w*\b[^.!?]*\bfrom\s+\Z", re.IGNORECASE)
_BESIDE = re.compile(r"\s*(?:,|，|、|/|&|and|or|和|跟|或)\s*(?:on\s+)?", re.IGNORECASE)
_PREFIX = 12
_SENTENCE = 500
"""Characters before a time that may say that it was moved."""

_QUOTED = re.compile(
    r"(?<![\w'])'(?:[^'\n]|(?<=\w)'(?=\w)){1,200}'(?!\w)"
    r"|\"[^\"\n]{1,200}\"|[“‘][^”\n]{1,200}[”]|「[^」\n]{1,200}」|『[^』\n]{1,200}』|《[^》\n]{1,60}》|〈[^〉\n]{1,60}〉"
)
"""Words that someone else said at another time, or a title."""

_WRITES = re.compile(r"\b(?:wrote|writes|said|says|texted|told|promised|replied|reads?)\b|[说写讲]", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？\n]")

# Equivalent characters, one for one, so that spans keep their places.
_VARIANTS = str.maketrans("０１２３４５６７８９：\u2019\u00a0", "0123456789:' ")


def resolve(text: str, said_at: datetime) -> list[TimeMention]:
    """Find the times that `text` speaks of, in order, as they were meant when it was said.

    Knows English and Chinese, and dates in figures. Of a day or month that comes again ("on Friday", "in May") the
    tense of the clause says which is meant. What is not certain is left out: what recurs, a time without a day, words
    in quotation marks, a lunar month, "next Friday" where people read it in two ways. `said_at` is aware; the mentions
    are in its zone.
    """
    plain = simplified(text).translate(_VARIANTS)
    settled = list(_settled(plain, said_at))
    return [
        TimeMention(start, end, text[start:end], period.begins, period.ends, period.kind)
        for start, end, period in sorted([*settled, *_in_quotes(plain, settled)], key=itemgetter(0))
    ]


def time_words(text: str) -> list[tuple[int, int]]:
    """Return where `text` speaks of a time, certain or not, as spans in order."""
    return [
        (word.start, word.end) for word in _words(simplified(text).translate(_VARIANTS), _ANY_TIME) if word.says.whole
    ]


def times_asked(text: str, now: datetime) -> list[TimeMention]:
    """Find the times that a question asks about: "since May" lasts from May up to now."""
    found: list[TimeMention] = []
    for mention in resolve(text, now):
        since = _SINCE.search(text, max(0, mention.start - _PREFIX), mention.start)
        open_end = mention.begins < now and (since or _SINCE_AFTER.match(text, mention.end))
        found.append(replace(mention, ends=max(now, mention.ends), kind="range") if open_end else mention)
    return found


def parse_range(text: str, now: datetime) -> TimeMention | None:
    """Return the longest time that a question speaks of, or None if it speaks of none."""
    return max(times_asked(text, now), key=lambda mention: mention.ends - mention.begins, default=None)


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def describe(said_at: datetime) -> str:
    """Return the anchor that relative dates in a prompt need, such as "2023-05-08 Monday 13:56 +00:00"."""
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
            closes = re.search("[(（]", text[last.end : word.start]) and text[word.end : word.end + 1] in ")）"
            joined[-1] = Word(last.start, word.end + bool(closes), both)
        else:
            joined.append(word)
    return joined


def _words(plain: str, said_at: datetime) -> list[Word]:
    """Return the words for times of a text, joined; words of other languages than English and Chinese are left out."""
    known = not has_kana_or_hangul(plain)
    found = [*times_en.words(plain, said_at)]
    if known and has_cjk(plain):
        found += times_zh.words(plain, said_at)
    return [word for word in _joined(plain, _longest(found)) if known or word.says.dated]


_Settled = tuple[int, int, Period]
"""Start and end of the words, and what they mean."""


def _in_quotes(plain: str, settled: Sequence[_Settled]) -> Iterator[_Settled]:
    """Yield the times within quotes, if the same sentence says on which day they were written."""
    begins = [0, *(found.end() for found in _SENTENCE_END.finditer(plain))]
    places = [start for start, _, _ in settled]
    for quote in _QUOTED.finditer(plain):
        first = begins[bisect_right(begins, quote.start()) - 1]
        before = settled[bisect_left(places, first) : bisect_right(places, quote.start())]
        days = [period for _, end, period in before if end <= quote.start()]
        if len(days) != 1 or days[0].kind != "day" or not _WRITES.search(plain, first, quote.start()):
            continue
        for start, end, period in _settled(quote.group()[1:-1], days[0].begins + timedelta(hours=12)):
            at = quote.start() + 1
            if not any(start + at < other[1] and other[0] < end + at for other in settled):
                yield start + at, end + at, period


def _within(quotes: Sequence[tuple[int, int]], word: Word) -> bool:
    """Return whether a word is in one of these quotes, which are in order and do not overlap."""
    at = bisect_left(quotes, (word.start, 0)) - 1
    return at >= 0 and word.end < quotes[at][1]


def _settled(plain: str, said_at: datetime) -> Iterator[_Settled]:
    """Yield the times that are certain, two that make one range ("from May to July") as one."""
    told = tense(language_of(plain))
    quotes = [found.span() for found in _QUOTED.finditer(plain)]
    words = [
        word for word in _words(plain, said_at) if word.says.choices and (word.says.dated or not _within(quotes, word))
    ]
    named: set[tuple[int, int]] = set()  # the months of the days so far
    at = 0
    while at < len(words):
        word, following = words[at], words[at + 1] if at + 1 < len(words) else None
        if following and _spans(plain, word, following):
            last = told.settles(plain, Word(word.start, following.end, following.says), said_at)
            both = last and _stretched(word, following, last)
            # On a Wednesday, "from Monday to Thursday" may be of this week or of the next.
            if both and not (word.says.weekday is not None and both.begins <= said_at < both.ends):
                yield word.start, following.end, both
            at += 2
            continue
        if any(_listed(plain, *pair) for pair in zip(words[max(at - 1, 0) : at + 1], words[at : at + 2], strict=False)):
            word = word._replace(says=replace(word.says, usual=None))
        period = told.settles(plain, word, said_at)
        meant = period and word.says.within(period)
        if meant and not (word.says.any_month and named and (meant.begins.year, meant.begins.month) not in named):
            named |= {(meant.begins.year, meant.begins.month)} if word.says.choices[0].kind == "day" else set()
            yield word.start, word.end, meant
        at += 1


def _spans(text: str, first: Word, last: Word) -> bool:
    between = text[first.end : last.start]
    if _MOVED.search(text, max(0, first.start - _SENTENCE), first.start):
        return False
    if not _BETWEEN.fullmatch(between):
        return False
    return between.strip().lower()[:3] != "and" or bool(_FROM.search(text, max(0, first.start - _PREFIX), first.start))


def _stretched(first: Word, last: Word, ends: Period) -> Period | None:
    """Return the time from the first word to the last, with one choice of the last."""
    choices = first.says.choices
    if first.says.weekday is not None:
        choices = (day(ends.begins, -((ends.begins.weekday() - first.says.weekday) % 7)),)
    begins = [choice for choice in choices if choice.begins < ends.begins]
    if not begins:
        return None
    first_part, last_part = first.says.within(begins[-1]), last.says.within(ends)
    return Period(first_part.begins, last_part.ends, "range") if first_part and last_part else None


def _listed(text: str, first: Word, last: Word) -> bool:
    """Return whether two days of the week are adjacent words, as for something that recurs on both."""
    return (
        first.says.weekday is not None
        and last.says.weekday is not None
        and bool(_BESIDE.fullmatch(text, first.end, last.start))
    )


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
