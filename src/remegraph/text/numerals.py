"""Numbers in words: English and Chinese."""

from __future__ import annotations

import re

__all__ = ["CHINESE_NUMERAL", "ENGLISH_NUMERAL", "number", "spoken"]

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
        ValueError: It is no number.
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


def spoken(numeral: str) -> str:
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
            raise ValueError(f"{words!r} is no number")
    return total + group + digit
