"""The blender: one weighted sum of signs ranks messages, and every hit tells what its score is made of (F6).

The weights stand in `data/blend.toml`, one set for every kind of conversation, with an embedder that knows meaning and
without. Signs of words come first, for all messages at once; what must be read to be judged, and what they mean, is
judged for the best of them only.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from remegraph.language.times import resolve
from remegraph.rules.freshness import Said, asks_past, freshened
from remegraph.rules.ranking import MessageSigns
from remegraph.rules.tables import table

if TYPE_CHECKING:
    from remegraph.models import Message, Partition
    from remegraph.rules.questions import Question

__all__ = ["Meant", "Placed", "Ranked", "Weights", "default_weights", "freshen", "judge", "rank"]

_MAKES_WAY = 1
"""How many of the best make way for a rival. More helps few answers, and costs recall where there was no change."""

_RIVALS = 7
"""It is looked for among so many of the best: of 5 to 30 tried, the most that costs no recall on any set."""

_LATER = timedelta(hours=12)
"""What happened on a day is still told that long after it."""

_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Ranked:
    """A record found - a message, a memory, an index entry - with what its score is the sum of."""

    partition: Partition
    record_id: str
    contributions: dict[str, float]
    """By sign; a sign that adds nothing is left out."""

    @property
    def score(self) -> float:
        """The sum, 0 to 1."""
        return sum(self.contributions.values())


@dataclass(frozen=True, slots=True)
class Placed:
    """A message that words speak for, by its place: it was not read yet."""

    partition: Partition
    seq: int
    contributions: dict[str, float]
    """By sign; a sign that adds nothing is left out."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each sign counts; all of them together are 1."""

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

        Args:
            words: Of signs of words.
            message: Of signs of a message itself.
            meaning: Of signs of meaning.
            read: How many of the best are read.
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
    """Return the weights of `data/blend.toml`.

    Args:
        semantic: Those for an embedder that knows meaning.
    """
    told = table("blend")["semantic" if semantic else "plain"]
    return Weights.of(told["words"], told["message"], told.get("meaning"), told["read"])


def rank(found: Sequence[tuple[Partition, MessageSigns]], weights: Weights) -> Iterator[Placed]:
    """Yield the messages that words speak for, best first; of equals the earlier one.

    Args:
        found: The signs of each partition. Shares are of the best in all of them together.
        weights: What each sign counts.
    """
    found = [(partition, signs) for partition, signs in found if signs.seqs.size]
    if not found:
        return
    names = list(weights.words)
    starts = list(accumulate((len(signs.seqs) for _, signs in found), initial=0))
    table = np.concatenate([np.column_stack([signs.columns[name] for name in names]) for _, signs in found])
    parts = table / np.maximum(table.max(axis=0), 1e-9) * np.array([weights.words[name] for name in names])
    totals = parts.sum(axis=1)
    for row in np.argsort(-totals, kind="stable"):
        place = bisect_right(starts, row) - 1
        partition, signs = found[place]
        contributions = {name: float(part) for name, part in zip(names, parts[row], strict=True) if part > 0}
        if contributions:
            yield Placed(partition, int(signs.seqs[row - starts[place]]), contributions)


Meant = Mapping[tuple["Partition", str], Mapping[str, float]]
"""What each message means, by partition and id: a value, 0 or more, for each sign of meaning."""


def judge(
    question: Question, ranked: Sequence[tuple[Ranked, Message]], weights: Weights, meant: Meant | None = None
) -> list[Ranked]:
    """Return messages that were read, best first, with what they themselves say for them.

    - `speaker`: who said it is named by the question, or asks it about themselves.
    - `tells`: it names a time or a number, where the question asks when, how long or how many.
    - `then`: it was said at a time that the question names; `tells then`: it speaks of that time.

    A sign that all of them have tells none apart, and counts nothing.

    Args:
        question: The question.
        ranked: The messages, as words rank them.
        weights: What each sign counts.
        meant: How near their meaning is to that of the question. Shares are of the best of these messages.
    """
    meanings = [(meant or {}).get((item.partition, item.record_id), {}) for item, _ in ranked]
    scale = {
        name: weight / max([1e-9, *(meaning.get(name, 0.0) for meaning in meanings)])
        for name, weight in weights.meaning.items()
    }
    signs = [_signs(question, message) for _, message in ranked]
    told_apart = {name: weight for name, weight in weights.message.items() if len({each[name] for each in signs}) > 1}
    judged: list[Ranked] = []
    for (item, _), meaning, has in zip(ranked, meanings, signs, strict=True):
        more = {name: weight for name, weight in told_apart.items() if has[name]}
        more |= {name: scale[name] * value for name, value in meaning.items() if value > 0 and name in scale}
        judged.append(Ranked(item.partition, item.record_id, item.contributions | more))
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
    """Return messages with what holds now before what held before, or as the question asks.

    Args:
        question: The question.
        judged: The messages, best first.
    """
    said = [
        Said(message.name or message.role, message.text, message.time, item.score) for item, message in judged[:_RIVALS]
    ]
    sign = "older" if asks_past(question) else "newer"
    fresh = [
        Ranked(item.partition, item.record_id, item.contributions | ({sign: gain} if gain else {}))
        for item, gain in ((judged[place][0], gain) for place, gain in freshened(question, said, _MAKES_WAY))
    ]
    return [*fresh, *(item for item, _ in judged[_RIVALS:])]
