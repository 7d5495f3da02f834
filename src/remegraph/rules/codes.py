"""What is written in signs rather than words: addresses, versions, the letter of a room. Stems leave it out."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["codes", "differently_coded"]

_SIGN = re.compile(r"(?<![A-Za-z0-9'’])[A-Za-z0-9](?:[A-Za-z0-9@._:/#+-]*[A-Za-z0-9])?")
_MEASURE = re.compile(r"\d[\d.:/-]*(?:-[a-z]+)*|\d+(?:st|nd|rd|th|[ap]m|[kcm]?m|k?g|h|min|m?s|[kmgt]b|k)")
"""Numbers, dates and measures, as 57-foot: how they differ has signs of its own."""
_INTEGER = re.compile(r"(?<![\w.:/-])\d+(?![\d.:/-]*\d)")
_FEW = frozenset({"0", "1"})
_APART = re.compile(r"[@_/:#+.]")
_ARTICLE = re.compile(r"(?:^|[.!?]\s+)$")


def codes(text: str) -> frozenset[str]:
    """Return what is written in signs: addresses, names with points or digits, letters that stand alone.

    Args:
        text: A sentence, English or Chinese.
    """
    plain = unicodedata.normalize("NFKC", text)
    found = (_code(match.group(), plain[: match.start()], plain[match.end() :]) for match in _SIGN.finditer(plain))
    return frozenset(filter(None, found))


def differently_coded(a: str, b: str) -> bool:
    """Return whether each of two sentences has a sign that the other has not: "vitamin C", "vitamin D".

    So does a number where it is 0 or 1 in one of them, which the signs of numbers leave out: "floor 1", "floor 2".

    Args:
        a: A sentence.
        b: Another.
    """
    mine, yours = codes(a), codes(b)
    few, other = _numbers(a) - _numbers(b), _numbers(b) - _numbers(a)
    counted = len(few) == len(other) == 1 and not _FEW.isdisjoint(few | other)
    return counted or (bool(mine - yours) and bool(yours - mine))


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_INTEGER.findall(text))


def _code(word: str, before: str, after: str) -> str:
    """Return a sign as it is compared; nothing for a word or a number."""
    lower = word.lower()
    if len(word) == 1 and not word.isdigit():
        article = word == "a" or (word == "A" and _ARTICLE.search(before) and re.match(r"\s+[a-z]", after))
        return "" if lower == "i" or article else lower
    if _MEASURE.fullmatch(lower):
        return ""
    initial = len(word) > 1 and (word[1] == "-" or word[-2] == "-")
    signs = initial or _APART.search(word) or any(character.isdigit() for character in word)
    return lower if signs else ""
