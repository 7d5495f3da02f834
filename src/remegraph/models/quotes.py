"""Find quotes in the words that they claim to come from, and words that are copied where they must not be."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from remegraph.models import Evidence, Quote, StoredMessage
from remegraph.text import table
from remegraph.text.scripts import CJK

__all__ = ["cited_text", "copied", "find_copied", "find_quote", "quoted", "repeats"]

_CJK_CHARACTER = re.compile(f"[{CJK}]")
_QUOTATION_MARKS = frozenset(
    "'\"`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033\u2039\u203a\u00ab\u00bb\u300c\u300d\u300e\u300f\u301d\u301e"
)
_DASHES = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b")
_FULL_STOPS = frozenset("\u3002\uff61")
_LINE_FEED = re.compile(r"\\[nrt]$")
_WITHIN_NUMBER = re.compile(r"\d[.,:]\d")
_ELLIPSIS = re.compile(r"\s*[\[(\uff08]?(?:\.{3,}|\u2026+|\u22ef+)[\])\uff09]?\s*")
_ESCAPED = re.compile(r"\\[nrt](?![a-z]{2,}\\)")
_WORD = re.compile(
    rf"[{CJK}]"
    r"|(?<![\w.,)])[-\u2212]?\d+(?:[.,:/\-\u2013]\d+)*\w*"
    rf"|(?:(?![{CJK}])\w)+(?:['\u2019\u02bc](?:(?![{CJK}])\w)+)*"
    r"|[^\w\s]"
)
_CLITIC = re.compile("(?<!\\w)(?:[\u0648\u0641]?[\u0628\u0643\u0644\u0633]?(?:\u0627\u0644)?)\\Z")
"""Prefixes that Arabic writes together with the next word: and, so, in, as, to, will, the."""
_ADORNS = re.compile("[\u0640\u064b-\u0652\u0670]")
"""Short vowels and elongation in Arabic, which are optional."""
_ARABIC = re.compile("[\u0621-\u064a]")
_SENTENCE_END = re.compile(r"[.!?;\n\u3002\uff01\uff1f\uff1b]")
_AFTER_PUNCTUATION = re.compile(r"[^\w\s]\s*\Z|\n\s*\Z")

_FEWEST_WORDS = 2
"""Fewest words in each part of a quote with an ellipsis: single words could be combined to say anything."""

_FEWEST_BESIDE = 3
"""Words that must be the same next to a corrected typo."""

_SHORTEST_MENDED = 5
"""Letters; between shorter words, one letter makes another word too often."""


def find_quote(quote: str, text: str) -> tuple[int, int] | None:
    """Return the place of `quote` in `text`, or None.

    It is looked for to the letter, then with what language models change when they copy folded away: case, runs of
    white space (between Chinese characters: any white space), kinds of quotation marks and dashes, full and half width,
    punctuation around the quote and an ellipsis after it. Words are never folded: a quote that begins or ends within a
    word of the text ("likes" in "dislikes", "12" in "2012") is not found.

    Returns:
        Start and end of the first such place, as indices of `text`.
    """
    if not quote.strip():
        return None
    start = text.find(quote)
    while start >= 0:
        if _between_words(text, start, start + len(quote)):
            return start, start + len(quote)
        start = text.find(quote, start + 1)
    return _find_folded(quote, text)


def find_copied(quote: str, text: str) -> tuple[int, int] | None:
    """Return the place of words that a model copied in `text`, or None.

    Beyond what `find_quote` folds, word by word: an ellipsis for words left out, contractions written out or drawn
    together, punctuation and markup more or less, escaped line feeds, and a mended typo in one word. Every other word,
    every number, name and negation must be the same.

    Returns:
        Start and end of the first such place, as indices of `text`, with what an ellipsis leaves out.
    """
    if (found := find_quote(quote, text)) is not None:
        return found
    wanted = [_words(part) for part in _ELLIPSIS.split(_ESCAPED.sub(" ", quote))]
    parts = [part for part in wanted if part]
    if not parts or (len(parts) > 1 and any(len(part) < _FEWEST_WORDS for part in parts)):
        return None
    shown = _words(text)
    known = frozenset(word.form for word in shown)
    for mends in (False, True) if sum(map(len, parts)) > _FEWEST_BESIDE else (False,):
        place = _in_order(parts, shown, text, known if mends else None)
        if place is not None:
            return shown[place[0]].start, shown[place[1] - 1].end
    return None


def quoted(
    evidence: Iterable[Evidence], messages: Mapping[str, StoredMessage]
) -> tuple[tuple[Quote, ...], tuple[str, ...]]:
    """Return the evidence found in the raw messages, and the ids of messages that do not contain it.

    `messages` are those that can be seen, by id.
    """
    quotes: list[Quote] = []
    missing: list[str] = []
    for item in evidence:
        message = messages.get(item.message_id)
        span = find_quote(item.quote, cited_text(item, message)) if message else None
        if message is None or span is None:
            missing.append(item.message_id)
        else:
            quotes.append(Quote(message=message, start=span[0], end=span[1], attachment=item.attachment))
    return tuple(quotes), tuple(missing)


def cited_text(evidence: Evidence, message: StoredMessage) -> str:
    """Return the text that evidence cites: the words of its message, or what is in an attachment of it."""
    return (message.reading(evidence.attachment) or "") if evidence.attachment else message.text


@dataclass(frozen=True, slots=True)
class _Word:
    """A word, a number, a meaningful sign, or a Chinese character, and its place."""

    form: str
    start: int
    end: int
    name: bool
    """Whether it may be a name: it begins with a capital."""


@dataclass(frozen=True, slots=True)
class _Data:
    """The words of `data/quotes.toml`."""

    negations: frozenset[str]
    written: Mapping[str, Sequence[str]]
    endings: Mapping[str, str]
    stands_for: Mapping[str, frozenset[str]]
    others: frozenset[frozenset[str]]


@cache
def _data() -> _Data:
    told = table("quotes")
    pairs = (pair.split() for line in told["others"]["pairs"].splitlines() for pair in line.split("|"))
    return _Data(
        negations=frozenset(_form(word) for word in told["negations"].split()),
        written={word: whole.split() for word, whole in told["written"].items()},
        endings=told["contractions"],
        stands_for={ending: frozenset((ending, *whole.split())) for ending, whole in told["stands_for"].items()},
        others=frozenset(frozenset(map(_form, pair)) for pair in pairs),
    )


def _form(word: str) -> str:
    return "".join(map(_fold_character, word)).strip("_")


@lru_cache(maxsize=64)
def _words(text: str) -> tuple[_Word, ...]:
    """Return the words of a text in their order, contractions as the words that they are."""
    found: list[_Word] = []
    for match in _WORD.finditer(text):
        word = match[0]
        if not (word[0].isalnum() or word[0] in "_-\u2212" or _signifies(word)):
            continue
        forms = _spelled(_form(word)) if len(word) > 1 or word.isalnum() else [_fold_character(word)]
        found += [_Word(form, *match.span(), name=word[0].isupper()) for form in forms if form]
    return tuple(found)


def _signifies(sign: str) -> bool:
    return sign in "%\u2030+=" or unicodedata.category(sign) in {"Sc", "So"}


def _spelled(word: str) -> Sequence[str]:
    """Return the words that a contraction stands for: "don't" is "do not"."""
    data = _data()
    if word in data.written:
        return data.written[word]
    for ending, whole in data.endings.items():
        if word.endswith(ending) and len(word) > len(ending):
            return (word.removesuffix(ending), whole)
    return (word,)


def _in_order(
    parts: Sequence[Sequence[_Word]], shown: Sequence[_Word], text: str, known: frozenset[str] | None
) -> tuple[int, int] | None:
    """Return the places of the parts, one after the other, in `shown`; with `known`, one word may be mended."""
    for first in range(len(shown)):
        mends = 0 if known is None else 1
        begins = end = -1
        for part in parts:
            reach = (first,) if end < 0 else range(end, len(shown))
            found = next((hit for at in reach if (hit := _from(part, shown, at, known, mends)) is not None), None)
            if found is None or (end >= 0 and not _may_leave_out(shown[end : found[0]], text, shown, end, found[0])):
                break
            begins, end, mends = (found[0] if begins < 0 else begins), found[1], found[2]
        else:
            return begins, end
    return None


def _from(
    part: Sequence[_Word], shown: Sequence[_Word], at: int, known: frozenset[str] | None, mends: int
) -> tuple[int, int, int] | None:
    """Return the place of a part if it is here, and how many words may still be corrected."""
    if at + len(part) > len(shown):
        return None
    for wanted, word in zip(part, shown[at:], strict=False):
        if _equal(wanted.form, word.form):
            continue
        if not mends or known is None or wanted.form in known or not _mended(word, wanted, first=at == 0):
            return None
        mends -= 1
    return at, at + len(part), mends


def _equal(one: str, other: str) -> bool:
    if one == other:
        return True
    stands_for = _data().stands_for
    return other in stands_for.get(one, ()) or one in stands_for.get(other, ())


def _mended(said: _Word, wrote: _Word, *, first: bool) -> bool:
    """Return whether a word is another with a typo corrected: a letter doubled or not, or two letters exchanged.

    Any other letter makes another word; so do these if both are known words.
    """
    one, other = said.form, wrote.form
    if min(len(one), len(other)) < _SHORTEST_MENDED or not (one.isalpha() and other.isalpha()):
        return False
    if (said.name and not first) or wrote.name != said.name or (one[0], one[-1]) != (other[0], other[-1]):
        return False
    if frozenset((one, other)) in _data().others:
        return False
    if len(one) == len(other):
        differing = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        return len(differing) == 2 and differing[1] - differing[0] == 1 and sorted(one) == sorted(other)
    longer, shorter = max(one, other, key=len), min(one, other, key=len)
    return any(
        longer[at] == longer[at - 1] and longer[:at] + longer[at + 1 :] == shorter for at in range(1, len(longer))
    )


def _may_leave_out(gap: Sequence[_Word], text: str, shown: Sequence[_Word], end: int, begins: int) -> bool:
    """Return whether an ellipsis may replace these words.

    No negation is left out, and what follows another sentence begins as one: else two halves would say something new.
    """
    if any(word.form in _data().negations for word in gap):
        return False
    between = text[shown[end - 1].end : shown[begins].start]
    return not _SENTENCE_END.search(between) or bool(_AFTER_PUNCTUATION.search(between))


def _find_folded(quote: str, text: str) -> tuple[int, int] | None:
    wanted = _strip(_fold(quote)[0])
    if not wanted:
        return None
    folded, origin = _fold(text)
    at = folded.find(wanted)
    while at >= 0:
        start, end = origin[at], origin[at + len(wanted) - 1] + 1
        whole = (at == 0 or origin[at - 1] < start) and (
            at + len(wanted) == len(origin) or origin[at + len(wanted)] >= end
        )
        if whole and _between_words(text, start, end):
            return start, end
        at = folded.find(wanted, at + 1)
    return None


def _fold(text: str) -> tuple[str, list[int]]:
    """Return the folded text and, for each of its characters, the index in `text` that it comes from."""
    folded: list[str] = []
    origin: list[int] = []
    gap = -1  # where a run of white space began that is not yet written
    for index, character in enumerate(text):
        new = _fold_character(character)
        if new == " ":
            gap = index if gap < 0 else gap
            continue
        if not new or (new == "-" and folded and folded[-1] == "-" and gap < 0):
            continue
        if gap >= 0 and folded and not (_CJK_CHARACTER.match(folded[-1]) or _CJK_CHARACTER.match(new)):
            folded.append(" ")
            origin.append(gap)
        gap = -1
        folded.extend(new)
        origin.extend([index] * len(new))
    return "".join(folded), origin


@lru_cache(maxsize=1 << 14)
def _fold_character(character: str) -> str:
    if character.isspace():
        return " "
    if character in _QUOTATION_MARKS:
        return "'"
    if character in _DASHES:
        return "-"
    if character in _FULL_STOPS:
        return "."
    if unicodedata.category(character) == "Cf" or _ADORNS.match(character):  # zero width, soft hyphen, direction
        return ""
    new = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    return " " if new.isspace() else new.replace(" ", "")


def _strip(folded: str) -> str:
    """Cut off non-word characters at both ends."""
    start, end = 0, len(folded)
    while start < end and not _is_word(folded[start]):
        start += 1
    while end > start and not _is_word(folded[end - 1]):
        end -= 1
    return folded[start:end]


def _is_word(character: str) -> bool:
    # Letters, marks, numbers, currency and other symbols: all but punctuation, spaces and modifiers.
    return unicodedata.category(character)[0] in "LMN" or unicodedata.category(character) in ("Sc", "So", "Sm")


def _between_words(text: str, start: int, end: int) -> bool:
    return not (_same_word(text, start) or _same_word(text, end))


def _same_word(text: str, index: int) -> bool:
    """Return whether the characters before and at `index` belong to one word, or one number."""
    if not 0 < index < len(text):
        return False
    before, after = text[index - 1], text[index]
    if unicodedata.category(after)[0] == "M" or _WITHIN_NUMBER.search(text[max(index - 2, 0) : index + 2]):
        return True
    if _ARABIC.match(after) and _CLITIC.search(text, max(index - 4, 0), index):
        return False
    spelled = before.isalnum() and after.isalnum()
    if spelled and _LINE_FEED.search(text[max(index - 2, 0) : index]) and text.lstrip()[0] in "{[":
        return False  # a tool's JSON: what looks like "n437" is a line feed and a number
    return spelled and not (_CJK_CHARACTER.match(before) or _CJK_CHARACTER.match(after))


_UNITS = re.compile(rf"[{CJK}]|[^\W_{CJK}]+(?:['’][^\W_{CJK}]+)*")


_CHARACTER = re.compile(f"[{CJK}]")


_RUN = 6
"""Words in a row that make a quote; two Chinese characters count as one."""


def copied(text: str, source: str) -> str:
    """Return the first words in a row that a text has in common with another, if they are many enough for a quote.

    Case and punctuation do not count.
    """
    written, known = _UNITS.findall(text.casefold()), f" {' '.join(_UNITS.findall(source.casefold()))} "
    for start in range(len(written)):
        run, words = [], 0.0
        for unit in written[start:]:
            run.append(unit)
            words += 0.5 if _CHARACTER.fullmatch(unit) else 1.0
            if words >= _RUN:
                if f" {' '.join(run)} " in known:
                    return " ".join(run)
                break
    return ""


def repeats(texts: Iterable[str], sources: Iterable[str]) -> str:
    """Return words that a text takes from a source as they are written there; empty where none does."""
    known = tuple(sources)
    return next((run for text in texts for source in known if (run := copied(text, source))), "")
