"""What is at stake: texts about danger, law, or what must not happen are shown beside what was found (`Beside`)."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from remegraph.engine.retrieval.blend import Ranked
from remegraph.engine.retrieval.hits import RecallInput, Routed, memory_hit, message_hit, passes, picks
from remegraph.engine.retrieval.scores import bm25
from remegraph.models import LIVE, Hit, LeftOut, Memory, Partition
from remegraph.models.standing import dated
from remegraph.text import table
from remegraph.text.scripts import folded
from remegraph.text.tokens import tokenize

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["ANYTHING", "ENOUGH", "Beside", "asked_of_index", "at_hand", "at_stake", "bears_on", "subjects", "verbatim"]


ENOUGH = 2
"""Points from which a text is shown even if the question shares no word with it."""

ANYTHING = ""
"""The subject of a question that wants something done, chosen or planned."""


@lru_cache(maxsize=1 << 11)
def at_stake(text: str) -> int:
    """Return how much is at stake in a text, in points (data/stakes.toml): those of its highest line.

    Two words from different messages that a memory repeats do not add up.
    """
    return max((_points(line) for line in text.splitlines()), default=0)


def _points(line: str) -> int:
    tokens = set(tokenize(line))
    firsts = _marks()
    return sum(points for token in tokens & firsts.keys() for rest, points in firsts[token] if rest <= tokens)


def subjects(question: str) -> dict[str, float]:
    """Return the subjects that a question touches, and how much (data/stakes.toml).

    A question that only asks for a fact may touch none.
    """
    return _held(question, "asks")


def bears_on(text: str, touched: Mapping[str, float]) -> float:
    """Return how much a text at stake bears on what a question touches; a word of many subjects counts little for each.

    Of several lines only those at stake count, each separately.
    """
    lines = text.splitlines()
    told = [_held(line, "tells") for line in [line for line in lines if _points(line) >= ENOUGH] or lines]
    return max((sum(much * each.get(name, 0.0) for name, much in touched.items()) for each in told), default=0.0)


@lru_cache(maxsize=1 << 11)
def _held(text: str, side: Literal["asks", "tells"]) -> dict[str, float]:
    """Return the subjects of a text's words on one side, each with their number; a word of several subjects counts less."""
    tokens = set(tokenize(text))
    firsts = _words_of(side)
    found: Counter[str] = Counter()
    for token in tokens & firsts.keys():
        for mark, names in firsts[token].items():
            if mark <= tokens:
                found.update(dict.fromkeys(names, len(names) ** -0.5))
    return dict(found)


@cache
def _words_of(side: Literal["asks", "tells"]) -> dict[str, dict[frozenset[str], set[str]]]:
    """Return the marks of a side by their first word, each with its subjects."""
    found: dict[str, dict[frozenset[str], set[str]]] = {}
    for name, each in table("stakes")["subjects"].items():
        for mark in map(_mark_tokens, each[side]):
            found.setdefault(mark[0], {}).setdefault(frozenset(mark), set()).add(name)
    return found


def asked_of_index() -> Sequence[str]:
    """Return the words by which the index finds all texts that matter."""
    return tuple(_marks())


@cache
def _marks() -> dict[str, list[tuple[frozenset[str], int]]]:
    """Return the marks by their first word: what else must be there, and the points."""
    told = table("stakes")
    found: dict[str, dict[frozenset[str], int]] = {}
    for name, points in (("one", 1), ("two", ENOUGH)):
        for mark in (mark for marks in told[name].values() for mark in marks):
            first, *rest = _mark_tokens(mark)
            found.setdefault(first, {})[frozenset(rest)] = points
    return {first: list(marks.items()) for first, marks in found.items()}


def _mark_tokens(mark: str) -> list[str]:
    """Return the tokens of a mark; in scripts without spaces the pairs, as a single character means too little."""
    tokens = tokenize(mark)
    return [token for token in tokens if len(token) > 1] or tokens


_NEAR = 0.25
"""Least share of the best score that counts for a question that only asks for a fact."""

_READ = 60
"""Texts of a kind to read that may be at stake: those with the rarest of such words."""

_KEPT = 1024
"""Partitions for which the result is cached."""

_MOST = 50
"""Memories that a context shows at most, however short: this limits what one answer can reveal."""

_MATTERS = 0.1
"""Weight of importance beside a score if more memories are shown than were asked for."""


class _AtStake(NamedTuple):
    """What is at stake in the messages of a partition, as far as they were read."""

    length: int = 0
    newest: int = 0
    ids: tuple[str, ...] = ()


class Beside:
    """Finds what a context shows beside the best hits, in a recall without filters."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._staked = lru_cache(_KEPT)(self._read_staked)
        self._at_stake = OrderedDict[Partition, _AtStake]()
        self._lock = threading.Lock()

    def at_stake(self, asked: RecallInput, partitions: Sequence[Partition], found: Collection[str]) -> list[Hit]:
        """Return what an answer must not overlook, if the question touches its subject or wants something done.

        What bears on most of the question's subjects comes first, then what the question found, then the most points,
        the newest.
        """
        touched = subjects(asked["query"])
        if not _open(asked) or not touched:
            return []
        hits: list[Hit] = []
        come = self._archive.pulse(asked["scope"])
        for partition in partitions:
            ids = self._staked(partition, come[partition].event if partition in come else 0)
            read = self._archive.memories([partition], ids=ids, statuses=sorted(LIVE)) if ids else ()
            hits += (memory_hit(memory, {}) for memory in read)
        for partition in partitions if asked["depth"] == "messages" else ():
            ids = self._messages_at_stake(partition)
            rows = self._archive.messages([partition], ids=ids) if ids else ()
            hits += (
                message_hit(row, Ranked(row.partition, row.message_id, {}))
                for row in rows
                if row.role != "assistant"
                and row.message_id not in asked["without"]
                and not row.hidden
                and passes(row, asked)
            )
        hits = [hit for hit in hits if not at_hand(hit, asked["without"])]
        points = {hit.record_id: at_stake(hit.text) for hit in hits}
        bears = {hit.record_id: bears_on(hit.text, touched) for hit in hits}
        least = 0.0 if ANYTHING in touched else max(_NEAR * max(bears.values(), default=0.0), 1e-9)
        hits = [hit for hit in hits if points[hit.record_id] >= ENOUGH and bears[hit.record_id] >= least]
        hits.sort(
            key=lambda hit: (bears[hit.record_id], hit.record_id in found, points[hit.record_id], hit.time),
            reverse=True,
        )
        return list(dated(hits, asked["asked_at"]))

    def _read_staked(self, partition: Partition, _come: int) -> tuple[str, ...]:
        """Return the ids of the memories at stake in a partition as it is now; cached, as every recall asks for them."""
        ids = self._named(partition, "memory")
        read = self._archive.memories([partition], ids=ids, statuses=sorted(LIVE)) if ids else ()
        return tuple(each.memory_id for each in read if at_stake(memory_hit(each, {}).text) >= ENOUGH)

    def _messages_at_stake(self, partition: Partition) -> tuple[str, ...]:
        """Return the ids of the messages at stake: those known, and those recorded since, as each turn adds messages."""
        layout = self._archive.layout(partition)
        if not layout.seqs.size:
            return ()
        with self._lock:
            known = self._at_stake.get(partition, _AtStake())
        count, newest = len(layout.seqs), int(layout.seqs[-1])
        if count == known.length and newest == known.newest:
            return known.ids
        if 0 < count - known.length <= _READ and int(layout.seqs[known.length - 1]) == known.newest:
            rows, ids = self._archive.messages([partition], first_seq=known.newest + 1, last_seq=newest), known.ids
        else:
            names = self._named(partition, "message")
            rows, ids = self._archive.messages([partition], ids=names) if names else (), ()
        hits = (message_hit(row, Ranked(row.partition, row.message_id, {})) for row in rows)
        current = _AtStake(count, newest, (*ids, *(hit.record_id for hit in hits if at_stake(hit.text) >= ENOUGH)))
        with self._lock:
            self._at_stake[partition] = current
            self._at_stake.move_to_end(partition)
            if len(self._at_stake) > _KEPT:
                self._at_stake.popitem(last=False)
        return current.ids

    def _named(self, partition: Partition, kind: Literal["memory", "message"]) -> list[str]:
        """Return the ids of texts that hold words of what is at stake, those with the rarest of them."""
        words = asked_of_index()
        return [name for found in self._archive.match([partition], kind, words) for name in _rarest(bm25(found, words))]

    def held(self, shown: Mapping[str, Sequence[Hit]], asked: RecallInput) -> dict[str, LeftOut]:
        """Return the hits that rest only on words the caller already has; binding rules are not among them."""
        there = asked["without"]
        if not there:
            return {}
        held = [hit.record_id for hit in shown["memories"] if at_hand(hit, there)]
        found = {(hit.partition, hit.record_id) for hit in shown["blocks"]}
        partitions = list({partition for partition, _ in found})
        blocks = self._archive.blocks(partitions, message_ids=sorted(there)) if found else ()
        shown_here = (block for block in blocks if (block.partition, block.block_id) in found)
        held += [each.block_id for each in shown_here if there.issuperset(self._archive.message_ids(each))]
        return dict.fromkeys(held, "at hand")

    def more(self, asked: RecallInput, searches: Sequence[Routed], known: Collection[str]) -> Iterator[Hit]:
        """Yield memories beside the best: by how they bear on the question and by how much they matter, then the newest."""
        room = _MOST - len(known)
        if not _open(asked) or room <= 0 or not searches:
            return
        ranked = {scored.record_id: scored for each in searches for scored in each.candidates}
        best = sorted(ranked.keys() - set(known), key=lambda name: (-ranked[name].score, name))[:_MOST]
        shelves = [each.search.shelf for each in searches]
        partitions = list({each.partition for each in shelves})
        topics = list({each.topic for each in shelves if each.topic.type == "personal"})
        newest = self._archive.memories(partitions, topics=topics, statuses=sorted(LIVE), limit=_MOST) if topics else ()
        read = {
            each.memory_id: each for each in (*self._read(partitions, best), *newest) if each.memory_id not in known
        }
        scores = {name: ranked[name].score if name in ranked else 0.0 for name in read}
        first = sorted(read, key=lambda name: -scores[name] - _MATTERS * read[name].importance)
        for name in first[:room]:
            hit = memory_hit(read[name], *(ranked[name].parts if name in ranked else ({},)))
            if not at_hand(hit, asked["without"]):
                yield from dated([hit], asked["asked_at"])

    def _read(self, partitions: Sequence[Partition], ids: Sequence[str]) -> tuple[Memory, ...]:
        return self._archive.memories(partitions, ids=ids, statuses=sorted(LIVE))


def at_hand(hit: Hit, messages: Collection[str]) -> bool:
    """Return whether a memory rests only on words the caller already has; a binding rule never does."""
    return bool(hit.evidence) and not hit.enforcement and all(item.message_id in messages for item in hit.evidence)


def verbatim(hit: Hit) -> bool:
    """Return whether a memory repeats words to the letter: the message around them says more."""
    said = folded(hit.text)
    return any(len(item.quote) > 1 and folded(item.quote) in said for item in hit.evidence)


def _open(asked: RecallInput) -> bool:
    """Return whether a recall has no filters: neither a topic, a time, a kind nor exact words are asked for."""
    times = (asked["time_start"], asked["time_end"])
    return (
        not picks(asked) and asked["topics"] is None and times == (None, None) and asked["depth"] != "summaries"
    )  # fmt: skip


def _rarest(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda name: (-scores[name], name))[:_READ]
