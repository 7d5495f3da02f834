"""The words that give a statement away, wherever else they are said: its values, or nearly all of its words together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from remegraph.language.entities import entities
from remegraph.language.numerals import number
from remegraph.language.scripts import HAN
from remegraph.language.sentences import sentences
from remegraph.language.tokens import query_tokens, tokenize
from remegraph.rules.veil import without

__all__ = ["Telltales", "clauses", "telling_sentences"]

_DIGITS = 4
"""From so many digits on a number is told from others; fewer count guests, hours and floors."""

_SEPARATED = re.compile(r"(?<=\d)[.,'\u2019\u00a0\u202f _-](?=\d)")
_CODE = re.compile(r"[\w+@./-]*\d[\w+@./-]*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_THOUSANDS = re.compile(r"(\d+(?:[.,]\d+)?)\s?(k|tsd\.?|万|萬|千)(?![a-z])", re.IGNORECASE)
_NUMERAL = re.compile("[〇零一二两兩三四五六七八九十百千万萬亿億]{2,12}")
_NEXT = {"亿": "千万", "万": "千", "千": "百", "百": "十"}
_PLAIN = str.maketrans("兩萬億", "两万亿")
_SPREAD = re.compile(
    r"(?<![^\W_])(?:[A-Za-z]{1,3}[ ./-])?[A-Za-z]{0,3}\d{1,6}(?:[ ./-][A-Za-z]{0,3}\d{1,6})+(?![^\W_])", re.ASCII
)
_SUFFIX = 6
"""Digits of a long number that are enough to give it away: whoever knows one leaves out what all have."""
_TIMES = {"k": 1_000, "tsd": 1_000, "tsd.": 1_000, "千": 1_000, "万": 10_000, "萬": 10_000}
_YEAR = re.compile(r"(?:19|20)\d\d")
_RUN = re.compile(rf"[{HAN}]+")
_CLAUSE = re.compile(r"[,;:]\s+|[，；：、—]|\s(?=(?:and|but|while|because|und|aber|weil)\s)", re.IGNORECASE)
_MOST = 0.75
"""Share of the words from which on a sentence says the same, where all names and numbers are in it, too."""

_ASKING = frozenset("rememb pleas note forget tell told know say said bitt merk denk vergiss merken".split())
"""Stems of what asks to be remembered: they say nothing of what."""

_FUNCTION = re.compile(
    "[的了是在我你他她它们這这那有不没沒很都也和就还還说說要会會去来來吗嗎呢吧啊给給把被对對从從到着著过過请請叫做为為与與跟请請]|一下|已经|已經|别忘|別忘|忘记|忘記|记得|記得|记住|記住|告诉|告訴|知道"
)
"""Characters that stand between the words of a Chinese statement; what they divide are its words."""


@dataclass(frozen=True)
class Telltales:
    """What one statement is known by.

    Args:
        text: What it says.
        names: Whom it is told of, as everything is: they give nothing away.
    """

    text: str
    names: frozenset[str] = frozenset()

    @cached_property
    def values(self) -> frozenset[str]:
        """Codes, addresses and numbers of four digits and more: one of them alone gives the statement away."""
        return frozenset(value for value in _values(self._told) if _strong(value))

    @cached_property
    def hints(self) -> frozenset[str]:
        """Names, quoted words and small numbers: each gives a statement away to who heard it a moment ago."""
        told = self._told.strip()
        first = told.split(maxsplit=1)[0].casefold() if told else ""  # has its capital from where it stands
        named = (each.text for each in entities(told) if each.kind in {"name", "quoted", "term"})
        parts = (part for name in named for part in name.split() if part.casefold() != first)
        tokens = {token for part in parts for token in _words(part)}
        return frozenset((tokens | {value for value in _values(self._told) if not _strong(value)}) - self._known)

    @cached_property
    def words(self) -> frozenset[str]:
        """All that it says: stems, and in Chinese what stands between the function words."""
        return frozenset(_words(self._told)) - self._known - _ASKING

    @cached_property
    def sought(self) -> frozenset[str]:
        """Tokens of our index of which a text that says it holds some."""
        forms = {form for value in self.values for form in _forms(value)}
        return frozenset(token for form in (*forms, *self.words, *self.hints) for token in tokenize(form))

    def said_in(self, text: str) -> bool:
        """Return whether a sentence says the same: it holds a value, or else all names and nearly all of the words.

        Args:
            text: A sentence, of anybody, at any time.
        """
        if self.values:
            return any(_same(mine, other) for mine in self.values for other in _values(text))
        shared = sum(_holds(text, word) for word in self.words)
        named = self.hints <= {*_words(text), *_values(text)}
        return named and (len(self.hints) > 1 or shared >= _MOST * len(self.words) > 0)

    def echoed_in(self, text: str) -> bool:
        """Return whether a sentence that was said right beside the statement repeats it, if only by a name.

        Args:
            text: A sentence of the same turn.
        """
        if self.said_in(text) or not self.hints.isdisjoint({*_words(text), *_values(text)}):
            return True
        shared = sum(_holds(text, word) for word in self.words)
        return 2 * shared >= len(self.words) > 0

    @cached_property
    def _told(self) -> str:
        """The statement without its dates: many a thing happens on one day."""
        text = self.text
        for each in reversed(entities(text)):
            if each.kind == "date":
                text = f"{text[: each.start]} {text[each.end :]}"
        return text

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(token for name in self.names for token in (*_words(name), *tokenize(name)))


def telling_sentences(text: str, tells: Iterable[Telltales], *, beside: bool = False) -> list[str]:
    """Return the sentences of a text that say what some statement says; of a long one, the clauses where they are enough.

    Args:
        text: The text.
        tells: Of the statements.
        beside: Whether it was said right beside them, so that less gives them away.
    """
    known = list(tells)

    def tells_it(part: str) -> bool:
        return any(each.echoed_in(part) if beside else each.said_in(part) for each in known)

    found: list[str] = []
    for span in sentences(text):
        if tells_it(span.text):
            parts = [clause for clause in clauses(span.text) if tells_it(clause)]
            left = without(span.text, parts, mark="\n")
            found += parts if parts and not tells_it(left) else [span.text]
    return found


def clauses(text: str) -> list[str]:
    """Return the parts of a text that say something each: sentences, and what commas and conjunctions divide.

    Args:
        text: The text.
    """
    parts = (part.strip() for span in sentences(text) for part in _CLAUSE.split(span.text))
    return [part for part in parts if part]


def _values(text: str) -> set[str]:
    found: set[str] = set()
    for match in _THOUSANDS.finditer(text):
        counted = float(match[1].replace(",", "."))
        found.add(str(round(counted * _TIMES[match[2].lower()])))
    for match in _NUMERAL.finditer(text):
        with suppress(ValueError):
            found.add(str(number(_spoken(match.group().translate(_PLAIN)))))
    for match in _SPREAD.finditer(text):
        found.add(re.sub(r"\W", "", match.group()).casefold())
    for match in _CODE.finditer(_SEPARATED.sub("", text)):
        found.add(match.group().strip("@./-+_").casefold())
    return found - {""}


def _spoken(numeral: str) -> str:
    """Return a numeral with the unit that is left out when it is spoken: 六万八 is 68,000."""
    unit = _NEXT.get(numeral[-2:-1]) if numeral[-1] in "一二三四五六七八九" else None
    return f"{numeral}{unit}" if unit else numeral


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
    """Return how people write a value, as far as our index tells the forms apart."""
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
