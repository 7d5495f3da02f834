"""A question, read: its words and their weights, the times that it names, and whom it is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Literal

from remegraph.text import table
from remegraph.text.scripts import has_cjk, simplified
from remegraph.text.sentences import asks, sentences
from remegraph.text.times import TimeMention, resolve, times_asked
from remegraph.text.tokens import asked_tokens, tokenize

__all__ = ["Question", "at_large", "read_question"]

_BESIDE = 0.7
"""Weight of a word that only leads up to the question, or says when: of .4, .7 and 1 the best where a whole conversation
is the question (decision 0037); elsewhere all are within .01 of each other."""

_ENOUGH = 3
"""The sentences that ask hold so many words, or all sentences count alike: "Any ideas?" asks nothing by itself."""

_BEFORE = 0.2
"""Weight of a word of the question before, where this one refers back: of .1 to 1 the best (decision 0011)."""

_FRAME = 0.3
"""Weight of a word that any question may have, when deciding whether something bears on this one."""

_IN_FIGURES = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read."""

    text: str
    tokens: Mapping[str, float]
    """Its words, as they are indexed, and what each counts, over 0 to 1."""
    times: tuple[TimeMention, ...]
    """The times that it names."""
    own: bool
    """Whether the speaker asks about themselves."""
    wants_time_or_number: bool
    """Whether it asks when, how long or how many."""

    @property
    def weighted_tokens(self) -> Mapping[str, float]:
        """Its words; in scripts without spaces only pairs, if there are any, as any text contains some of the characters.

        Words that any question may have ("name", "long", 现在) count less.
        """
        told = {token: count for token, count in self.tokens.items() if len(token) > 1 or not has_cjk(token)}
        frames = _frames()
        return {token: count * (_FRAME if token in frames else 1.0) for token, count in (told or self.tokens).items()}


def read_question(text: str, asked_at: datetime, previous: str = "") -> Question:
    """Return what a question asks.

    Where it takes several sentences, and some of them ask, the others count less: they lead up to it. So do words that
    say when relative to the day ("last week"): the messages of that time do not hold them. A question that refers back
    ("and where was that?") takes on the words of the one before it, a little (F6, lens).
    """
    spans = [span.text for span in sentences(text)]
    asking = [span for span in spans if asks(span)]
    if not asking or len({token for span in asking for token in asked_tokens(span)}) < _ENOUGH:
        asking = spans
    strong = {token for span in asking for token in asked_tokens(_without_relative_times(span, asked_at))}
    tokens = {token: 1.0 if token in strong else _BESIDE for token in asked_tokens(text)}
    if previous and _refers_back(text):
        tokens = dict.fromkeys(asked_tokens(previous), _BEFORE) | tokens
    return Question(
        text=text,
        tokens=tokens,
        times=tuple(mention for span in asking for mention in times_asked(span, asked_at)),
        own=_holds("own", text),
        wants_time_or_number=_holds("asks", text),
    )


def at_large(language: Literal["en", "zh"]) -> list[str]:
    """Return common questions, about nothing in particular.

    For "en" they are in English, German and Spanish.
    """
    return [each for name, asked in table("at_large").items() if (name == "zh") == (language == "zh") for each in asked]


def _refers_back(text: str) -> bool:
    return len(asked_tokens(text)) < _ENOUGH or _holds("back", text)


def _without_relative_times(sentence: str, asked_at: datetime) -> str:
    rest = sentence
    for mention in reversed(resolve(sentence, asked_at)):
        if not _IN_FIGURES.search(mention.text) and not _holds("months", mention.text):
            rest = f"{rest[: mention.start]} {rest[mention.end :]}"
    return rest


@cache
def _frames() -> frozenset[str]:
    return frozenset(
        token for words in table("questions")["frames"].values() for each in words for token in tokenize(each)
    )


def _holds(what: str, text: str) -> bool:
    return _words(what).search(simplified(text)) is not None


@cache
def _words(what: str) -> re.Pattern[str]:
    told = table("questions")[what]
    spaced = "|".join(re.escape(each) for language, words in told.items() if language != "zh" for each in words)
    return re.compile(rf"\b(?:{spaced})\b|{'|'.join(map(re.escape, told['zh']))}", re.IGNORECASE)
