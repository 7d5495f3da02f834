"""Who somebody is to the state: identity numbers, passports, licence plates, birth dates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import cache

from remegraph.rules.desensitizing.finding import Finding, Kind
from remegraph.rules.desensitizing.tables import announced, either, table

__all__ = ["birth_dates", "numbers"]

_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CHECKS = "10X98765432"
_CHINESE = re.compile(r"(?<![A-Za-z0-9])(?:\d{6}[ -]?\d{8}[ -]?\d{3}[\dXx]|\d{15})(?![A-Za-z0-9])")
_SSN = re.compile(r"(?<![\w-])(?!000|666|9)\d{3}([ -])(?!00)\d{2}\1(?!0000)\d{4}(?!-?\w)", re.ASCII)
_INSURED = re.compile(
    r"(?<![A-Za-z0-9])(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]( ?)(?:\d{2}\1){3}[A-D](?![A-Za-z0-9])"
)
_MONTHS = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?"
)
_NUMERAL = "[〇零一二三四五六七八九十廿]"
_DATE = (
    rf"(?:{_NUMERAL}{{4}}年)?{_NUMERAL}{{1,2}}月{_NUMERAL}{{1,3}}[日号]|"
    r"\d{4}[-/.年]\s?\d{1,2}[-/.月]\s?\d{1,2}日?|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})|\d{1,2}月\d{1,2}[日号]|\d{4}年\d{1,2}月|(?:19|20)\d{6}"
    rf"|(?:{_MONTHS})\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?|\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?(?:{_MONTHS})\.?(?:,?\s\d{{4}})?"
)


def numbers(text: str) -> Iterator[Finding]:
    """Yield Chinese identity numbers, American and British social security numbers, Chinese licence plates, and passports announced."""
    for found in _CHINESE.finditer(text):
        if _chinese(re.sub("[ -]", "", found.group()).upper()):
            yield Finding(*found.span(), "cn-id")
    for pattern in (_SSN, _INSURED):
        yield from (Finding(*found.span(), "ssn") for found in pattern.finditer(text))
    yield from (Finding(*found.span(), "plate") for found in _plate().finditer(text) if _digits(found.group()) > 1)
    for kind, announcement in _announced().items():
        yield from (Finding(*found.span("value"), kind) for found in announcement.finditer(text))


def birth_dates(text: str) -> Iterator[Finding]:
    """Yield dates that are said to be somebody's birth. Other dates are no secret."""
    for pattern in _births():
        yield from (Finding(*found.span("value"), "birth-date") for found in pattern.finditer(text))


def _chinese(number: str) -> bool:
    """Return whether a number is one by GB 11643: a province, a day that was, and the checksum; the old have none."""
    born = number[6:14] if len(number) == 18 else "19" + number[6:12]
    if number[:2] not in table("numbers")["chinese"]["provinces"].split() or not _was(born):
        return False
    total = sum(weight * int(digit) for weight, digit in zip(_WEIGHTS, number[:17], strict=False))
    return len(number) == 15 or _CHECKS[total % 11] == number[17]


def _was(day: str) -> bool:
    try:
        date(int(day[:4]), int(day[4:6]), int(day[6:]))
    except ValueError:
        return False
    return "1850" <= day[:4] < "2100"


def _digits(text: str) -> int:
    return sum(character.isdigit() for character in text)


@cache
def _plate() -> re.Pattern[str]:
    provinces = table("numbers")["chinese"]["plates"]
    body = "[A-HJ-NP-Z0-9]{4,5}[A-HJ-NP-Z0-9挂学警港澳使领]"
    return re.compile(rf"[{provinces}][A-Z][ ·•・.-]?{body}(?![A-Za-z0-9])", re.IGNORECASE)


@cache
def _announced() -> dict[Kind, re.Pattern[str]]:
    cues = table("cues")
    return {
        "ssn": announced(cues["ssn"], r"\d{3}[ -]?\d{2}[ -]?\d{4}(?!\d)", openly=False),
        "passport": announced(cues["passport"], r"[A-Z]{0,2}\d{6,9}(?![A-Za-z0-9])", openly=False),
        "cn-id": announced(cues["cn_id"], r"(?:\d[ -]?){14,17}[\dX](?![A-Za-z0-9])", openly=False),
    }


@cache
def _births() -> tuple[re.Pattern[str], re.Pattern[str]]:
    cues = table("cues")
    after = rf"(?<!\d)(?P<value>{_DATE})[ ]?{either(cues['birth_after'])}"
    return announced(cues["birth_before"], rf"(?:{_DATE})(?!\d)", openly=False), re.compile(after, re.IGNORECASE)
