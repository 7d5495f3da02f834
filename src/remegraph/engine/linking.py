"""What hits bring along: the fact that each replaced, where the past is asked for, open contradictions, links (F7, K5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remegraph.engine.hits import memory_hit
from remegraph.models import LIVE, Hit, Link, LinkType, Memory, Partition, RecallFilter
from remegraph.ports import Archive
from remegraph.rules.freshness import Said, asks_past, freshened

__all__ = ["freshen", "with_counterparts", "with_linked", "with_replaced"]

_CONTRARY: frozenset[LinkType] = frozenset({"contradicts", "may_contradict"})

_LINKS = 2
"""Links followed one after the other."""


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
        links = [link for link in archive.links(partitions, asked) if link.type == "supersedes"]
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


def with_counterparts(archive: Archive, partitions: Sequence[Partition], hits: Sequence[Hit]) -> list[Hit]:
    """Return hits, each before the memories that may say the contrary; those say whose counterpart they are.

    Args:
        archive: The ledger.
        partitions: Where to look.
        hits: Memories, best first.
    """
    ids = [hit.record_id for hit in hits]
    links = [link for link in archive.links(partitions, ids) if link.type in _CONTRARY] if ids else []
    if not links:
        return list(hits)
    ends = {end for link in links for end in (link.source_id, link.target_id)}
    known = {key: memory for key, memory in _read(archive, partitions, ends).items() if memory.status in LIVE}
    result: list[Hit] = []
    labelled: dict[str, str] = {}
    for hit in hits:
        result.append(hit.evolve(counterpart_of=labelled.get(hit.record_id, "")))
        for other in _others(hit.record_id, links):
            if other in known and other not in labelled and hit.record_id in known:
                labelled[other] = hit.record_id
                if other not in ids:
                    come_along = memory_hit(known[other], {"counterpart": hit.score})
                    result.append(come_along.evolve(counterpart_of=hit.record_id))
    return result


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
        known = _read(archive, partitions, reached)
        edge = [memory_id for memory_id, memory in known.items() if only.admits(memory)]
        found |= {key: memory_hit(known[key], {"link": reached[key].score / 2}) for key in edge}
    return sorted(found.values(), key=lambda hit: (-hit.score, hit.record_id))


def _raised(hit: Hit, sign: str, gain: float) -> Hit:
    if not gain:
        return hit
    return hit.evolve(score=hit.score + gain, contributions=hit.contributions | {sign: gain})


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


def _others(memory_id: str, links: Iterable[Link]) -> list[str]:
    pairs = [(link.source_id, link.target_id) for link in links]
    return [two if one == memory_id else one for one, two in pairs if memory_id in {one, two}]


def _read(archive: Archive, partitions: Sequence[Partition], ids: Iterable[str]) -> dict[str, Memory]:
    wanted = sorted(ids)
    return {memory.memory_id: memory for memory in archive.memories(partitions, ids=wanted)} if wanted else {}
