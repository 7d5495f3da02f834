"""Grounds of a statement: a memory says no more than the words that it cites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property

from remegraph.engine.origin import distinctive_words
from remegraph.text import table, word_list
from remegraph.text.entities import entities
from remegraph.text.scripts import HAN, full_numeral, has_cjk, number, simplified
from remegraph.text.sentences import sentences
from remegraph.text.telltales import capitalizes_nouns, values
from remegraph.text.terms import (
    WrittenDate,
    counts_from_today,
    is_calendar_word,
    legible,
    numbers,
    weight,
    wording,
    written_dates,
)
from remegraph.text.times import resolve
from remegraph.text.tokens import stop_words, tokenize

__all__ = ["DatedText", "Ground"]

_RUN = re.compile(r"\d+(?:[.,:/\-\u2013]\d+)*")
_DATE = re.compile(r"(?P<year>\d{4})[-/.年](?P<month>\d{1,2})(?:[-/.月](?P<day>\d{1,2}))?")
_MONTH_AHEAD = re.compile(r"\s*[月월]")
_SEPARATED = re.compile(r"(?<=\d)[.,](?=\d{3}(?!\d))")
_NAME = re.compile(rf"(?<![\w.'’@/#-])[^\W\d_a-z{HAN}][\w’'-]*[a-z][\w-]*")
_CAPITALS = re.compile(r"(?<![\w.'’@/#-])(?<!\d\s)(?:[A-Z]{2,}\d*|[a-z]+[A-Z][A-Za-z]+)(?![\w@/-])")
"""What a capital inside marks, in whatever language: IBM, iPhone; not a unit, as 32 GB."""

_RUN_OF_NAMES = re.compile(r"[A-Z][\w’'-]*(?: [A-Z][\w’'-]*)+")
_HAN_COUNT = re.compile("[〇零一二两三四五六七八九十百千万亿]+")
_LATIN = re.compile("[A-Za-z0-9]")
_HALF_DOZEN = re.compile(r"\bhalf a dozen\b|半打", re.IGNORECASE)
_HAN_RUN = re.compile(f"[{HAN}]+")
_NEAR = timedelta(days=15)
"""How far a named or counted day may be from when it was said."""

_SHORT = {
    "road": "rd",
    "street": "st",
    "avenue": "ave",
    "saint": "st",
    "mount": "mt",
    "doctor": "dr",
    "professor": "prof",
}

_SMALL = 3
"""Numbers up to this may count the items of a list: they need not have been said."""

_LONG = 6
"""Letters a name needs to be found across words: "EpiPen" in "epi pen"."""

_PREFIX = 3
_FEWEST = 3.0
"""Weight of the words of a statement that nothing supports."""


@dataclass(frozen=True, slots=True)
class DatedText:
    """A text, and when it was said."""

    text: str
    time: datetime


@dataclass(frozen=True)
class Ground:
    """All that a statement may say.

    Args:
        shown: What was shown to its writer: messages, memories, names.
        named: Whom it may be about: their names support nothing.
        cited: What it rests on; a statement may give the sum or the difference of numbers in it.
    """

    shown: Sequence[DatedText]
    named: Sequence[str] = ()
    cited: Sequence[str] = ()

    def lacking(self, text: str) -> tuple[str, ...]:
        """Return the names, numbers and dates of a text that are found nowhere.

        They may be written differently: in words or digits, with or without separators, in twelve hours or twenty-four, as the
        day that a word of time means. Sums of what is cited, and the year of an age, count as found.
        """
        return tuple(dict.fromkeys((*self._names(text), *self._numbers(text))))

    def strange(self, text: str, value: str = "") -> tuple[str, ...]:
        """Return the parts of a text, and of the value that it gives an attribute, that someone should be asked about.

        These are all its words, if there are several and none of them occurs anywhere; else names that occur nowhere, if they
        may also be ordinary words.
        """
        return self._alien(f"{text} {value}") or tuple(dict.fromkeys((*self._likely(text), *self._valued(value))))

    def _alien(self, text: str) -> tuple[str, ...]:
        words = distinctive_words(text).difference(*map(distinctive_words, self.named))
        if self._other_script(text) or weight(words) < _FEWEST or words & self._words:
            return ()
        return tuple(sorted(word.lstrip("=~") for word in words))

    @cached_property
    def _whole(self) -> str:
        return "\n".join(each.text for each in self.shown)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset().union(*(distinctive_words(each.text) for each in self.shown))

    @cached_property
    def _spelled(self) -> tuple[frozenset[str], frozenset[str]]:
        """All words as they are written, and their stems."""
        return frozenset(re.findall(r"\w+", self._whole.casefold())), frozenset(tokenize(self._whole))

    def _other_script(self, text: str) -> bool:
        return has_cjk(self._whole) != has_cjk(text)

    def _names(self, text: str) -> Iterator[str]:
        if self._other_script(text):
            return
        if has_cjk(text):
            yield from self._unknown_names(_introduced("sure", "zh", text))
            return
        german = capitalizes_nouns(f"{self._whole} {text}")
        short = {word for run in _RUN_OF_NAMES.findall(text) if self._has_initials(run) for word in run.split()}
        found = _introduced("sure", "de", text) if german else _names_in(text)
        yield from (name for name in self._unknown_names((*found, *_shouted(text))) if name not in short)

    def _likely(self, text: str) -> Iterator[str]:
        """Yield possible names that occur nowhere, recognised by their position in the text."""
        if self._other_script(text):
            return
        if has_cjk(text):
            yield from (each for each in _introduced("likely", "zh", text) if self._is_unknown(each))
        elif capitalizes_nouns(f"{self._whole} {text}"):
            yield from self._unknown_names(_introduced("likely", "de", text))
        else:
            first = (name for span in sentences(text) for name in _introduced("likely", "en", span.text))
            known = (*stop_words(), *table("names")["words"]["speakers"].split())
            yield from self._unknown_names(name for name in first if name.casefold() not in known)

    def _valued(self, value: str) -> tuple[str, ...]:
        """Return a Chinese value of which no character occurs anywhere, or the names in another value that occur nowhere."""
        if self._other_script(value):
            return ()
        if has_cjk(value):
            return (value,) if self._is_unknown(value) else ()
        return () if capitalizes_nouns(self._whole) else tuple(self._unknown_names(_NAME.findall(value)))

    def _unknown_names(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the names that occur nowhere, in any form."""
        written, stems = self._spelled
        joined = re.sub(r"\W+", "", self._whole.casefold())
        for name in names:
            if has_cjk(name):
                pairs = {name[at : at + 2] for at in range(max(len(name) - 1, 1))}
                if not any(simplified(pair) in self._plain for pair in pairs):
                    yield name
                continue
            parts = [part for part in re.findall(r"\w+", name.casefold()) if len(part) > 1]
            if is_calendar_word(name) or all(part in written or _akin(part, written) for part in parts):
                continue
            if len(name) >= _LONG and re.sub(r"\W+", "", name.casefold()) in joined:  # EpiPen, epi pen
                continue
            if not (set(tokenize(name)) <= stems or self._has_initials(name)):
                yield name

    def _is_unknown(self, text: str) -> bool:
        """Return whether a text has Chinese characters, none of which occurs anywhere."""
        han = "".join(_HAN_RUN.findall(simplified(text)))
        return len(han) > 1 and not _LATIN.search(text) and not set(han) & set(self._plain)

    def _has_initials(self, name: str) -> bool:
        """Return whether NYC was written for New York City, or the other way round."""
        words = name.split()
        if len(words) > 1:
            return "".join(word[0] for word in words).casefold() in self._spelled[0]
        initials = "".join(word[0] for word in re.findall(r"\w+", self._whole.casefold()))
        return name.isupper() and name.casefold() in initials

    @cached_property
    def _plain(self) -> str:
        return simplified(self._whole)

    def _numbers(self, text: str) -> Iterator[str]:
        left = legible(text)
        for match in _DATE.finditer(left):
            left = left.replace(match[0], " ", 1)
            if not self._has_date(match):
                yield match[0]
        for date in written_dates(left):
            if self._has_days(date):
                left = left.replace(date.text, " ", 1)
        for mention in reversed(resolve(left, max(each.time for each in self.shown))):
            if mention.kind == "day" and self._is_near(mention.begins):
                left = f"{left[: mention.start]} {left[mention.end :]}"
        for match in _RUN.finditer(left):
            scaled = values(left[match.start() : match.end() + 2]) - values(match[0])
            if not (_MONTH_AHEAD.match(left, match.end()) or self._has(match[0]) or scaled & self._shown_forms):
                yield match[0]
        yield from (value for value in self._counted(left) if not self._has(value))

    def _counted(self, text: str) -> Iterator[str]:
        """Yield the numbers that a text has in words."""
        if has_cjk(text):
            counts = (_HAN_COUNT.match(each.text) for each in entities(text) if each.kind == "number")
            yield from (str(number(full_numeral(count[0]))) for count in counts if count)
        elif capitalizes_nouns(f"{self._whole} {text}"):
            for word in re.findall(r"\w+", text.casefold()):
                if not any(other.startswith(word) for other in self._spelled[0]):  # four, in words: zu viert
                    yield from map(str, numbers(word))
        else:
            yield from wording(text).numbers - {match.replace(",", "") for match in _RUN.findall(text)}

    def _has(self, written: str) -> bool:
        """Return whether a number is found, whole or part by part."""
        forms = {_SEPARATED.sub("", written), written, *values(written)}
        return any(map(self._has_value, forms)) or all(map(self._has_value, re.findall(r"\d+", written)))

    def _has_value(self, value: str) -> bool:
        plain = value.lstrip("0") or "0"
        if plain in self._shown_forms or not plain.isdecimal():
            return plain in self._shown_forms
        amount = int(plain)
        hours = {str(amount - 12), str(amount + 12)} if amount <= 24 else set[str]()
        return (
            amount <= _SMALL
            or not hours.isdisjoint(self._shown_forms)
            or plain in self._of_times
            or amount in self._sums
            or self._is_of_clock(amount)
            or (plain[:-2] in {"19", "20"} and plain[-2:] in self._short_years)
        )

    def _is_of_clock(self, amount: int) -> bool:
        """Return whether a number may be part of a time in everyday words: half past seven, Viertel vor acht."""
        told = re.search(table("names")["words"]["quarters"], self._whole) is not None
        next_hours = {str(amount + 1), str((amount + 1) % 12)} if amount < 24 else set[str]()
        return told and (amount in {15, 30, 45} or not next_hours.isdisjoint(self._shown_forms))

    def _has_date(self, match: re.Match[str]) -> bool:
        year, day = match["year"], match["day"]
        if not self._has_value(year):
            return False
        if day is None or self._has_value(day):
            return True
        with suppress(ValueError):
            date = datetime(int(year), int(match["month"]), int(day), tzinfo=UTC)
            return self._is_near(date) or str(date.isocalendar().week) in self._shown_forms
        return False

    def _has_days(self, date: WrittenDate) -> bool:
        """Return whether a word of time in the sources may mean the days of a date."""
        years = {date.year} if date.year else {each.time.year + step for each in self.shown for step in (-1, 0, 1)}
        with suppress(ValueError):
            return all(
                any(self._is_near(datetime(year, date.month, day, tzinfo=UTC)) for year in years) for day in date.days
            )
        return False

    def _is_near(self, date: datetime) -> bool:
        """Return whether a word of time in the sources may mean a day."""
        said = (each.time.date() for each in self.shown if counts_from_today(each.text))
        return any(abs(date.date() - day) <= _NEAR for day in said)

    @cached_property
    def _shown_forms(self) -> frozenset[str]:
        return frozenset(form for each in self.shown for form in _forms(each.text))

    @cached_property
    def _short_years(self) -> frozenset[str]:
        return frozenset(re.findall(r"['’](\d\d)\b", self._whole))

    @cached_property
    def _of_times(self) -> frozenset[str]:
        """The numbers used to write the times that the texts mean, and the times at which they were said."""
        times = [each.time for each in self.shown]
        for each in self.shown:
            times += (time for mention in resolve(each.text, each.time) for time in (mention.begins, mention.ends))
            times += (mention.ends - timedelta(minutes=1) for mention in resolve(each.text, each.time))
        parts = [part for time in times for part in (time.year, time.month, time.day, time.hour, time.minute)]
        parts += (time.year + step for time in times for step in (-1, 1))
        return frozenset(map(str, parts))

    @cached_property
    def _sums(self) -> frozenset[int]:
        """Sums, differences and products of two numbers that are cited, or of one and the year."""
        found = {int(form) for text in self.cited for form in _forms(text) if form.isdecimal() and len(form) < 10}
        years = {each.time.year for each in self.shown}
        of_two = {both for one in found for other in found for both in (one + other, abs(one - other), one * other)}
        ages = {
            both + step for one in found for year in years for both in (year - one, one - year) for step in (-1, 0, 1)
        }
        return frozenset(of_two | ages)


def _names_in(text: str) -> Iterator[str]:
    """Yield the words that a capital marks as names: not those that begin a sentence."""
    for span in sentences(text):
        for match in _NAME.finditer(span.text):
            before = span.text[: match.start()].rstrip("\"'“”‘’(«„*_ ")
            if before and before[-1] not in ":;.!?\u2026-–—" and not match[0].startswith(("I'", "I’")):
                yield match[0]


def _shouted(text: str) -> list[str]:
    """Return the words that capitals mark as names; not what the text also writes as a word, as `new SLUG` for slugs."""
    plain = re.findall(r"[a-z]+", text)
    return [name for name in _CAPITALS.findall(text) if not any(word.startswith(name.lower()) for word in plain)]


def _introduced(how: str, language: str, text: str) -> list[str]:
    """Return what the words next to it show to be a name."""
    return [found[1] for pattern in _patterns(how, language) for found in pattern.finditer(text)]


@cache
def _patterns(how: str, language: str) -> Sequence[re.Pattern[str]]:
    told = table("names")
    parts = {**told["parts"], "surname": "|".join(word_list("surnames_zh.txt"))}

    def whole(pattern: str) -> str:
        return re.sub(r"<(\w+)>", lambda named: parts[named[1]], pattern)

    return [re.compile(whole(pattern)) for pattern in told[how][language]]


def _akin(part: str, written: Iterable[str]) -> bool:
    """Return whether a word is another form of one that was written, as Portuguese of Portugal, or Road of Rd."""
    least = max(_PREFIX, round(0.6 * len(part)))
    return any(
        part[:least] == other[:least] or (len(other) > _PREFIX and part.startswith(other)) or _SHORT.get(part) == other
        for other in written
    )


def _forms(text: str) -> Iterator[str]:
    """Yield the numbers of a text: whole, and the parts of dates and times."""
    text = legible(text)
    yield from map(str, numbers(text))
    yield from ["6"] * len(_HALF_DOZEN.findall(text))
    yield from (value.lstrip("0") or "0" for value in wording(text).numbers)
    yield from (value.lstrip("0") or "0" for value in values(text))
    for numeral in re.findall(r"[一二两兩三四五六七八九十百千万]{3,8}", text):  # 五百一个月: where it ends is ambiguous
        yield from (form for end in range(2, len(numeral)) for form in values(numeral[:end]))
    for run in _RUN.findall(text):
        yield _SEPARATED.sub("", run).lstrip("0")
        yield from (part.lstrip("0") or "0" for part in re.findall(r"\d+", run))
