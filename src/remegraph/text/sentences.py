"""Sentences, as spans of the original text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from remegraph.text.scripts import CJK

__all__ = ["SUMMARY_LIMIT", "Span", "asks", "length", "sentences", "summary_of"]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text: `text` is `original[start:end]`."""

    start: int
    end: int
    text: str


_CLOSERS = "\"'”’»」』）)】》\\]"
_CLOSE = rf"(?:[{_CLOSERS}]|[ \u00a0\u202f]»)*"
_END = re.compile(rf"[。！？；｡؟۔।॥]+{_CLOSE}|[.!?]+{_CLOSE}(?=\s|$)|[!?]+(?=[\u3040-\u30ff\u4e00-\u9fff])|\n+")
_URL = re.compile(r"https?://[^\s<>，。！？；]+[^\s<>，。！？；.,!?;:\"')]")
_WORD_BEFORE = re.compile(r"[\w.]+\Z")

# Shortened words that come before what they belong to, so that their full stop ends no sentence.
_TITLES = frozenset(
    "mr mrs ms mx dr prof st vs e.g i.e cf fig vol approx dept gen gov hon rev sgt capt lt col mt".split()
)
# Shortened words that may end a sentence: they do unless a small letter follows.
_ENDINGS = frozenset(
    "etc inc ltd co corp jr sr a.m p.m u.s u.k ph.d jan feb mar apr jun jul aug sept sep oct nov dec".split()
)
_ASKS = re.compile(rf"[?？؟][{_CLOSERS}\s]*\Z")
_LIST_NUMBER = re.compile(r"\n[ \t]*\d{1,3}\Z")
_LOOKBACK = 16


def _ends_sentence(text: str, start: int, end: int) -> bool:
    """Return whether the full stop at text[start:end] ends a sentence."""
    goes_on = text[end : end + 2].lstrip()[:1].islower()
    if text.startswith("..", start):
        return not goes_on
    before = ("\n" if start <= _LOOKBACK else "") + text[max(0, start - _LOOKBACK) : start]
    found = _WORD_BEFORE.search(before)
    word = found.group() if found else ""
    if word.lower() in _TITLES or (word.lower() in _ENDINGS and goes_on):
        return False
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    return end >= len(text) or not (is_initial or _LIST_NUMBER.search(before))


def sentences(text: str) -> list[Span]:
    """Split `text` into sentences, without the white space around them.

    A line break always ends a sentence. Full stops in decimals, e-mail addresses, URLs and usual abbreviations do not.
    """
    urls = [match.span() for match in _URL.finditer(text)]
    url = 0
    spans: list[Span] = []
    start = 0
    for match in _END.finditer(text):
        while url < len(urls) and urls[url][1] <= match.start():
            url += 1
        if url < len(urls) and urls[url][0] <= match.start():
            continue
        if match.group().startswith(".") and not _ends_sentence(text, match.start(), match.end()):
            continue
        _add(spans, text, start, match.end())
        start = match.end()
    _add(spans, text, start, len(text))
    return spans


def asks(text: str) -> bool:
    """Return whether `text` ends with a question."""
    return bool(_ASKS.search(text))


def _add(spans: list[Span], text: str, start: int, end: int) -> None:
    part = text[start:end]
    stripped = part.strip()
    if stripped:
        start += len(part) - len(part.lstrip())
        spans.append(Span(start, start + len(stripped), stripped))


SUMMARY_LIMIT = 50
"""Words of a summary at most; in Chinese, where no space divides them, characters."""


_UNIT = re.compile(rf"[{CJK}]|[^\s{CJK}]+")


def length(text: str) -> int:
    """Return how long a text is: each Chinese, Japanese or Korean character counts, and each word of other scripts."""
    return sum(1 for _ in _UNIT.finditer(text))


def summary_of(content: str) -> str:
    """Return a text in short: itself, or as many of its first sentences as fit, or as much of the first as fits."""
    if length(content) <= SUMMARY_LIMIT:
        return content
    end = 0
    for span in sentences(content):
        if length(content[: span.end]) > SUMMARY_LIMIT:
            break
        end = span.end
    return content[:end] if end else _cut(content)


def _cut(text: str) -> str:
    """Return the beginning of a text with an ellipsis, which counts as well."""
    units = [unit.end() for unit in _UNIT.finditer(text)]
    return f"{text[: units[SUMMARY_LIMIT - 2]]}…"
