"""What is returned along with hits: blocks and words (R10), the facts they replaced, contradictions, links, causes (F7, K5).

Tags spread from those that a question names to those found with them on memories: one step of spreading activation
(G. Salton and C. Buckley, "On the Use of Spreading Activation Methods in Automatic Information Retrieval", SIGIR 1988). Two
are tied where a memory carries both, as strongly as Salton's cosine says (G. Salton and M. McGill, "Introduction to Modern
Information Retrieval", 1983): where n(a) memories carry one, n(b) the other and n(a, b) both,
`n(a, b) / sqrt(n(a) * n(b))`. So a tag found with everything is closely tied to nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from math import sqrt
from typing import TYPE_CHECKING

from remegraph.engine.retrieval.at_stake import verbatim
from remegraph.engine.retrieval.blend import Ranked, Utterance, asks_past, freshened
from remegraph.engine.retrieval.hits import TRACED, memory_hit, message_hit, reasons
from remegraph.engine.retrieval.scores import bm25
from remegraph.engine.retrieval.search import Candidates
from remegraph.models import Hit, Link, Memory, Partition, RecallFilter, StoredMessage
from remegraph.models.standing import confidence
from remegraph.models.supersession import TELLING, Pair, opposing
from remegraph.ports import TextMatches
from remegraph.text.questions import Question
from remegraph.text.tokens import query_tokens

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = [
    "Tag",
    "Ties",
    "freshen",
    "in_order",
    "named",
    "tag_of",
    "ties",
    "traced_blocks",
    "traced_first",
    "traced_messages",
    "with_blocks",
    "with_causes",
    "with_counterparts",
    "with_linked",
    "with_replaced",
    "with_tagged",
]


_LINKS = 2
"""Links followed one after the other."""

_CAUSES = 256
"""Causes and effects read in one query, of all that were found so far."""


_TRACED = 0.5
"""Share of the best score from which the sources of a memory come before what a search finds."""

_EVIDENCE = 3
"""Blocks or messages that a memory is traced to at most: something said twenty times is not better supported."""


def traced_blocks(hits: Sequence[Hit], partitions: Collection[Partition]) -> dict[tuple[Partition, str], float]:
    """Return the blocks that memories came from, by partition and label, best first, each with its score.

    Of each memory the newest blocks come first. Blocks are read in `partitions` only; another agent's memory is shown
    without its context.
    """
    found = ((hit, list(reversed(hit.block_ids))) for hit in _leading(hits, partitions))
    return _scored((hit, [(hit.partition, block_id) for block_id in ids]) for hit, ids in found)


def traced_messages(
    archive: Archive, hits: Sequence[Hit], partitions: Collection[Partition], passes: Callable[[StoredMessage], bool]
) -> list[Hit]:
    """Return the messages that memories rest on, best first.

    Of each memory, the most trusted words come first, of these the newest: what a person said comes
    before the answer that confirms it. Words are read in `partitions` only; see `traced_blocks`. `passes` says which
    messages may be shown.
    """
    leading = _leading(hits, partitions)
    homes = list(dict.fromkeys(hit.partition for hit in leading))
    ids = list(dict.fromkeys(item.message_id for hit in leading for item in hit.evidence))
    rows = archive.messages(homes, ids=ids) if ids else ()
    found = {(row.partition, row.message_id): row for row in rows if passes(row)}
    stood_on: list[tuple[Hit, list[tuple[Partition, str]]]] = []
    for hit in leading:
        mine = {(hit.partition, item.message_id) for item in hit.evidence} & found.keys()
        ordered = sorted(mine, key=lambda place: (found[place].trust, found[place].seq), reverse=True)
        stood_on.append((hit, ordered))
    scores = _scored(stood_on)
    return [message_hit(found[place], Ranked(*place, {TRACED: score})) for place, score in scores.items()]


def _leading(hits: Sequence[Hit], partitions: Collection[Partition]) -> list[Hit]:
    """Return the memories whose source words may be read."""
    return [hit for hit in hits if hit.partition in partitions and not hit.granted]


def _scored(led_to: Iterable[tuple[Hit, Sequence[tuple[Partition, str]]]]) -> dict[tuple[Partition, str], float]:
    """Return the sources of memories, best first, with their scores.

    The source of a memory in other words ranks above all that a search finds, which ends at 1: no search need find it.
    Where the memory only repeats it, it does not.
    """
    scores: dict[tuple[Partition, str], float] = {}
    for hit, places in led_to:
        for at, place in enumerate(places[:_EVIDENCE]):
            score = (0 if verbatim(hit) else 1) + hit.score / (1 + at)
            scores[place] = max(score, scores.get(place, 0.0))
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def words_of(memories: Iterable[Hit], traced: Sequence[Hit]) -> dict[str, list[Hit]]:
    """Return the messages that memories rest on, by the id of the memory, in the order given.

    `traced` is what `traced_messages` returned.
    """
    stood_on = {hit.record_id: {item.message_id for item in hit.evidence} for hit in memories}
    return {name: [hit for hit in traced if hit.record_id in ids] for name, ids in stood_on.items()}


def traced_first(traced: Sequence[Hit], found: Sequence[Hit], k: int) -> list[Hit]:
    """Return the sources of good memories, then what a search found, each once.

    The sources take at most half of k, if the search has others for the rest, so that what no memory knows is found,
    too. What memories only repeat is left to the search; what it does not find takes at most half of its places, at the
    end.

    Both are given best first, and `k` are wanted.
    """
    worded = [hit for hit in traced if hit.score > 1]
    good = _good(worded, 1)
    others = sum((hit.partition, hit.record_id) not in good for hit in found)
    first = dict(islice(good.items(), k - min(others, k // 2)))
    rest = {(hit.partition, hit.record_id): hit for hit in found if (hit.partition, hit.record_id) not in first}
    left = k - len(first)
    near = {*islice(rest, left)}
    unfound = [
        hit for place, hit in _good(traced[len(worded) :], 0).items() if place not in first and place not in near
    ]
    last = unfound[: max(left - len(rest), left // 2)]
    head = list(islice(rest.values(), left - len(last)))
    floor = head[-1].score if head else 1.0
    behind = [_behind(hit, floor) for hit in last]
    placed = {(hit.partition, hit.record_id) for hit in (*head, *behind)}
    return [*first.values(), *head, *behind, *(hit for place, hit in rest.items() if place not in placed)]


def _good(hits: Sequence[Hit], base: float) -> dict[tuple[Partition, str], Hit]:
    """Return those whose scores come near the best, above what all have in common."""
    least = base + max((hit.score - base for hit in hits), default=0.0) * _TRACED
    return {(hit.partition, hit.record_id): hit for hit in hits if hit.score >= least}


def _behind(hit: Hit, floor: float) -> Hit:
    parts = {TRACED: min(hit.score, floor)}
    return hit.model_copy(update={"contributions": parts, "score": parts[TRACED], "why": reasons(parts)})


def with_blocks(archive: Archive, hits: Sequence[Hit], lately: timedelta) -> list[Hit]:
    """Return messages, each with the block that holds it; what no block holds yet is marked, if it was said lately.

    No one waits for what was said before `lately`.
    """
    seqs: dict[Partition, list[int]] = {}
    for hit in hits:
        seqs.setdefault(hit.partition, []).append(hit.seq)
    held = archive.blocks_of(seqs) if seqs else {}
    found: list[Hit] = []
    for hit in hits:
        block = held.get((hit.partition, hit.seq))
        told = {"block_ids": (block.block_id,)} if block else {"recent": hit.age < lately}
        found.append(hit.model_copy(update=told))
    return found


def freshen(question: str, hits: Sequence[Hit], first: int) -> list[Hit]:
    """Return memories with what holds now before what held earlier, or in the order that the question asks for.

    `first` says how many of them make way for a rival.
    """
    said = [Utterance(hit.topic.partition(":")[2], hit.text, hit.time, hit.score) for hit in hits]
    sign = "older" if asks_past(question) else "newer"
    return [_raised(hits[place], sign, gain) for place, gain in freshened(question, said, first)]


def with_replaced(archive: Archive, partitions: Sequence[Partition], hits: Sequence[Hit]) -> list[Hit]:
    """Return hits, each after the facts that it replaced, the oldest first."""
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
    """Return hits, each less certain the more live memories contradict it.

    With `all_of_them`, each hit is followed by the memories that contradict it, marked as its counterparts.
    """
    pairs = _contrary(archive, partitions, [hit.record_id for hit in hits])
    if not pairs:
        return list(hits)
    found = _with_counterparts(archive, partitions, hits, pairs) if all_of_them else list(hits)
    come_along = {hit.record_id for hit in found} - {hit.record_id for hit in hits}
    pairs |= _contrary(archive, partitions, come_along)
    against = Counter(end for pair in pairs for end in pair)
    return [
        hit.model_copy(update={"confidence": confidence(hit.trust, hit.said, against[hit.record_id])})
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
        result.append(hit.model_copy(update={"counterpart_of": labelled.get(hit.record_id, "")}))
        for other in sorted(end for pair in pairs if hit.record_id in pair for end in pair - {hit.record_id}):
            if other not in labelled:
                labelled[other] = hit.record_id
                if other in known:
                    come_along = memory_hit(known[other], {"counterpart": hit.score})
                    result.append(come_along.model_copy(update={"counterpart_of": hit.record_id}))
    return result


def with_causes(
    archive: Archive, partitions: Sequence[Partition], hits: Sequence[Hit], only: RecallFilter, more: int
) -> list[Hit]:
    """Return hits with their causes and effects, over any number of links, in the order of events.

    At most `more` are added, the nearest.
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
    """Return hits and what they are linked to, over at most two links; each link halves the score."""
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
    return hit.model_copy(
        update={"score": hit.score + gain, "contributions": contributions, "why": reasons(contributions)}
    )


def _chain(memory_id: str, replaced: dict[str, list[str]]) -> list[str]:
    """Return the chain of memories that a memory replaced, the oldest first."""
    found: list[str] = []
    ahead = list(replaced.get(memory_id, ()))
    while ahead:
        old = ahead.pop()
        if old not in found:
            found.append(old)
            ahead += replaced.get(old, ())
    return found[::-1]


def _contrary(archive: Archive, partitions: Sequence[Partition], memory_ids: Collection[str]) -> set[Pair]:
    """Return the contradictions to show between these memories and live ones."""
    if not memory_ids:
        return set()
    return opposing(archive.links(partitions, list(memory_ids), types=TELLING, live=True), shown=True)


def _others(memory_id: str, links: Iterable[Link]) -> list[str]:
    pairs = [(link.source_id, link.target_id) for link in links]
    return [two if one == memory_id else one for one, two in pairs if memory_id in {one, two}]


def _current(
    archive: Archive, partitions: Sequence[Partition], linked: Iterable[str], only: RecallFilter
) -> dict[str, tuple[Memory, str]]:
    """Return the linked memories that may be returned, each with the link's end; for a replaced one, its replacement."""
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


def in_order(times: Mapping[str, datetime], causes: Collection[tuple[str, str]]) -> list[str]:
    """Return ids with no effect before its cause; otherwise, and if causes form a circle, the earlier first.

    `causes` are pairs of cause and effect; those of other ids do not count.
    """
    left = sorted(times, key=lambda each: (times[each], each))
    result: list[str] = []
    while left:
        held_up = {effect for cause, effect in causes if cause in left and cause != effect}
        result.append(next((each for each in left if each not in held_up), left[0]))
        left.remove(result[-1])
    return result


Tag = frozenset[str]
"""The words of a tag, as they are indexed: different spellings are one tag."""


def tag_of(label: str) -> Tag:
    """Return the tag for a label; an empty one if it has no words."""
    return frozenset(query_tokens(label))


def named(tags: Iterable[Tag], words: Collection[str]) -> frozenset[Tag]:
    """Return the tags whose words all occur in a question."""
    return frozenset(tag for tag in tags if tag and tag.issubset(words))


@dataclass(frozen=True, slots=True)
class Ties:
    """How often tags occur together with named ones."""

    named: Mapping[Tag, int]
    """How many memories carry each named tag."""
    beside: Mapping[Tag, Mapping[Tag, int]]
    """For each other tag, how many carry it together with each named one."""

    def strengths(self, often: Mapping[Tag, int], scores: Mapping[Tag, float]) -> dict[Tag, float]:
        """Return what spreads to each tag: the most that a named tag gives it, never more than the named tag has.

        `often` is how many memories carry each tag, `scores` what each named tag has to give.
        """
        return {
            tag: max(
                scores[source] * both / sqrt(self.named[source] * max(often.get(tag, 0), both))
                for source, both in sources.items()
            )
            for tag, sources in self.beside.items()
        }


def ties(carried: Iterable[Collection[Tag]], sources: Collection[Tag], most: int) -> Ties:
    """Return how often tags occur together with named ones.

    At most `most` tags are kept: those that occur together with a named one most often.
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


_READ = 200
"""Memories read at most: once for the tags that a question names, once for the tags tied to them."""

_TAGS = 16
"""Tags followed at most."""


def with_tagged(archive: Archive, partitions: Sequence[Partition], question: Question, found: Candidates) -> Candidates:
    """Return what was found, and what tags tied to those in the question lead to.

    A memory that carries a tag tied to a named one is worth the best memory with the named tag, times the strength of
    the tie. What was found with a lower score is raised to that.
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
    return replace(found, found=_lifted(found.found, reached))


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


def _lifted(found: Sequence[Ranked], reached: Sequence[Ranked]) -> tuple[Ranked, ...]:
    known = {(each.partition, each.record_id): each for each in found}
    for each in reached:
        place = each.partition, each.record_id
        before = known.get(place, Ranked(*place, {}))
        if each.score > before.score:
            more = {"tags": each.score - before.score}
            known[place] = replace(before, contributions=before.contributions | more)
    return tuple(sorted(known.values(), key=_best_first))


def _best_first(ranked: Ranked) -> tuple[float, str]:
    return -ranked.score, ranked.record_id
