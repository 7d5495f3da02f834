"""Fits the weights by which messages are ranked, checked on conversations that were not fitted on.

    python -m evals fit_blend --data locomo_dev.jsonl --data memdaily_dev.jsonl [--timezone ZONE] [--write]
    python -m evals fit_blend --data locomo_dev.jsonl --embedder minilm [--write]

One set of weights for all files; another one for embedders that know meaning. A question's messages compete: the weights maximise the likelihood of the gold ones
(softmax over the best candidates, Adam, weight decay). Of five folds of stores each is measured with weights fitted on
the other four; the spread is printed. `--write` fits on everything and writes `rules/data/blend.toml`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evals._figures import Figure, explain_data, finish
from evals._minilm import MiniLM
from evals._peers import Cached
from evals._rankers import MemoryIndex, asked_at
from evals._records import Store
from evals._stores import stores
from remegraph.ports import Embedder
from remegraph.rules.blending import Weights, default_weights
from remegraph.rules.questions import read_question

__all__ = ["Asked", "fit", "main", "recall_at"]

_FOLDS = 5
_STEPS = 150
_RATE = 0.3
_DECAY = 1e-3


@dataclass(frozen=True)
class Asked:
    """One question: the signs of its candidates, and which of them are gold."""

    file: str
    fold: int
    signs: NDArray[np.float64]
    """Shape (candidates, signs)."""
    gold: NDArray[np.bool_]
    found: int
    """Gold messages in all, those that are no candidates included."""


def _even(embedder: Embedder | None) -> Weights:
    """Return the product's weights, each 1."""
    ours = default_weights(semantic=embedder is not None)
    words, message, meaning = (dict.fromkeys(part, 1.0) for part in (ours.words, ours.message, ours.meaning))
    return Weights(words, message, meaning, ours.read)


def _names(weights: Weights) -> tuple[str, ...]:
    return (*weights.words, *weights.meaning, *weights.message)


def _questions(path: Path, store: Store, fold: int, timezone: str | None, embedder: Embedder | None) -> list[Asked]:
    """Return what the product's own ranking sees, each sign with weight 1."""
    even = _even(embedder)
    names = _names(even)
    index = MemoryIndex(store["messages"], timezone, embedder)
    asked: list[Asked] = []
    for question in store["questions"]:
        at = asked_at(store["messages"], timezone, question.get("time"))
        judged = index.best(read_question(question["text"], at), even, even.read)
        rows = [[item.contributions.get(name, 0.0) for name in names] for item in judged]
        gold = np.array([item.record_id in question["gold"] for item in judged], dtype=np.bool_)
        asked.append(
            Asked(
                path.stem,
                fold,
                np.array(rows).reshape(len(judged), len(names)),
                gold,
                len(set(question["gold"])),
            )
        )
    return asked


def fit(questions: Sequence[Asked]) -> NDArray[np.float64]:
    """Return the weights, none below 0, that make the gold candidates of all questions most likely.

    Args:
        questions: Those to fit on; those without a gold candidate teach nothing.
    """
    taught = [each for each in questions if each.gold.any() and not each.gold.all()]
    signs = np.concatenate([each.signs for each in taught])
    owner = np.repeat(np.arange(len(taught)), [len(each.gold) for each in taught])
    target = np.concatenate([each.gold / each.gold.sum() for each in taught])
    weights = np.ones(signs.shape[1])
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        scores = np.exp(signs @ weights - 20)
        likely = scores / np.bincount(owner, scores)[owner]
        slope = signs.T @ (likely - target) / len(taught) + _DECAY * weights
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        weights -= _RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        weights = np.maximum(weights, 0)
    return weights


def recall_at(questions: Sequence[Asked], weights: NDArray[np.float64], k: int) -> float:
    """Return the mean share of gold messages among the first k."""
    shares = []
    for each in questions:
        best = np.argsort(-(each.signs @ weights), kind="stable")[:k]
        shares.append(each.gold[best].sum() / each.found)
    return float(np.mean(shares))


def _folds(questions: Sequence[Asked]) -> list[Figure]:
    figures: list[Figure] = []
    fitted = [fit([each for each in questions if each.fold != fold]) for fold in range(_FOLDS)]
    for file in dict.fromkeys(each.file for each in questions):
        for k in (5, 10):
            parts = [[each for each in questions if (each.file, each.fold) == (file, fold)] for fold in range(_FOLDS)]
            scores = [recall_at(part, weights, k) for part, weights in zip(parts, fitted, strict=True) if part]
            sizes = [len(part) for part in parts if part]
            note = f"folds {min(scores):.3f} to {max(scores):.3f}"
            figures.append(Figure(f"{file}, unseen: R@{k}", float(np.average(scores, weights=sizes)), note=note))
    return figures


def _write(weights: Mapping[str, float], table: str) -> None:
    """Write the weights into their table of the file that the product reads; comments stay."""
    path = Path(str(files("remegraph.rules") / "data" / "blend.toml"))
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
    """Fit, and print recall on what was not fitted on."""
    parser = argparse.ArgumentParser(prog="python -m evals fit_blend", description="Fits the weights of the blend.")
    parser.add_argument("--data", type=Path, action="append", help="A file of stores; repeatable.")
    parser.add_argument("--timezone", help="Zone of times that name none.")
    parser.add_argument("--embedder", choices=["minilm"], help="Fit the weights for embedders that know meaning.")
    parser.add_argument("--write", action="store_true", help="Write the weights into the product.")
    options = parser.parse_args(argv)
    if not options.data:
        explain_data("fit_blend", "locomo_dev.jsonl [--timezone ZONE]")
        return
    embedder = Cached(MiniLM()) if options.embedder else None
    ask = partial(_questions, timezone=options.timezone, embedder=embedder)
    questions = [
        each
        for path in options.data
        for number, store in enumerate(stores(path))
        for each in ask(path, store, number % _FOLDS)
    ]
    weights = dict(zip(_names(_even(embedder)), fit(questions).tolist(), strict=True))
    print(", ".join(f"{name} {value:.2f}" for name, value in weights.items()))
    if options.write:
        _write(weights, "semantic" if embedder else "plain")
    finish(_folds(questions))


if __name__ == "__main__":
    main()
