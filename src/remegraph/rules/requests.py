"""What sounds like a person asking memory to forget something, at the moment it is said.

Phrases flag the plain forms of it, in seven languages and scripts (data/requests.toml), and nothing else follows from
them alone but that words are withheld until somebody has decided. Most requests are worded otherwise; those the model
that reads the block names, in whatever language. What stands in quotes was said by others.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from remegraph.language.sentences import sentences

__all__ = ["Request", "requests"]

_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“\n]*“|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|`[^`\n]*`")

_LONGEST = 400
"""Characters of a sentence that asks for something; what is longer was pasted."""

_LANGUAGES = ("en", "de", "zh", "es", "fr", "ja")


@dataclass(frozen=True, slots=True)
class Request:
    """One sentence that sounds like a request to forget."""

    words: str
    back: bool
    """Whether it may mean what was said just before."""


def requests(text: str) -> tuple[Request, ...]:
    """Return what a person's words ask to be forgotten, sentence by sentence; nearly always nothing.

    Args:
        text: What a person said.
    """
    found = [_read(span.text) for span in sentences(text)]
    whole = _read(text) if not any(found) and len(found) > 1 else None
    return tuple(each for each in (*found, whole) if each is not None)


def _read(said: str) -> Request | None:
    if len(said) > _LONGEST:
        return None
    text = unicodedata.normalize("NFKC", _QUOTED.sub(" ", said)).casefold().replace("’", "'").strip()
    texts = dict.fromkeys(_LANGUAGES, text) | {"zh": text.translate(_phrases()["simplified"])}
    for language, words in texts.items():
        phrases = _phrases()[language]
        hinted = any(hint in words for hint in phrases["hints"])  # what holds no part of a phrase is found out fast
        if hinted and phrases["forget"].search(words) and not phrases["none"].search(words):
            return Request(said, back=phrases["back"].search(words) is not None)
    return None


@cache
def _phrases() -> Mapping[str, Any]:
    table = tomllib.loads((files("remegraph.rules") / "data" / "requests.toml").read_text(encoding="utf-8"))
    pairs: str = table["simplified"]
    found: dict[str, Any] = {"simplified": str.maketrans(pairs[::2], pairs[1::2])}
    for language in _LANGUAGES:
        patterns = {name: each if name == "hints" else _any(each) for name, each in table[language].items()}
        found[language] = patterns
    return found


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in patterns), re.MULTILINE)
