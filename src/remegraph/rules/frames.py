"""A sentence taken apart, so that code can tell in what it differs from another: subject, polarity, values, place.

Two sentences can be held against each other where all else is the same: "the hall seats 250" and "the hall seats 320".
Precision over recall: what cannot be taken apart differs from nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal, TypedDict, cast

from remegraph.language.entities import whole_word
from remegraph.language.tokens import query_tokens
from remegraph.rules.claims import relatives
from remegraph.rules.wording import wording

__all__ = ["Frame", "differ", "updates"]

Language = Literal["en", "zh"]

_LIKED = "±like"
_ONE = re.compile(r"(?<![\d.,:])1(?![\d.,:])|一(?=[个只条位名岁年月日号点])|\bone\b", re.IGNORECASE)
_MODEL = re.compile(r"[A-Za-z]+-?\d[\w.-]*|^[A-Z][a-z]+ \d+\b")
"""A number that is part of a name: B12, GPT-4, and Room 5 where a sentence is about it."""
_NAMED = re.compile(r"[A-Z]")


class _Grammar(TypedDict):
    negation: str
    no_negation: str
    likes: str
    dislikes: str
    consumes: str
    first_person: str
    person: str
    happened: str
    once: str
    weekday: str
    date: str
    place: str
    stays: str
    nowhere: str
    prefers: list[str]
    updates: str
    copula: str
    qualified: str
    opposites: list[list[str]]


@dataclass(frozen=True, slots=True)
class _Core:
    """What is said, without whether it is so."""

    words: frozenset[str]
    denied: bool | None
    """None: it is denied more than once, which nobody should untangle."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A sentence taken apart."""

    about: frozenset[str]
    """The speaker, if it is about them, and relatives that are named."""
    core: _Core
    unqualified: _Core
    """Without the place, and without what follows "at", "after", "because"."""
    days: frozenset[str]
    """Weekdays and times of day: what a person does on one, they may do on another, too."""
    values: frozenset[str]
    """Numbers, years and months."""
    place: frozenset[str]
    named: bool
    """Whether the place has a name."""
    located: _Core
    """What is at the place."""
    preferred: tuple[frozenset[str], frozenset[str]] | None
    habit: bool
    """Whether it is what a person does, which may be done at many times and places."""
    passing: bool
    """Whether it happened, or holds for a day: it may happen again, otherwise."""
    dated: bool
    liking: bool
    """Whether it says what is liked: many things are, and a number may be the name of one."""

    @classmethod
    def of(cls, sentence: str, who: str, language: Language) -> Frame:
        """Take a sentence apart.

        Args:
            sentence: The sentence.
            who: Whom "I" names.
            language: Of the sentence.
        """
        return _frame(sentence, who, language)

    def extends(self, other: Frame, least: int) -> bool:
        """Return whether it says all that another says, of the same subject and no less surely, and more.

        Args:
            other: Another sentence.
            least: How many words they share at least.
        """
        mine, yours = self.core, other.core
        return (
            self.about == other.about
            and not (self.passing or other.passing)
            and mine.denied == yours.denied
            and len(_content(yours)) >= least
            and yours.words < mine.words
            and other.values <= self.values
            and other.days <= self.days
        )


def differ(one: Frame, other: Frame) -> str:
    """Return in what two sentences differ so that they cannot both hold; empty where they can.

    Args:
        one: A sentence.
        other: Another.
    """
    if one.preferred and other.preferred:
        (this, that), (there, here) = one.preferred, other.preferred
        contrary = one.about == other.about and this != that and here <= this and that <= there
        return "what is preferred" if contrary else ""
    if _denies(one, other) or _denies(other, one):
        return "what is denied"
    if None in {one.core.denied, other.core.denied} or one.passing or other.passing:
        return ""
    if one.core.words and one.core == other.core and _clash(one, other):
        return "the date" if one.dated or other.dated else "the number"
    if one.place and _telling(one.located) and one.located == other.located and one.named == other.named:
        return "the place" if _each_has(one.place, other.place) else ""
    return ""


def updates(text: str, language: Language) -> bool:
    """Return whether a text says that something is no more as it was: "now", "instead", 改成.

    Args:
        text: The text.
        language: Of the text.
    """
    return _search(_grammar(language)["updates"], text)


def _denies(no: Frame, yes: Frame) -> bool:
    """Return whether one sentence denies outright what the other says, qualified or not."""
    if not no.core.denied or yes.core.denied is not False or not _telling(no.core):
        return False
    if no.core.words == yes.core.words:
        return not _clash(no, yes) and (not no.values or no.values <= yes.values)
    return not no.values and no.core.words == yes.unqualified.words


def _telling(core: _Core) -> bool:
    """Return whether it says more than whom it is about."""
    return bool(_content(core))


def _content(core: _Core) -> frozenset[str]:
    """Return its words but for whom it is about, and that it is liked."""
    return frozenset(word for word in core.words if word[0] != "@" and word != _LIKED)


def _clash(one: Frame, other: Frame) -> bool:
    """Return whether each gives a number or a date that the other does not give."""
    if one.liking or other.liking:
        return False
    if not (one.dated or other.dated) and len(one.values ^ other.values) > 2:
        return False  # door 4 has code 11, door 5 has code 12: one of the numbers says of what
    days = not one.habit and not other.habit
    mine, yours = (each.values | each.days if days else each.values for each in (one, other))
    return _each_has(mine, yours)


def _each_has(mine: frozenset[str], yours: frozenset[str]) -> bool:
    """Return whether each has what the other has not."""
    return bool(mine - yours) and bool(yours - mine)


@lru_cache(maxsize=1 << 10)  # one sentence is held against many; 6 KB each
def _frame(sentence: str, who: str, language: Language) -> Frame:
    grammar, text = _grammar(language), sentence.replace("’", "'").strip()
    without, days = _taken(grammar["weekday"], text)
    bare, months = _taken(grammar["date"], without)
    place = _place(bare, grammar)
    person = bool(_search(grammar["person"], text))
    once = bool(_search(grammar["once"], text))
    counted = _MODEL.sub(" ", without)
    values = frozenset({*months, *wording(counted).numbers, *(["1"] if _ONE.search(counted) else [])})
    located = f"{place['head']}{place['tail']}" if place else ""
    core = _core(bare, who, language)
    return Frame(
        about=relatives(text, language) | {word for word in core.words if word[0] == "@"},
        core=core,
        unqualified=_core(located or re.sub(grammar["qualified"], "", bare), who, language),
        days=days,
        values=values,
        place=frozenset(query_tokens(place["place"])) if place else frozenset(),
        named=bool(place and _NAMED.search(place["place"])),
        located=_core(located, who, language),
        preferred=_preferred(text, grammar),
        habit=person and not once,
        passing=bool(_search(grammar["happened"], text)) and not once,
        dated=bool(days or months),
        liking=bool(_search(f"{grammar['likes']}|{grammar['dislikes']}", text)),
    )


def _core(text: str, who: str, language: Language) -> _Core:
    grammar = _grammar(language)
    words: set[str] = set()
    if _search(grammar["first_person"], text):
        words.add(f"@{who.casefold()}")
    elif who:  # as a whole word: there is an Ann in "cannot"
        text, named = re.subn(whole_word(who), " ", text, flags=re.IGNORECASE)
        words |= {f"@{who.casefold()}"} if named else set()
    text = re.sub(grammar["copula"], " ", text, flags=re.IGNORECASE)
    kept = re.sub(grammar["no_negation"], " ", text, flags=re.IGNORECASE)
    sides = [(_LIKED, f"{grammar['likes']}|{grammar['consumes']}", grammar["dislikes"])]
    sides += [(f"±{number}", yes, no) for number, (yes, no) in enumerate(grammar["opposites"])]
    denials = 0
    for name, yes, no in sides:
        word = r"(?:{})" if language == "zh" or name == _LIKED else r"\b(?:{})\b"
        kept, refused = re.subn(word.format(no), " ", kept, flags=re.IGNORECASE)
        kept, granted = re.subn(word.format(yes), " ", kept, flags=re.IGNORECASE)
        denials += refused
        words |= {name} if refused or granted else set()
    kept, negations = re.subn(grammar["negation"], " ", kept, flags=re.IGNORECASE)
    denials += negations
    return _Core(frozenset(words | wording(kept).words), bool(denials) if denials < 2 else None)


def _place(text: str, grammar: _Grammar) -> Mapping[str, str] | None:
    """Return where something is, if a sentence says so: what is there, and the place."""
    if _search(grammar["nowhere"], text):
        return None
    match = re.match(grammar["place"], text, re.IGNORECASE)
    if match is None or (_search(grammar["person"], text) and not _search(grammar["stays"], text)):
        return None
    return match.groupdict() if query_tokens(match["place"]) else None


def _preferred(text: str, grammar: _Grammar) -> tuple[frozenset[str], frozenset[str]] | None:
    for pattern in grammar["prefers"]:
        if match := re.search(pattern, text, re.IGNORECASE):
            return wording(match["this"]).words, wording(match["that"]).words
    return None


def _taken(pattern: str, text: str) -> tuple[str, frozenset[str]]:
    """Return a text without what matches, and what did."""
    found = frozenset(match.group().casefold().removesuffix("s") for match in re.finditer(pattern, text, re.IGNORECASE))
    return re.sub(pattern, " ", text, flags=re.IGNORECASE), found


def _search(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


@lru_cache(maxsize=1)
def _data() -> dict[str, _Grammar]:
    text = (files("remegraph.rules") / "data" / "frames.toml").read_text(encoding="utf-8")
    return cast("dict[str, _Grammar]", tomllib.loads(text))


def _grammar(language: Language) -> _Grammar:
    return _data()[language]
