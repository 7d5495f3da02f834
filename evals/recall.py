"""How much of the evidence for a question recall finds, beside plain BM25: all metrics, by category, with bars.

    python -m evals recall --data locomo_dev.jsonl --data memdaily_dev.jsonl --timezone Asia/Shanghai
    python -m evals recall --data locomo_dev.jsonl --embedder minilm

A file holds one memory store per line: messages and questions with the ids of the messages (or threads, where
`gold_unit` says so) that answer them; LoCoMo's and LongMemEval's own files and files of tool calls are read, too.

Asked is `kit.recall(question, depth="messages")`, after `kit.add_messages` and nothing else. R@k of a question is
|gold found in the first k| / |gold|, all@10 the share of questions with all gold among the first ten, tokens what has
been read, for half of the questions, when the last gold message has (a dash: more than half never get there), ms the
median time of a search without the embedding of the question. `stale first`: of the questions that something stale
bears on, the share where it comes before all that is gold.

The same ranking in memory must answer alike: the weights are fitted there. Then one store of each file is summarised
without a model, and what its memories are worth is counted (`_memories.py`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from evals._embedders import EMBEDDERS, embedder_of
from evals._figures import Figure, explain_data, finish
from evals._measuring import compare
from evals._memories import remembered
from evals._ours import Part, kit
from evals._peers import PEERS, PeerKind
from evals._results import Result
from evals._stores import stores
from evals._tables import OURS, by_category, by_memory

__all__ = ["BARS", "main"]

BARS: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("locomo_dev", "hashed"): {"R@5": 0.71, "R@10": 0.80},
    ("locomo_dev", "minilm"): {"R@5": 0.73, "R@10": 0.82},
    ("memdaily_dev", "hashed"): {"R@10": 0.80},
    ("memora_weekly_dev", "hashed"): {"R@10": 0.70},
}
"""What a file must reach with an embedder. No file may be under BM25."""

_FLOOR = "BM25"
_MEMORY = "in memory"


def _figures(name: str, results: Mapping[str, Result], bars: Mapping[str, float]) -> Iterator[Figure]:
    """Yield what must hold."""
    ours, floor = results[OURS], results[_FLOOR]
    for metric in ("R@5", "R@10"):
        note = f"at most {ours.best:.3f} is possible" if metric == "R@10" and ours.best < 1 else ""
        yield Figure(f"{name}: {metric}", ours.mean(metric), bars.get(metric), "at least", note=note)
        yield Figure(f"{name}: {metric} beside BM25", ours.mean(metric), floor.mean(metric), "at least")
    pairs = zip(ours.rows, results[_MEMORY].rows, strict=True)
    unlike = sum(row.found != other.found for row, other in pairs)
    yield Figure(f"{name}: answers unlike those in memory", unlike, 0, "exactly")
    yield Figure(f"{name}: recall p50", ours.milliseconds(50), unit="ms")
    yield Figure(f"{name}: recall p95", ours.milliseconds(95), unit="ms")


def _print(title: str, results: Mapping[str, Result], *, per_store: bool) -> None:
    shown = {name: results[name] for name in (OURS, _FLOOR)}
    print(f"\n{title}, {len(results[OURS].rows):,} questions\n")
    print("\n".join(by_memory(shown)))
    categories = {name: result.parts(lambda row: row.category) for name, result in shown.items()}
    if len(categories[OURS]) > 1:
        print("", *by_category(shown, "R@5"), "", *by_category(shown, "R@10"), sep="\n")
        print("", *by_memory(categories[OURS]), sep="\n")
    if per_store:
        print("", *by_memory(results[OURS].parts(lambda row: row.store)), sep="\n")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables and figures of each file."""
    parser = argparse.ArgumentParser(prog="python -m evals recall", description="Evidence recall of questions.")
    parser.add_argument("--data", type=Path, action="append", help="A file of stores; repeatable.")
    parser.add_argument("--embedder", choices=EMBEDDERS, default="hashed", help="That of the kit.")
    parser.add_argument("--timezone", help="Zone of times that name none.")
    parser.add_argument("--per-store", action="store_true", help="A table of the stores, too.")
    parser.add_argument("--stores", type=int, default=1, help="So many of each file are summarised; 0: none.")
    options = parser.parse_args(argv)
    if not options.data:
        explain_data("recall", "locomo_dev.jsonl [--timezone ZONE]")
        return
    embedder = embedder_of(options.embedder)
    in_memory = PeerKind(partial(Part, timezone=options.timezone), "remegraph", "remegraph")
    kinds = kit(options.timezone) | {_MEMORY: in_memory, _FLOOR: PEERS[_FLOOR]}
    figures: list[Figure] = []
    for path in options.data:
        results = compare(path, kinds, embedder)
        _print(f"{path.stem}, {embedder.name}", results, per_store=options.per_store)
        figures += _figures(path.stem, results, BARS.get((path.stem, options.embedder), {}))
        for store in islice(stores(path), options.stores):
            figures += remembered(store, embedder, options.timezone)
    print()
    finish(figures)


if __name__ == "__main__":
    main()
