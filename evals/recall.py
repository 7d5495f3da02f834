"""How much of the evidence for a question recall finds: R@5 and R@10, with bootstrap intervals.

    python -m evals recall --data locomo_dev.jsonl --data memdaily_dev.jsonl --timezone Asia/Shanghai

A file holds one memory store per line: messages and questions with the ids of the messages (or threads, where
`gold_unit` says so) that answer them. Recall at k of a question is |gold found in the first k| / |gold|.

Asked is `kit.recall(question, depth="messages")`, after `kit.add_messages` and nothing else. Beside it stand plain
BM25 over single messages, and the same ranking in memory, which the kit must equal.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from evals._figures import Figure, explain_data, finish
from evals._stores import Message, Store, stores
from remegraph import MemoryKit, Scope, Settings
from remegraph.exchange.chat import to_messages
from remegraph.language.tokens import query_tokens, token_counts
from remegraph.models import Partition
from remegraph.ports import Embedder, Layout, TextMatch, TextMatches
from remegraph.rules.blending import Meant, Weights, default_weights, freshen, judge, rank
from remegraph.rules.ranking import MessageSigns, bm25, meaning_signs, message_signs

__all__ = ["KitRanker", "MemoryIndex", "blend_ranker", "bm25_ranker", "evaluate", "interval", "main"]

BARS = {"locomo_dev": (0.68, 0.77)}
"""R@5 and R@10 that a file must reach."""

_KS = (5, 10)
_THREAD_HITS = 100
"""Messages asked for where threads are what counts: several may be of one thread."""

_PLACE = Partition(tenant="evals")

Ranker = Callable[[str], Sequence[str]]
"""Answers a question with message ids, best first."""

_MakeRanker = Callable[[Sequence[Message]], Ranker]
"""Makes the ranker of a store."""


class MemoryIndex:
    """One store as one partition: what the ledger would answer, from memory.

    Args:
        messages: The store's messages.
        embedder: The embedder, asked only if it knows meaning.
    """

    def __init__(self, messages: Sequence[Message], embedder: Embedder | None = None) -> None:
        threads: dict[str, int] = {}
        self.counts = [token_counts(f"{message['name']}: {message['content']}") for message in messages]
        lengths = [sum(counts.values()) for counts in self.counts]
        self.layout = Layout(
            seqs=np.arange(1, len(messages) + 1),
            threads=np.array([threads.setdefault(message["thread"], len(threads)) for message in messages]),
            lengths=np.array(lengths),
            message_ids=[message["id"] for message in messages],
        )

        self._embedder = embedder if embedder and embedder.semantic else None
        self._rows = {message["id"]: row for row, message in enumerate(messages)}
        if self._embedder:
            self._vectors = self._embedder.embed([f"{each['name']}: {each['content']}" for each in messages])

    def match(self, tokens: Sequence[str]) -> TextMatches:
        """Return the messages that hold one of the tokens."""
        wanted = set(tokens)
        matches = tuple(
            TextMatch(
                self.layout.message_ids[row], row + 1, int(self.layout.lengths[row]), {t: counts[t] for t in held}
            )
            for row, counts in enumerate(self.counts)
            if (held := wanted & counts.keys())
        )
        total = len(self.counts)
        return TextMatches(_PLACE, matches, total, int(self.layout.lengths.sum()))

    def signs(self, tokens: Sequence[str]) -> tuple[Partition, MessageSigns]:
        """Return the signs of the messages near these tokens."""
        return _PLACE, message_signs(self.match(tokens), self.layout, tokens)

    def meant(self, question: str, record_ids: Sequence[str]) -> Meant:
        """Return what these messages mean, beside a question."""
        if self._embedder is None or not record_ids:
            return {}
        cosines = self._vectors @ self._embedder.embed([question])[0]

        def of(ids: Sequence[str]) -> NDArray[np.float64]:
            return np.asarray(cosines[[self._rows[each] for each in ids]], np.float64)

        signs = meaning_signs(self.layout, [self._rows[each] + 1 for each in record_ids], of)
        return {(_PLACE, record_id): values for record_id, values in signs.of_each().items()}


def blend_ranker(
    messages: Sequence[Message],
    timezone: str | None = None,
    weights: Weights | None = None,
    embedder: Embedder | None = None,
) -> Ranker:
    """Rank as the kit does, in memory; with its own weights unless others are given."""
    weights = weights or default_weights(semantic=embedder is not None and embedder.semantic)
    index = MemoryIndex(messages, embedder)
    zone = ZoneInfo(timezone) if timezone else None
    now = datetime.now(UTC)
    read = {each.message_id: each for each in to_messages(messages, thread="main", default_time=now, timezone=zone)}

    def ranked(question: str) -> Sequence[str]:
        tokens = query_tokens(question)
        found = list(rank([index.signs(tokens)], weights))
        best = [(item, read[item.record_id]) for item in found[: weights.read]]
        judged = judge(question, best, weights, index.meant(question, [item.record_id for item, _ in best]))
        fresh = freshen(question, [(item, read[item.record_id]) for item in judged])
        return [each.record_id for each in (*fresh, *found[weights.read :])]

    return ranked


def bm25_ranker(messages: Sequence[Message]) -> Ranker:
    """Rank single messages by BM25: the floor."""
    index = MemoryIndex(messages)

    def rank(question: str) -> Sequence[str]:
        tokens = query_tokens(question)
        scores = bm25(index.match(tokens), tokens)
        return sorted(scores, key=lambda record_id: -scores[record_id])

    return rank


class KitRanker:
    """Ranks by the kit, and notes how long each recall took.

    Args:
        kit: An open kit.
        k: How many messages are asked for.
        timezone: Zone of times that name none.
    """

    def __init__(self, kit: MemoryKit, k: int, timezone: str | None = None) -> None:
        self._kit = kit
        self._k = k
        self._timezone = timezone
        self.stores = 0
        self.seconds: list[float] = []

    def __call__(self, messages: Sequence[Message]) -> Ranker:
        """Record a store's messages as a new user's, and return what asks about them."""
        self.stores += 1
        scope = Scope(user=f"store {self.stores}", agent="remy")
        self._kit.add_messages(messages, scope=scope, timezone=self._timezone)

        def rank(question: str) -> Sequence[str]:
            recall = self._kit.recall(question, scope=scope, depth="messages", k=self._k)
            self.seconds.append(recall.seconds)
            return [hit.record_id for hit in recall.messages]

        return rank


def _recalls(store: Store, rank: Ranker, ks: Sequence[int]) -> list[list[float]]:
    """Return recall of each question of a store at each k."""
    by_thread = store.get("gold_unit") == "thread"
    thread_of = {message["id"]: message["thread"] for message in store["messages"]}
    rows: list[list[float]] = []
    for question in store["questions"]:
        gold = set(question["gold"])
        ranked = rank(question["text"])
        units = list(dict.fromkeys(thread_of[i] for i in ranked)) if by_thread else list(ranked)
        rows.append([len(gold.intersection(units[:k])) / len(gold) for k in ks])
    return rows


def evaluate(path: Path, make_ranker: _MakeRanker, ks: Sequence[int] = _KS) -> NDArray[np.float64]:
    """Return recall of each question at each k, shape (questions, len(ks))."""
    rows = [row for store in stores(path) for row in _recalls(store, make_ranker(store["messages"]), ks)]
    return np.array(rows)


def interval(values: NDArray[np.float64], draws: int = 2000, seed: int = 7) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean (percentile method, questions drawn with replacement)."""
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, len(values), (draws, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


@dataclass
class _Results:
    """Recall of the questions of one file, by ranker."""

    ours: list[list[float]] = field(default_factory=list)
    bm25: list[list[float]] = field(default_factory=list)
    unequal: int = 0
    """Questions to which the kit answers otherwise than the same ranking in memory."""


def _figures(name: str, rows: Sequence[Sequence[float]], bars: Sequence[float | None] = (None, None)) -> list[Figure]:
    recall = np.array(rows)
    figures: list[Figure] = []
    for column, (k, bar) in enumerate(zip(_KS, bars, strict=True)):
        low, high = interval(recall[:, column])
        note = f"[{low:.3f}, {high:.3f}] of {len(recall)} questions"
        figures.append(Figure(f"{name}: R@{k}", float(recall[:, column].mean()), bar, "at least", note=note))
    return figures


def _measure(path: Path, make: _MakeRanker, in_memory: _MakeRanker, *, per_store: bool) -> list[Figure]:
    results = _Results()
    figures: list[Figure] = []
    for store in stores(path):
        ours, memory = make(store["messages"]), in_memory(store["messages"])
        answers = {question["text"]: ours(question["text"]) for question in store["questions"]}
        rows = _recalls(store, answers.__getitem__, _KS)
        results.ours += rows
        results.bm25 += _recalls(store, bm25_ranker(store["messages"]), _KS)
        results.unequal += sum(list(memory(text))[: len(found)] != list(found) for text, found in answers.items())
        if per_store:
            figures += _figures(f"{path.stem} {store['store']}", rows)
    return [
        *figures,
        *_figures(f"{path.stem}, BM25 of single messages", results.bm25),
        *_figures(f"{path.stem}, ours", results.ours, BARS.get(path.stem, (None, None))),
        Figure(f"{path.stem}: answers unlike those in memory", results.unequal, 0, "exactly"),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures of each file."""
    parser = argparse.ArgumentParser(prog="python -m evals recall", description="Evidence recall of questions.")
    parser.add_argument("--data", type=Path, action="append", help="A file of stores; repeatable.")
    parser.add_argument("--through", choices=["kit", "memory"], default="kit", help="What is asked.")
    parser.add_argument("--timezone", help="Zone of times that name none.")
    parser.add_argument("--per-store", action="store_true", help="Figures of every store, too.")
    options = parser.parse_args(argv)
    if not options.data:
        explain_data("recall", "locomo_dev.jsonl [--timezone ZONE]")
        return
    figures: list[Figure] = []
    in_memory = partial(blend_ranker, timezone=options.timezone)
    with tempfile.TemporaryDirectory() as home:
        for path in options.data:
            if options.through == "memory":
                figures += _measure(path, in_memory, in_memory, per_store=options.per_store)
                continue
            settings = Settings(home=Path(home) / path.stem)
            with MemoryKit.open(settings=settings, model=None, embedder=None) as kit:
                k = _THREAD_HITS if next(stores(path)).get("gold_unit") == "thread" else max(_KS)
                ranker = KitRanker(kit, k, options.timezone)
                figures += _measure(path, ranker, in_memory, per_store=options.per_store)
            p50, p95 = np.percentile(ranker.seconds, [50, 95]) * 1000
            figures += [
                Figure(f"{path.stem}: recall p50", float(p50), unit="ms", note=f"depth messages, k {k}"),
                Figure(f"{path.stem}: recall p95", float(p95), unit="ms"),
            ]
    finish(figures)


if __name__ == "__main__":
    main()
