"""How much of the evidence for a question recall finds: R@5 and R@10, with bootstrap intervals.

    python -m evals.recall --data locomo_dev.jsonl --data memdaily_dev.jsonl

A file holds one memory store per line: messages and questions with the ids of the messages (or threads, where
`gold_unit` says so) that answer them. Recall at k of a question is |gold found in the first k| / |gold|.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from remegraph.language.tokens import query_tokens, token_counts
from remegraph.models import Partition
from remegraph.ports import Layout, TextMatch, TextMatches
from remegraph.rules.ranking import bm25, rank_messages

__all__ = ["bm25_ranker", "evaluate", "interval", "main", "window_ranker"]

Ranker = Callable[[str], Sequence[str]]
"""Answers a question with message ids, best first."""


class _Message(TypedDict):
    id: str
    thread: str
    name: str
    content: str


class _Question(TypedDict):
    text: str
    gold: list[str]


class _Store(TypedDict):
    messages: list[_Message]
    questions: list[_Question]
    gold_unit: str


class _Index:
    """One store as one partition: what the ledger would answer, from memory."""

    def __init__(self, messages: Sequence[_Message]) -> None:
        threads: dict[str, int] = {}
        self.counts = [token_counts(f"{message['name']}: {message['content']}") for message in messages]
        lengths = [sum(counts.values()) for counts in self.counts]
        self.layout = Layout(
            seqs=np.arange(1, len(messages) + 1),
            threads=np.array([threads.setdefault(message["thread"], len(threads)) for message in messages]),
            lengths=np.array(lengths),
            message_ids=[message["id"] for message in messages],
        )

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
        return TextMatches(Partition(tenant="evals"), matches, total, int(self.layout.lengths.sum()))


def window_ranker(messages: Sequence[_Message]) -> Ranker:
    """Rank by windows of 1, 3 and 5 messages."""
    index = _Index(messages)

    def rank(question: str) -> Sequence[str]:
        tokens = query_tokens(question)
        return [ranked.record_id for ranked in rank_messages(index.match(tokens), index.layout, tokens)]

    return rank


def bm25_ranker(messages: Sequence[_Message]) -> Ranker:
    """Rank single messages by BM25: the floor."""
    index = _Index(messages)

    def rank(question: str) -> Sequence[str]:
        tokens = query_tokens(question)
        scores = bm25(index.match(tokens), tokens)
        return sorted(scores, key=lambda record_id: -scores[record_id])

    return rank


RANKERS: dict[str, Callable[[Sequence[_Message]], Ranker]] = {"windows": window_ranker, "bm25": bm25_ranker}


def _stores(path: Path) -> Iterator[_Store]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def evaluate(
    path: Path, make_ranker: Callable[[Sequence[_Message]], Ranker], ks: Sequence[int] = (5, 10)
) -> NDArray[np.float64]:
    """Return recall of each question at each k, shape (questions, len(ks))."""
    rows: list[list[float]] = []
    for store in _stores(path):
        rank = make_ranker(store["messages"])
        by_thread = store.get("gold_unit") == "thread"
        thread_of = {message["id"]: message["thread"] for message in store["messages"]}
        for question in store["questions"]:
            gold = set(question["gold"])
            ranked = rank(question["text"])
            units = list(dict.fromkeys(thread_of[i] for i in ranked)) if by_thread else list(ranked)
            rows.append([len(gold.intersection(units[:k])) / len(gold) for k in ks])
    return np.array(rows)


def interval(values: NDArray[np.float64], draws: int = 2000, seed: int = 7) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean (percentile method, questions drawn with replacement)."""
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, len(values), (draws, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures of each file."""
    parser = argparse.ArgumentParser(prog="python -m evals.recall", description="Evidence recall of questions.")
    parser.add_argument("--data", type=Path, action="append", required=True, help="A file of stores; repeatable.")
    parser.add_argument("--ranker", choices=sorted(RANKERS), default="windows", help="What ranks.")
    options = parser.parse_args(argv)
    for path in options.data:
        recall = evaluate(path, RANKERS[options.ranker])
        figures = []
        for column, k in enumerate((5, 10)):
            low, high = interval(recall[:, column])
            figures.append(f"R@{k} {recall[:, column].mean():.3f} [{low:.3f}, {high:.3f}]")
        print(f"{path.name}  {options.ranker}  {len(recall)} questions  {'  '.join(figures)}")


if __name__ == "__main__":
    main()
