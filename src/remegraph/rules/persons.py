"""Who is a person by what they do: "Bob said", 小林觉得; the form of such a name alone shows nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from remegraph.language.scripts import HAN
from remegraph.language.tokens import stop_words
from remegraph.rules.generalizing import common_words, listed

__all__ = ["persons"]


def persons(text: str) -> Iterator[str]:
    """Yield the names of those who say, think or want something.

    Args:
        text: Any text, English or Chinese.
    """
    english, chinese = _patterns()
    for match in english.finditer(text):
        if match["name"].casefold() not in stop_words() | common_words():
            yield match["name"]
    yield from (match["name"] for match in chinese.finditer(text))


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    surnames = (files("remegraph.language") / "data" / "surnames_zh.txt").read_text(encoding="utf-8").split()
    surname = "|".join(sorted(surnames, key=len, reverse=True))
    english, chinese = "|".join(listed("says_en")), "|".join(listed("says_zh"))
    return (
        re.compile(rf"\b(?P<name>[A-Z][\w-]+)(?=\s+(?:{english})\b)"),
        re.compile(
            rf"(?<![{HAN}])(?P<name>(?:{surname})[{HAN}]{{1,2}}?|[小老阿][{HAN}])"
            rf"(?=(?:也|都|常|曾|一直)?(?:{chinese}))"
        ),
    )
