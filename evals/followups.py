"""Whether a question that refers back is read with the one before it: recall of follow-up questions, with an ablation.

    python -m evals followups --data locomo_dev.jsonl

Follow-ups are made of questions that name one speaker: the name becomes a pronoun ("When did they go there?"), and the
question before is another one about the same speaker with an answer in the same thread. How much the words of the
question before count is varied; 0 is without the lens. Harm is told by the same questions, as they were written, after
one about something else.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np

from evals._figures import Figure, explain_data, finish
from evals._metrics import interval, recall
from evals._rankers import MemoryIndex, asked_at
from evals._records import Question as Asked
from evals._records import Store
from evals._stores import stores
from remegraph.rules.blending import default_weights
from remegraph.rules.questions import Question, read_question

__all__ = ["FollowUp", "follow_ups", "main"]

_SHARES = (0.1, 0.2, 0.4, 1.0)


@dataclass(frozen=True)
class FollowUp:
    """A question, the same with a pronoun, and what was asked before."""

    index: MemoryIndex
    at: datetime
    text: str
    shortened: str
    previous: str
    """On the same matter."""
    unrelated: str
    gold: Sequence[str]


def follow_ups(store: Store, rng: random.Random) -> Iterator[FollowUp]:
    """Yield the follow-ups that a store's questions make.

    Args:
        store: Messages of named speakers, with questions.
        rng: Chooses the questions before.
    """
    index, at = MemoryIndex(store["messages"]), asked_at(store["messages"], None)
    thread_of = {message["id"]: message["thread"] for message in store["messages"]}
    names = sorted({message["name"] for message in store["messages"]})
    asked = [(question, *_about(question, names, thread_of)) for question in store["questions"]]
    for question, name, threads in asked:
        others = [(other, of, where) for other, of, where in asked if other is not question]
        same = [other for other, of, where in others if of == name and where & threads]
        apart = [other for other, _, where in others if not where & threads]
        if name and same and apart:
            shortened = re.sub(rf"\b{name}\b", "they", re.sub(rf"\b{name}'s\b", "their", question["text"]))
            previous, unrelated = rng.choice(same)["text"], rng.choice(apart)["text"]
            yield FollowUp(index, at, question["text"], shortened, previous, unrelated, question["gold"])


def _about(question: Asked, names: Sequence[str], thread_of: dict[str, str]) -> tuple[str, frozenset[str]]:
    """Return the one speaker that a question names, and the threads of its answer."""
    named = [name for name in names if name in question["text"]]
    threads = frozenset(thread_of[gold] for gold in question["gold"] if gold in thread_of)
    return named[0] if len(named) == 1 else "", threads


def _shifted(question: Question, alone: Question, share: float) -> Question:
    """Return a question with another share for the words that it took on."""
    tokens = {token: alone.tokens.get(token, share) for token in question.tokens}
    return replace(question, tokens={token: counts for token, counts in tokens.items() if counts})


def _figures(name: str, cases: Sequence[FollowUp], read: Callable[[FollowUp], Question]) -> Iterator[Figure]:
    weights = default_weights()
    found = [(case, [item.record_id for item in case.index.best(read(case), weights, weights.read)]) for case in cases]
    for k in (5, 10):
        values = np.array([recall(ids, case.gold, k) for case, ids in found])
        low, high = interval(values)
        yield Figure(f"{name}: R@{k}", float(values.mean()), note=f"[{low:.3f}, {high:.3f}] of {len(values)}")


def main(argv: Sequence[str] | None = None) -> None:
    """Print recall of follow-ups, with and without the question before."""
    parser = argparse.ArgumentParser(prog="python -m evals followups", description="Questions that refer back.")
    parser.add_argument("--data", type=Path, action="append", help="A file of stores; repeatable.")
    options = parser.parse_args(argv)
    if not options.data:
        explain_data("followups", "locomo_dev.jsonl")
        return
    rng = random.Random(7)
    cases = [case for path in options.data for store in stores(path) for case in follow_ups(store, rng)]

    def shifted(share: float) -> Callable[[FollowUp], Question]:
        def read(case: FollowUp) -> Question:
            alone = read_question(case.shortened, case.at)
            return _shifted(read_question(case.shortened, case.at, case.previous), alone, share)

        return read

    figures = [
        *_figures("with the name", cases, lambda case: read_question(case.text, case.at)),
        *_figures("follow-up, lens off", cases, lambda case: read_question(case.shortened, case.at)),
        *(figure for share in _SHARES for figure in _figures(f"follow-up, lens {share}", cases, shifted(share))),
        *_figures("with the name, after another matter", cases, lambda c: read_question(c.text, c.at, c.unrelated)),
        *_figures("follow-up, after another matter", cases, lambda c: read_question(c.shortened, c.at, c.unrelated)),
    ]
    finish(figures)


if __name__ == "__main__":
    main()
