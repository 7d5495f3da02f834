"""A memory in short (G3): what stands for it where there is little room."""

from __future__ import annotations

import re

from remegraph.language.scripts import CJK
from remegraph.language.sentences import sentences

__all__ = ["SUMMARY_LIMIT", "length", "summary_of"]

SUMMARY_LIMIT = 50
"""Words of a summary at most; in Chinese, where no space divides them, characters."""

_UNIT = re.compile(rf"[{CJK}]|[^\s{CJK}]+")


def length(text: str) -> int:
    """Return how long a text is: each Chinese, Japanese or Korean character counts, and each word of other scripts."""
    return sum(1 for _ in _UNIT.finditer(text))


def summary_of(content: str) -> str:
    """Return a text in short: itself, or as many of its first sentences as fit, or as much of the first as fits.

    Args:
        content: What a memory says.
    """
    if length(content) <= SUMMARY_LIMIT:
        return content
    end = 0
    for span in sentences(content):
        if length(content[: span.end]) > SUMMARY_LIMIT:
            break
        end = span.end
    return content[:end] if end else _cut(content)


def _cut(text: str) -> str:
    """Return the beginning of a text, with a mark that it goes on, which counts as well."""
    units = [unit.end() for unit in _UNIT.finditer(text)]
    return f"{text[: units[SUMMARY_LIMIT - 2]]}…"
