"""The words, numbers and dates of a text in forms that compare: stems with synonyms folded, figures, days of a month."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from remegraph.text import table, text, word_list
from remegraph.text.scripts import HAN, full_numeral, number
from remegraph.text.tokens import tokenize

__all__ = [
    "Wording",
    "WrittenDate",
    "counts_from_today",
    "grams",
    "is_calendar_word",
    "legible",
    "numbers",
    "weight",
    "without_dates",
    "wording",
    "written_dates",
]


_PART = re.compile(rf"(?P<han>[{HAN}]+)|(?P<other>[^{HAN}]+)")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b", re.IGNORECASE)
_CONTRACTION = re.compile(r"['’](?:ll|ve|re|m|d|s)\b", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_NUMERAL = re.compile(r"[〇零一二两三四五六七八九十百千万亿]+")
_NEGATION_EN = frozenset(
    "not no never nor neither none without isnt arent wasnt werent dont doesnt didnt cant cannot couldnt wont wouldnt "
    "shouldnt hasnt havent hadnt aint nobody nothing".split()
)
_VAGUE = re.compile("[一二三四五六七八九十]{2}(?<!十)(?<!十.)")  # 三四 is "three or four"
_HAN_CHARACTER = re.compile(f"[{HAN}]")
_NEGATION_ZH = re.compile("不|没|未|无|别")


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of one sentence that matter."""

    words: frozenset[str]
    """Stems and Chinese characters; a word of a synonym group is the group's first, marked = or, if weak, ~."""
    numbers: frozenset[str]
    """Numbers above 1, as digits."""
    negative: bool
    """Whether it denies something."""


@lru_cache(maxsize=1 << 12)
def wording(text: str) -> Wording:
    """Return the words of `text` that matter when it is compared, English and Chinese alike."""
    words: set[str] = set()
    numbers: set[str] = set()
    negative = False
    for match in _PART.finditer(text):
        if match.lastgroup == "han":
            found, counted, denied = _chinese(match.group())
        else:
            found, counted, denied = _spaced(match.group())
        words |= found
        numbers |= counted
        negative |= denied
    return Wording(frozenset(words), frozenset(numbers), negative)


@lru_cache(maxsize=1 << 10)  # 7 KB for a sentence, and cheap to recompute
def grams(text: str) -> frozenset[str]:
    """Return the pairs of Chinese characters and the runs of four letters of `text`, word by word."""
    found: set[str] = set()
    for match in _PART.finditer(text.lower()):
        if match.lastgroup == "han":
            run = match.group()
            found.update(run[at : at + 2] for at in range(len(run) - 1))
        else:
            for word in _LETTERS.findall(match.group()):
                padded = f" {word}"
                found.update(padded[at : at + 4] for at in range(max(len(padded) - 3, 1)))
    return frozenset(found)


def _spaced(text: str) -> tuple[set[str], set[str], bool]:
    text = _CONTRACTION.sub("", _ORDINAL.sub("", text))
    numbers = {_plain_number(match.group()) for match in _NUMBER.finditer(text)} - {"0", "1"}
    stems = tokenize(_NUMBER.sub(" ", text))
    phrases, fillers = _lexicon_en()
    found: set[str] = set()
    negative = False
    at = 0
    while at < len(stems):
        for length in range(min(4, len(stems) - at), 0, -1):
            head = phrases.get(" ".join(stems[at : at + length]))
            if head is not None:
                found.update([head] if head else [])
                break
        else:
            length = 1
            negative |= stems[at] in _NEGATION_EN
            if stems[at] in _number_words():
                numbers.add(_number_words()[stems[at]])
            elif stems[at] not in fillers and len(stems[at]) > 1:
                found.add(stems[at])
        at += length
    return found, numbers, negative


def _chinese(run: str) -> tuple[set[str], set[str], bool]:
    phrases, longest = _lexicon_zh()
    found: set[str] = set()
    numbers: set[str] = set()
    negative = False
    at = 0
    while at < len(run):
        for length in range(min(longest, len(run) - at), 0, -1):
            head = phrases.get(run[at : at + length])
            if head is not None:
                if head:
                    found.add(head)
                elif _NEGATION_ZH.search(run[at : at + length]):
                    negative = True
                at += length
                break
        else:
            numeral = _NUMERAL.match(run, at)
            if numeral:
                try:
                    value = 0 if _VAGUE.fullmatch(numeral.group()) else number(full_numeral(numeral.group()))
                except ValueError:
                    value = 0
                if value > 1:
                    numbers.add(str(value))
                at = numeral.end()
            else:
                found.add(run[at])
                at += 1
    return found, numbers, negative


def _plain_number(digits: str) -> str:
    return re.sub(r",(?=\d{3}\b)", "", digits).rstrip(".,:")


def _lines(name: str) -> Iterator[str]:
    return (line for line in text(name).splitlines() if line and not line.startswith("#"))


@lru_cache(maxsize=1)
def _number_words() -> dict[str, str]:
    """Return the stems of English numbers above 1, in words, and what they are in digits."""
    cardinal = "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    cardinal += " eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
    words = {word: number(word) for word in cardinal.split()}
    words |= {"second": 2, "twice": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "tenth": 10, "dozen": 12}
    return {tokenize(word)[0]: str(value) for word, value in words.items()}


@lru_cache(maxsize=1)
def _lexicon_en() -> tuple[dict[str, str], frozenset[str]]:
    listed = " ".join(_lines("fillers_en.txt")).split()
    phrases = {" ".join(tokenize(phrase.replace("_", " "))): "" for phrase in listed if "_" in phrase}
    for line in _lines("synonyms_en.txt"):
        mark = "~" if line.startswith("~") else "="
        group = [" ".join(tokenize(phrase)) for phrase in line.split(",")]
        for phrase in group:
            phrases.setdefault(phrase, mark + group[0])
    listed += word_list("stopwords_en.txt")
    fillers = {stem for word in listed if "_" not in word for stem in tokenize(word)}
    return phrases, frozenset(fillers)


@lru_cache(maxsize=1)
def _lexicon_zh() -> tuple[dict[str, str], int]:
    phrases: dict[str, str] = {word: "" for line in _lines("fillers_zh.txt") for word in line.split()}
    for line in _lines("synonyms_zh.txt"):
        mark = "~" if line.startswith("~") else "="
        group = line.removeprefix("~").split(",")
        for phrase in group:
            phrases[phrase] = mark + group[0]
    return phrases, max(len(phrase) for phrase in phrases)


def weight(words: Iterable[str]) -> float:
    """Return how much words say: 1 each; half for a Chinese character or a weak synonym group."""
    return sum(0.5 if word[0] == "~" or _HAN_CHARACTER.fullmatch(word) else 1.0 for word in words)


_DIGIT = re.compile(r"[^\D0-9]")


@dataclass(frozen=True, slots=True)
class WrittenDate:
    """Days of a month, as a text has them."""

    text: str
    year: int | None
    month: int
    days: tuple[int, ...]


def legible(text: str) -> str:
    """Return a text with one form for what looks the same, and its figures as 0 to 9."""
    return _DIGIT.sub(lambda match: str(int(match[0])), unicodedata.normalize("NFKC", text))


def written_dates(text: str) -> Iterator[WrittenDate]:
    """Yield the dates of a text that name a month and its day: "15 septembre 2025", "26./27. Juli", "9월 15일"."""
    named, figures, months = _dates()
    for match in named.finditer(text):
        yield _written(match, months[match["month"].casefold()])
    for match in figures.finditer(text):
        yield _written(match, int(match["month"]))


def _written(match: re.Match[str], month: int) -> WrittenDate:
    days = tuple(int(day) for day in (match["first"], match["last"]) if day)
    return WrittenDate(match[0], int(match["year"]) if match["year"] else None, month, days)


def counts_from_today(text: str) -> bool:
    """Return whether a text holds a word for a day that is known by when it was said, as "Friday" or "gestern"."""
    return _near().search(legible(text)) is not None


def numbers(text: str) -> Iterator[int]:
    """Yield the numbers that a text has in words, other than English and Chinese ones."""
    pattern, values = _numbers()
    for match in pattern.finditer(text):
        yield values[match[0].casefold()]
    yield from _german_numbers(text)


_ONES = {word: value for value, word in enumerate("ein zwei drei vier fünf sechs sieben acht neun".split(), 1)}
_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_GERMAN_TENS = {word: 10 * value for value, word in enumerate(_TENS, 2)} | {"dreissig": 30}
_GERMAN = re.compile(
    rf"\b(?:(?P<hundreds>{'|'.join(_ONES)})?(?P<hundred>hundert)(?:und)?)?(?:(?P<ones>{'|'.join(_ONES)})und)?"
    rf"(?P<tens>{'|'.join(_GERMAN_TENS)})\b",
    re.IGNORECASE,
)


def _german_numbers(text: str) -> Iterator[int]:
    """Yield the numbers from twenty on that a text has in German words, such as zweihundertfünfundzwanzig."""
    for match in _GERMAN.finditer(text):
        hundreds, hundred, ones, tens = (part and part.lower() for part in match.groups())
        above = 100 * (_ONES[hundreds] if hundreds else 1) if hundred else 0
        yield above + (_ONES[ones] if ones else 0) + _GERMAN_TENS[tens]


def is_calendar_word(word: str) -> bool:
    """Return whether a word is the name of a month or of a day of the week."""
    return _date().fullmatch(legible(word)) is not None


def without_dates(text: str) -> str:
    """Return a text without names of months and days of the week, and what counts them."""
    return _date().sub(" ", text)


def _any(words: Iterator[str] | list[str]) -> str:
    return "|".join(sorted((re.escape(legible(word.replace("_", " "))) for word in words), key=len, reverse=True))


@cache
def _dates() -> tuple[re.Pattern[str], re.Pattern[str], dict[str, int]]:
    months = {legible(name): at for at, names in enumerate(table("calendar")["months"], start=1) for name in names}
    days = r"(?<!\d)(?P<first>\d{1,2})(?:\.?\s?(?:[/–-]|und|et|y|e|and)\s?(?P<last>\d{1,2}))?"
    named = rf"{days}(?:\.|er|º|st|nd|rd|th)?\s+(?:de\s+|of\s+)?(?P<month>{_any(list(months))})(?!\w)(?:,?\s+(?:del?\s+)?(?P<year>\d{{4}}))?"
    figures = r"(?:(?P<year>\d{4})\s?[년年]\s?)?(?<!\d)(?P<month>1[0-2]|0?[1-9])\s?[월月]\s?(?P<first>\d{1,2})(?:[~-](?P<last>\d{1,2}))?\s?[일日]"
    return re.compile(named, re.IGNORECASE), re.compile(figures), months


@cache
def _near() -> re.Pattern[str]:
    told = table("calendar")
    spaced, anywhere = _any([*told["days"].split(), *told["near"].split()]), _any(told["near_anywhere"].split())
    return re.compile(rf"(?<!\w)(?:{spaced})|{anywhere}", re.IGNORECASE)


@cache
def _numbers() -> tuple[re.Pattern[str], dict[str, int]]:
    values = {
        legible(word): int(value) for value, words in table("calendar")["numbers"].items() for word in words.split()
    }
    return re.compile(rf"(?<!\w)(?:{_any(list(values))})(?!\w)", re.IGNORECASE), values


@cache
def _date() -> re.Pattern[str]:
    told = table("calendar")
    words = _any([*(name for names in told["months"] for name in names), *told["days"].split()])
    return re.compile(
        rf"(?<!\w)(?:\d{{1,2}}(?:\.|st|nd|rd|th|º|er)?\s+(?:of\s+|de\s+)?)?(?:{words})(?!\w)\.?"
        r"(?:\s+\d{1,2}(?:st|nd|rd|th)?\b)?(?:,?\s+(?:de[l]?\s+)?(?:19|20)\d\d\b)?",
        re.IGNORECASE,
    )
