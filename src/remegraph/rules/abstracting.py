"""From similar memories to a conclusion, by counting: what recurs, what most of them state, and when it applies (B6).

No sentence of a source comes in: single words that recur, and values of statements that are read in slots.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from remegraph.language.entities import entities
from remegraph.language.scripts import has_cjk
from remegraph.models import Abstraction, Claim, Memory, Topic
from remegraph.rules.claims import conflicting, same, slot
from remegraph.rules.copying import copied
from remegraph.rules.duplicates import near_duplicate
from remegraph.rules.standing import confidence
from remegraph.rules.terms import phrases

__all__ = ["agreed", "conclusion", "conditions", "phrased", "recounted", "repeats", "same_conclusion", "stated"]

_MOST_VALUES = 4
_LONGEST_VALUE = 4
"""Words; a longer value is a sentence, not a value."""
_MOST_CONDITIONS = 3
_SAME = 0.8
"""Share of their recurring words that two conclusions from the same have in common."""


def agreed(memories: Sequence[Memory]) -> tuple[Claim, ...]:
    """Return what memories state again and again: of each attribute that recurs, the values that more affirm than deny.

    An attribute (who, which relation, yes or no) recurs where a third of the memories, and two at least, fill it.

    Args:
        memories: The sources, oldest first; of two claims that were said equally often the later one counts.
    """
    said: Counter[Claim] = Counter()
    order: dict[Claim, int] = {}
    filled: dict[tuple[str, str, bool], set[int]] = {}
    for number, memory in enumerate(memories):
        for claim in memory.claims:
            said[claim] += memory.merges + 1
            order[claim] = number
            filled.setdefault(_attribute(claim), set()).add(number)
    kept: dict[str, Claim] = {}
    for claim in sorted(said, key=lambda each: (-said[each], -order[each], each.to_json())):
        if len(filled[_attribute(claim)]) >= max(2, len(memories) / 3):
            kept.setdefault(slot(claim), claim)
    return tuple(sorted(kept.values(), key=lambda each: (order[each], slot(each))))


def _attribute(claim: Claim) -> tuple[str, str, bool]:
    return claim.subject, claim.relation, claim.positive


def phrased(memories: Sequence[Memory], terms: Sequence[str]) -> tuple[str, ...]:
    """Return recurring words as the sources write them."""
    return phrases(terms, [memory.content for memory in memories])


def conditions(memories: Sequence[Memory], words: Sequence[str], language: str) -> tuple[str, ...]:
    """Return when a conclusion applies: where the names come up that recur in its sources, else where its words do.

    Args:
        memories: The sources.
        words: The recurring words, as they are written.
        language: en or zh.
    """
    table, who = _table(language), memories[0].topic.target
    named = Counter(
        name
        for memory in memories
        for name in {each.text for each in entities(memory.content) if each.kind == "name"}
        if name.casefold() != who
    )
    least = max(2, len(memories) / 3)
    names = sorted((name for name, count in named.items() if count >= least), key=lambda each: (-named[each], each))
    if names:
        return tuple(table["with"].format(name=name) for name in names[:_MOST_CONDITIONS])
    return (table["about"].format(terms=_listed(words[:_MOST_CONDITIONS], table)),)


def conclusion(topic: Topic, words: Sequence[str], *, claims: Sequence[Claim], count: int, language: str) -> str:
    """Return a conclusion: what most sources state, and which words recur in them, how often.

    Args:
        topic: Whom or what it is about.
        words: The recurring words, as they are written.
        claims: What the sources state.
        count: How often they said so.
        language: en or zh.
    """
    table = _table(language)
    stated = [*_statements(claims, table)]
    recurs = table[topic.type].format(who=topic.target_name, terms=table["comma"].join(words), count=count)
    return ("" if language == "zh" else " ").join([*stated, recurs])


def recounted(old: Abstraction, *, said: int, against: int, trust: float) -> Abstraction:
    """Return what stands beside a conclusion, counted anew. Its confidence is that of any memory (`standing`).

    Args:
        old: What stood there.
        said: How often the sources said so.
        against: Memories that say the contrary.
        trust: The least of the sources.
    """
    sure = confidence(trust, said, against)
    return old.evolve(confidence=sure, corroborations=said, contradictions=against)


def repeats(texts: Iterable[str], sources: Iterable[str]) -> str:
    """Return words that a text takes from a source as they stand there; empty where none does."""
    known = tuple(sources)
    return next((run for text in texts for source in known if (run := copied(text, source))), "")


def stated(memory: Memory) -> tuple[Claim, ...]:
    """Return what a memory states, in slots: where it was abstracted, what most of its sources state."""
    abstraction = Abstraction.of(memory)
    return memory.claims or (abstraction.claims if abstraction else ())


def same_conclusion(one: Memory, other: Memory) -> bool:
    """Return whether two long-term memories of one topic say the same.

    Args:
        one: A memory.
        other: Another.
    """
    mine, yours = Abstraction.of(one), Abstraction.of(other)
    if conflicting(stated(one), stated(other)):
        return False
    if mine and yours and _share(mine.terms, yours.terms) >= _SAME:
        return True
    if (mine and mine.words) or (yours and yours.words):  # lists of words are alike whatever they list
        return False
    return same(stated(one), stated(other)) or near_duplicate(one.content, other.content, [one.topic.target_name])


def _share(one: Sequence[str], other: Sequence[str]) -> float:
    return len({*one} & {*other}) / max(len({*one} | {*other}), 1)


def _statements(claims: Sequence[Claim], table: Mapping[str, Any]) -> Iterable[str]:
    """Yield one sentence for each subject, relation and polarity that the words are known for."""
    values: dict[tuple[str, str, bool], list[str]] = {}
    for claim in claims:
        if claim.relation in table["relations"] and _short(claim.value):
            values.setdefault(_attribute(claim), []).append(claim.value)
    for (subject, relation, positive), found in values.items():
        verb = table["relations"][relation][0 if positive else 1]
        listed = _listed(list(dict.fromkeys(found))[:_MOST_VALUES], table)
        yield table["claim"].format(subject=subject, relation=verb, values=listed)


def _short(value: str) -> bool:
    return len(value) <= 2 * _LONGEST_VALUE if has_cjk(value) else len(value.split()) <= _LONGEST_VALUE


def _listed(words: Sequence[str], table: Mapping[str, Any]) -> str:
    *first, last = words
    return f"{table['comma'].join(first)}{table['and']}{last}" if first else last


@cache
def _table(language: str) -> Mapping[str, Any]:
    text = (files("remegraph.rules") / "data" / "conclusions.toml").read_text(encoding="utf-8")
    table: Mapping[str, Any] = tomllib.loads(text)["zh" if language == "zh" else "en"]
    return table
