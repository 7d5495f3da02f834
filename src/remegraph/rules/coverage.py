"""The completeness check of the reviser (R11): what was said that no memory holds."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from remegraph.language.scripts import language_of
from remegraph.language.sentences import sentences
from remegraph.language.times import resolve
from remegraph.rules.wording import weight, wording

if TYPE_CHECKING:
    from remegraph.models import Message

__all__ = ["Omission", "uncovered"]

# A statement is reported where what is missing of it and the signs that it is worth remembering add up to this.
# Chinese sentences break up into shorter parts. Both values were set on the cases in evals/reviser_cases.
_THRESHOLD = {"en": 5.0, "zh": 4.5}
_LEAST_MISSING_SHARE = 0.65
_MOST_FOR_WORDS = 4.0
_LEAST_WORDS_OF_PART = 3

_SIGNS = {
    "name": 1.5,
    "number": 1.0,
    "day": 4.0,
    "attitude": 1.0,
    "first_person": 1.0,
    "third_person": 1.0,
    "lasting": 1.0,
    "passing": -1.0,
}
"""What each sign adds: a name, a number or a day that no memory holds, an attitude, who speaks, for how long."""

_MONTH = timedelta(days=31)

_PARTS = re.compile(
    r"(?<=[，；,;：])|(?=\s(?:but|and|so|because|since|though)\s+(?:i|we|he|she|my|it|they|i'm|i've|we've|that's)\b)"
    r"|(?<=\.\.)(?=\s)|(?=\s[-–—]\s)",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,’'0-9] )[A-Z][\w’'-]+")
_ATTITUDES = frozenset("=dislik =fear =allergi =avoid =vegetarian =vegan =讨厌 =害怕 =过敏 =不要".split())
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
    texts: tuple[str, ...]

    def has_time(self, begins: datetime, ends: datetime, said_at: datetime) -> bool:
        """Return whether a memory names this time. Looked up only for statements that name one: it is dear."""
        mentions = (mention for text in self.texts for mention in resolve(text, said_at))
        return any(_same_time(begins, ends, mention.begins, mention.ends) for mention in mentions)


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
    known = _Known(frozenset(known_words), frozenset(known_numbers), tuple(memories))
    omissions: list[Omission] = []
    for message in messages:
        if message.role != "user":
            continue
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
    if _has(statement, "asks"):
        return None
    plain, missing_days = _without_times(statement, message.time, known)
    said = wording(plain)
    words = said.words - _ATTITUDES
    missing = words - known.words
    numbers = said.numbers - known.numbers
    names = [name for name in _NAME.findall(plain) if wording(name).words & missing]
    attitudes = said.words & _ATTITUDES
    amount = weight(missing) + len(numbers)
    language = language_of(statement)
    if amount < _LEAST_MISSING_SHARE * max(weight(words) + len(said.numbers), 0.5) and not missing_days:
        return None
    signs = {
        "name": bool(names),
        "number": any(map(_telling, numbers)),
        "day": bool(missing_days),
        "attitude": bool(missing and (attitudes or _has(statement, "refuses"))),
        "first_person": _has(statement, "first_person"),
        "third_person": _has(statement, "third_person"),
        "lasting": _has(statement, "lasting") or _has(statement, "refuses"),
        "passing": _has(statement, "passing"),
    }
    if not any(met for sign, met in signs.items() if sign not in ("lasting", "passing")):
        return None
    score = min(amount + len(attitudes - known.words), _MOST_FOR_WORDS) + sum(
        _SIGNS[sign] for sign, met in signs.items() if met
    )
    if score < _THRESHOLD[language]:
        return None
    lacking = ", ".join([*names, *sorted(numbers), *missing_days] or sorted(word.lstrip("=~") for word in missing))
    return score, Omission(message.message_id, statement, f"No memory holds: {lacking}.")


def _without_times(statement: str, said_at: datetime, known: _Known) -> tuple[str, list[str]]:
    """Cut the days and longer times out of a statement; return the rest, and those that no memory names.

    The day on which something was said goes without saying, and so does what is over where it has no date.
    """
    kept = statement
    missing: list[str] = []
    for mention in reversed(resolve(statement, said_at)):
        if mention.kind == "instant":
            continue
        kept = f"{kept[: mention.start]} {kept[mention.end :]}"
        dated = mention.begins > said_at or re.search(r"\d", mention.text)
        if dated and not known.has_time(mention.begins, mention.ends, said_at):
            missing.append(mention.text)
    return kept, missing


def _same_time(begins: datetime, ends: datetime, known_begins: datetime, known_ends: datetime) -> bool:
    """Return whether a known time holds another one, and is about as exact.

    The same day of another year does too: the year of a day without one is a guess.
    """
    exact = known_ends - known_begins <= max(_MONTH, ends - begins)
    overlap = exact and known_begins < ends and begins < known_ends
    return overlap or (begins.month, begins.day) == (known_begins.month, known_begins.day)


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
