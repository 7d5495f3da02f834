"""Which memories an answer drew on: how many are told, and how many are blamed that it did not draw on.

    python -m evals used --data locomo_dev.jsonl [--sample 100]

Ten messages are put before an agent, those that BM25 finds, and the gold ones of a question. Its answer is known:

- *repeats*: it repeats one of the gold messages in a longer sentence, so it drew on that one;
- *short*: it is the answer of the data, often a word or two, in words of its own; that it drew on the gold is likely,
  that it drew on any other message is not;
- *unrelated*: it is what was really said next in a conversation, and the ten are of another store: it drew on none.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from evals._figures import Figure, explain_data, finish
from evals._rankers import bm25_ranker
from evals._records import Store
from evals._stores import stores
from remegraph.retention.working_memory import drawn_on

__all__ = ["figures", "main"]

_T = TypeVar("_T")
_K = 10
_TOLD = 0.9
"""Share of the repeated messages that must be told."""
_BLAMED = 0.02
"""Share of the others that may be."""

_Verdict = tuple[bool, bool]
"""Whether an answer drew on a message, and whether it was said so."""


def figures(data: Sequence[Store], sample: int) -> Iterator[Figure]:
    """Yield how often a used message is told, and an unused one blamed.

    Args:
        data: What is told and asked.
        sample: Questions and turns of each store.
    """
    found = {kind: list[_Verdict]() for kind in ("repeats", "short", "unrelated")}
    for store, other in zip(data, [*data[1:], data[0]], strict=True):
        unrelated = _overheard(store, other, sample) if other is not store else ()
        for kind, verdicts in (*_asked(store, sample), *unrelated):
            found[kind] += verdicts
    for kind, verdicts in found.items():
        told = [said for drawn, said in verdicts if drawn]
        blamed = [said for drawn, said in verdicts if not drawn]
        if told:
            bar = _TOLD if kind == "repeats" else None
            yield Figure(f"{kind}: used and told", sum(told) / len(told), bar, "at least", note=f"{len(told):,}")
        if blamed:
            yield Figure(f"{kind}: not used, but blamed", sum(blamed) / len(blamed), _BLAMED, note=f"{len(blamed):,}")


def _asked(store: Store, sample: int) -> Iterator[tuple[str, Iterable[_Verdict]]]:
    texts = {message["id"]: f"{message['name']}: {message['content']}" for message in store["messages"]}
    find = bm25_ranker(store["messages"])
    for question in _spread(store["questions"], sample):
        gold = [each for each in question["gold"] if each in texts]
        shown = {each: texts[each] for each in (*gold, *find(question["text"], _K))}
        for kind, answer, drawn in (
            ("repeats", f"As far as I remember: {texts[gold[0]]} Shall I look further?" if gold else "", gold[:1]),
            ("short", str(question.get("answer", "")), gold),
        ):
            if answer:
                said = drawn_on(answer, question["text"], shown)
                yield kind, [(each in drawn, each in said) for each in shown if each in drawn or each not in gold]


def _overheard(store: Store, other: Store, sample: int) -> Iterator[tuple[str, Iterable[_Verdict]]]:
    texts = {message["id"]: f"{message['name']}: {message['content']}" for message in other["messages"]}
    find = bm25_ranker(other["messages"])
    turns = [(said, reply) for said, reply in pairwise(store["messages"]) if said["thread"] == reply["thread"]]
    for said, reply in _spread(turns, sample):
        shown = {each: texts[each] for each in find(said["content"], _K)}
        told = drawn_on(reply["content"], said["content"], shown)
        yield "unrelated", [(False, each in told) for each in shown]


def _spread(things: Sequence[_T], most: int) -> Sequence[_T]:
    """Return so many of them, from beginning to end."""
    return things[:: max(1, -(-len(things) // most))]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals used", description="Which memories an answer drew on.")
    parser.add_argument("--data", type=Path, help="Stores of messages and questions, as `python -m evals recall` says.")
    parser.add_argument("--sample", type=int, default=100, help="Questions and turns of each store.")
    options = parser.parse_args(argv)
    if options.data is None:
        explain_data("used", "locomo_dev.jsonl")
        return
    finish(list(figures(list(stores(options.data)), options.sample)))


if __name__ == "__main__":
    main()
