"""Payment cards and bank accounts: numbers that prove themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from remegraph.rules.desensitizing.finding import Finding
from remegraph.rules.desensitizing.tables import table

__all__ = ["cards", "ibans"]

_GROUPS = re.compile(r"(?<![A-Za-z0-9])\d++(?:[ -]\d++)*+(?![A-Za-z])")
_DOTTED = re.compile(r"(?<![A-Za-z0-9.])[2-6]\d{3}([._]|[ ]{2}|[ ]-[ ])\d{4}\1\d{4}\1\d{4}(?![A-Za-z0-9]|\.\d)")
_GROUP = re.compile(r"\d+")
_IBAN_START = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]{2})\d{2}")
_SHORTEST, _LONGEST = 12, 19


def cards(text: str) -> Iterator[Finding]:
    """Yield card numbers, in one piece or in groups: first digits and length of an issuer, and Luhn's checksum."""
    yield from (Finding(*found.span(), "card") for found in _DOTTED.finditer(text) if _luhn(_digits(found.group())))
    for run in _GROUPS.finditer(text):
        groups = [group.span() for group in _GROUP.finditer(text, *run.span())]
        for first, (start, _) in enumerate(groups):
            digits = ""
            for group in groups[first : first + _LONGEST]:
                digits += text[slice(*group)] if group[1] - group[0] <= _LONGEST else "0" * _LONGEST
                if len(digits) > _LONGEST:
                    break
                if len(digits) >= _SHORTEST and _issued(digits) and _luhn(digits):
                    yield Finding(start, group[1], "card")


def ibans(text: str) -> Iterator[Finding]:
    """Yield international bank account numbers: the country's length, and 1 modulo 97."""
    lengths = table("numbers")["iban"]
    for start in _IBAN_START.finditer(text):
        characters, end = _taken(text, start.start(), lengths.get(start[1].upper(), 0))
        if characters and _modulo_97(characters) == 1:
            yield Finding(start.start(), end, "iban")


def _taken(text: str, start: int, length: int) -> tuple[str, int]:
    """Return as many letters and digits as an IBAN has, and where they end; nothing where it ends elsewhere."""
    characters = ""
    at = start
    while at < len(text) and len(characters) < length:
        if text[at].isascii() and text[at].isalnum():
            characters += text[at].upper()
        elif text[at] not in " -" or text[at - 1] in " -":
            return "", at
        at += 1
    whole = len(characters) == length and not (at < len(text) and text[at].isascii() and text[at].isalnum())
    return (characters if whole else ""), at


def _modulo_97(iban: str) -> int:
    return int("".join(str(int(character, 36)) for character in iban[4:] + iban[:4])) % 97


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _luhn(digits: str) -> bool:
    doubled = [int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits))]
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0 and len(set(digits)) > 1


def _issued(digits: str) -> bool:
    return any(low <= digits[: len(low)] <= high for low, high in _issuers().get(len(digits), ()))


@cache
def _issuers() -> dict[int, list[tuple[str, str]]]:
    """Return ranges of first digits by length."""
    known: dict[int, list[tuple[str, str]]] = {}
    for issuer in table("numbers")["cards"]:
        for digits in issuer["first"]:
            low, _, high = digits.partition("-")
            for length in issuer["lengths"]:
                known.setdefault(length, []).append((low, high or low))
    return known
