"""What hits bring along: the fact that each replaced, open contradictions, links, causes and effects (F7, K5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from remegraph.engine.hits import memory_hit, reasons
from remegraph.models import Hit, Link, Memory, Partition, RecallFilter
from remegraph.ports import Archive
from remegraph.rules.chains import in_order
from remegraph.rules.disputes import TELLING, Pair, opposing
from remegraph.rules.freshness import Said, asks_past, freshened
from remegraph.rules.standing import confidence

__all__ = ["freshen", "with_causes", "with_counterparts", "with_linked", "with_replaced"]

_LINKS = 2
"""Links followed one after the other."""

_CAUSES = 256
"""Causes and effects read at once, of all that were found so far."""


def freshen(question: str, hits: Sequence[Hit], first: int) -> list[Hit]:
    """Return memories with what holds now before what held before, or as the question asks.

    Args:
        question: The question.
        hits: Memories, best first.
        first: How many of them make way for a rival.
    """
    said = [Said(hit.topic.partition(":")[2], hit.text, hit.time, hit.score) for hit in hits]
    sign = "older" if asks_past(question) else "newer"
    return [_raised(hits[place], sign, gain) for place, gain in freshened(question, said, first)]


def with_replaced(archive: Archive, partitions: Sequence[Partition], hits: Sequence[Hit]) -> list[Hit]:
    """Return hits, each after the facts that it replaced, the oldest first.

    Args:
        archive: The ledger.
        partitions: Where to look.
        hits: Memories, best first.
    """
    replaced: dict[str, list[str]] = {}
    asked = [hit.record_id for hit in hits]
    while asked:
        links = archive.links(partitions, asked, types=["supersedes"])
        new = [link for link in links if link.source_id in asked and link.source_id not in replaced]
        for link in new:
            replaced.setdefault(link.source_id, []).append(link.target_id)
        asked = [link.target_id for link in new]
    known = _read(archive, partitions, {old for ids in replaced.values() for old in ids})
    shown = {hit.record_id for hit in hits}
    result: list[Hit] = []
    for hit in hits:
        for old in _chain(hit.record_id, replaced):
            if old in known and old not in shown:
                shown.add(old)
                result.append(memory_hit(known[old], {"older": hit.score}))
        result.append(hit)
    return result


def with_counterparts(
    archive: Archive, partitions: Sequence[Partition], hits: Sequence[Hit], *, all_of_them: bool
) -> list[Hit]:
    """Return hits, each less sure the more live memories say the contrary.

    Args:
        archive: The ledger.
        partitions: Where to look.
        hits: Memories, best first.
        all_of_them: Whether what says the contrary of a hit comes along, after it, and says whose counterpart it is.
    """
    pairs = _contrary(archive, partitions, [hit.record_id for hit in hits])
    if not pairs:
        return list(hits)
    found = _with_counterparts(archive, partitions, hits, pairs) if all_of_them else list(hits)
    come_along = {hit.record_id for hit in found} - {hit.record_id for hit in hits}
    pairs |= _contrary(archive, partitions, come_along)
    against = Counter(end for pair in pairs for end in pair)
    return [
        hit.evolve(confidence=confidence(hit.trust, hit.said, against[hit.record_id]))
        if against[hit.record_id]
        else hit
        for hit in found
    ]


def _with_counterparts(
    archive: Archive, partitions: Sequence[Partition], hits: Sequence[Hit], pairs: Collection[Pair]
) -> list[Hit]:
    known = _read(archive, partitions, frozenset().union(*pairs) - {hit.record_id for hit in hits})
    result: list[Hit] = []
    labelled: dict[str, str] = {}
    for hit in hits:
        result.append(hit.evolve(counterpart_of=labelled.get(hit.record_id, "")))
        for other in sorted(end for pair in pairs if hit.record_id in pair for end in pair - {hit.record_id}):
            if other not in labelled:
                labelled[other] = hit.record_id
                if other in known:
                    come_along = memory_hit(known[other], {"counterpart": hit.score})
                    result.append(come_along.evolve(counterpart_of=hit.record_id))
    return result


def with_causes(
    archive: Archive, partitions: Sequence[Partition], hits: Sequence[Hit], only: RecallFilter, more: int
) -> list[Hit]:
    """Return hits with what led to them and what came of them, over any number of links, in the order of events.

    Args:
        archive: The ledger.
        partitions: Where to look.
        hits: Memories.
        only: Which memories may be returned.
        more: How many may come along; the nearest do.
    """
    found = {hit.record_id: hit for hit in hits}
    pairs: set[tuple[str, str]] = set()
    edge = list(found)
    while edge:
        links = archive.links(partitions, edge, types=["causes"], limit=_CAUSES)
        pairs |= {(link.source_id, link.target_id) for link in links}
        reached = {other: found[end] for end in edge for other in _others(end, links) if other not in found}
        known = _current(archive, partitions, reached, only)
        room = len(hits) + more - len(found)
        edge = [key for key in known if key not in found][:room]
        for key in edge:
            memory, linked = known[key]
            near = reached[linked]
            sign = "cause" if (linked, near.record_id) in pairs else "effect"
            found[key] = memory_hit(memory, {sign: near.score / 2})
    return [found[key] for key in in_order({key: hit.time for key, hit in found.items()}, pairs)]


def with_linked(
    archive: Archive, partitions: Sequence[Partition], hits: Sequence[Hit], only: RecallFilter
) -> list[Hit]:
    """Return hits and what they are linked to, over at most two links; each link halves the score.

    Args:
        archive: The ledger.
        partitions: Where to look.
        hits: Memories, best first.
        only: Which memories may be returned.
    """
    found = {hit.record_id: hit for hit in hits}
    edge = list(found)
    for _ in range(_LINKS):
        links = archive.links(partitions, edge) if edge else ()
        reached: dict[str, Hit] = {}
        for hit in (found[memory_id] for memory_id in edge):
            for other in _others(hit.record_id, links):
                if other not in found and (other not in reached or reached[other].score < hit.score):
                    reached[other] = hit
        known = _current(archive, partitions, reached, only)
        edge = [memory_id for memory_id in known if memory_id not in found]
        for key in edge:
            memory, linked = known[key]
            found[key] = memory_hit(memory, {"link": reached[linked].score / 2})
    return sorted(found.values(), key=lambda hit: (-hit.score, hit.record_id))


def _raised(hit: Hit, sign: str, gain: float) -> Hit:
    if not gain:
        return hit
    contributions = hit.contributions | {sign: gain}
    return hit.evolve(score=hit.score + gain, contributions=contributions, why=reasons(contributions))


def _chain(memory_id: str, replaced: dict[str, list[str]]) -> list[str]:
    """Return what a memory replaced, and what that replaced, the oldest first."""
    found: list[str] = []
    ahead = list(replaced.get(memory_id, ()))
    while ahead:
        old = ahead.pop()
        if old not in found:
            found.append(old)
            ahead += replaced.get(old, ())
    return found[::-1]


def _contrary(archive: Archive, partitions: Sequence[Partition], memory_ids: Collection[str]) -> set[Pair]:
    """Return the contradictions between these memories and live ones that are to be shown."""
    if not memory_ids:
        return set()
    return opposing(archive.links(partitions, list(memory_ids), types=TELLING, live=True), shown=True)


def _others(memory_id: str, links: Iterable[Link]) -> list[str]:
    pairs = [(link.source_id, link.target_id) for link in links]
    return [two if one == memory_id else one for one, two in pairs if memory_id in {one, two}]


def _current(
    archive: Archive, partitions: Sequence[Partition], linked: Iterable[str], only: RecallFilter
) -> dict[str, tuple[Memory, str]]:
    """Return those of linked memories that may be returned, each with the link's end; for a replaced one, what holds."""
    found: dict[str, tuple[Memory, str]] = {}
    ahead = {memory_id: memory_id for memory_id in linked}
    seen: set[str] = set()
    while ahead:
        seen |= ahead.keys()
        known = _read(archive, partitions, ahead)
        found |= {key: (memory, ahead[key]) for key, memory in known.items() if only.admits(memory)}
        replaced = [key for key, memory in known.items() if memory.status == "superseded" and key not in found]
        links = archive.links(partitions, replaced, types=["supersedes"]) if replaced else ()
        ahead = {
            link.source_id: ahead[link.target_id]
            for link in links
            if link.target_id in replaced and link.source_id not in seen
        }
    return found


def _read(archive: Archive, partitions: Sequence[Partition], ids: Iterable[str]) -> dict[str, Memory]:
    wanted = sorted(ids)
    return {memory.memory_id: memory for memory in archive.memories(partitions, ids=wanted)} if wanted else {}
