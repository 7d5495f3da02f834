"""A memory in short (G3): what stands for it where there is little room."""

from __future__ import annotations

import re

from remegraph.language.scripts import CJK
from remegraph.language.sentences import sentences
from remegraph.models import Memory

__all__ = ["SUMMARY_LIMIT", "length", "resummarised", "summary_of"]

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


def resummarised(memory: Memory, before: Memory | None) -> str:
    """Return the summary of a memory's next version: its own, or one that is made where it has none or says what was.

    Args:
        memory: The next version.
        before: The version before, if there is one.
    """
    stale = before is not None and memory.content != before.content and memory.summary == before.summary
    return summary_of(memory.content) if stale or not memory.summary else memory.summary


def _cut(text: str) -> str:
    """Return the beginning of a text, with a mark that it goes on, which counts as well."""
    units = [unit.end() for unit in _UNIT.finditer(text)]
    return f"{text[: units[SUMMARY_LIMIT - 2]]}…"
