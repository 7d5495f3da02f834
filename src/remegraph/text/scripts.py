"""Which scripts a text is written in, and numbers in words, English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

from remegraph.text import text as listed

__all__ = [
    "CHINESE_NUMERAL",
    "CJK",
    "ENGLISH_NUMERAL",
    "HAN",
    "folded",
    "full_numeral",
    "has_cjk",
    "has_han",
    "has_kana_or_hangul",
    "language_of",
    "number",
    "plain",
    "simplified",
    "texts",
]

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Han characters, as ranges for a regular expression's character class."""

_KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"

CJK = HAN + _KANA + _HANGUL
"""Han, kana and Hangul characters, as ranges for a regular expression's character class."""

_HAN_CHARACTER = re.compile(f"[{HAN}]")
_OTHER_WORD = re.compile(rf"[^\W\d_{CJK}]+")
_KANA_OR_HANGUL = re.compile(f"[{_KANA}{_HANGUL}]")
_ANY_CJK = re.compile(f"[{CJK}]")

_CHARACTERS_PER_WORD = 1.6
"""Mean length of a word in running Chinese text."""


def simplified(text: str) -> str:
    """Return a text with common Traditional Chinese characters as simplified ones, one for one: positions do not change."""
    return text.translate(_simpler()) if has_han(text) else text


@cache
def _simpler() -> dict[int, int]:
    pairs = listed("traditional.txt").replace("\n", "")
    return str.maketrans(pairs[::2], pairs[1::2])


def has_han(text: str) -> bool:
    """Return whether `text` holds a Han character."""
    return _HAN_CHARACTER.search(text) is not None


def has_cjk(text: str) -> bool:
    """Return whether `text` holds a Chinese, Japanese or Korean character."""
    return _ANY_CJK.search(text) is not None


def has_kana_or_hangul(text: str) -> bool:
    """Return whether `text` holds a Japanese or Korean character other than a Han character."""
    return _KANA_OR_HANGUL.search(text) is not None


def language_of(text: str) -> Literal["en", "zh"]:
    """Return the language that most words of `text` are in: "zh" for Chinese, "en" for all else.

    Words of other scripts are counted as they are; Han characters, which no space divides, by the mean length of a
    Chinese word. Kana and Hangul speak against Chinese, as Japanese and Korean hold Han characters too. The empty text
    is "en".
    """
    han = len(_HAN_CHARACTER.findall(text)) / _CHARACTERS_PER_WORD
    if not han:
        return "en"
    other = len(_OTHER_WORD.findall(text)) + len(_KANA_OR_HANGUL.findall(text)) / _CHARACTERS_PER_WORD
    return "zh" if han >= other else "en"


_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")


def plain(text: str) -> str:
    """Return a text with U+FFFD in place of every NUL and lone surrogate.

    Raw messages are kept to the letter; names and statements taken from them are stored where such characters are invalid.
    """
    return _UNWRITABLE.sub("\ufffd", text)


def folded(text: str) -> str:
    """Return `text` as it is compared: case, spaces and a final stop aside, two texts that say the same are equal."""
    return " ".join(text.casefold().split()).rstrip(".!\u3002\uff01")


def texts(value: Any) -> Iterator[str]:
    """Yield all texts of JSON, at any depth, names among them."""
    inside = [value]
    while inside:
        part = inside.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            yield from part
            inside.extend(reversed([*part.values()]))
        elif isinstance(part, list | tuple):
            inside.extend(reversed(part))


CHINESE_NUMERAL = r"(?:\d{1,12}|[〇零一二两三四五六七八九十百千万亿]{1,12})"
"""Regular expression of a whole number in Chinese text."""

_UNITS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
_ENGLISH = {word: value for value, word in enumerate(f"{_UNITS} nineteen".split(), 1)}
_ENGLISH |= {
    word: 10 * value for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}
_ENGLISH |= {"a": 1, "an": 1, "couple": 2}

ENGLISH_NUMERAL = rf"(?:\d{{1,12}}|a couple of|a couple|{'|'.join(sorted(_ENGLISH, key=len, reverse=True))})"
"""Regular expression of a small whole number in English text."""

_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_POWERS = {"十": 10, "百": 100, "千": 1000}
_GROUPS = {"万": 10**4, "亿": 10**8}
_NEXT = {"亿": "千万", "万": "千", "千": "百", "百": "十"}
_LONGEST = 18


def number(words: str) -> int:
    """Return the number that `words` mean: digits, English words up to ninety, or Chinese numerals.

    The words are what `CHINESE_NUMERAL` or `ENGLISH_NUMERAL` matched.

    Raises:
        ValueError: It is not a number.
    """
    words = re.sub(r"^a (couple).*", r"\1", words.strip().lower())
    if len(words) > _LONGEST:
        raise ValueError(f"{words[:_LONGEST]!r}... is too long for a number")
    if words.isdecimal():
        return int(words)
    if words in _ENGLISH:
        return _ENGLISH[words]
    if all(character in _DIGITS for character in words):  # digit by digit, as years are written
        return int("".join(str(_DIGITS[character]) for character in words))
    return _chinese(words)


def full_numeral(numeral: str) -> str:
    """Return a Chinese numeral with the unit that speech leaves off: 一万八 is 一万八千."""
    unit = _NEXT.get(numeral[-2:-1]) if numeral[-1:] in tuple("一二三四五六七八九") else None
    return f"{numeral}{unit}" if unit else numeral


def _chinese(words: str) -> int:
    total = group = digit = 0
    for character in words:
        if character in _DIGITS:
            digit = _DIGITS[character]
        elif character in _POWERS:
            group += (digit or 1) * _POWERS[character]
            digit = 0
        elif character in _GROUPS:
            smaller = total % _GROUPS[character]  # of 一万亿, 一万 is multiplied; of 一亿二千万, 一亿 is not
            total += (smaller + group + digit or 1) * _GROUPS[character] - smaller
            group = digit = 0
        else:
            raise ValueError(f"{words!r} is not a number")
    return total + group + digit
