"""Which scripts a text is written in."""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["CJK", "HAN", "has_cjk", "language_of"]

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Han characters, as ranges for a regular expression's character class."""

_KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"

CJK = HAN + _KANA + _HANGUL
"""Han, kana and Hangul characters, as ranges for a regular expression's character class."""

_HAN_CHARACTER = re.compile(f"[{HAN}]")
_OTHER_WORD = re.compile(rf"[^\W\d_{CJK}]+")
_KANA_OR_HANGUL = re.compile(f"[{_KANA}{_HANGUL}]")
_ANY_CJK = re.compile(f"[{CJK}]")

_CHARACTERS_PER_WORD = 1.6
"""Mean length of a word in running Chinese text."""


def has_cjk(text: str) -> bool:
    """Return whether `text` holds a Chinese, Japanese or Korean character."""
    return _ANY_CJK.search(text) is not None


def language_of(text: str) -> Literal["en", "zh"]:
    """Return the language that most words of `text` are in: "zh" for Chinese, "en" for all else.

    Words of other scripts are counted as they are; Han characters, which no space divides, by the mean length of a
    Chinese word. Kana and Hangul speak against Chinese, as Japanese and Korean hold Han characters too.

    Args:
        text: Any text; the empty one is "en".
    """
    han = len(_HAN_CHARACTER.findall(text)) / _CHARACTERS_PER_WORD
    if not han:
        return "en"
    other = len(_OTHER_WORD.findall(text)) + len(_KANA_OR_HANGUL.findall(text)) / _CHARACTERS_PER_WORD
    return "zh" if han >= other else "en"
