"""Requests to forget, and the words by which a forgotten statement is recognised, wherever they are said.

Phrases flag the plain forms of a request, in seven languages and scripts (data/requests.toml). A match only withholds the
words until someone has decided. Most requests are worded otherwise; those the model
that reads the block names, in whatever language. Words in quotes were said by others.

What gives a statement away are its values, or nearly all of its words together.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

from remegraph.models import Message
from remegraph.models.quotes import find_quote
from remegraph.models.remnants import without
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.text.entities import entities
from remegraph.text.scripts import HAN, number, simplified, spoken
from remegraph.text.sentences import Span, sentences
from remegraph.text.tables import table
from remegraph.text.terms import without_dates
from remegraph.text.tokens import query_tokens, tokenize

__all__ = [
    "FORGET_TOOL",
    "Request",
    "Telltales",
    "asked_in",
    "asking_for",
    "asking_parts",
    "capitalizes_nouns",
    "clauses",
    "echo",
    "has_form",
    "is_carried_out",
    "kinds_in",
    "own_words",
    "pattern_of",
    "requests",
    "telling_sentences",
    "unasked",
    "values",
]


FORGET_TOOL = "forget_memory"
"""The tool by which an agent forgets: what is said in its turn repeats what shall be forgotten."""

_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“\n]*“|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|`[^`\n]*`")

_LONGEST = 400
"""Characters of a sentence that asks for something; what is longer was pasted."""

_LANGUAGES = ("en", "de", "zh", "es", "fr", "ja")


@dataclass(frozen=True, slots=True)
class Request:
    """One sentence that sounds like a request to forget."""

    words: str
    back: bool
    """Whether it may mean what was said just before."""
    own: bool = False
    """Whether a clause of it says what it means."""
    language: str = "en"
    """Of those in which it may be put (data/requests.toml)."""
    faint: bool = False
    """Whether it is one only where the person has told before what it names."""


def requests(text: str) -> tuple[Request, ...]:
    """Return what a person's words ask to be forgotten, sentence by sentence; nearly always nothing."""
    found = [_read(part) for span in sentences(text) for part in _news_apart(span.text)]
    whole = _read(text) if not any(found) and len(found) > 1 else None
    return tuple(each for each in (*found, whole) if each is not None)


def own_words(message: Message) -> bool:
    """Return whether a person said a message themselves."""
    return message.role == "user" and not message.is_document and message.trust >= QUARANTINE_BELOW


def asked_in(message: Message) -> tuple[Request, ...]:
    """Return what a person asks in a message that they said themselves."""
    return requests(message.text) if own_words(message) else ()


def is_carried_out(turn: Sequence[Message]) -> bool:
    """Return whether the agent forgets by its tool in the turn that begins here."""
    for message in turn[1:]:
        if message.role == "user":
            return False
        if any(call.name == FORGET_TOOL for call in message.tool_calls):
            return True
    return False


def _read(said: str) -> Request | None:
    if len(said) > _LONGEST:
        return None
    text = unicodedata.normalize("NFKC", _QUOTED.sub(" ", said)).casefold().replace("’", "'").strip()
    texts = dict.fromkeys(_LANGUAGES, text) | {"zh": simplified(text)}
    for language, words in texts.items():
        phrases = _phrases()[language]
        hinted = any(hint in words for hint in phrases["hints"])  # what holds no part of a phrase is found out fast
        if hinted and phrases["forget"].search(words) and not phrases["none"].search(words):
            left = phrases["own"].sub(" ", words) if "own" in phrases else words
            back = phrases["back"].search(left) is not None
            own = not back and "clause" in phrases and bool(phrases["clause"].search(words))
            return Request(said, back, own=own, language=language)
    return _faint(said, texts[_language(text)])


def _faint(said: str, words: str) -> Request | None:
    """Return a sentence that speaks of taking away, and of what concerns a person, and of nothing that is edited."""
    language = _language(said)
    phrases = _phrases()[language]
    parts = [part for part in _CLAUSE.split(words) if phrases["takes"].search(part)]
    asks = any(kinds_in(part) for part in parts) and not any(phrases[name].search(words) for name in ("none", "edits"))
    return Request(said, back=False, own=True, language=language, faint=True) if asks else None


def asking_parts(text: str, before: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of a message that ask to forget, with all that may belong to them; nothing where that is all.

    What else it tells stays: sentences and marked clauses that say something by themselves, and that share no word with
    what is meant. In doubt a part goes, as words that were to be forgotten cannot be taken back.

    Args:
        text: The message.
        before: What was said before and is meant, or tells of it.
    """
    parts = [part for span in sentences(text) for part in _news_apart(span.text)]
    asked = {at: found for at, part in enumerate(parts) if (found := _read(part))}
    if not asked:
        return ()  # only all of it together asks
    said = [each.words for each in asked.values()]
    back, clause = any(each.back for each in asked.values()), all(each.own for each in asked.values())
    here = has_form("says", [*parts[: min(asked)], clauses(said[0])[0]])
    known = bool(before) or clause or (back and here)
    ahead = not known or has_form("wide", said) or (not here and has_form("ahead", said))
    meant = [*before, *said]
    first = 0 if known and not back else min(asked)
    news = {
        at for at, part in enumerate(parts) if at >= first and at not in asked and _is_news(part, marked_only=ahead)
    }
    meant += [part for at, part in enumerate(parts) if at not in news]
    told = {at for at in news if not _echoes(parts[at], meant)}
    return tuple(dict.fromkeys(part for at, part in enumerate(parts) if at not in told)) if told else ()


def unasked(words: str) -> str:
    """Return what a request names: its words without those that ask."""
    return pattern_of("verbs", words).sub(" ", _alike(words))


def _news_apart(sentence: str) -> list[str]:
    """Return a sentence, in two or more parts where a marked clause follows a request that is one by itself."""
    starts = [0, *(match.start() for match in pattern_of("also", sentence).finditer(_alike(sentence)) if match.start())]
    parts = [sentence[start:end].strip() for start, end in zip(starts, [*starts[1:], len(sentence)], strict=True)]
    return [part for part in parts if part] if any(map(_read, parts)) else [sentence]


def _is_news(part: str, *, marked_only: bool) -> bool:
    """Return whether a part of a message says something by itself; with `marked_only`, whether its first words say so."""
    words = _alike(part)
    marked = pattern_of("also", part).match(words)
    rest = words[marked.end() :] if marked else words
    if pattern_of("clings", part).search(rest) or (
        not marked and (marked_only or pattern_of("past", part).search(rest))
    ):
        return False
    return bool(pattern_of("says", part).search(rest) or (marked and pattern_of("verb", part).search(rest)))


def _echoes(part: str, meant: Iterable[str]) -> bool:
    """Return whether a part of a message shares a word, or a kind of number, with what is meant."""
    said = echo(part)
    return any(not said.isdisjoint(echo(each)) for each in meant)


def echo(text: str) -> frozenset[str]:
    """Return what a text is recognised by: its stems, pairs of Chinese characters, and that it tells a code."""
    plain = simplified(text)
    pairs = {f"{a}{b}" for run in _RUN.findall(plain) for each in _FUNCTION.split(run) for a, b in pairwise(each)}
    rest = _RUN.sub(" ", without_dates(plain))
    stems = {word for word in query_tokens(rest) if word.isalpha()} if any(map(str.isalnum, rest)) else set()
    pairs |= set(_KIN.findall(plain))
    codes = {"#"} if any(not _YEAR.fullmatch(each) for each in values(rest)) else set()
    return frozenset((pairs | stems | codes) - _ASKING)


def has_form(name: str, texts: Iterable[str]) -> bool:
    """Return whether one of these texts holds the pattern of this name (data/requests.toml), that of its language."""
    return any(pattern_of(name, text).search(_alike(text)) for text in texts)


def pattern_of(name: str, text: str) -> re.Pattern[str]:
    """Return the pattern of this name (data/requests.toml), in the language of a text: English, or Chinese."""
    pattern: re.Pattern[str] = _phrases()[_language(text)][name]
    return pattern


def _language(text: str) -> str:
    return "zh" if _RUN.search(text) else "en"


def _alike(text: str) -> str:
    """Return a text in the letters that the phrases are written in; all places stay."""
    forms = ((each, unicodedata.normalize("NFKC", each).casefold().replace("\u2019", "'")) for each in text)
    return simplified("".join(form if len(form) == 1 else each for each, form in forms))


@cache
def _phrases() -> Mapping[str, Any]:
    data = table("requests")
    found: dict[str, Any] = {}
    for language in _LANGUAGES:
        patterns = {name: each if name == "hints" else _any(each) for name, each in data[language].items()}
        found[language] = patterns
    return found


def kinds_in(text: str) -> frozenset[str]:
    """Return of what kinds of things that concern a person a text speaks, in whatever words (data/requests.toml)."""
    words = simplified(text).casefold()
    return frozenset(kind for kind, pattern in _kinds().items() if pattern.search(words))


@cache
def _kinds() -> Mapping[str, re.Pattern[str]]:
    return {kind: re.compile(pattern) for kind, pattern in table("requests")["kinds"].items()}


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in patterns), re.MULTILINE)


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
"""Digits of a long number that are enough to give it away: whoever knows one leaves out what all have."""
_TIMES = {"k": 1_000, "tsd": 1_000, "tsd.": 1_000, "千": 1_000, "万": 10_000, "萬": 10_000}
_YEAR = re.compile(r"(?:19|20)\d\d")
_NOUNS = re.compile(rf"\b(?:{'|'.join(table('telltales')['german'].split())})\b", re.IGNORECASE)
"""Words by which German is known: all its nouns have capitals, so that these tell no names."""
_RUN = re.compile(rf"[{HAN}]+")
_CLAUSE = re.compile(r"[,;:]\s+|[，；：、،؛—]|\s(?=(?:and|but|while|because|und|aber|weil)\s)", re.IGNORECASE)
_MOST = 0.75
"""Share of the words from which on a sentence says the same, where all names and numbers are in it, too."""

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
        names: Whom it is about, as everything is: they give nothing away.
        part: Whether this is a clause only. Short clauses are common, so they count only near where they were said.
    """

    text: str
    names: frozenset[str] = frozenset()
    part: bool = False

    @cached_property
    def values(self) -> frozenset[str]:
        """Codes, addresses and numbers of four digits and more: one of them alone gives the statement away."""
        return frozenset(value for value in values(self._told) if _strong(value))

    @cached_property
    def hints(self) -> frozenset[str]:
        """Names, quoted words and small numbers: each gives a statement away to who heard it a moment ago."""
        told = self._told.strip()
        first = told.split(maxsplit=1)[0].casefold() if told else ""  # has its capital from where it stands
        named = (each.text for each in entities(told) if each.kind in {"name", "quoted", "term"})
        parts = (part for name in named for part in name.split() if part.casefold() != first)
        tokens = {token for part in parts for token in _words(part)}
        small = {value for value in values(self._told) if not _strong(value) and not _YEAR.fullmatch(value)}
        return frozenset((tokens | small) - self._known)

    @cached_property
    def everywhere(self) -> bool:
        """Whether it counts wherever it is said, and not only where it was: a clause does so by a value or a name."""
        named = any(not each.isdigit() for each in self.hints) and _NOUNS.search(self.text) is None
        return not self.part or bool(self.values) or named

    @cached_property
    def words(self) -> frozenset[str]:
        """All that it says: stems, and in Chinese the runs between the function words."""
        return frozenset(_words(self._told)) - self._known - _ASKING

    @cached_property
    def sought(self) -> frozenset[str]:
        """Tokens of our index of which a text that says it holds some."""
        forms = {form for value in self.values for form in _forms(value)}
        return frozenset(token for form in (*forms, *self.words, *self.hints) for token in tokenize(form))

    def said_in(self, text: str) -> bool:
        """Return whether a sentence says the same: it holds a value, or else all names and nearly all of the words."""
        if self.values:
            return any(_same(mine, other) for mine in self.values for other in values(text))
        shared = sum(_holds(text, word) for word in self.words)
        named = self.hints <= {*_words(text), *values(text)}
        return named and (len(self.hints) > 1 or shared >= _MOST * len(self.words) > 0)

    def echoed_in(self, text: str) -> bool:
        """Return whether a sentence that was said right beside the statement repeats it, if only by a name."""
        if self.said_in(text) or not self.hints.isdisjoint({*_words(text), *values(text)}):
            return True
        shared = sum(_holds(text, word) for word in self.words)
        return 2 * shared >= len(self.words) > 0

    @cached_property
    def _told(self) -> str:
        """The statement without its dates: many a thing happens on one day."""
        text = without_dates(self.text)
        for each in reversed(entities(text)):
            if each.kind == "date":
                text = f"{text[: each.start]} {text[each.end :]}"
        return text

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(token for name in self.names for token in (*_words(name), *tokenize(name)))


def telling_sentences(text: str, tells: Iterable[Telltales], *, beside: bool = False, near: bool = True) -> list[str]:
    """Return the sentences of a text that say what some statement says; of a long one, the clauses where they are enough.

    With `beside`, the text was said right beside them, so that less gives them away. With `near`, it was said where
    they were, so that each clause of them gives them away; elsewhere only those do that tell everywhere, until a
    sentence has said it.
    """
    known = list(tells)
    first = known if near else [each for each in known if each.everywhere]

    def tells_it(part: str, by: Sequence[Telltales] = known) -> bool:
        return any(each.echoed_in(part) if beside else each.said_in(part) for each in by)

    found: list[str] = []
    for span in sentences(text):
        if tells_it(span.text, first):
            parts = [clause for clause in clauses(span.text) if tells_it(clause)]
            left = without(span.text, parts, mark="\n")
            found += parts if parts and not tells_it(left) else [span.text]
    return found


def asking_for(text: str, quotes: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the sentences of a text that hold quotes; of a sentence that says something else, too, the clauses.

    `others` are words of the same text that something else was learned from.
    """
    asks, tells = ([place for each in found if (place := find_quote(each, text))] for found in (quotes, others))
    found: list[str] = []
    for span in sentences(text):
        if _meets(span.start, span.end, asks):
            parts = list(_parts(text, span.start, span.end)) if _meets(span.start, span.end, tells) else [span]
            found += [part.text for part in parts if len(parts) == 1 or _meets(part.start, part.end, asks)]
    return found


def _meets(start: int, end: int, places: Iterable[tuple[int, int]]) -> bool:
    return any(start < last and first < end for first, last in places)


def _parts(text: str, start: int, end: int) -> Iterator[Span]:
    for part in _CLAUSE.split(text[start:end]):
        if part.strip():
            start = text.index(part, start)
            yield Span(start, start + len(part), part.strip())


def capitalizes_nouns(text: str) -> bool:
    """Return whether a text is German, as far as its small words tell: there, a capital makes no name."""
    return _NOUNS.search(text) is not None


def clauses(text: str) -> list[str]:
    """Return the parts of a text that say something each: sentences, and what commas and conjunctions divide."""
    parts = (part.strip() for span in sentences(text) for part in _CLAUSE.split(span.text))
    return [part for part in parts if part]


def values(text: str) -> set[str]:
    """Return the values in a text, in one form each: codes, addresses, and numbers however they are written."""
    found: set[str] = set()
    for match in _THOUSANDS.finditer(text):
        counted = float(match[1].replace(",", "."))
        found.add(str(round(counted * _TIMES[match[2].lower()])))
    for match in _NUMERAL.finditer(text):
        with suppress(ValueError):
            found.add(str(number(spoken(match.group().translate(_PLAIN)))))
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
