"""How messages are ranked: by fitted weights (`rank`, `judge`), then what holds now before what held before (`freshen`).

Two statements are rivals where one person made both and the later one says what became of the matter: it says so ("now",
"instead", "改成") and speaks of what is asked, or it says the same but for a value, or that a thing to do is done.
The question decides which comes first: one about the past means the earlier. All else keeps its order.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from remegraph.engine.retrieval.scores import MessageSigns
from remegraph.models.standing import Signs, relevance
from remegraph.text import table
from remegraph.text.scripts import simplified
from remegraph.text.sentences import sentences
from remegraph.text.terms import weight, wording
from remegraph.text.times import resolve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from remegraph.models import Message, Partition
    from remegraph.text.questions import Question

__all__ = [
    "Placed",
    "Ranked",
    "Utterance",
    "Weights",
    "asks_past",
    "default_weights",
    "freshen",
    "freshened",
    "judge",
    "rank",
]


_NEAR = 0.5
"""A rival's score is at least this share of the other's."""

_ASKED = 0.3
"""The two share so much of what is asked."""

_ANOTHER_TIME = timedelta(hours=1)
"""An update comes at least this much later: within a talk, a sentence adds to the one before it."""

_ALIKE = 0.5
"""Share of words from which two statements differ only in a value, or one is about the other's thing to do."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What was said, by whom (or of whom) and when, and how well it answers."""

    speaker: str
    words: str
    time: datetime
    score: float


def asks_past(question: str) -> bool:
    """Return whether a question asks about the past ("what did I use to like?", 以前)."""
    return _speaks_of("past", question)


def freshened(question: str, said: Sequence[Utterance], first: int) -> list[tuple[int, float]]:
    """Return the order in which to show statements, as their places in `said`, each with the score it must gain for that.

    `first` says how many of them may give way to a rival.
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


def _meant(said: Sequence[Utterance], left: Sequence[int], asked: frozenset[str], *, past: bool) -> int:
    """Return the place of the best statement that is left, or of a rival that goes before it."""
    place = left[0]
    while True:  # ends: each rival is newer than the one before it, or each is older
        top = said[place]
        rivals = (at for at in left if _goes_before(said[at], top, asked, past=past))
        rival = next(rivals, None)
        if rival is None:
            return place
        place = rival


def _goes_before(one: Utterance, other: Utterance, asked: frozenset[str], *, past: bool) -> bool:
    return _replaces(other, one, asked) if past else _replaces(one, other, asked)


def _replaces(new: Utterance, old: Utterance, asked: frozenset[str]) -> bool:
    """Return whether a statement updates another, as far as the question is concerned."""
    comparable = new.speaker == old.speaker and new.time - old.time >= _ANOTHER_TIME
    if not comparable or min(new.score, old.score) < _NEAR * max(new.score, old.score):
        return False
    about = wording(old.speaker).words
    now, then = wording(new.words), wording(old.words)
    mine, yours, asked = now.words - about, then.words - about, asked - about
    both_answer = weight(mine & yours & asked)
    if not both_answer or both_answer < _ASKED * weight(asked):
        return False
    shared, longer = weight(mine & yours), max(weight(mine), weight(yours))
    todo = _speaks_of("todo", old.words)
    as_much = asked & yours <= mine or todo  # "held in Bern", "lasts five days": two facts, not a new one
    if now != then and as_much and shared >= _ALIKE * (weight(yours) if todo else longer):
        return True
    return _states_change(new.words, asked)


def _states_change(text: str, asked: frozenset[str]) -> bool:
    """Return whether a sentence speaks of what is asked, and of a change."""
    spans = sentences(text)
    return any(_speaks_of("changed", span.text) and bool(asked & wording(span.text).words) for span in spans)


def _speaks_of(what: str, text: str) -> bool:
    return bool(_words(what).search(simplified(text)))


@cache
def _words(what: str) -> re.Pattern[str]:
    told = table("freshness")[what]
    spaced = "|".join(words for language, words in told.items() if language != "zh")
    return re.compile(rf"\b(?:{spaced})\b|{told['zh']}", re.IGNORECASE)


_MAKES_WAY = 1
"""How many of the best may give way to a rival. More helps few answers, and costs recall where nothing changed."""

_RIVALS = 7
"""Rivals are searched among this many of the best: of 5 to 30 tried, the most that costs no recall on any set."""

_LATER = timedelta(hours=12)
"""What happened on a day is still talked about this long after it."""

_APART, _STEEP = 0.6, 4
"""Cosines this far apart say as much as words that cover half of a question; the power says how soon
meaning is trusted. MiniLM reads Chinese at .28, English at .46 to .82 (decision 0037)."""

_COVERAGE, _DENSITY, _MEANING = "coverage", "density", "meaning"
_WINDOWS = ("window of 3", "window of 5")

_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Ranked:
    """A record found - a message, a memory, an index entry - with what its score is the sum of."""

    partition: Partition
    record_id: str
    contributions: dict[str, float]
    """By sign; a sign that adds nothing is left out."""
    signs: Signs | None = None
    """The signs that it bears on the question, if they were computed."""

    @property
    def relevance(self) -> float | None:
        """How likely it bears on the question, 0 to 1."""
        return None if self.signs is None else relevance(self.signs)

    @property
    def parts(self) -> tuple[dict[str, float], float | None]:
        """The parts of its score, and its relevance."""
        return self.contributions, self.relevance

    @property
    def score(self) -> float:
        """The sum, 0 to 1."""
        return sum(self.contributions.values())


@dataclass(frozen=True, slots=True)
class Placed:
    """A candidate message found by words or meaning, by its place: it was not read yet."""

    partition: Partition
    seq: int
    contributions: dict[str, float]
    """By sign; a sign that adds nothing is left out."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each sign; they add up to 1."""

    words: Mapping[str, float]
    message: Mapping[str, float]
    meaning: Mapping[str, float] = field(default_factory=dict)
    read: int = 60
    """How many of the best are read."""

    @classmethod
    def of(
        cls,
        words: Mapping[str, float],
        message: Mapping[str, float],
        meaning: Mapping[str, float] | None = None,
        read: int = 60,
    ) -> Weights:
        """Return weights in these proportions.

        `read` says how many of the best are read.
        """
        meaning = meaning or {}
        whole = sum((*words.values(), *message.values(), *meaning.values()))
        return cls(
            {name: value / whole for name, value in words.items()},
            {name: value / whole for name, value in message.items()},
            {name: value / whole for name, value in meaning.items()},
            read,
        )


@cache
def default_weights(*, semantic: bool = False) -> Weights:
    """Return the weights of `data/blend.toml`."""
    told = table("blend")["semantic" if semantic else "plain"]
    return Weights.of(told["words"], told["message"], told.get("meaning"), told["read"])


def rank(found: Sequence[tuple[Partition, MessageSigns]], weights: Weights) -> Iterator[Placed]:
    """Yield the messages found by words or meaning, best first; of equals the earlier one.

    Shares are of the best in all partitions together.
    """
    found = [(partition, signs) for partition, signs in found if signs.seqs.size]
    if not found:
        return
    names = [*weights.words, *weights.meaning]
    starts = list(accumulate((len(signs.seqs) for _, signs in found), initial=0))
    columns = {
        name: np.concatenate([signs.columns.get(name, np.zeros(len(signs.seqs))) for _, signs in found])
        for name in (*names, _COVERAGE)
    }
    long = np.concatenate([np.full(len(signs.seqs), signs.long) for _, signs in found])
    covered, apart = float(columns[_COVERAGE].max()), max(signs.apart for _, signs in found)
    worded = _share_of_words(covered, apart) if weights.meaning else 1.0
    parts = np.column_stack(
        [weights.words[name] * _word_sign(name, columns[name], long, worded) for name in weights.words]
        + [
            weight * columns[name] * (1 - worded if name == _MEANING else 1.0)
            for name, weight in weights.meaning.items()
        ]
    )
    totals = parts.sum(axis=1)
    for row in np.argsort(-totals, kind="stable"):
        place = bisect_right(starts, row) - 1
        partition, signs = found[place]
        contributions = {name: float(part) for name, part in zip(names, parts[row], strict=True) if part > 0}
        if contributions:
            yield Placed(partition, int(signs.seqs[row - starts[place]]), contributions)


def _share_of_words(covered: float, apart: float) -> float:
    """Return how much words count for a question, 0 to 1; its meaning counts for the rest.

    Words count as far as one message holds those of the question, meaning as far as none does and the best differs from
    the others: where all texts look alike to an embedder, its order is chance.
    """
    meant = (1 - covered) * (apart / _APART) ** _STEEP
    return covered / max(covered + meant, 1e-9)


def _word_sign(name: str, column: NDArray[np.float64], long: NDArray[np.float64], worded: float) -> NDArray[np.float64]:
    """Return a sign of words as a share of the best, as far as the messages support it.

    Windows help in talk of short turns, density if there are long texts as well as short ones. All count as far as
    words do; coverage by its square root, which does not depend on one text being the best of many poor ones.
    """
    shares = column / max(float(column.max()), 1e-9)
    if name == _DENSITY:
        shares = shares * long
    elif name in _WINDOWS:
        shares = shares * (1 - long)
    return shares * (math.sqrt(worded) if name == _COVERAGE else worded)


def judge(question: Question, ranked: Sequence[tuple[Ranked, Message]], weights: Weights) -> list[Ranked]:
    """Return messages that were read, best first, with the signs found in their text.

    - `speaker`: who said it is named by the question, or asks it about themselves.
    - `tells`: it names a time or a number, where the question asks when, how long or how many.
    - `then`: it was said at a time that the question names; `tells then`: it speaks of that time.

    A sign that all of them have distinguishes none, and counts nothing.
    """
    signs = [_signs(question, message) for _, message in ranked]
    told_apart = {name: weight for name, weight in weights.message.items() if len({each[name] for each in signs}) > 1}
    judged: list[Ranked] = []
    for (item, _), has in zip(ranked, signs, strict=True):
        more = {name: weight for name, weight in told_apart.items() if has[name]}
        judged.append(replace(item, contributions=item.contributions | more))
    return sorted(judged, key=lambda each: -each.score)


def _signs(question: Question, message: Message) -> dict[str, bool]:
    named = bool(message.name) and message.name.casefold() in question.text.casefold()
    asked = question.times or question.wants_time_or_number
    times = resolve(message.text, message.time) if asked else []
    return {
        "speaker": named or (question.own and message.role == "user"),
        "tells": question.wants_time_or_number and bool(times or _DIGIT.search(message.text)),
        "then": any(time.begins <= message.time < time.ends + _LATER for time in question.times),
        "tells then": any(
            told.begins < time.ends and time.begins < told.ends for time in question.times for told in times
        ),
    }


def freshen(question: str, judged: Sequence[tuple[Ranked, Message]]) -> list[Ranked]:
    """Return messages with what holds now before what held earlier, or in the order that the question asks for."""
    said = [
        Utterance(message.name or message.role, message.text, message.time, item.score)
        for item, message in judged[:_RIVALS]
    ]
    sign = "older" if asks_past(question) else "newer"
    fresh = [
        replace(item, contributions=item.contributions | ({sign: gain} if gain else {}))
        for item, gain in ((judged[place][0], gain) for place, gain in freshened(question, said, _MAKES_WAY))
    ]
    return [*fresh, *(item for item, _ in judged[_RIVALS:])]
