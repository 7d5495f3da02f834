"""How somebody is reached: e-mail addresses and telephone numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

from remegraph.errors import MissingExtraError
from remegraph.language.scripts import has_cjk
from remegraph.rules.desensitizing.finding import Finding
from remegraph.rules.desensitizing.tables import announced, table

__all__ = ["emails", "phones"]

_LOCAL = r"(?<![A-Za-z0-9.+_-])(?!git@)[A-Za-z0-9.+_-]++"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})"
_EMAIL = re.compile(rf"{_LOCAL}@{_LABEL}(?:\.{_LABEL}){{0,8}}\.[A-Za-z]{{2,24}}(?![A-Za-z0-9])")
_AT = r"(?:[ ]?[(\[{<][ ]?at[ ]?[)\]}>][ ]?|[ ]?艾特[ ]?|[ ]?@[ ]?|[ ]at[ ])"
_DOT = r"(?:[ ]?[(\[{<][ ]?dot[ ]?[)\]}>][ ]?|[ ]dot[ ]|[ ]?点[ ]?)"

_SHAPES = {
    "anywhere": r"(?:\+|(?<!\d)00[ -]?)[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,5}(?:[ .-]?\d{2,5}){1,4}",
    "america": r"(?:(?:\+|00)?1[ .-])?(?:\([2-9]\d{2}\)[ .-]?|[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}",
    "area": r"\(?0\d{1,5}\)?[ -]?\d{3,4}[ -]?\d{3,4}",
    "mobile": r"(?:(?:\+|00)?86[ -]?)?1[3-9](?:[ -]?\d){9}",
    "bracketed": r"\(0\d{1,5}\)[ -]?\d{3,4}[ -]?\d{3,5}",
    "service": r"[48]00[ -]\d{3}[ -]\d{4}|[48]00[ -]?\d{4}[ -]\d{3}",
}
_EXTENSION = r"(?:[ ]?(?:x|ext\.?|extension|转|-)[ ]?\d{1,6})?"
_PHONES = {
    name: re.compile(rf"(?<![A-Za-z0-9_])(?<![\d][-.])(?:{shape}){_EXTENSION}(?![A-Za-z0-9_]|[-.]\d)", re.IGNORECASE)
    for name, shape in _SHAPES.items()
}
_SURE = frozenset({"america", "mobile", "bracketed", "service"})
"""Shapes that say enough; of the others, only numbers that are in use somewhere count."""


def emails(text: str) -> Iterator[Finding]:
    """Yield e-mail addresses, and those that are spelled out: `ann (at) example dot com`."""
    for pattern in (_EMAIL, _spelled()):
        yield from (Finding(*found.span(), "email") for found in pattern.finditer(text))


def phones(text: str) -> Iterator[Finding]:
    """Yield telephone numbers: of a form that nothing else has, valid in a country, or announced.

    Raises:
        MissingExtraError: The package `phonenumbers` is not installed.
    """
    regions = _regions(text)
    for name, pattern in _PHONES.items():
        for found in pattern.finditer(text):
            if name in _SURE or _valid(found.group(), regions):
                yield Finding(*found.span(), "phone")
    for found in _said().finditer(text):
        if 7 <= sum(character.isdigit() for character in found["value"]) <= 20:
            yield Finding(*found.span("value"), "phone")


def _regions(text: str) -> tuple[str, ...]:
    regions = table("numbers")["phones"]
    return (*regions["zh"], *regions["en"]) if has_cjk(text) else tuple(regions["en"])


def _valid(number: str, regions: tuple[str, ...]) -> bool:
    library = _library()
    whole = re.sub(r"^00[ -]?", "+", number)
    for region in (None,) if whole.startswith("+") else regions:
        try:
            parsed = library.parse(whole, region)
            if library.is_valid_number(parsed) or (region is None and library.is_possible_number(parsed)):
                return True
        except library.NumberParseException:
            continue
    return False


@cache
def _library() -> ModuleType:
    try:
        return import_module("phonenumbers")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "The package phonenumbers is not installed.", "Run: pip install 'remegraph[sharing]'."
        ) from error


@cache
def _spelled() -> re.Pattern[str]:
    ends = "|".join(table("hosts")["ends"])
    return re.compile(
        rf"{_LOCAL}{_AT}{_LABEL}(?:(?:{_DOT}|\.){_LABEL}){{0,3}}{_DOT}(?:{ends})(?![A-Za-z0-9])"
        rf"|{_LOCAL}(?:[ ]?[(\[{{][ ]?at[ ]?[)\]}}][ ]?|[ ]?艾特[ ]?|[ ]?@[ ]?){_LABEL}(?:\.{_LABEL}){{0,3}}\.(?:{ends})(?![A-Za-z0-9])",
        re.IGNORECASE,
    )


@cache
def _said() -> re.Pattern[str]:
    value = rf"\+?\(?\d(?:[ ().-]{{0,2}}\d){{6,18}}{_EXTENSION}(?![A-Za-z0-9_]|[-.]\d)"
    return announced(table("cues")["phone"], value, openly=False)
