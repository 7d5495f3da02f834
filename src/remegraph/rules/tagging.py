"""Tags spread: from those that a question names to those that stand beside them on memories (F7).

One step of spreading activation (G. Salton and C. Buckley, "On the Use of Spreading Activation Methods in Automatic
Information Retrieval", SIGIR 1988) over the graph of tags. Two are tied where a memory carries both, as strongly as
Salton's cosine says (G. Salton and M. McGill, "Introduction to Modern Information Retrieval", 1983): where n(a)
memories carry one, n(b) the other and n(a, b) both, `n(a, b) / sqrt(n(a) * n(b))`. So what stands beside everything is
tied to nothing closely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

from remegraph.language.tokens import query_tokens

__all__ = ["Tag", "Ties", "named", "tag_of", "ties"]

Tag = frozenset[str]
"""The words of a tag, as they are indexed: however it is written, it is one tag."""


def tag_of(label: str) -> Tag:
    """Return the tag that a label stands for; without a word in it, an empty one."""
    return frozenset(query_tokens(label))


def named(tags: Iterable[Tag], words: Collection[str]) -> frozenset[Tag]:
    """Return the tags all of whose words a question holds.

    Args:
        tags: Some tags.
        words: Those of the question.
    """
    return frozenset(tag for tag in tags if tag and tag.issubset(words))


@dataclass(frozen=True, slots=True)
class Ties:
    """How often tags stand beside named ones."""

    named: Mapping[Tag, int]
    """How many memories carry each named tag."""
    beside: Mapping[Tag, Mapping[Tag, int]]
    """For each other tag, how many carry it together with each named one."""

    def strengths(self, often: Mapping[Tag, int], scores: Mapping[Tag, float]) -> dict[Tag, float]:
        """Return what spreads to each tag: the most that a named one gives it, never more than that one has.

        Args:
            often: How many memories carry each tag.
            scores: What each named tag has to give.
        """
        return {
            tag: max(
                scores[source] * both / sqrt(self.named[source] * max(often.get(tag, 0), both))
                for source, both in sources.items()
            )
            for tag, sources in self.beside.items()
        }


def ties(carried: Iterable[Collection[Tag]], sources: Collection[Tag], most: int) -> Ties:
    """Return how often tags stand beside named ones.

    Args:
        carried: The tags of each memory.
        sources: The named ones.
        most: How many tags to keep: those that stand beside a named one most often.
    """
    alone: Counter[Tag] = Counter()
    beside: dict[Tag, Counter[Tag]] = {}
    for tags in carried:
        here = [tag for tag in tags if tag in sources]
        alone.update(here)
        for tag in tags if here else ():
            if tag and tag not in sources:
                beside.setdefault(tag, Counter()).update(here)
    best = sorted(beside, key=lambda tag: (-max(beside[tag].values()), sorted(tag)))
    return Ties(alone, {tag: beside[tag] for tag in best[:most]})
