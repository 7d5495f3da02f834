"""How a statement is recognised wherever it is repeated: by its values, its names, or nearly all of its words together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from remegraph.text import table
from remegraph.text.entities import entities
from remegraph.text.scripts import HAN, full_numeral, number, simplified
from remegraph.text.terms import without_dates
from remegraph.text.tokens import query_tokens, tokenize

__all__ = ["Telltales", "capitalizes_nouns", "echo", "values"]


_DIGITS = 4
"""From so many digits on a number identifies something; fewer count guests, hours and floors."""

_SEPARATED = re.compile(r"(?<=\d)[.,'\u2019\u00a0\u202f _-](?=\d)")
_CODE = re.compile(r"[\w+@./-]*\d[\w+@./-]*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_THOUSANDS = re.compile(r"(\d+(?:[.,]\d+)?)\s?(k|tsd\.?|万|萬|千)(?![a-z])", re.IGNORECASE)
_NUMERAL = re.compile("[〇零一二两兩三四五六七八九十百千万萬亿億]{2,12}")
_PLAIN = str.maketrans("兩萬億", "两万亿")
_SPREAD = re.compile(
    r"(?<![^\W_])(?:[A-Za-z]{1,3}[ ./-])?[A-Za-z]{0,3}\d{1,6}(?:[ ./-][A-Za-z]{0,3}\d{1,6})+(?![^\W_])", re.ASCII
)
_SUFFIX = 6
"""Digits of a long number that are enough to recognise it: people leave out a prefix that all have in common."""
_TIMES = {"k": 1_000, "tsd": 1_000, "tsd.": 1_000, "千": 1_000, "万": 10_000, "萬": 10_000}
_YEAR = re.compile(r"(?:19|20)\d\d")
_NOUNS = re.compile(rf"\b(?:{'|'.join(table('telltales')['german'].split())})\b", re.IGNORECASE)
"""Words by which German is recognised: all its nouns are capitalised, so a capital does not indicate a name."""
_RUN = re.compile(rf"[{HAN}]+")
_MOST = 0.75
"""Share of the words from which a sentence says the same, if it also has all names and numbers."""

_ASKING = frozenset("rememb pleas note forget tell told know say said bitt merk denk vergiss merken".split())
"""Stems of what asks to be remembered: they say nothing of what."""

_KIN = re.compile("[爸妈爹娘哥姐弟妹爷奶婆]")
"""Characters that name relatives, of whom one is called 我爸 and 爸爸."""

_FUNCTION = re.compile(
    "[的了是在我你他她它们這这那有不没沒很都也和就还還说說要会會去来來吗嗎呢吧啊给給把被对對从從到着著过過请請叫做为為与與跟请請]|一下|已经|已經|别忘|別忘|忘记|忘記|记得|記得|记住|記住|告诉|告訴|知道"
)
"""Characters between the words of a Chinese statement; what they divide are its words."""


@dataclass(frozen=True)
class Telltales:
    """What one statement is known by.

    Args:
        text: What it says.
        names: Whom it is about, as most statements are: they do not identify it.
        part: Whether this is a clause only. Short clauses are common, so they count only near where they were said.
    """

    text: str
    names: frozenset[str] = frozenset()
    part: bool = False

    @cached_property
    def values(self) -> frozenset[str]:
        """Codes, addresses and numbers of four digits and more: one of them alone gives the statement away."""
        return frozenset(value for value in values(self._undated) if _strong(value))

    @cached_property
    def hints(self) -> frozenset[str]:
        """Names, quoted words and small numbers: each gives a statement away to who heard it a moment ago."""
        told = self._undated.strip()
        first = told.split(maxsplit=1)[0].casefold() if told else ""  # capitalised because it begins the sentence
        named = (each.text for each in entities(told) if each.kind in {"name", "quoted", "term"})
        parts = (part for name in named for part in name.split() if part.casefold() != first)
        tokens = {token for part in parts for token in _words(part)}
        small = {value for value in values(self._undated) if not _strong(value) and not _YEAR.fullmatch(value)}
        return frozenset((tokens | small) - self._known)

    @cached_property
    def everywhere(self) -> bool:
        """Whether it counts in any text, and not only near the original: a clause does if it has a value or a name."""
        named = any(not each.isdigit() for each in self.hints) and _NOUNS.search(self.text) is None
        return not self.part or bool(self.values) or named

    @cached_property
    def words(self) -> frozenset[str]:
        """All that it says: stems, and in Chinese the runs between the function words."""
        return frozenset(_words(self._undated)) - self._known - _ASKING

    @cached_property
    def sought(self) -> frozenset[str]:
        """Tokens of our index; every text that says it holds at least one of them."""
        forms = {form for value in self.values for form in _forms(value)}
        return frozenset(token for form in (*forms, *self.words, *self.hints) for token in tokenize(form))

    def found_in(self, text: str) -> bool:
        """Return whether a sentence says the same: it holds a value, or else all names and nearly all of the words."""
        if self.values:
            return any(_same(mine, other) for mine in self.values for other in values(text))
        shared = sum(_holds(text, word) for word in self.words)
        named = self.hints <= {*_words(text), *values(text)}
        return named and (len(self.hints) > 1 or shared >= _MOST * len(self.words) > 0)

    def echoed_in(self, text: str) -> bool:
        """Return whether a sentence that was said right beside the statement repeats it, if only by a name."""
        if self.found_in(text) or not self.hints.isdisjoint({*_words(text), *values(text)}):
            return True
        shared = sum(_holds(text, word) for word in self.words)
        return 2 * shared >= len(self.words) > 0

    def shared_with(self, text: str) -> frozenset[str]:
        """Return what of the statement a text holds: its values, names and words."""
        known = values(text)
        same = {mine for mine in self.values if any(_same(mine, other) for other in known)}
        held = {word for word in self.words if _holds(text, word)}
        return frozenset(same | held | (self.hints & {*_words(text), *known}))

    @cached_property
    def _undated(self) -> str:
        """The statement without its dates: many things happen on one day."""
        text = without_dates(self.text)
        for each in reversed(entities(text)):
            if each.kind == "date":
                text = f"{text[: each.start]} {text[each.end :]}"
        return text

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(token for name in self.names for token in (*_words(name), *tokenize(name)))


def capitalizes_nouns(text: str) -> bool:
    """Return whether a text is German, judged by its small words: there, a capital does not indicate a name."""
    return _NOUNS.search(text) is not None


def echo(text: str) -> frozenset[str]:
    """Return what a text is recognised by: its stems, pairs of Chinese characters, and whether it states a code."""
    plain = simplified(text)
    pairs = {f"{a}{b}" for run in _RUN.findall(plain) for each in _FUNCTION.split(run) for a, b in pairwise(each)}
    rest = _RUN.sub(" ", without_dates(plain))
    stems = {word for word in query_tokens(rest) if word.isalpha()} if any(map(str.isalnum, rest)) else set()
    pairs |= set(_KIN.findall(plain))
    codes = {"#"} if any(not _YEAR.fullmatch(each) for each in values(rest)) else set()
    return frozenset((pairs | stems | codes) - _ASKING)


def values(text: str) -> set[str]:
    """Return the values in a text, in one form each: codes, addresses, and numbers however they are written."""
    found: set[str] = set()
    for match in _THOUSANDS.finditer(text):
        counted = float(match[1].replace(",", "."))
        found.add(str(round(counted * _TIMES[match[2].lower()])))
    for match in _NUMERAL.finditer(text):
        with suppress(ValueError):
            found.add(str(number(full_numeral(match.group().translate(_PLAIN)))))
    for match in _SPREAD.finditer(text):
        found.add(re.sub(r"\W", "", match.group()).casefold())
    for match in _CODE.finditer(_SEPARATED.sub("", text)):
        found.add(match.group().strip("@./-+_").casefold())
    return found - {""}


def _same(one: str, other: str) -> bool:
    """Return whether two values are one: the same, or a long number with and without what comes before it."""
    short, long = sorted((one.lstrip("0+"), other.lstrip("0+")), key=len)
    return short == long or (len(short) >= _SUFFIX and short.isdecimal() and long.endswith(short))


def _strong(value: str) -> bool:
    plain = re.sub(r"\W", "", value)
    if "@" in value:
        return True
    return len(plain) >= _DIGITS and not _YEAR.fullmatch(plain) and any(each.isdigit() for each in plain)


def _forms(value: str) -> set[str]:
    """Return how people write a value, as far as our index distinguishes the forms."""
    if not (value.isascii() and value.isdecimal() and len(value) < 20):
        return {value}
    whole = int(value)
    grouped = f"{whole:,}"
    short = {f"{whole / 1000:g}k", f"{whole / 10_000:g}万", f"{whole / 10_000:g}萬"} if whole % 100 == 0 else set()
    return {value, grouped, grouped.replace(",", "."), grouped.replace(",", " "), *short}


def _words(text: str) -> Iterator[str]:
    for run in _RUN.findall(text):
        yield from (part for part in _FUNCTION.split(run) if len(part) > 1)
    rest = _RUN.sub(" ", text)
    if any(character.isalnum() for character in rest):
        yield from query_tokens(rest)


def _holds(text: str, word: str) -> bool:
    return word in text if _RUN.fullmatch(word) else word in _tokens(text)


def _tokens(text: str) -> Collection[str]:
    return set(tokenize(text))
