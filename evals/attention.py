"""What attention saves where conversations are summarised, and what it costs: messages, tokens, and evidence.

    python -m evals attention --data locomo_dev.jsonl [--threshold 0.16 --threshold 0.2]
    python -m evals attention --data locomo_dev.jsonl --fit

Each store is summarised without a model, as it is and without the messages under the threshold
(`SummaryPolicy.salience`). Then its questions are asked of the index entries, `kit.recall(question, depth="summaries")`:
evidence is found where the block of one of the first ten holds it. As summaries of two sentences are a low bar, a higher
one stands beside it: by `attended evidence`, a message must have got attention, too, so that a summary could tell of it.

`--fit` prints the weights of `later` in `data/attention.toml`: a logistic regression of which messages are
evidence, with what each store keeps of its evidence by the weights of the others.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evals import _metrics
from evals._figures import Figure, explain_data, finish
from evals._rankers import asked_at
from evals._records import Store
from evals._stores import stores
from remegraph import AgentMemorySettings, ExtractionPolicy, MemoryKit, Scope, Settings, SummaryPolicy
from remegraph.engine.perception import attended
from remegraph.engine.salience import salience, signs_of
from remegraph.testing import InMemoryVectorIndex
from remegraph.text.tokens import estimate_tokens

__all__ = ["figures", "fit_attention", "fitted", "main", "signs_of_evidence", "weighed"]

_SCOPE = Scope(user="ann", agent="remy")
_SUMMARIES_ONLY = AgentMemorySettings(extraction=ExtractionPolicy(mode="tool-call"))
_K = 10
_THRESHOLD = 0.18
"""What saves enough."""
_SAVED = 0.3
"""Share of the summarised tokens that attention must save."""
_LOST = 0.01
"""Recall that this may cost."""
_PENALTY = 1.0
_STEPS = 30

_Floats = NDArray[np.float64]
Signs = Mapping[str, float]


class _Told:
    """A store, summarised with attention to what is over a threshold, and asked its questions."""

    def __init__(self, store: Store, threshold: float, timezone: str | None) -> None:
        policy = SummaryPolicy(salience=threshold)
        with (
            tempfile.TemporaryDirectory() as home,
            MemoryKit.open(
                settings=Settings(home=Path(home), summary=policy, agents={"remy": _SUMMARIES_ONLY}),
                model=None,
                embedder=None,
                index=InMemoryVectorIndex(),
            ) as kit,
        ):
            kit.add_messages(store["messages"], scope=_SCOPE, timezone=timezone)
            kit.summarize(scope=_SCOPE, close=True)
            blocks = {
                each.block_id: kit.sources.retrieve_block(each.block_id, scope=_SCOPE)
                for each in kit.sources.blocks(scope=_SCOPE)
            }
            score = partial(salience, purpose="later")
            heard = [message for block in blocks.values() for message in attended(block, score, threshold)]
            self.heard = {message.message_id for message in heard}
            self.tokens = sum(estimate_tokens(message.text) for message in heard)
            within: list[list[str]] = []
            for question in store["questions"]:
                at = asked_at(store["messages"], timezone, question.get("time"))
                recall = kit.recall(question["text"], scope=_SCOPE, k=_K, depth="summaries", asked_at=at)
                within.append([message.message_id for hit in recall.blocks for message in blocks[hit.record_id]])
        golds = [question["gold"] for question in store["questions"]]
        self.recall = [_metrics.recall(ids, gold, len(ids)) for ids, gold in zip(within, golds, strict=True)]
        known = [[each for each in ids if each in self.heard] for ids in within]
        self.strictly = [_metrics.recall(ids, gold, len(ids)) for ids, gold in zip(known, golds, strict=True)]


def figures(data: Sequence[Store], thresholds: Sequence[float], timezone: str | None = None) -> Iterator[Figure]:
    """Yield what attention saves and costs; the bars are those of the first threshold.

    Args:
        data: What is told and asked.
        thresholds: The attention that a message needs.
        timezone: Zone of times that name none.
    """
    whole = [_Told(store, 0.0, timezone) for store in data]
    messages, tokens = sum(len(each.heard) for each in whole), sum(each.tokens for each in whole)
    before = float(np.mean([share for each in whole for share in each.recall]))
    yield Figure(f"R@{_K} through block summaries", before, note=f"{messages:,} messages, {tokens:,} tokens")
    for number, threshold in enumerate(thresholds):
        less = [_Told(store, threshold, timezone) for store in data]
        saved = 1 - sum(each.tokens for each in less) / tokens
        after = float(np.mean([share for each in less for share in each.recall]))
        strictly = float(np.mean([share for each in less for share in each.strictly]))
        bars = (_SAVED, _LOST) if number == 0 else (None, None)
        yield Figure(f"{threshold}: messages kept", sum(len(each.heard) for each in less) / messages)
        yield Figure(f"{threshold}: summarised tokens saved", saved, bars[0], "at least")
        yield Figure(f"{threshold}: R@{_K} lost", before - after, bars[1], "at most", note=f"{after:.3f} is left")
        yield Figure(f"{threshold}: R@{_K} lost by attended evidence", before - strictly)


def fitted(data: Sequence[Store]) -> Iterator[Figure]:
    """Yield the weights with which attention tells best what will be asked for, and what they keep.

    Args:
        data: What is told and asked.
    """
    parts = [signs_of_evidence([store]) for store in data]
    tokens = np.array([estimate_tokens(message["content"]) for store in data for message in store["messages"]])
    held_out = [
        weighed(rows, _fit_on([part for other, part in enumerate(parts) if other != number]))
        for number, (rows, _) in enumerate(parts)
    ]
    for name, weight in _fit_on(parts).items():
        yield Figure(name, weight)
    found, best = np.concatenate([evidence for _, evidence in parts]), np.argsort(-np.concatenate(held_out))
    kept = np.cumsum(tokens[best]) <= (1 - _SAVED) * tokens.sum()
    yield Figure("evidence kept with .7 of the tokens, held out", float(found[best][kept].sum() / found.sum()))


def _fit_on(parts: Sequence[tuple[list[Signs], _Floats]]) -> Signs:
    return fit_attention([row for rows, _ in parts for row in rows], np.concatenate([found for _, found in parts]))


def signs_of_evidence(data: Sequence[Store]) -> tuple[list[Signs], _Floats]:
    """Return the signs of each message, and whether it is evidence.

    Args:
        data: What is told and asked.
    """
    rows: list[Signs] = []
    found: list[bool] = []
    for store in data:
        gold = {each for question in store["questions"] for each in question["gold"]}
        before: defaultdict[str, list[str]] = defaultdict(list)
        for message in store["messages"]:
            rows.append(signs_of(message["content"], before[message["thread"]]))
            found.append(message["id"] in gold)
            before[message["thread"]].append(message["content"])
    return rows, np.array(found, np.float64)


def weighed(rows: Sequence[Signs], weights: Signs) -> _Floats:
    """Return the sum of the signs of each message, weighed."""
    return np.array(
        [weights["always"] + sum(weights.get(name, 0) * value for name, value in row.items()) for row in rows]
    )


def fit_attention(rows: Sequence[Signs], found: _Floats) -> Signs:
    """Return the weights of a logistic regression with a ridge (Newton's method), `always` among them.

    Args:
        rows: The signs of each message.
        found: Whether it is evidence.
    """
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    values = np.array([[1.0, *(row[name] for name in names)] for row in rows])
    ridge = _PENALTY * np.diag([0.0, *np.ones(len(names))])
    at = np.zeros(values.shape[1])
    for _ in range(_STEPS):
        share = 1 / (1 + np.exp(-values @ at))
        curve = (values * (share * (1 - share))[:, None]).T @ values + ridge
        at -= np.linalg.solve(curve, values.T @ (share - found) + ridge @ at)
    return dict(zip(("always", *names), at.tolist(), strict=True))


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals attention", description="What attention saves and costs.")
    parser.add_argument("--data", type=Path, help="A file of stores.")
    parser.add_argument("--threshold", type=float, action="append", help="Attention that a message needs; repeatable.")
    parser.add_argument("--timezone", help="Zone of times that name none.")
    parser.add_argument("--fit", action="store_true", help="Fit the weights instead.")
    options = parser.parse_args(argv)
    if options.data is None:
        explain_data("attention", "locomo_dev.jsonl")
        return
    data = list(stores(options.data))
    finish(list(fitted(data) if options.fit else figures(data, options.threshold or [_THRESHOLD], options.timezone)))


if __name__ == "__main__":
    main()
