"""Whether a text repeats another word by word."""

from __future__ import annotations

import re
from collections.abc import Iterable

from remegraph.language.scripts import CJK

__all__ = ["copied", "repeats"]

_UNITS = re.compile(rf"[{CJK}]|[^\W_{CJK}]+(?:['’][^\W_{CJK}]+)*")
_CHARACTER = re.compile(f"[{CJK}]")
_RUN = 6
"""Words in a row that make a quote; two Chinese characters count as one."""


def copied(text: str, source: str) -> str:
    """Return the first words in a row that a text has in common with another, if they are many enough for a quote.

    Case and punctuation do not count.

    Args:
        text: What was written.
        source: What it must not repeat.
    """
    written, known = _UNITS.findall(text.casefold()), f" {' '.join(_UNITS.findall(source.casefold()))} "
    for start in range(len(written)):
        run, words = [], 0.0
        for unit in written[start:]:
            run.append(unit)
            words += 0.5 if _CHARACTER.fullmatch(unit) else 1.0
            if words >= _RUN:
                if f" {' '.join(run)} " in known:
                    return " ".join(run)
                break
    return ""


def repeats(texts: Iterable[str], sources: Iterable[str]) -> str:
    """Return words that a text takes from a source as they are written there; empty where none does."""
    known = tuple(sources)
    return next((run for text in texts for source in known if (run := copied(text, source))), "")
