"""Scores what full text found: BM25 with the partition's own statistics, over records, windows of messages and threads.

BM25 is that of S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and
Trends in Information Retrieval 3(4), 2009, section 3.4: a token counts `idf * tf * (k1 + 1) / (tf + K)` where
`K = k1 * (1 - b + b * length / mean length)`, with the idf of Lucene, `log(1 + (N - df + 0.5) / (df + 0.5))`, which is
never negative. The document frequency is exact: every record that holds a token is among the matches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from remegraph.ports import Layout, TextMatches

__all__ = ["MessageSigns", "bm25", "meaning_signs", "message_signs"]

_K1 = 0.9
"""Saturation: how soon a repeated word stops counting. .9 and .4 are Lucene's usual values for short texts."""

_B = 0.4
"""Length normalisation, 0 (none) to 1 (full)."""

_WIDTHS = (3, 5)
"""Odd widths of windows, in messages."""


def bm25(matches: TextMatches, tokens: Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    """Return the BM25 score of each match, 0 to 1, by record id.

    The score is divided by what a text could get at most for these tokens, so that scores of partitions compare.

    Args:
        matches: All records of one partition that hold a token, with its statistics.
        tokens: The tokens asked for, each with what it counts, or all alike; repeats count once.
    """
    words = _Words.of(tokens)
    lengths = matches.lengths.astype(np.float64)
    scores = words.scores(words.counts(matches), lengths, matches.total, matches.total_length / max(matches.total, 1))
    return dict(zip(matches.record_ids, scores.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class MessageSigns:
    """What the words of a question say of each message near one that holds one of them."""

    seqs: NDArray[np.int32]
    """Places of the messages, in the order of recording."""
    columns: Mapping[str, NDArray[np.float64]]
    """By sign: a value for each message, 0 or more. Shares are of the highest score that any text could get."""

    def of_each(self) -> dict[int, dict[str, float]]:
        """Return the signs of each message, by its place."""
        return {
            int(seq): {name: float(column[row]) for name, column in self.columns.items()}
            for row, seq in enumerate(self.seqs)
        }


def message_signs(matches: TextMatches, layout: Layout, tokens: Sequence[str] | Mapping[str, float]) -> MessageSigns:
    """Return the signs by which messages of one partition are ranked.

    An answer often lacks the words of the question: they were said just before. So BM25 ranks windows of messages, too,
    one around every message, cut off at the ends of its thread; and a message gets the share of the best window that
    holds it. All windows are composed here from one list of matches; none is stored.

    - `words`: share of the message itself; `window of 3` and `window of 5`: of the best such window that holds it.
    - `around`: share of the window of 3 that it is the middle of.
    - `coverage`: how much of the question its words cover, rare words more.
    - `answers`: the same of the message before it, where that one asks, and another answers.
    - `thread`: share of its whole thread.

    Args:
        matches: All messages of one partition that hold a token, with its statistics.
        layout: All messages of the partition, in order of seq.
        tokens: The tokens asked for, each with what it counts, or all alike; repeats count once.
    """
    words = _Words.of(tokens)
    newest = int(layout.seqs[-1]) if len(layout.seqs) else 0
    found = matches.seqs <= newest  # some may be newer than the layout
    if not found.any() or not words.tokens:
        return MessageSigns(np.empty(0, dtype=np.int32), {})
    order = np.argsort(layout.threads, kind="stable")  # neighbours of a thread side by side
    threads, lengths = layout.threads[order], layout.lengths[order].astype(np.float64)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    held = places[np.searchsorted(layout.seqs, matches.seqs[found])]
    near = _within(held, max(_WIDTHS) - 1, len(order))  # two messages of one window are at most so far apart
    counts = np.zeros((len(near), len(words.tokens)))
    counts[np.searchsorted(near, held)] = words.counts(matches)[found]

    total = len(order)
    columns = {"words": words.scores(counts, lengths[near], total, float(lengths.mean()))}
    for width in _WIDTHS:
        window_counts = _spread(counts, near, threads[near], width, np.add)
        window_lengths = _spread(lengths, np.arange(total), threads, width, np.add)
        scores = words.scores(window_counts, window_lengths[near], total, float(window_lengths.mean()))
        columns[f"window of {width}"] = _spread(scores, near, threads[near], width, np.maximum)
        if width == min(_WIDTHS):
            columns["around"] = scores
    columns["coverage"] = words.coverage(counts, total)
    columns["answers"] = _asked_before(columns["coverage"], layout, order[near], near)
    columns["thread"] = _thread_scores(words, counts, threads[near], np.bincount(threads, lengths).astype(np.float64))
    by_seq = np.argsort(order[near], kind="stable")
    return MessageSigns(layout.seqs[order[near][by_seq]], {name: column[by_seq] for name, column in columns.items()})


def meaning_signs(
    layout: Layout, seqs: Sequence[int], cosines: Callable[[Sequence[int]], NDArray[np.float64]]
) -> MessageSigns:
    """Return the signs of what messages mean, of these and of those near them in their threads.

    - `meaning`: how near a message's meaning is to the question's.
    - `meaning around`: that of the best window of 3 which holds it, summed, as what answers is often said in several.

    Args:
        layout: All messages of the partition, in order of seq.
        seqs: Places of the messages asked about; only they and their neighbours are looked at.
        cosines: Gives the cosine of each of the messages at these places; 0 of those that have no vector.
    """
    order = np.argsort(layout.threads, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    width = min(_WIDTHS)
    near = _within(places[np.isin(layout.seqs, seqs)], width - 1, len(order))
    threads = layout.threads[order[near]]
    held = layout.seqs[order[near]]
    own = np.maximum(cosines(held.tolist()), 0.0)
    best = _spread(_spread(own, near, threads, width, np.add), near, threads, width, np.maximum)
    return MessageSigns(held, {"meaning": own, "meaning around": best})


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
        idf = self._idf(counts, total)
        saturation = _K1 * (1 - _B + _B * lengths / max(mean_length, 1.0))
        scores: NDArray[np.float64] = (counts / (counts + saturation[:, None])) @ idf
        return scores / max(float(idf.sum()), 1e-9)

    def coverage(self, counts: NDArray[np.float64], total: int) -> NDArray[np.float64]:
        """Return how much of the words each row of `counts` holds."""
        idf = self._idf(counts, total)
        covered: NDArray[np.float64] = (counts > 0) @ idf
        return covered / max(float(idf.sum()), 1e-9)

    def _idf(self, counts: NDArray[np.float64], total: int) -> NDArray[np.float64]:
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
