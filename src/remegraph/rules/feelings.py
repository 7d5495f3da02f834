"""How somebody feels about something, by the words that say so (F8, sentiment)."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

__all__ = ["sentiment"]

_BETWEEN = r"(?:\w+\s+)?"
"""In English one word may stand between a denial and what it denies: "not very good"."""


def sentiment(text: str) -> float:
    """Return how good or bad a text's words are: -1 (all bad) to 1 (all good); 0 where none says or they balance.

    Args:
        text: Any text, English or Chinese.
    """
    total = count = 0
    for good, bad in (_english(), _chinese()):
        for pattern, sign in ((good, 1), (bad, -1)):
            for found in pattern.finditer(text.casefold()):
                total += -sign if found["denied"] else sign
                count += 1
    return total / count if count else 0.0


@cache
def _words(language: str) -> dict[str, str]:
    table = tomllib.loads((files("remegraph.rules") / "data" / "feelings.toml").read_text(encoding="utf-8"))[language]
    return {name: "|".join(sorted(map(re.escape, words), key=len, reverse=True)) for name, words in table.items()}


@cache
def _english() -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = _words("en")
    denied = rf"(?P<denied>\b(?:{words['denials']})\s+{_BETWEEN})?"
    return re.compile(rf"{denied}\b(?:{words['good']})\b"), re.compile(rf"{denied}\b(?:{words['bad']})\b")


@cache
def _chinese() -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = _words("zh")
    denied = rf"(?P<denied>{words['denials']})?"
    return re.compile(rf"{denied}(?:{words['good']})"), re.compile(rf"{denied}(?:{words['bad']})")
