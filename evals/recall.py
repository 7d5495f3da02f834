"""How much of the evidence for a question recall finds, beside plain BM25: all metrics, by category, with bars.

    python -m evals recall --data locomo_dev.jsonl --data memdaily_dev.jsonl --timezone Asia/Shanghai
    python -m evals recall --data locomo_dev.jsonl --embedder minilm

A file holds one memory store per line: messages and questions with the ids of the messages (or threads, where
`gold_unit` says so) that answer them; LoCoMo's and LongMemEval's own files and files of tool calls are read, too.

Asked is `kit.recall(question, depth="messages")`, after `kit.add_messages` and nothing else. R@k of a question is
|gold found in the first k| / |gold|, all@10 the share of questions with all gold among the first ten, tokens what has
been read, for half of the questions, when the last gold message has (a dash: more than half never get there), ms the
median processor time of a search, without the embedding of the question. `stale first`: of the questions that something stale
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
from evals._figures import Figure, block, explain_data, finish
from evals._measuring import compare
from evals._memories import remembered
from evals._ours import Part, kit
from evals._pages import place
from evals._peers import PEERS, PeerKind
from evals._results import Result
from evals._stores import stores
from evals._tables import OURS, by_category, by_memory

__all__ = ["BARS", "figures", "main"]

BARS: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("locomo_dev", "hashed"): {"R@5": 0.71, "R@10": 0.80},
    ("locomo_dev", "minilm"): {"R@5": 0.73, "R@10": 0.82},
    ("memdaily_dev", "hashed"): {"R@10": 0.80},
    ("memora_weekly_dev", "hashed"): {"R@10": 0.70},
    ("memora_weekly_dev", "minilm"): {"R@10": 0.70},
}
"""What a file must reach with an embedder. No file may be under BM25."""

_FLOOR = "BM25"
_MEMORY = "in memory"


def figures(name: str, results: Mapping[str, Result], bars: Mapping[str, float]) -> Iterator[Figure]:
    """Yield what must hold of a file.

    Args:
        name: Of the file.
        results: Of the kit, of its ranking in memory, and of BM25.
        bars: What the kit must reach, by metric.
    """
    ours, floor = results[OURS], results[_FLOOR]
    for metric in ("R@5", "R@10"):
        share = ours.mean(metric)
        limit = f", at most {ours.best:.3f} is possible" if metric == "R@10" and ours.best < 1 else ""
        yield Figure(f"{name}: {metric}", share, bars.get(metric), "at least", note=f"{share:.4f}{limit}")
        yield Figure(f"{name}: {metric} beside BM25", share, floor.mean(metric), "at least")
    pairs = zip(ours.rows, results[_MEMORY].rows, strict=True)
    unlike = sum(row.found != other.found for row, other in pairs)
    yield Figure(f"{name}: answers unlike those in memory", unlike, 0, "exactly")
    for percentile in (50, 95):
        note = "of the processor"
        yield Figure(f"{name}: recall p{percentile}", ours.milliseconds(percentile), unit="ms", note=note)


def _tables(name: str, results: Mapping[str, Result], *, per_store: bool) -> dict[str, str]:
    """Return the tables of a file: beside BM25, by category, of each category, of each store."""
    shown = {name: results[name] for name in (OURS, _FLOOR)}
    parts = results[OURS].parts(lambda row: row.category)
    tables = {"": by_memory(shown)}
    if len(parts) > 1:
        tables |= {" R@5": by_category(shown, "R@5"), " R@10": by_category(shown, "R@10"), " parts": by_memory(parts)}
    if per_store:
        tables[" stores"] = by_memory(results[OURS].parts(lambda row: row.store))
    return {f"recall {name}{end}": "\n".join(table) for end, table in tables.items()}


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables and figures of each file."""
    parser = argparse.ArgumentParser(prog="python -m evals recall", description="Evidence recall of questions.")
    parser.add_argument("--data", type=Path, action="append", help="A file of stores; repeatable.")
    parser.add_argument("--embedder", choices=EMBEDDERS, default="hashed", help="That of the kit.")
    parser.add_argument("--timezone", help="Zone of times that name none.")
    parser.add_argument("--per-store", action="store_true", help="A table of the stores, too.")
    parser.add_argument("--stores", type=int, default=1, help="So many of each file are summarised; 0: none.")
    parser.add_argument("--page", type=Path, help="A page with places for the tables, as docs/evals.md.")
    options = parser.parse_args(argv)
    if not options.data:
        explain_data("recall", "locomo_dev.jsonl [--timezone ZONE]")
        return
    embedder = embedder_of(options.embedder)
    in_memory = PeerKind(partial(Part, timezone=options.timezone), "remegraph", "remegraph")
    kinds = kit(options.timezone) | {_MEMORY: in_memory, _FLOOR: PEERS[_FLOOR]}
    found: list[Figure] = []
    made: list[Figure] = []
    for path in options.data:
        results = compare(path, kinds, embedder)
        tables = _tables(f"{path.stem} {options.embedder}", results, per_store=options.per_store)
        print(f"\n{path.stem}, {embedder.name}, {len(results[OURS].rows):,} questions", *tables.values(), sep="\n\n")
        place(options.page, tables)
        found += figures(path.stem, results, BARS.get((path.stem, options.embedder), {}))
        for store in islice(stores(path), options.stores):
            made += remembered(f"{path.stem} {store['store']}", store, embedder, options.timezone)
    blocks = {f"bars {options.embedder}": block(found), f"memories {options.embedder}": block(made)}
    place(options.page, blocks)
    print()
    finish([*found, *made])


if __name__ == "__main__":
    main()
