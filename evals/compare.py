"""What recall finds, beside other memories in the same run: the same data, the same embedder, the same questions.

    python -m evals compare --data locomo_dev.jsonl [--embedder minilm] [--questions 100] [--charts docs/figures]

(`make eval` installs the other memories, apart from the rest.) Data and columns are those of `evals recall`. Every
memory is told the same messages, and asked the same. Below ours stand its parts: what it ranks by when some signs are
left out. The tables are Markdown, as they stand in the docs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from evals._charts import draw
from evals._embedders import EMBEDDERS, embedder_of
from evals._figures import Figure, explain_data, finish
from evals._measuring import compare
from evals._ours import kit, parts
from evals._pages import place
from evals._peers import PEERS, installed
from evals._results import Result
from evals._tables import OURS, by_category, by_memory

__all__ = ["main"]


def _tables(name: str, results: Mapping[str, Result]) -> dict[str, str]:
    """Return the table of all metrics, and that of R@10 by category."""
    tables = {f"compare {name}": "\n".join(by_memory(results))}
    if len(results[OURS].parts(lambda row: row.category)) > 1:
        tables[f"compare {name} by category"] = "\n".join(by_category(results, "R@10"))
    return tables


def _bars(title: str, results: Mapping[str, Result]) -> list[Figure]:
    """Every peer must be behind."""
    ours = results[OURS].mean("R@10")
    return [
        Figure(f"{title}: R@10 of {name}", result.mean("R@10"), ours, "under", note=result.version)
        for name, result in results.items()
        if name in PEERS
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables, and draw them where a folder is given."""
    parser = argparse.ArgumentParser(prog="python -m evals compare", description="Recall beside other memories.")
    parser.add_argument("--data", type=Path, action="append", help="A file of stores; repeatable.")
    parser.add_argument("--embedder", choices=EMBEDDERS, default="hashed", help="That of all memories.")
    parser.add_argument("--questions", type=int, help="At most so many of each store.")
    parser.add_argument("--peer", action="append", choices=list(PEERS), help="Only this one; repeatable.")
    parser.add_argument("--timezone", help="Zone of times that name none.")
    parser.add_argument("--charts", type=Path, help="Folder for bar charts, as PNG and SVG.")
    parser.add_argument("--page", type=Path, help="A page with places for the tables, as docs/evals.md.")
    options = parser.parse_args(argv)
    if not options.data:
        explain_data("compare", "locomo_dev.jsonl [--embedder minilm]")
        return
    embedder = embedder_of(options.embedder)
    others = installed({name: PEERS[name] for name in options.peer or PEERS})
    kinds = kit(options.timezone) | parts(options.timezone, semantic=embedder.semantic) | others
    figures: list[Figure] = []
    for path in options.data:
        results = compare(path, kinds, embedder, options.questions)
        title = f"{path.stem}, {embedder.name}"
        tables = _tables(f"{path.stem} {options.embedder}", results)
        print(f"\n{title}, {len(results[OURS].rows):,} questions", *tables.values(), sep="\n\n")
        place(options.page, tables)
        figures += _bars(title, results)
        if options.charts:
            draw(options.charts / f"{path.stem}-{options.embedder}", title, results)
    print()
    finish(figures)


if __name__ == "__main__":
    main()
