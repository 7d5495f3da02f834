"""Salience: what is worth remembering, and what of it memories omit (R11), by signs with fitted weights."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

from remegraph.text import table
from remegraph.text import text as text_of
from remegraph.text.entities import entities
from remegraph.text.scripts import language_of
from remegraph.text.sentences import sentences
from remegraph.text.terms import Wording, grams, weight, wording
from remegraph.text.times import resolve
from remegraph.text.tokens import query_tokens, stop_words

if TYPE_CHECKING:
    from remegraph.models import Message

__all__ = [
    "Model",
    "Omission",
    "Purpose",
    "Statement",
    "content_words",
    "model",
    "salience",
    "signs_in",
    "signs_of",
    "small_talk",
    "statements",
    "uncovered",
    "weights",
]


@lru_cache(maxsize=1 << 11)
def signs_in(text: str) -> dict[str, float]:
    """Return which kinds of signs (data/marks.toml) a sentence or clause has: 1.0 or 0.0 for each."""
    return {kind: float(pattern.search(text) is not None) for kind, pattern in _patterns(language_of(text)).items()}


@lru_cache(maxsize=2)
def _patterns(language: str) -> dict[str, re.Pattern[str]]:
    marks = table("marks").items()
    return {kind: re.compile("|".join(patterns[language]), re.IGNORECASE) for kind, patterns in marks}


Purpose = Literal["now", "later"]
"""The purpose of attention: working with something now, or summarising it for later."""

_MOST_NEW = 12
_MOST_NAMES = 2
_PERSONAL = ("mine", "own", "people")
_BINDING = ("cannot", "refuses", "health")


def salience(text: str, before: Sequence[str], purpose: Purpose) -> float:
    """Return how much attention a text deserves, 0 to 1: its signs, weighed (data/attention.toml).

    A word that was said before is not new.
    """
    weighed = weights(purpose)
    signs = signs_of(text, before)
    return 1 / (1 + math.exp(-weighed["always"] - sum(weighed[name] * value for name, value in signs.items())))


def signs_of(text: str, before: Sequence[str]) -> Mapping[str, float]:
    """Return the signs of a text by their names in data/attention.toml, 0 to 1 each."""
    said = _said(text)
    new = said.words.difference(*map(content_words, before))
    return {"new": min(1.0, len(new) / _MOST_NEW), **said.signs}


class _TextSigns:
    """Signs of a text by itself. Names, times and persons count in statements; a question only asks."""

    def __init__(self, text: str) -> None:
        parts = [span.text for span in sentences(text)]
        told = [part for part in parts if not part.rstrip().endswith(("?", "？"))]
        named = entities("\n".join(told))
        kinds = [signs_in(part) for part in told]
        asked = [part for part in parts if part not in told]
        self.words = frozenset[str]().union(*map(content_words, told))
        self.signs = {
            "names": min(1.0, len(named) / _MOST_NAMES),
            "times": float(any(entity.kind == "date" for entity in named)),
            "personal": max((kind[name] for kind in kinds for name in _PERSONAL), default=0.0),
            "binding": max((kind[name] for kind in kinds for name in _BINDING), default=0.0),
            "asks": float(any(content_words(part) for part in asked)),
            "feedback": float(any(_feedback(language_of(part)).search(part) for part in told)),
            "addresses": max((kind["you"] for kind in kinds), default=0.0),
        }


_said = lru_cache(maxsize=1 << 10)(_TextSigns)


@lru_cache(maxsize=1 << 11)
def content_words(text: str) -> frozenset[str]:
    """Return the different words of a text, other than stop words and small talk."""
    return frozenset(query_tokens(text)) - stop_words() - small_talk()


@cache
def small_talk() -> frozenset[str]:
    """Return the words of greetings, thanks and the like."""
    return frozenset(query_tokens(text_of("small_talk.txt")))


@cache
def weights(purpose: Purpose) -> Mapping[str, float]:
    """Return the weight of each sign, and of `always`."""
    return {name: float(weight) for name, weight in table("attention")[purpose].items()}


@cache
def _feedback(language: str) -> re.Pattern[str]:
    return re.compile("|".join(table("attention")["feedback"][language]), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Model:
    """A weight for each sign, and the sum from which on the answer is yes."""

    threshold: float
    weights: Mapping[str, float]

    def score(self, signs: Mapping[str, float]) -> float:
        """Return by how much the weighed signs exceed the threshold; above 0 the answer is yes.

        A sign without a weight does not count.
        """
        return sum(weight * signs[name] for name, weight in self.weights.items()) - self.threshold


@cache
def model(question: Literal["omission"], language: Literal["en", "zh"]) -> Model:
    """Return the model for one question; the weights serve both languages, each has a threshold of its own."""
    told = table("weights")[question]
    return Model(float(told["threshold"][language]), {name: float(value) for name, value in told["weights"].items()})


_LEAST_WORDS_OF_PART = 3
_READ_WHOLE = 200
"""Characters up to which a clause is read as a whole with those that it joins; then by itself, as it takes its time."""
_NEAREST = 3

_LENIENCE = 1.0
"""The threshold is this much lower without memories: the question then is what to remember, not what was omitted."""
_MONTH = timedelta(days=31)

_PARTS = re.compile(
    r"(?<=[，；,;：])|(?=\s(?:but|and|so|because|since|though)\s+(?:i|we|he|she|my|it|they|i'm|i've|we've|that's)\b)"
    r"|(?<=\.\.)(?=\s)|(?=\s[-–—]\s)",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,’'0-9] )[A-Z][\w’'-]+")
_ATTITUDES = frozenset("=dislik =fear =allergi =avoid =vegetarian =vegan =讨厌 =害怕 =过敏 =不要".split())
"""Synonym groups for an attitude towards a thing: the thing itself must be searched for."""


@dataclass(frozen=True, slots=True)
class Omission:
    """Something worth remembering that no memory holds."""

    message_id: str
    statement: str
    """The words, as the message has them."""
    reason: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence or a clause of one, and what speaks for and against its being an omission."""

    message_id: str
    sentence: int
    """The number of the sentence that it is, or is a part of."""
    text: str
    signs: Mapping[str, float]
    """Each sign's value, about 0 to 3; those of data/weights.toml."""
    moved: bool
    """Whether a memory holds all of it except the day: that memory is wrong."""
    lacking: tuple[str, ...]
    """Missing from all memories: names, numbers and days, or else words."""


def uncovered(messages: Sequence[Message], memories: Sequence[str], *, lenience: float = 0.0) -> list[Omission]:
    """Return the statements about people that no memory covers.

    A statement is a sentence of a user, or a clause of one. Its content words, numbers, names and dates are looked for
    in the memories, all together and each alone; dates also as the day that they meant when they were said. What is
    missing and the signs that it is worth remembering are weighed by a logistic model, fitted to cases. Without
    memories, everything worth remembering is returned, and rather too much. `lenience` is added to each score, in log
    odds: more is reported, right and wrong. 0 keeps false alarms at a tenth.

    Returns:
        At most one omission per sentence, in the order of the messages.
    """
    best: dict[int, tuple[float, Statement]] = {}
    for statement in statements(messages, memories):
        score = model("omission", language_of(statement.text)).score(statement.signs)
        score += lenience if memories else _LENIENCE
        if statement.moved:
            score = max(score, math.ulp(0.0))
        if score > best.get(statement.sentence, (0.0,))[0]:
            best[statement.sentence] = score, statement
    return [
        Omission(statement.message_id, statement.text, f"No memory holds: {', '.join(statement.lacking)}.")
        for _, statement in best.values()
    ]


def statements(messages: Sequence[Message], memories: Sequence[str]) -> Iterator[Statement]:
    """Yield all statements of users with a word, number or day that no memory holds, and their signs."""
    known = _Known(memories, [message.speaker for message in messages])
    number = 0
    for message in messages:
        spans = sentences(message.text) if message.from_user else []
        for at, span in enumerate(spans):
            number += 1
            for part in _parts(span.text):
                place = {"opening": float(at == 0 and len(spans) > 1), "clause": float(part != span.text)}
                statement = _statement(message, number, part, known, place)
                if statement is not None:
                    yield statement


class _Known:
    """The terms of the memories, with the names of the speakers."""

    def __init__(self, memories: Sequence[str], speakers: Sequence[str]) -> None:
        self._texts = memories
        said = [wording(text) for text in memories]
        names = [wording(name) for name in speakers]
        self.words = frozenset().union(*(each.words for each in (*said, *names)))
        self.numbers = frozenset().union(*(each.numbers for each in (*said, *names)))
        self.names = frozenset().union(*(each.words for each in names))
        self._holders_of_word = _holders([each.words - self.names for each in said])
        self._holders_of_gram = _holders([grams(text) for text in memories])
        self._times: dict[datetime, set[tuple[datetime, datetime]]] = {}

    def words_held(self, said: Wording) -> float:
        """Return the largest share of the words, by weight, that one memory holds."""
        words = said.words - self.names - _ATTITUDES
        held: defaultdict[int, float] = defaultdict(float)
        for word in words:
            for at in self._holders_of_word.get(word, ()):
                held[at] += weight([word])
        return max(held.values(), default=0.0) / max(weight(words), 0.5)

    def grams_held(self, text: str) -> tuple[float, float]:
        """Return the share of the character n-grams that the nearest memory holds, and the three nearest together."""
        pieces = grams(text)
        held = Counter(at for piece in pieces for at in self._holders_of_gram.get(piece, ()))
        nearest = held.most_common(_NEAREST)
        together = {at for at, _ in nearest}
        in_nearest = sum(not together.isdisjoint(self._holders_of_gram.get(piece, ())) for piece in pieces)
        return (nearest[0][1] if nearest else 0) / max(len(pieces), 1), in_nearest / max(len(pieces), 1)

    def has_time(self, begins: datetime, ends: datetime, said_at: datetime) -> bool:
        """Return whether a memory names this time. Looked up only for statements that name one, as it is expensive."""
        if said_at not in self._times:
            self._times[said_at] = {
                (mention.begins, mention.ends) for text in self._texts for mention in resolve(text, said_at)
            }
        return any(_same_time(begins, ends, *each) for each in self._times[said_at])


def _holders(memories: Sequence[frozenset[str]]) -> dict[str, list[int]]:
    """Return for each word or n-gram the memories that hold it; one that most of them hold distinguishes none."""
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for at, found in enumerate(memories):
        for each in found:
            holders[each].append(at)
    return holders


def _parts(sentence: str) -> Iterator[str]:
    """Yield the sentence and, if it has several, its clauses; clauses with few words join the next one."""
    yield sentence
    pieces: list[str] = []
    current, held = "", frozenset[str]()
    for piece in _PARTS.split(sentence):
        current += piece
        whole = len(current) <= _READ_WHOLE
        said = wording(current if whole else piece)
        held = said.words | said.numbers | (frozenset() if whole else held)
        if len(held) >= _LEAST_WORDS_OF_PART:
            pieces.append(current)
            current, held = "", frozenset()
    if current.strip():
        pieces.append(current)
    if len(pieces) > 1:
        yield from (piece.strip() for piece in pieces)


def _statement(
    message: Message, sentence: int, text: str, known: _Known, place: Mapping[str, float]
) -> Statement | None:
    plain, missing_days, held_days = _without_times(text, message.time, known)
    said = wording(plain)
    words = said.words - known.names - _ATTITUDES
    missing = words - known.words
    numbers = said.numbers - known.numbers
    names = [name for name in _NAME.findall(plain) if wording(name).words & words]
    missing_names = [name for name in names if wording(name).words & missing]
    if not (missing or numbers or missing_days):
        return None
    amount = weight(missing) + len(numbers)
    new_attitudes = len((said.words & _ATTITUDES) - known.words) if missing else 0
    size = max(weight(words) + len(said.numbers), 0.5)
    words_held = known.words_held(said)
    nearest, near = known.grams_held(plain)
    signs = {
        "missing": math.log1p(amount + new_attitudes),
        "missing_share": amount / size,
        "words_held": words_held,
        "grams_held": nearest,
        "grams_held_by_three": near,
        "name_missing": float(bool(missing_names)),
        "number_missing": float(any(len(number) > 1 for number in numbers)),
        "digit_missing": float(any(len(number) == 1 for number in numbers)),
        "number_held": float(bool(said.numbers - numbers)),
        "day_missing": float(bool(missing_days)),
        "day_held": float(held_days),
        "negative": float(said.negative),
        **place,
        **signs_in(text),
    }
    lacking = [*missing_names, *sorted(numbers), *missing_days] or sorted(word.lstrip("=~") for word in missing)
    return Statement(
        message.message_id, sentence, text, signs, bool(missing_days) and words_held == 1.0, tuple(lacking)
    )


def _without_times(statement: str, said_at: datetime, known: _Known) -> tuple[str, list[str], bool]:
    """Cut the days and longer times out of a statement; return the rest, the times in no memory, and whether one is.

    The day on which something was said need not be stated, nor that something without a date is over.
    """
    kept = statement
    missing: list[str] = []
    held = False
    for mention in reversed(resolve(statement, said_at)):
        if mention.kind == "instant":
            continue
        kept = f"{kept[: mention.start]} {kept[mention.end :]}"
        if mention.begins > said_at or re.search(r"\d", mention.text):
            if known.has_time(mention.begins, mention.ends, said_at):
                held = True
            else:
                missing.append(mention.text)
    return kept, missing, held


def _same_time(begins: datetime, ends: datetime, known_begins: datetime, known_ends: datetime) -> bool:
    """Return whether a known time holds another one, and is about as exact.

    The same day of another year does too: the year of a day without one is a guess.
    """
    exact = known_ends - known_begins <= max(_MONTH, ends - begins)
    overlap = exact and known_begins < ends and begins < known_ends
    return overlap or (begins.month, begins.day) == (known_begins.month, known_begins.day)
