"""The completeness check of the reviser (R11): what was said that no memory holds."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from remegraph.language.scripts import language_of
from remegraph.language.sentences import sentences
from remegraph.language.times import resolve
from remegraph.rules.wording import weight, wording

if TYPE_CHECKING:
    from datetime import datetime

    from remegraph.models import Message

__all__ = ["Omission", "uncovered"]

# A statement is reported where what is missing of it and the signs that it is worth remembering add up to this.
# Chinese sentences break up into shorter parts. Both values were set on the cases in evals/reviser_cases.
_THRESHOLD = {"en": 5.0, "zh": 4.0}
_LEAST_MISSING_SHARE = 0.5
_MOST_FOR_WORDS = 4.0
_LEAST_WORDS_OF_PART = 3

_PARTS = re.compile(
    r"(?<=[，；,;：])|(?=\s(?:but|and|so|because|since|though)\s+(?:i|we|he|she|my|it|they|i'm|i've|we've|that's)\b)"
    r"|(?<=\.\.)(?=\s)|(?=\s[-–—]\s)",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,’'0-9] )[A-Z][\w’'-]+")
_ATTITUDES = frozenset(
    "=dislik =fear =allergi =avoid =vegetarian =vegan =need =讨厌 =害怕 =过敏 =不要".split()
)
"""Synonym groups that are worth remembering by themselves: what somebody cannot or will not have."""


@dataclass(frozen=True, slots=True)
class Omission:
    """Something worth remembering that no memory holds."""

    message_id: str
    statement: str
    """The words, as they stand in the message."""
    reason: str


@dataclass(frozen=True, slots=True)
class _Known:
    """What the memories hold, with the names of the speakers."""

    words: frozenset[str]
    numbers: frozenset[str]
    days: tuple[tuple[datetime, datetime], ...]


def uncovered(messages: Sequence[Message], memories: Sequence[str]) -> list[Omission]:
    """Return the statements about people that no memory covers.

    A statement is a sentence of a user, or a part of one, that asks for nothing. Its content words, numbers, names and
    dates are looked for in all memories together; dates also as the day that they meant when they were said. What is
    missing is weighed with the signs that it is worth remembering: the first person, habits, aversions, names, numbers.

    Args:
        messages: The messages of a block.
        memories: All memories that touch it, after the change.

    Returns:
        At most one omission per sentence, in the order of the messages.
    """
    known_words: set[str] = set()
    known_numbers: set[str] = set()
    for text in (*memories, *(message.speaker for message in messages)):
        known_words |= wording(text).words
        known_numbers |= wording(text).numbers
    omissions: list[Omission] = []
    for message in messages:
        if message.role != "user":
            continue
        days = [mention for text in memories for mention in resolve(text, message.time)]
        known = _Known(
            frozenset(known_words), frozenset(known_numbers), tuple((day.begins, day.ends) for day in days)
        )
        for sentence in sentences(message.text):
            found = [_omission(message, part, known) for part in _parts(sentence.text)]
            best = max((each for each in found if each is not None), key=lambda each: each[0], default=None)
            if best is not None:
                omissions.append(best[1])
    return omissions


def _parts(sentence: str) -> Iterator[str]:
    """Yield the sentence and, if it has several, its clauses; clauses with few words join the next one."""
    yield sentence
    pieces: list[str] = []
    current = ""
    for piece in _PARTS.split(sentence):
        current += piece
        said = wording(current)
        if len(said.words) + len(said.numbers) >= _LEAST_WORDS_OF_PART:
            pieces.append(current)
            current = ""
    if current.strip():
        pieces.append(current)
    if len(pieces) > 1:
        yield from (piece.strip() for piece in pieces)


def _omission(message: Message, statement: str, known: _Known) -> tuple[float, Omission] | None:
    signs = _signs()
    if any(sign.search(statement) for sign in signs["asks"]):
        return None
    plain, missing_days = _without_times(statement, message.time, known)
    said = wording(plain)
    missing = said.words - known.words
    numbers = said.numbers - known.numbers
    names = [name for name in _NAME.findall(plain) if wording(name).words & missing]
    attitudes = missing & _ATTITUDES
    score = weight(missing) + len(numbers)
    if score < _LEAST_MISSING_SHARE * max(weight(said.words) + len(said.numbers), 0.5) and not missing_days:
        return None
    first = _has(statement, "first_person")
    if not (first or names or missing_days or any(map(_telling, numbers)) or attitudes or _has(statement, "third_person")):
        return None
    score = min(score, _MOST_FOR_WORDS) + bool(names) + bool(missing_days or any(map(_telling, numbers))) + bool(attitudes) + first
    score += _has(statement, "lasting") - _has(statement, "passing")
    if score < _THRESHOLD[language_of(statement)]:
        return None
    lacking = ", ".join([*names, *sorted(numbers), *missing_days] or sorted(word.lstrip("=~") for word in missing))
    return score, Omission(message.message_id, statement, f"No memory holds: {lacking}.")


def _without_times(statement: str, said_at: datetime, known: _Known) -> tuple[str, list[str]]:
    """Cut the times out of a statement; return the rest, and the days that no memory names.

    The day on which something was said goes without saying.
    """
    kept = statement
    missing: list[str] = []
    for mention in reversed(resolve(statement, said_at)):
        kept = f"{kept[: mention.start]} {kept[mention.end :]}"
        today = mention.begins.date() <= said_at.date() and said_at < mention.ends
        if not today and not any(begins < mention.ends and mention.begins < ends for begins, ends in known.days):
            missing.append(mention.text)
    return kept, missing


def _telling(number: str) -> bool:
    """Return whether a number is worth remembering by itself: not what is counted on one's fingers."""
    return len(number) > 1


def _has(statement: str, kind: str) -> bool:
    return any(sign.search(statement) for sign in _signs()[kind])


@lru_cache(maxsize=1)
def _signs() -> dict[str, tuple[re.Pattern[str], ...]]:
    text = (files("remegraph.rules") / "data" / "marks.toml").read_text(encoding="utf-8")
    return {
        kind: tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)
        for kind, patterns in tomllib.loads(text).items()
    }
