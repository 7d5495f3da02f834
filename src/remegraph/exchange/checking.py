"""A memory on its way to knowledge, and the last look at what is about to leave: nothing private, no quote."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remegraph.exchange.cleaning import Cleaner
from remegraph.exchange.naming import Known
from remegraph.language.plain import texts
from remegraph.models import Kind, Memory, SkillFigures
from remegraph.rules.copying import copied
from remegraph.rules.generalizing import prose, stand_ins
from remegraph.rules.inventing import invented

__all__ = ["Candidate", "objection", "private", "still_private", "words"]

_WORD = re.compile(r"[^\W_]{3,}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory on its way."""

    memory: Memory
    kind: Kind
    names: Known = frozenset()
    """What must not leave with it."""
    taken: frozenset[str] = frozenset()
    """Words that were taken out of it, and must not come back."""
    quotes: tuple[str, ...] = ()
    """What was said in a conversation: nothing leaves word by word."""
    content: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    figures: SkillFigures | None = None


def words(said: Any) -> frozenset[str]:
    """Return the Latin words and figures of JSON that tell one thing from another, as they are compared."""
    found = (word.casefold() for text in texts(said) for word in _WORD.findall(text))
    return frozenset(found) - stand_ins()


def objection(candidate: Candidate, fields: Mapping[str, str], texts: Sequence[str]) -> str:
    """Say what speaks against a model's words for one memory."""
    if new := invented(texts, fields.values()):
        return f"{new!r} does not stand in it; add nothing."
    return private(list(texts), candidate)


def still_private(candidate: Candidate) -> str:
    """Say what may not leave in a memory as it is about to; empty where nothing is found."""
    return private({"title": candidate.title, "content": candidate.content}, candidate)


def private(said: Any, candidate: Candidate) -> str:
    """Say what may not leave in what is about to; empty where nothing is found."""
    again = Cleaner(candidate.names)
    again.clean(said)
    if again.removed:
        (path, kind), _ = next(iter(sorted(again.removed.items())))
        return f"There is still something of the kind {kind} at {path}."
    if words(said) & candidate.taken:
        return "A word that was taken out has come back."
    texts = prose(candidate.kind, said["content"]).values() if isinstance(said, Mapping) else said
    if any(copied(text, quote) for text in texts for quote in candidate.quotes):
        return "It repeats the words of a conversation; say it in other words."
    return ""
