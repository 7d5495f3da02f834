"""How much attention a text deserves: what is new in it, whom it is about, what it names, asks and sets right."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal

from remegraph.language.entities import entities
from remegraph.language.scripts import language_of
from remegraph.language.sentences import sentences
from remegraph.language.tokens import query_tokens, stop_words
from remegraph.rules.signs import signs_in
from remegraph.rules.tables import table
from remegraph.rules.tables import text as text_of

__all__ = ["Purpose", "salience", "signs_of", "small_talk", "telling_words", "weights"]

Purpose = Literal["now", "later"]
"""What attention is for: to work with it now, or to summarise it for later."""

_MOST_NEW = 12
_MOST_NAMES = 2
_PERSONAL = ("mine", "own", "people")
_BINDING = ("cannot", "refuses", "health")


def salience(text: str, before: Sequence[str], purpose: Purpose) -> float:
    """Return how much attention a text deserves, 0 to 1: its signs, weighed (data/attention.toml).

    Args:
        text: What was said or sensed.
        before: What was said or sensed shortly before it: a word that is heard again is not new.
        purpose: What the attention is for.
    """
    weighed = weights(purpose)
    signs = signs_of(text, before)
    return 1 / (1 + math.exp(-weighed["always"] - sum(weighed[name] * value for name, value in signs.items())))


def signs_of(text: str, before: Sequence[str]) -> Mapping[str, float]:
    """Return the signs of a text by their names in data/attention.toml, 0 to 1 each.

    Args:
        text: What was said or sensed.
        before: What was said or sensed shortly before it.
    """
    said = _said(text)
    new = said.words.difference(*map(telling_words, before))
    return {"new": min(1.0, len(new) / _MOST_NEW), **said.signs}


class _Said:
    """What a text says by itself. Names, times and persons count in statements; a question only asks."""

    def __init__(self, text: str) -> None:
        parts = [span.text for span in sentences(text)]
        told = [part for part in parts if not part.rstrip().endswith(("?", "？"))]
        named = entities("\n".join(told))
        kinds = [signs_in(part) for part in told]
        asked = [part for part in parts if part not in told]
        self.words = frozenset[str]().union(*map(telling_words, told))
        self.signs = {
            "names": min(1.0, len(named) / _MOST_NAMES),
            "times": float(any(entity.kind == "date" for entity in named)),
            "personal": max((kind[name] for kind in kinds for name in _PERSONAL), default=0.0),
            "binding": max((kind[name] for kind in kinds for name in _BINDING), default=0.0),
            "asks": float(any(telling_words(part) for part in asked)),
            "feedback": float(any(_feedback(language_of(part)).search(part) for part in told)),
            "addresses": max((kind["you"] for kind in kinds), default=0.0),
        }


_said = lru_cache(maxsize=1 << 10)(_Said)


@lru_cache(maxsize=1 << 11)
def telling_words(text: str) -> frozenset[str]:
    """Return the different words of a text, other than stop words and small talk."""
    return frozenset(query_tokens(text)) - stop_words() - small_talk()


@cache
def small_talk() -> frozenset[str]:
    """Return the words of greetings, thanks and the like."""
    return frozenset(query_tokens(text_of("small_talk.txt")))


@cache
def weights(purpose: Purpose) -> Mapping[str, float]:
    """Return the weight of each sign, and of `always`.

    Args:
        purpose: What the attention is for.
    """
    return {name: float(weight) for name, weight in table("attention")[purpose].items()}


@cache
def _feedback(language: str) -> re.Pattern[str]:
    return re.compile("|".join(table("attention")["feedback"][language]), re.IGNORECASE)
