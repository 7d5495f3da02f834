"""Scores what full text found: BM25 with the partition's own statistics, over records, windows of messages and threads.

BM25 is that of S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and
Trends in Information Retrieval 3(4), 2009, section 3.4: a token counts `idf * tf * (k1 + 1) / (tf + K)` where
`K = k1 * (1 - b + b * length / mean length)`, with the idf of Lucene, `log(1 + (N - df + 0.5) / (df + 0.5))`, which is
never negative. The document frequency is exact: every record that holds a token is among the matches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from remegraph.ports import TextMatches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from remegraph.models import Partition
    from remegraph.ports import Layout, Meant, Vectors

__all__ = [
    "CosineSpread",
    "MessageSigns",
    "TextMatch",
    "bm25",
    "columns",
    "coverage",
    "message_signs",
    "nearest_of",
    "signs_of_all",
]

_K1 = 0.9
"""Saturation: how soon a repeated word stops counting. .9 and .4 are Lucene's usual values for short texts."""

_B = 0.4
"""Length normalisation, 0 (none) to 1 (full)."""

_ENOUGH_WORDS = 4
"""This many rare words cover any question: someone who tells a story first names more than any answer holds."""

_WIDTHS = (3, 5)
"""Odd widths of windows, in messages."""

_LONG = 100
"""Tokens of a message that is half a turn of talk, half a text of its own. Median turns of people have 20 to 35, answers
of language models some hundreds."""

_NEAREST = 200
"""Messages that are ranked for their meaning, whatever their words."""


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A record that holds at least one of the words asked for."""

    record_id: str
    seq: int
    """Place in the partition (messages), else 0."""
    length: int
    """Tokens in the record."""
    counts: Mapping[str, int]
    """How often each of the words asked for occurs in it."""


def columns(partition: Partition, matches: Sequence[TextMatch], total: int, total_length: int) -> TextMatches:
    """Return a few matches as columns.

    Args:
        partition: Where they are.
        matches: All that were found.
        total: Records in the partition.
        total_length: Tokens in them, in all.
    """
    tokens = tuple(dict.fromkeys(token for match in matches for token in match.counts))
    counts = [[match.counts.get(token, 0) for token in tokens] for match in matches]
    return TextMatches(
        partition,
        tokens,
        tuple(match.record_id for match in matches),
        np.array([match.seq for match in matches], dtype=np.int64),
        np.array([match.length for match in matches], dtype=np.int64),
        np.array(counts, dtype=np.int64).reshape(len(matches), len(tokens)),
        total,
        total_length,
    )


def bm25(matches: TextMatches, tokens: Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    """Return the BM25 score of each match, 0 to 1, by record id.

    The score is divided by what a text could get at most for these tokens, so that scores of partitions compare. The
    tokens come with what each counts, or count all alike; repeats count once.
    """
    words = _Words.of(tokens)
    lengths = matches.lengths.astype(np.float64)
    scores = words.scores(words.counts(matches), lengths, matches.total, matches.total_length / max(matches.total, 1))
    return dict(zip(matches.record_ids, scores.tolist(), strict=True))


def coverage(
    matches: TextMatches, tokens: Sequence[str] | Mapping[str, float], seqs: Sequence[int] | None = None
) -> tuple[dict[str, float], float]:
    """Return how much of the words asked for each match holds, by id, and how much all do, 0 to 1; rare words count more.

    The tokens come with what each counts, or count all alike; repeats count once. With `seqs`, only the messages at
    these places are looked at.
    """
    words = _Words.of(tokens)
    counts = words.counts(matches)
    rows = np.arange(len(counts)) if seqs is None else np.flatnonzero(np.isin(matches.seqs, seqs))
    idf = words.idf(counts, matches.total)
    enough = max(min(float(idf.sum()), _ENOUGH_WORDS * math.log1p((matches.total + 0.5) / 0.5)), 1e-9)
    known = float(idf[(counts > 0).any(axis=0)].sum())
    covers = np.minimum(np.vecdot(counts[rows] > 0, idf) / enough, 1.0)
    held = {matches.record_ids[row]: value for row, value in zip(rows.tolist(), covers.tolist(), strict=True)}
    return held, min(known / enough, 1.0)


def nearest_of(vector: Vectors, others: Vectors, few: int = 3) -> float:
    """Return the mean cosine of a vector with the nearest few of others.

    `others` has the shape (vectors, dimension).
    """
    lengths = np.linalg.norm(others, axis=1) * np.linalg.norm(vector)
    return float(np.sort(np.vecdot(others, vector) / np.maximum(lengths, 1e-9))[-few:].mean())


@dataclass(frozen=True, slots=True)
class MessageSigns:
    """The signs of messages, by the words of a question and its meaning."""

    seqs: NDArray[np.int32]
    """Places of the messages, in the order of recording."""
    columns: Mapping[str, NDArray[np.float64]]
    """By sign: a value for each message, 0 or more."""
    long: float = 0.0
    """How far the messages of this partition are long texts rather than short turns, 0 to 1."""
    apart: float = 0.0
    """How far the best meaning differs from the others, 0 to 1; see `CosineSpread`."""


@dataclass(frozen=True, slots=True)
class CosineSpread:
    """How well cosines distinguish messages for one question, by their distribution over all messages that have one.

    One unrelated message is added, so that this also works for few messages.
    """

    floor: float
    """The mean: what any message has."""
    best: float
    apart: float
    """By how much of itself the best exceeds the mean, 0 to 1: little where all texts look alike to the embedder."""
    peaked: float
    """Whether it exceeds the mean by more than the best of so many would by chance, 0 to 1; chance gives a half."""

    @classmethod
    def of(cls, cosines: NDArray[np.float64]) -> CosineSpread:
        """Return the spread of these cosines: those of all messages that are searched."""
        every = np.append(np.maximum(cosines, 0.0), 0.0)
        floor, best, spread = float(every.mean()), float(every.max()), float(every.std())
        expected = math.sqrt(2 * math.log(max(len(every), 3)))  # the best of so many normal values, in deviations
        peak = (best - floor) / max(spread, 1e-9) / expected
        return cls(floor, best, 1 - floor / max(best, 1e-9), min(1.0, peak**2 / 2))

    def share(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how much cosines exceed the mean, as shares of the best."""
        shares: NDArray[np.float64] = np.maximum(cosines - self.floor, 0.0) / max(self.best - self.floor, 1e-9)
        return shares


def signs_of_all(
    matches: Sequence[TextMatches],
    meant: Mapping[Partition, Meant],
    layout_of: Callable[[Partition], Layout],
    tokens: Sequence[str] | Mapping[str, float],
) -> list[tuple[Partition, MessageSigns]]:
    """Return the signs of the messages of all partitions where words or meaning find some; see `message_signs`."""
    held = {each.partition: each for each in matches}
    telling = CosineSpread.of(np.concatenate([each.cosines for each in meant.values()])) if meant else None
    return [
        (partition, message_signs(held.get(partition), layout_of(partition), tokens, meant.get(partition), telling))
        for partition in dict.fromkeys((*held, *meant))
    ]


def message_signs(
    matches: TextMatches | None,
    layout: Layout,
    tokens: Sequence[str] | Mapping[str, float],
    meant: Meant | None = None,
    telling: CosineSpread | None = None,
) -> MessageSigns:
    """Return the signs by which messages of one partition are ranked.

    An answer often lacks the words of the question: they were said just before. So BM25 ranks windows of messages,
    one around every message, cut off at the ends of its thread; and a message gets the share of the best window that
    holds it. All windows are composed here from one list of matches; none is stored.

    - `window of 3` and `window of 5`: share of the best such window that holds the message.
    - `coverage`: how much of the question its words cover, rare words more.
    - `density`: the same by the square root of its length, as the cosine of two texts counts it.
    - `answers`: the coverage of the message before it, where that one asks, and another answers.
    - `thread`: share of its whole thread.
    - `meaning`: by how much its meaning is nearer to the question than that of most messages, if meaning distinguishes.
    - `thread meaning`: that of the best message of its thread, where it stands out.

    The tokens come with what each counts, or count all alike; repeats count once. `telling` is how well meaning
    distinguishes; unless given, that of the messages given.
    """
    words = _Words.of(tokens if matches is not None else ())
    order = np.argsort(layout.threads, kind="stable")  # neighbours of a thread side by side
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    newest = int(layout.seqs[-1]) if len(layout.seqs) else 0
    found = matches.seqs <= newest if matches is not None else np.empty(0, dtype=np.bool_)  # some may be newer
    held = places[np.searchsorted(layout.seqs, matches.seqs[found])] if matches is not None else places[:0]
    cosines = _placed(meant, layout.seqs)[order] if meant is not None else None
    near = _within(held if words.tokens else held[:0], max(_WIDTHS) - 1, len(order))  # they share a window
    near = near if cosines is None else np.union1d(near, _nearest(cosines))
    if not near.size:
        return MessageSigns(np.empty(0, dtype=np.int32), {})
    counts = np.zeros((len(near), len(words.tokens)))
    if matches is not None and words.tokens:
        counts[np.searchsorted(near, held)] = words.counts(matches)[found]
    columns = _word_signs(words, counts, near, order, layout)
    if meant is not None and cosines is not None:
        telling = telling or CosineSpread.of(meant.cosines)
        columns |= _meaning_signs(cosines, layout.threads[order], near, telling)
    by_seq = np.argsort(order[near], kind="stable")
    middle = float(np.median(layout.lengths))
    return MessageSigns(
        layout.seqs[order[near][by_seq]],
        {name: column[by_seq] for name, column in columns.items()},
        long=middle / (middle + _LONG),
        apart=telling.apart if telling is not None else 0.0,
    )


def _word_signs(
    words: _Words, counts: NDArray[np.float64], near: NDArray[np.int64], order: NDArray[np.int64], layout: Layout
) -> dict[str, NDArray[np.float64]]:
    threads, lengths = layout.threads[order], layout.lengths[order].astype(np.float64)
    total = len(order)
    columns: dict[str, NDArray[np.float64]] = {}
    for width in _WIDTHS:
        window_counts = _spread(counts, near, threads[near], width, np.add)
        window_lengths = _spread(lengths, np.arange(total), threads, width, np.add)
        scores = words.scores(window_counts, window_lengths[near], total, float(window_lengths.mean()))
        columns[f"window of {width}"] = _spread(scores, near, threads[near], width, np.maximum)
    columns["coverage"] = words.coverage(counts, total)
    columns["density"] = columns["coverage"] / np.sqrt(np.maximum(lengths[near], 1.0))
    columns["answers"] = _asked_before(columns["coverage"], layout, order[near], near)
    columns["thread"] = _thread_scores(words, counts, threads[near], np.bincount(threads, lengths).astype(np.float64))
    return columns


def _meaning_signs(
    cosines: NDArray[np.float64], threads: NDArray[np.int32], near: NDArray[np.int64], telling: CosineSpread
) -> dict[str, NDArray[np.float64]]:
    best = np.full(int(threads.max()) + 1, -1.0)
    np.maximum.at(best, threads, cosines)
    return {
        "meaning": telling.share(cosines[near]),
        "thread meaning": telling.share(best[threads[near]]) * telling.apart * telling.peaked,
    }


def _placed(meant: Meant, seqs: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the cosine of each message; -1 of those that have none."""
    cosines = np.full(len(seqs), -1.0)
    known = np.isin(meant.seqs, seqs)
    cosines[np.searchsorted(seqs, meant.seqs[known])] = meant.cosines[known]
    return cosines


def _nearest(cosines: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the places of the messages that are nearest in meaning, of those that have a meaning."""
    best = np.argsort(-cosines, kind="stable")[:_NEAREST]
    return np.sort(best[cosines[best] > 0])


@dataclass(frozen=True, slots=True)
class _Words:
    """The words asked for, and what each counts."""

    tokens: Sequence[str]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, tokens: Sequence[str] | Mapping[str, float]) -> _Words:
        weighed = tokens if isinstance(tokens, Mapping) else dict.fromkeys(tokens, 1.0)
        return cls(tuple(weighed), np.array(tuple(weighed.values()), dtype=np.float64))

    def counts(self, matches: TextMatches) -> NDArray[np.float64]:
        """Return how often each match holds each word, shape (matches, words)."""
        columns = {token: matches.counts[:, at] for at, token in enumerate(matches.tokens)}
        counts = np.zeros((len(matches.record_ids), len(self.tokens)))
        for at, token in enumerate(self.tokens):
            counts[:, at] = columns.get(token, 0)
        return counts

    def scores(
        self, counts: NDArray[np.float64], lengths: NDArray[np.float64], total: int, mean_length: float
    ) -> NDArray[np.float64]:
        """Return BM25 of each row of `counts`, as a share of its upper bound."""
        idf = self.idf(counts, total)
        saturation = _K1 * (1 - _B + _B * lengths / max(mean_length, 1.0))
        scores: NDArray[np.float64] = np.vecdot(counts / (counts + saturation[:, None]), idf)
        return scores / max(float(idf.sum()), 1e-9)

    def coverage(self, counts: NDArray[np.float64], total: int) -> NDArray[np.float64]:
        """Return how much of the words each row of `counts` holds."""
        idf = self.idf(counts, total)
        covered: NDArray[np.float64] = np.vecdot(counts > 0, idf)
        return covered / max(float(idf.sum()), 1e-9)

    def idf(self, counts: NDArray[np.float64], total: int) -> NDArray[np.float64]:
        """Return the weight of each word, by how few of the records hold it."""
        frequency = np.count_nonzero(counts, axis=0)
        idf: NDArray[np.float64] = np.log1p((total - frequency + 0.5) / (frequency + 0.5))
        return idf * self.weights


def _asked_before(
    coverage: NDArray[np.float64], layout: Layout, rows: NDArray[np.int64], places: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return, for each row, the coverage of the question that it answers, if it comes just after one."""
    threads, users = layout.threads[rows], layout.users[rows]
    answers = (places[1:] - places[:-1] == 1) & (threads[1:] == threads[:-1])
    answers &= layout.asks[rows][:-1] & (users[1:] != users[:-1])
    asked = np.zeros_like(coverage)
    asked[1:][answers] = coverage[:-1][answers]
    return asked


def _thread_scores(
    words: _Words,
    counts: NDArray[np.float64],
    threads: NDArray[np.int32],
    thread_lengths: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return, for each row, the share of its thread, taken as one text."""
    sums = np.zeros((len(thread_lengths), counts.shape[1]))
    np.add.at(sums, threads, counts)
    shares = words.scores(sums, thread_lengths, len(thread_lengths), float(thread_lengths.mean()))
    found: NDArray[np.float64] = shares[threads]
    return found


def _within(places: NDArray[np.int64], reach: int, total: int) -> NDArray[np.int64]:
    """Return, sorted, the places 0 to total - 1 that are at most `reach` away from one of `places`."""
    mask = np.zeros(total, dtype=bool)
    for shift in range(-reach, reach + 1):
        shifted = places + shift
        mask[shifted[(shifted >= 0) & (shifted < total)]] = True
    return np.flatnonzero(mask)


def _spread(
    values: NDArray[np.float64],
    places: NDArray[np.int64],
    threads: NDArray[np.int32],
    width: int,
    combine: np.ufunc,
) -> NDArray[np.float64]:
    """Combine each row with the rows of its thread that are at most `width // 2` places away; no value is negative."""
    result = values.copy()
    for shift in range(1, width // 2 + 1):
        apart = (places[shift:] - places[:-shift] != shift) | (threads[shift:] != threads[:-shift])
        for lenders, takers in ((values[:-shift], result[shift:]), (values[shift:], result[:-shift])):
            lent = lenders.copy()
            lent[apart] = 0
            combine(takers, lent, out=takers)
    return result
