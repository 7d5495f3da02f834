"""How cost grows: ingest, recall and summarise over 1k to 100k messages and 1 to 1,000 users, beside raw limits.

    python -m evals scale
    python -m evals scale --messages 1000 10000 --users 1 100 --plots docs/benchmarks
    python -m evals scale --messages 1000000 --users 1000

Each cell is a process of its own with a fresh home: generated messages go in in batches, and one memory for each five
of them, so that a search has vectors to look at. Then each question is asked five ways in turn: of raw FTS5, of the
user's vectors one by one (numpy), of a raw Chroma collection as large as the library makes them, of `recall` for
memories and of `recall` down to messages. So whatever else the machine does weighs on all alike, and ratios can be
trusted where seconds cannot. No model is called. Where mem0 is installed, it gets 10,000 messages of one user, and so does
the library beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from evals import _beside_mem0
from evals._beside_mem0 import Beside
from evals._figures import Figure, finish
from evals._limits import BUCKET, RawBucket, RawCommits, raw_ledger
from evals._peers import installed
from evals._plots import Line, plot
from evals._talk import PER_MEMORY, Talk, learn
from evals._timing import Stopwatch, Timing
from remegraph import MemoryKit, Settings
from remegraph.language.embedding import HashedEmbedder
from remegraph.models import ChangeSet

__all__ = ["Cell", "bars", "draw", "growth", "main", "measure"]

_BATCH = 1_000
_LARGE = 100_000
_LATE = 1_000_000
"""Number of the user whose history is not measured, only what it costs to be new."""


class Cell(TypedDict):
    """All figures of one size."""

    messages: int
    users: int
    load_rate: float
    single: Timing
    raw_commit: Timing
    hundred: Timing
    thousand: Timing
    recall: Timing
    recall_messages: Timing
    raw_text: Timing
    raw_exact: Timing
    raw_bucket: Timing
    summarize: float
    """Messages per second of the processor."""
    index_rate: float
    """Vectors per second of the processor."""
    raw_upserts: float
    """The same of Chroma by itself, set as the library sets it."""
    plain_upserts: float
    """The same of Chroma as it comes."""
    memory_mb: float
    """Of it vectors that Chroma holds: 4 bytes for each dimension, and its graph."""
    before_vectors_mb: float
    disk_mb: float


def measure(messages: int, users: int, *, rounds: int) -> Cell:
    """Fill a home with so many messages of so many users, and time what users do with it.

    Args:
        messages: In all.
        users: Each has the same number of them.
        rounds: Questions asked, and messages added one by one.
    """
    talk = Talk()
    watch = Stopwatch()
    added = Stopwatch(time.thread_time)  # Chroma's own threads may still be at work on what it was given
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with MemoryKit.open(settings=Settings(home=home / "home"), model=None, embedder=None) as kit:
            load_rate = _load(kit, talk, messages, users)
            before_vectors = _resident_mb()
            vectors, index_rate = _learn(kit, talk, messages // PER_MEMORY, users)
            resident = _resident_mb()
            bucket = RawBucket(home, vectors, max(1, messages // PER_MEMORY // users))
            _recall(kit, talk, watch, bucket, home / "home" / "ledger.sqlite", users=users, rounds=rounds)
            _ingest(kit, talk, added, home, rounds)
            return Cell(
                messages=messages,
                users=users,
                load_rate=load_rate,
                single=added.timing("single"),
                raw_commit=added.timing("raw commit"),
                hundred=added.timing("hundred"),
                thousand=added.timing("thousand"),
                recall=watch.timing("recall"),
                recall_messages=watch.timing("recall messages"),
                raw_text=watch.timing("raw text"),
                raw_exact=watch.timing("raw exact"),
                raw_bucket=watch.timing("raw bucket"),
                summarize=_summarize(kit, talk),
                index_rate=index_rate,
                raw_upserts=bucket.upserts,
                plain_upserts=bucket.plain_upserts,
                memory_mb=resident,
                before_vectors_mb=before_vectors,
                disk_mb=sum(file.stat().st_size for file in (home / "home").rglob("*") if file.is_file()) / 1e6,
            )


def _load(kit: MemoryKit, talk: Talk, messages: int, users: int) -> float:
    """Record the history; return messages per second of the processor."""
    each = messages // users
    spent = 0.0
    for user in range(users):
        for first in range(0, each, _BATCH):
            batch = talk.messages(min(_BATCH, each - first))
            began = time.process_time()
            kit.add_messages(batch, scope=talk.scope(user))
            spent += time.process_time() - began
    return messages / spent


def _learn(kit: MemoryKit, talk: Talk, memories: int, users: int) -> tuple[np.ndarray, float]:
    """Commit memories and index them; return the vectors of some, and how many the indexer does per second."""
    learn(kit, talk.memories(talk.scope(_LATE).partition(), 1, "opens the index"))
    embedder = HashedEmbedder()
    kept: list[np.ndarray] = []
    embedding = 0.0
    changes: list[ChangeSet] = []
    for user in range(users):
        made = talk.memories(talk.scope(user).partition(), max(1, memories // users), f"history of {user}")
        began = time.process_time()
        vectors = embedder.embed([change.memory.indexed_text for change in made.changes])
        embedding += time.process_time() - began
        kept += [vectors] if sum(map(len, kept)) < BUCKET else []
        changes.append(made)
    applied, spent = learn(kit, *changes)
    return np.concatenate(kept), applied / max(spent - embedding, 1e-9)


def _recall(
    kit: MemoryKit, talk: Talk, watch: Stopwatch, bucket: RawBucket, ledger: Path, *, users: int, rounds: int
) -> None:
    embedder = HashedEmbedder()
    warm = Stopwatch()
    with raw_ledger(ledger) as raw:
        for number, (scope, question) in enumerate(talk.questions(rounds + 10, users)):
            clock = watch if number >= 10 else warm
            vector = embedder.embed([question])[0]
            user = scope.user or ""
            clock.time("raw text", lambda: raw.full_text(user, question))  # noqa: B023 - called at once
            clock.time("raw exact", lambda: raw.nearest(user, vector))  # noqa: B023
            clock.time("raw bucket", lambda: bucket.query(number, vector))  # noqa: B023
            clock.time("recall", lambda: kit.recall(question, scope=scope))  # noqa: B023
            clock.time("recall messages", lambda: kit.recall(question, scope=scope, depth="messages"))  # noqa: B023


def _ingest(kit: MemoryKit, talk: Talk, watch: Stopwatch, folder: Path, rounds: int) -> None:
    """Add to the history of the first user, one by one, by hundreds and by thousands, beside raw commits."""
    raw = RawCommits(folder)
    scope = talk.scope(0)
    for message in talk.messages(rounds):
        body = message.to_json()
        watch.time("raw commit", lambda: raw.commit(body))  # noqa: B023 - called at once
        watch.time("single", lambda: kit.add_messages([message], scope=scope))  # noqa: B023
    raw.close()
    for kind, size in (("hundred", 100), ("thousand", 1_000)):
        for _ in range(max(1, rounds // 10)):
            batch = talk.messages(size)
            watch.time(kind, lambda: kit.add_messages(batch, scope=scope))  # noqa: B023


def _summarize(kit: MemoryKit, talk: Talk) -> float:
    """Summarise a new conversation of a hundred messages; return messages per second of the processor."""
    scope = talk.scope(_LATE)
    kit.add_messages(talk.messages(100), scope=scope)
    cpu = time.process_time()
    kit.summarize(scope=scope, close=True)
    return 100 / (time.process_time() - cpu)


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def bars(cell: Cell) -> list[Figure]:
    """Return the figures that have a bar, of one cell.

    Args:
        cell: What was measured.
    """
    name = f"{cell['messages']:,} messages, {cell['users']:,} users"
    raw = cell["raw_text"]["p50"] + cell["raw_bucket"]["p50"]
    commits = 1000 / cell["raw_commit"]["p50"]
    figures = [
        Figure(f"{name}: {what} / raw full text + bucket", timing["p50"] / raw, 3, note=_note(timing, raw))
        for what, timing in (("recall", cell["recall"]), ("recall of messages", cell["recall_messages"]))
    ]
    figures += [
        Figure(f"{name}: {what} p95 / p50", timing["p95"] / timing["p50"], 3)
        for what, timing in (("recall", cell["recall"]), ("recall of messages", cell["recall_messages"]))
    ]
    single = 1000 / cell["single"]["p50"]
    figures.append(
        Figure(
            f"{name}: single adds / raw commits",
            single / commits,
            0.25,
            "at least",
            note=f"{single:,.0f}/s of {commits:,.0f}/s",
        )
    )
    for what, size, bar in (("hundred", 100, 10_000), ("thousand", 1_000, 15_000)):
        timing = cell["hundred"] if what == "hundred" else cell["thousand"]
        by_cpu = size / timing["cpu"] * 1000
        figures.append(
            Figure(
                f"{name}: batches of {size:,}",
                size / timing["p50"] * 1000,
                bar,
                "at least",
                "/s",
                f"processor {by_cpu:,.0f}/s",
            )
        )
    figures.append(
        Figure(
            f"{name}: indexing / raw upserts",
            cell["index_rate"] / cell["raw_upserts"],
            0.8,
            "at least",
            note=f"{cell['index_rate']:,.0f}/s of the processor",
        )
    )
    figures.append(
        Figure(
            f"{name}: indexing / upserts of Chroma as it comes",
            cell["index_rate"] / cell["plain_upserts"],
            0.8,
            "at least",
        )
    )
    return figures


def _note(timing: Timing, raw: float) -> str:
    return f"p50 {timing['p50']:.1f} ms (processor {timing['cpu']:.1f}), raw {raw:.1f} ms"


def growth(cells: Sequence[Cell]) -> list[Figure]:
    """Return by how much the cost of one message and of one recall grows from the smallest history to the largest.

    Args:
        cells: What was measured.
    """
    figures: list[Figure] = []
    for users in sorted({cell["users"] for cell in cells}):
        row = sorted((cell for cell in cells if cell["users"] == users), key=lambda cell: cell["messages"])
        if len(row) > 1:
            first, last = row[0], row[-1]
            name = f"{users:,} users, {first['messages']:,} to {last['messages']:,} messages"
            figures.append(
                Figure(f"{name}: single add, processor", last["single"]["cpu"] / first["single"]["cpu"], 1.5, unit="x")
            )
            figures.append(
                Figure(f"{name}: recall, processor", last["recall"]["cpu"] / first["recall"]["cpu"], unit="x")
            )
        sizes = {cell["messages"]: cell["recall"]["p50"] for cell in row}
        if sizes.keys() >= {_LARGE, 10 * _LARGE}:
            name = f"{users:,} users, {_LARGE:,} to {10 * _LARGE:,} messages"
            figures.append(Figure(f"{name}: recall, p50", sizes[10 * _LARGE] / sizes[_LARGE], 2, unit="x"))
    return figures


def _in_process(rounds: int, *which: str) -> Any:
    """Measure in a process of its own, which prints JSON."""
    command = [sys.executable, "-m", "evals", "scale", *which, "--rounds", str(rounds)]
    run = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    return json.loads(run.stdout.splitlines()[-1])


_COLUMNS = (
    "messages | users | recall p50 / p95 | to messages p50 / p95 | raw text | raw exact | raw bucket | single add | raw commit"
    " | by 100 | by 1,000 | summarise | index | raw upserts | upserts as it comes | memory | before vectors | disk"
)


def _row(cell: Cell) -> str:
    def ms(timing: Timing) -> str:
        return f"{timing['p50']:.2f}"

    cells = [
        f"{cell['messages']:,}",
        f"{cell['users']:,}",
        *(f"{cell[name]['p50']:.1f} / {cell[name]['p95']:.1f} ms" for name in ("recall", "recall_messages")),
        *(f"{ms(cell[name])} ms" for name in ("raw_text", "raw_exact", "raw_bucket", "single", "raw_commit")),
        f"{100_000 / cell['hundred']['p50']:,.0f}/s",
        f"{1_000_000 / cell['thousand']['p50']:,.0f}/s",
        f"{cell['summarize']:,.0f}/s",
        f"{cell['index_rate']:,.0f}/s",
        f"{cell['raw_upserts']:,.0f}/s",
        f"{cell['plain_upserts']:,.0f}/s",
        f"{cell['memory_mb']:,.0f} MB",
        f"{cell['before_vectors_mb']:,.0f} MB",
        f"{cell['disk_mb']:,.0f} MB",
    ]
    return f"| {' | '.join(cells)} |"


def draw(cells: Sequence[Cell], folder: Path) -> None:
    """Write the charts of growth.

    Args:
        cells: What was measured.
        folder: Where to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    everyone = sorted({cell["users"] for cell in cells})

    def lines(name: str, value: Callable[[Cell], float]) -> list[Line]:
        return [
            Line(
                f"{name}, {users:,} users",
                [(cell["messages"], value(cell)) for cell in cells if cell["users"] == users],
            )
            for users in everyone
        ]

    recalls = lines("recall", lambda cell: cell["recall"]["p50"]) + lines(
        "to messages", lambda cell: cell["recall_messages"]["p50"]
    )
    plot(folder / "growth-recall", "Recall, p50", "ms", recalls)
    adds = lines("single add", lambda cell: cell["single"]["cpu"]) + lines(
        "by 1,000", lambda cell: cell["thousand"]["cpu"] / 1000
    )
    plot(folder / "growth-ingest", "Processor time of a new message, p50", "ms", adds)
    plot(
        folder / "growth-memory",
        "Resident memory with all vectors in Chroma",
        "MB",
        lines("resident", lambda cell: cell["memory_mb"]),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table and all bars."""
    parser = argparse.ArgumentParser(prog="python -m evals scale", description="How cost grows with history and users.")
    parser.add_argument("--messages", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="Sizes of histories.")
    parser.add_argument("--users", type=int, nargs="+", default=[1, 100, 1_000], help="How many share them.")
    parser.add_argument("--rounds", type=int, default=100, help="Questions asked, and single messages added.")
    parser.add_argument(
        "--plots", type=Path, help="Folder for plots of growth (SVG; PNG, too, where matplotlib is installed)."
    )
    parser.add_argument(
        "--mem0", type=int, default=10_000, help="Messages given to mem0, too, where it is installed; 0 for none."
    )
    parser.add_argument("--cell", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--beside", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.cell:
        print(json.dumps(measure(*options.cell, rounds=options.rounds)))
        return
    if options.beside:
        print(json.dumps(_beside_mem0.measure(options.beside, rounds=options.rounds)))
        return
    print(f"| {_COLUMNS} |", "|" + " ---: |" * (_COLUMNS.count("|") + 1), sep="\n")
    cells: list[Cell] = []
    for messages, users in product(options.messages, options.users):
        cells.append(_in_process(options.rounds, "--cell", str(messages), str(users)))
        print(_row(cells[-1]), flush=True)
    if options.plots:
        draw(cells, options.plots)
    figures = [figure for cell in cells for figure in bars(cell)] + growth(cells)
    if options.mem0 and installed({"mem0": _beside_mem0.MEM0}):
        beside: Beside = _in_process(options.rounds, "--beside", str(options.mem0))
        figures += _beside_mem0.figures(beside)
    finish(figures)


if __name__ == "__main__":
    main()
