"""What the tags of a question lead to: memories whose tags stand beside those that it names (F7).

Full text holds the tags of live memories, so their words find who carries them. Which tags these are, and how often two
stand together, the memories say: a few hundred are read, never all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from remegraph.engine.search import Candidates
from remegraph.models import Partition
from remegraph.ports import Archive, TextMatches
from remegraph.rules.blending import Ranked
from remegraph.rules.questions import Question
from remegraph.rules.ranking import bm25
from remegraph.rules.tagging import Tag, named, tag_of, ties

__all__ = ["with_tagged"]

_READ = 200
"""Memories read at most: once in search of the tags that a question names, once of those that these lead to."""

_TAGS = 16
"""Tags followed at most."""


def with_tagged(archive: Archive, partitions: Sequence[Partition], question: Question, found: Candidates) -> Candidates:
    """Return what was found, and what the tags that the question names lead to.

    A memory that carries a tag tied to a named one is worth the best memory with the named tag, times the strength of
    the tie. What was found with a lower score is raised to that.

    Args:
        archive: The ledger.
        partitions: Where to look.
        question: The question.
        found: Memories found by words and vectors.
    """
    worded = [each for each in found.found if "text" in each.contributions][:_READ]
    carried = _tags(archive, partitions, worded)
    sources = named({tag for tags in carried.values() for tag in tags}, question.tokens)
    tied = ties(carried.values(), sources, _TAGS)
    if not tied.beside:
        return found
    scores: dict[Tag, float] = {}
    for each in worded:  # best first
        for tag in carried.get(each.record_id, frozenset()) & sources:
            scores.setdefault(tag, each.score)
    words = sorted({word for tag in tied.beside for word in tag})
    matches = archive.match(partitions, "memory", words)
    strengths = tied.strengths(_often(matches, tied.beside), scores)
    ranked = [
        Ranked(each.partition, key, {"tags": score}) for each in matches for key, score in bm25(each, words).items()
    ]
    nearest = sorted(ranked, key=_best_first)[:_READ]
    carried = _tags(archive, partitions, nearest)
    reached = [
        Ranked(each.partition, each.record_id, {"tags": max(strengths[tag] for tag in followed)})
        for each in nearest
        if (followed := carried.get(each.record_id, frozenset()) & strengths.keys())
    ]
    return replace(found, found=_raised(found.found, reached))


def _tags(archive: Archive, partitions: Sequence[Partition], ranked: Sequence[Ranked]) -> dict[str, frozenset[Tag]]:
    """Return the tags of memories, by id."""
    ids = [each.record_id for each in ranked]
    memories = archive.memories(partitions, ids=ids) if ids else ()
    return {memory.memory_id: frozenset(map(tag_of, memory.tags)) for memory in memories}


def _often(matches: Iterable[TextMatches], tags: Iterable[Tag]) -> dict[Tag, int]:
    """Return how many memories hold all words of each tag: those that carry it, and those that speak of it."""
    shelves = list(matches)
    return {tag: sum(_holding(shelf, tag) for shelf in shelves) for tag in tags}


def _holding(matches: TextMatches, tag: Tag) -> int:
    """Return how many memories hold all words of a tag."""
    places = [at for at, token in enumerate(matches.tokens) if token in tag]
    return int((matches.counts[:, places] > 0).all(axis=1).sum()) if len(places) == len(tag) else 0


def _raised(found: Sequence[Ranked], reached: Sequence[Ranked]) -> tuple[Ranked, ...]:
    known = {(each.partition, each.record_id): each for each in found}
    for each in reached:
        place = each.partition, each.record_id
        before = known.get(place, Ranked(*place, {}))
        if each.score > before.score:
            known[place] = Ranked(*place, before.contributions | {"tags": each.score - before.score})
    return tuple(sorted(known.values(), key=_best_first))


def _best_first(ranked: Ranked) -> tuple[float, str]:
    return -ranked.score, ranked.record_id
