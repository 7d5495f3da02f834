"""The one way in which memories are measured: told the same messages, asked the same questions, counted alike."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals._metrics import recall, reciprocal_rank, stale_first
from evals._peers import MakePeer
from evals._records import Question, Store
from remegraph.ports import Embedder

__all__ = ["ADVERSARIAL", "DEPTH", "METRICS", "STALE_FIRST", "Row", "measure", "sample", "worth"]

METRICS = ("R@5", "R@10", "MRR")
STALE_FIRST = "stale first"
ADVERSARIAL = "adversarial"
"""LoCoMo's category of questions that ask one speaker for what the other one said."""

DEPTH = {"message": 50, "thread": 100}
"""Messages that every memory is asked for, by what counts: several may be of one thread."""


@dataclass(frozen=True, slots=True)
class Row:
    """One question, and what was found for it."""

    kind: str
    category: str
    found: tuple[str, ...]
    """Messages, or threads where those are what counts."""
    values: Mapping[str, float]
    """By metric; none where nothing answers; `stale first` only where something is stale."""
    shown: int
    """How many of the first ten places are filled."""
    best: float
    """Score of the first."""


def sample(questions: Sequence[Question], size: int | None) -> list[Question]:
    """Return so many of the questions, the same in every run, in their order; all of them for none."""
    if size is None or size >= len(questions):
        return list(questions)
    chosen = sorted(random.Random(7).sample(range(len(questions)), size))
    return [questions[at] for at in chosen]


def worth(question: Question, found: Sequence[str]) -> dict[str, float]:
    """Return what was found for a question, by metric; nothing where nothing answers."""
    gold, stale = question["gold"], question.get("stale")
    if not gold:
        return {}
    values = {"R@5": recall(found, gold, 5), "R@10": recall(found, gold, 10), "MRR": reciprocal_rank(found, gold)}
    return values | ({STALE_FIRST: stale_first(found, gold, stale)} if stale else {})


def measure(
    kind: str, store: Store, make: MakePeer, embedder: Embedder, questions: Sequence[Question]
) -> Iterator[Row]:
    """Tell a memory the messages of a store, ask the questions, and yield what it finds.

    Args:
        kind: Of the store.
        store: What is told.
        make: Makes the memory.
        embedder: That of all memories.
        questions: What is asked.
    """
    thread_of = {message["id"]: message["thread"] for message in store["messages"]}
    unit = store.get("gold_unit", "message")
    with tempfile.TemporaryDirectory() as folder:
        peer = make(embedder, Path(folder))
        try:
            peer.add(store["messages"])
            for question in questions:
                scored = peer.ask(question, DEPTH[unit])
                ids = [name for name, _ in scored]
                found = ids if unit == "message" else list(dict.fromkeys(thread_of[each] for each in ids))
                yield Row(
                    kind,
                    question.get("category", ""),
                    tuple(found),
                    worth(question, found),
                    len(ids[:10]),
                    scored[0][1] if scored else -math.inf,
                )
        finally:
            peer.close()
