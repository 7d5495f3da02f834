"""What holds now before what held before, and the other way round where a question asks for the past.

Two statements are rivals where one person made both and the later one says what became of the matter: it says so ("now",
"instead", "改成") and speaks of what is asked, or it says the same but for a value, or that a thing to do is done.
Which of them is meant is the question's to say; the order of everything else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from remegraph.language.sentences import sentences
from remegraph.rules.tables import table
from remegraph.rules.wording import weight, wording

__all__ = ["Said", "asks_past", "freshened"]

_NEAR = 0.5
"""A rival's score is at least this share of the other's."""

_ASKED = 0.3
"""And it holds so much of what is asked as the other holds, and the two share so much of it."""

_ALIKE = 0.5
"""Share of words from which two statements say the same but for a value, or one is about the other's thing to do."""


@dataclass(frozen=True, slots=True)
class Said:
    """What was said, by whom (or of whom) and when, and how well it answers."""

    speaker: str
    words: str
    time: datetime
    score: float


def asks_past(question: str) -> bool:
    """Return whether a question asks for what held before ("what did I use to like?", 以前)."""
    return _speaks_of("past", question)


def freshened(question: str, said: Sequence[Said], first: int) -> list[tuple[int, float]]:
    """Return in which order to show statements, as their places in `said`, each with what its score must gain for that.

    Args:
        question: The question.
        said: The statements, best first.
        first: How many of them make way for a rival.
    """
    past, asked = asks_past(question), wording(question).words
    if _speaks_of("event", question) and not past:
        first = 0
    left = list(range(len(said)))
    order: list[int] = []
    while left and len(order) < first:
        place = _meant(said, left, asked, past=past)
        left.remove(place)
        order.append(place)
    order += left
    reached = 0.0
    gains: list[tuple[int, float]] = []
    for place in reversed(order):
        gains.append((place, max(0.0, reached - said[place].score)))
        reached = max(reached, said[place].score)
    return gains[::-1]


def _meant(said: Sequence[Said], left: Sequence[int], asked: frozenset[str], *, past: bool) -> int:
    """Return the place of the best statement that is left, or of the one that goes before it."""
    place = left[0]
    while True:  # ends: each rival is newer than the one before it, or each is older
        top = said[place]
        rivals = (at for at in left if _goes_before(said[at], top, asked, past=past))
        rival = next(rivals, None)
        if rival is None:
            return place
        place = rival


def _goes_before(one: Said, other: Said, asked: frozenset[str], *, past: bool) -> bool:
    return _replaces(other, one, asked) if past else _replaces(one, other, asked)


def _replaces(new: Said, old: Said, asked: frozenset[str]) -> bool:
    """Return whether a statement says what became of another, as far as is asked."""
    comparable = new.speaker == old.speaker and new.time > old.time
    if not comparable or min(new.score, old.score) < _NEAR * max(new.score, old.score):
        return False
    about = wording(old.speaker).words
    now, then = wording(new.words), wording(old.words)
    mine, yours = now.words - about, then.words - about
    asked = asked - about
    answered, before = weight(asked & mine), weight(asked & yours)
    if not answered or answered < _ASKED * before:
        return False
    shared, longer = weight(mine & yours), max(weight(mine), weight(yours))
    todo = _speaks_of("todo", old.words)
    as_much = asked & yours <= mine or todo  # "held in Bern", "lasts five days": two facts, not a new one
    if now != then and as_much and shared >= _ALIKE * (weight(yours) if todo else longer):
        return True
    shared_of_asked = weight(mine & yours & asked)
    return shared_of_asked >= _ASKED * max(answered, before) and _says_so(new.words, asked)


def _says_so(text: str, asked: frozenset[str]) -> bool:
    """Return whether a sentence speaks of what is asked, and of a change."""
    spans = sentences(text)
    return any(_speaks_of("changed", span.text) and bool(asked & wording(span.text).words) for span in spans)


def _speaks_of(what: str, text: str) -> bool:
    return bool(_words(what).search(text))


@cache
def _words(what: str) -> re.Pattern[str]:
    told = table("freshness")[what]
    return re.compile(rf"\b(?:{told['en']})\b|{told['zh']}", re.IGNORECASE)
