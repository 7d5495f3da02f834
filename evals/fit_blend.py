"""Fits the weights by which messages are ranked, and writes them into the product.

    python -m evals fit_blend --data FOLDER [--embedder minilm] [--write]

One set of weights for all kinds of conversation, which count alike; another one for embedders that know meaning. A
question's messages compete: the weights maximise the likelihood of the gold ones (softmax over the best candidates, Adam,
weight decay), of 300 questions of each kind, drawn as `python -m evals kinds` draws them. What they are worth for
kinds that they were not fitted to, `python -m evals kinds` measures. `--write` writes `data/blend.toml`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evals._figures import explain_data
from evals._peers import EMBEDDERS, embedder_of
from evals._rankers import MemoryIndex, asked_at
from evals._records import Store
from evals._stores import QUESTIONS, ZONES, answerable, drawn, files
from remegraph.engine.retrieval.blend import Weights, default_weights
from remegraph.text.questions import read_question

__all__ = ["Asked", "alike", "asked_of", "fit", "main", "refitted"]

_STEPS = 150
_RATE = 0.3
_DECAY = 1e-3


@dataclass(frozen=True)
class Asked:
    """One question: the signs of its candidates, and which of them are gold."""

    signs: NDArray[np.float64]
    """Shape (candidates, signs)."""
    gold: NDArray[np.bool_]
    counts: float = 1.0
    """How much it counts in a fit."""


def alike(kinds: Iterable[Sequence[Asked]]) -> list[Asked]:
    """Return the questions of several kinds, so that each kind counts alike.

    Args:
        kinds: The questions of each.
    """
    return [replace(each, counts=1 / len(asked)) for asked in kinds for each in asked]


def _even(*, semantic: bool) -> Weights:
    """Return the product's weights, each 1."""
    ours = default_weights(semantic=semantic)
    words, message, meaning = (dict.fromkeys(part, 1.0) for part in (ours.words, ours.message, ours.meaning))
    return Weights(words, message, meaning, ours.read)


def asked_of(store: Store, index: MemoryIndex, timezone: str | None, *, semantic: bool) -> Iterator[Asked]:
    """Yield what the product's own ranking sees of each question, each sign with weight 1.

    Args:
        store: What is asked.
        index: Of its messages.
        timezone: Zone of times that name none.
        semantic: Whether the embedder knows meaning.
    """
    even = _even(semantic=semantic)
    names = (*even.words, *even.meaning, *even.message)
    unit_of = {message["id"]: message["id"] for message in store["messages"]}
    if store.get("gold_unit") == "thread":
        unit_of = {message["id"]: message["thread"] for message in store["messages"]}
    for question in store["questions"]:
        at = asked_at(store["messages"], timezone, question.get("time"))
        judged = index.best(read_question(question["text"], at), even, even.read)
        rows = [[item.contributions.get(name, 0.0) for name in names] for item in judged]
        gold = np.array([unit_of[item.record_id] in question["gold"] for item in judged], dtype=np.bool_)
        yield Asked(np.array(rows).reshape(len(judged), len(names)), gold)


def fit(questions: Sequence[Asked]) -> NDArray[np.float64]:
    """Return the weights, none below 0, that make the gold candidates of all questions most likely.

    Args:
        questions: Those to fit on; those without a gold candidate teach nothing.
    """
    taught = [each for each in questions if each.gold.any() and not each.gold.all()]
    if not taught:
        return np.ones(questions[0].signs.shape[1])
    signs = np.concatenate([each.signs for each in taught])
    owner = np.repeat(np.arange(len(taught)), [len(each.gold) for each in taught])
    target = np.concatenate([each.gold / each.gold.sum() for each in taught])
    shares = np.array([each.counts for each in taught])
    counts = (shares / shares.sum())[owner]
    weights = np.ones(signs.shape[1])
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        scores = np.exp(signs @ weights - 20)
        likely = scores / np.bincount(owner, scores)[owner]
        slope = signs.T @ (counts * (likely - target)) + _DECAY * weights
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        weights -= _RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        weights = np.maximum(weights, 0)
    return weights


def refitted(questions: Sequence[Asked], *, semantic: bool) -> Weights:
    """Return the product's weights, fitted to these questions.

    Args:
        questions: Those to fit on.
        semantic: Whether the embedder knows meaning.
    """
    even = _even(semantic=semantic)
    values = iter(fit(questions).tolist())
    words, meaning, message = (
        {name: next(values) for name in part} for part in (even.words, even.meaning, even.message)
    )
    return Weights.of(words, message, meaning, even.read)


def _write(weights: Mapping[str, float], table: str) -> None:
    """Write the weights into their table of the file that the product reads; comments stay."""
    path = Path(str(resources.files("remegraph") / "data" / "blend.toml"))
    lines = []
    here = False
    for line in path.read_text(encoding="utf-8").splitlines():
        here = line.startswith(f"[{table}") if line.startswith("[") else here
        name, equals, rest = line.partition(" = ")
        key = name.strip('"')
        comment = rest.partition("#")[2]
        known = here and equals and key in weights
        tail = f"  #{comment}" if comment else ""
        lines.append(f"{name} = {weights[key]:.2f}{tail}" if known else line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    """Fit, print the weights, and write them where asked."""
    parser = argparse.ArgumentParser(prog="python -m evals fit_blend", description="Fits the weights of the blend.")
    parser.add_argument(
        "--data", type=Path, action="append", help="A folder of kinds, or a file of stores; repeatable."
    )
    parser.add_argument("--embedder", choices=EMBEDDERS, default="hashed", help="minilm: for those that know meaning.")
    parser.add_argument("--write", action="store_true", help="Write the weights into the product.")
    options = parser.parse_args(argv)
    if not options.data:
        explain_data("fit_blend", "FOLDER, or a file")
        return
    embedder = embedder_of(options.embedder)
    questions = alike(
        [
            each
            for store in answerable(drawn(path, QUESTIONS))
            for each in asked_of(
                store,
                MemoryIndex(store["messages"], ZONES.get(kind), embedder),
                ZONES.get(kind),
                semantic=embedder.semantic,
            )
        ]
        for kind, path in files(options.data).items()
    )
    even = _even(semantic=embedder.semantic)
    weights = dict(zip((*even.words, *even.meaning, *even.message), fit(questions).tolist(), strict=True))
    print(", ".join(f"{name} {value:.2f}" for name, value in weights.items()))
    if options.write:
        _write(weights, "semantic" if embedder.semantic else "plain")


if __name__ == "__main__":
    main()
