"""Origin and trust: whose words a text draws on, and whether it gives the agent orders, so that a person should see it first.

A tripwire, not a wall: whatever passes is still shown as data, with its source and its trust.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import pairwise

from remegraph.engine.forget_phrases import clauses
from remegraph.models import Evidence, Message, Topic
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.models.tools import called, failed
from remegraph.text import table
from remegraph.text.scripts import HAN, texts
from remegraph.text.sentences import sentences
from remegraph.text.terms import grams, weight, wording
from remegraph.text.tokens import query_tokens

__all__ = ["EXPERIENCE", "Belief", "Sources", "best_sentence", "commands", "distinctive_words", "trust_of_summary"]


_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def commands(texts: Iterable[str]) -> bool:
    """Return whether any of these texts gives orders to the agent."""
    return any(_pattern().search(_seen(text)) for text in texts)


def _seen(text: str) -> str:
    """Return a text as a model sees it: width, invisible characters and runs of space aside."""
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).split())


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in table("commands")["patterns"]), re.IGNORECASE)


EXPERIENCE = 0.6
"""Trust of what an agent learned about a tool by calling it, in words of the tool."""

_DRAWN = 0.3
"""Share of the words of a text, by weight, from which on it draws on others, where there are two."""

_MOSTLY_DRAWN = 0.6
"""The same for a clause of it."""

_SUPPORTED = 0.2
"""Share of its words that a trusted speaker must have said where someone in between reads a page aloud."""

_FEWEST = 1.5
_CLAUSE = 3.0
"""Weights: of the words drawn, of the words of a clause."""

_OF_RESULT = 0.4
_LESSON = 0.65
_LONGEST_LESSON = 12.0
"""Of a lesson about a tool: share and weight of the tool's own words."""

_LONGEST_QUOTE = 300

_HAN_CHARACTER = re.compile(f"[{HAN}]")
_HAN_PAIR = re.compile(f"[{HAN}]{{2}}")
_ADDRESS = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.]+|https?://[^\s，。；）]+|www\.[^\s，。；）]+|\d{7,}|\d{4}(?: \d{4})+", re.ASCII
)
_HOUR = re.compile(r"(?::00)+\Z")
_VALUE = re.compile(r"(?!(?:19|20)\d\d\Z)[1-9]\d{3,}(?:[.,]\d+)?")
"""A number that identifies something: not a year, a time or a version."""


@dataclass(frozen=True, slots=True)
class Belief:
    """How far something is believed, and which of the messages it draws on that are believed less than a person."""

    trust: float
    drawn: tuple[Message, ...] = ()
    of_tools: bool = False
    """Whether it draws on tools or documents, without citing any words of a person."""


def best_sentence(text: str, source: str) -> str:
    """Return the sentence of a source that shares most words with a text, or its beginning where that is long."""
    words = distinctive_words(text)
    spans = sentences(source)
    best = max(spans, key=lambda span: _weight(distinctive_words(span.text) & words), default=None)
    return "" if best is None else best.text if len(best.text) <= _LONGEST_QUOTE else _cut(best.text)


def _cut(text: str) -> str:
    head = text[:_LONGEST_QUOTE]
    return head.rpartition(" ")[0] or head


def trust_of_summary(text: str, messages: Sequence[Message]) -> float:
    """Return how far a summary is believed: with a word that no person said, it draws on all sources of that word."""
    own = {word for message in messages if message.trust >= 1 for word in query_tokens(message.indexed_text)}
    drawn = {*query_tokens(text)} - own
    others = (each for each in messages if each.trust < 1 and not drawn.isdisjoint(query_tokens(each.indexed_text)))
    return min((each.trust for each in others), default=1.0)


@dataclass(frozen=True)
class Sources:
    """The words that a statement may come from.

    Repeating what is `known`, names and what is believed already, draws on no source.
    """

    messages: Sequence[Message]
    known: Sequence[str] = ()

    def belief(self, text: str, evidence: Iterable[Evidence] = (), topic: Topic | None = None) -> Belief:
        """Return how far a text is believed that was made of this.

        Evidence of other messages is ignored. Of the tool that the topic is about, an agent
        may say what it learned by calling it.
        """
        cited = {item.message_id for item in evidence}
        lessons = self._lessons(text, topic) if topic is not None else frozenset()
        bearing = [each for each in self.messages if each.message_id in cited]
        trust = min((self._trust(each, lessons) for each in bearing), default=1.0)
        drawn: list[Message] = []
        for level, sources in self._levels:
            found = self._drawn(text, level, sources)
            drawn += found
            trust = min((trust, *(self._trust(each, lessons) for each in found)))
        foreign = bool(drawn) or any(each.role == "tool" or each.is_document for each in bearing)
        return Belief(trust, tuple(drawn), foreign and not any(each.from_user for each in bearing))

    def _trust(self, message: Message, lessons: frozenset[str]) -> float:
        if message.message_id in lessons and message.trust < EXPERIENCE:
            return EXPERIENCE
        return 1.0 if message.message_id in self._confirmed else message.trust

    @cached_property
    def _levels(self) -> list[tuple[float, list[Message]]]:
        """Tools and documents, by how far they are believed, the least first."""
        others = [each for each in self.messages if each.trust < 1 and (each.role == "tool" or each.is_document)]
        return [
            (level, [each for each in others if each.trust == level]) for level in sorted({e.trust for e in others})
        ]

    def _drawn(self, text: str, level: float, sources: Sequence[Message]) -> list[Message]:
        """Return the sources that a text draws on; all of them, if no one else said what it says."""
        vouched = self._vouched(level)
        foreign = frozenset().union(*(distinctive_words(each.text) for each in sources)) - vouched
        words = distinctive_words(text)
        drawn = words & foreign
        parts = [distinctive_words(span.text) for span in sentences(text)]
        if (
            _draws(drawn, words)
            or any(_mostly(part, foreign) for part in map(distinctive_words, clauses(text)))
            or any(_weight(part & foreign) > 0.5 * _weight(part) for part in parts)
        ):
            return [each for each in sources if not drawn.isdisjoint(distinctive_words(each.text))]
        alone = level < QUARANTINE_BELOW and _weight(words & vouched) < _SUPPORTED * _weight(words)
        return list(sources) if alone else []

    def _vouched(self, level: float) -> frozenset[str]:
        """Return the words of all who are believed more than this; of an agent, what it said before it read the source."""
        found = set().union(*map(distinctive_words, self.known))
        read = False
        for each in self.messages:
            read |= each.trust <= level and (each.role == "tool" or each.is_document)
            found |= distinctive_words(each.speaker) | _dates(each)
            before = each.trust > level and not (read and each.role == "assistant")
            if before or each.message_id in self._confirmed:
                found |= distinctive_words(each.indexed_text)
        return frozenset(found)

    @cached_property
    def _confirmed(self) -> frozenset[str]:
        """The ids of agent messages that the person confirms with their next words."""
        spoken = [each for each in self.messages if each.role == "assistant" or each.from_user]
        return frozenset(
            each.message_id
            for each, then in pairwise(spoken)
            if each.role == "assistant" and then.from_user and _confirms().search(then.text)
        )

    def _lessons(self, text: str, topic: Topic) -> frozenset[str]:
        """Return the ids of tool results that a text is a lesson from, learned by calling the tool.

        A lesson names its tool, and is about calling it: it says more than the tool did, takes only a few words from it, and
        none of them asks for anything. What the agent passed to tools counts as its own words.
        """
        if topic.type not in {"tool", "task"} or commands([text]):
            return frozenset()
        about = topic.target if topic.type == "tool" else text.casefold()
        passed = " ".join(
            said for each in self.messages for call in each.tool_calls for said in (call.name, *texts(call.args))
        )
        if any(found not in passed for found in _ADDRESS.findall(text)):
            return frozenset()
        calls = called(self.messages)
        if not any(call.name.casefold() in about for _, call, _ in calls):
            return frozenset()
        results = [self.messages[answer] for _, _, answer in calls if answer is not None]
        own = self._vouched(EXPERIENCE) | distinctive_words(passed)
        said = frozenset().union(*(distinctive_words(each.text) for each in results)) - own
        read = said - frozenset().union(*(distinctive_words(each.text) for each in results if failed(each.text)))
        words = distinctive_words(text)
        drawn = words & said
        tells = (
            _weight(drawn) <= min(_LONGEST_LESSON, _LESSON * _weight(words))
            and not _draws(words & read, words, share=_OF_RESULT)
            and not any(_mostly(part, read) for part in map(distinctive_words, clauses(text)))
            and drawn.isdisjoint(_no_lesson())
            and not commands(each.text for each in results if not drawn.isdisjoint(distinctive_words(each.text)))
        )
        return frozenset(each.message_id for each in results if tells)


def _draws(drawn: frozenset[str], words: frozenset[str], share: float = _DRAWN) -> bool:
    """Return whether a text draws on others: by a value, or by many of its words."""
    much = _weight(drawn)
    return any(map(_VALUE.fullmatch, drawn)) or (much >= _FEWEST and much >= share * _weight(words))


def _mostly(part: frozenset[str], foreign: frozenset[str]) -> bool:
    return _weight(part) >= _CLAUSE and _weight(part & foreign) >= _MOSTLY_DRAWN * _weight(part)


@lru_cache(maxsize=1 << 10)
def distinctive_words(text: str) -> frozenset[str]:
    """Return the distinctive words of a text: without weak ones, Chinese in pairs of characters."""
    said = wording(text)
    alone = {word for word in said.words if word[0] != "~" and not _HAN_CHARACTER.fullmatch(word)}
    numbers = {_HOUR.sub("", number).lstrip("0") for number in said.numbers} - {""}
    return frozenset(alone | numbers | set(filter(_HAN_PAIR.fullmatch, grams(text))))


def _weight(words: Iterable[str]) -> float:
    return sum(0.5 if _HAN_PAIR.fullmatch(word) else weight([word]) for word in words)


def _dates(message: Message) -> frozenset[str]:
    """Return the numbers used to write the time of a message: they are not evidence of what it says."""
    time = message.time
    return frozenset(map(str, (time.year, time.month, time.day)))


@cache
def _confirms() -> re.Pattern[str]:
    return re.compile("".join(line.strip() for line in table("origin")["confirms"].splitlines()), re.IGNORECASE)


@cache
def _no_lesson() -> frozenset[str]:
    return frozenset(word for each in table("origin")["no_lesson"].split() for word in distinctive_words(each))
