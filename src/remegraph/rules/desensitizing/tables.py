"""The word lists and patterns beside the recognisers, and how words that announce something are looked for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["BLANK", "announced", "either", "table"]

BLANK = r"[ \t]{0,3}"


@cache
def table(name: str) -> dict[str, Any]:
    """Return a table of this package's data.

    Args:
        name: Name of the file, without `.toml`.
    """
    path = files("remegraph.rules.desensitizing") / "data" / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def either(words: Iterable[str], *, joined: bool = False) -> str:
    """Return a pattern of any of some words, the longest first. A space in one may also be `_`, `-` or nothing.

    Args:
        words: English or Chinese; English ones are looked for as whole words.
        joined: Whether a word may be the second part of another, as in `userId`.
    """
    longest = sorted(words, key=len, reverse=True)
    english = [
        r"[ _-]?".join(map(re.escape, word.split())) for word in longest if word[0].isascii() and word[0].isalnum()
    ]
    start = "" if joined else "(?<![A-Za-z0-9])"
    whole = [rf"{start}(?:{'|'.join(english)})(?![A-Za-z])"] if english else []
    others = [re.escape(word) for word in longest if not (word[0].isascii() and word[0].isalnum())]
    return f"(?:{'|'.join(whole + others)})"


def announced(cues: Iterable[str], value: str, *, openly: bool = True) -> re.Pattern[str]:
    """Return a pattern of a value that words announce: `order no. 12`, `订单号是12`. The value is its group `value`.

    Args:
        cues: Words that announce it.
        value: Pattern of the value.
        openly: Whether something must stand between, such as a colon or "is".
    """
    between = rf"{BLANK}{either(table('cues')['between'])}" + ("" if openly else "?")
    number = rf"(?:{BLANK}{either(table('cues')['number'], joined=True)}\.?)?"
    quote = "[\"'`“”‘’「]?+"
    pattern = rf"{either(cues)}{number}{quote}{between}{BLANK}{quote}(?P<value>{value})"
    return re.compile(pattern, re.IGNORECASE)
