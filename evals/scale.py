"""How cost grows: ingest, recall and summarise over 1k to 100k messages and 1 to 1,000 users, beside raw limits.

    python -m evals scale
    python -m evals scale --messages 1000 10000 --users 1 100 --plots docs/benchmarks
    python -m evals scale --messages 1000000 --users 1000

Each cell is a process of its own with a fresh home: generated messages go in in batches, and one memory for each five
of them, so that a search has vectors to look at. Then each question is asked five ways in turn: of raw FTS5, of the
user's vectors one by one (numpy), of a raw Chroma collection as large as the library makes them, of `recall` for
memories and of `recall` down to messages. So whatever else the machine does weighs on all alike, and ratios can be
trusted where seconds cannot. No model is called. Where mem0 is installed, it gets
as many messages of as many users as the library beside it.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from evals import _beside_mem0
from evals._figures import Figure, block, finish
from evals._growth import HEADS, Cell, bars, draw, growth, row, summary
from evals._limits import RawBucket, RawCommits, raw_ledger
from evals._pages import how, place
from evals._peers import installed
from evals._talk import PER_MEMORY, Talk, learn
from evals._timing import Ask, Stopwatch, loaded
from remegraph import MemoryKit, Settings
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.ledger.index.placement import CAPACITY
from remegraph.models import ChangeSet

__all__ = ["main", "measure"]

_BATCH = 1_000
_AT_ONCE = 16
"""Users who ask at the same time."""

_LATE = 1_000_000
"""Number of the user whose history is not measured, only what it costs to be new."""


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
            crowd = _at_once(kit, talk, bucket, home / "home" / "ledger.sqlite", users=users, rounds=rounds)
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
                at_once=crowd,
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
        kept += [vectors] if sum(map(len, kept)) < CAPACITY else []
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


def _at_once(
    kit: MemoryKit, talk: Talk, bucket: RawBucket, ledger: Path, *, users: int, rounds: int
) -> tuple[float, float]:
    """Return the 95th percentile of the milliseconds of `recall`, and of the raw queries, while many users ask at once."""
    each = max(5, rounds // 4)
    asked = list(talk.questions(_AT_ONCE * each, users))
    vectors = HashedEmbedder().embed([question for _, question in asked])

    @contextmanager
    def recalling() -> Iterator[Ask]:
        yield lambda number: kit.recall(asked[number][1], scope=asked[number][0])

    @contextmanager
    def looking() -> Iterator[Ask]:
        with raw_ledger(ledger) as raw:

            def look(number: int) -> None:
                scope, question = asked[number]
                raw.full_text(scope.user or "", question)
                bucket.query(number, vectors[number])

            yield look

    taken = (loaded(_AT_ONCE, each, asking) for asking in (recalling, looking))
    ours, limit = (float(np.percentile(found, 95)) for found in taken)
    return ours, limit


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


def _in_process(rounds: int, *which: str) -> Any:
    """Measure in a process of its own, which prints JSON."""
    command = [sys.executable, "-m", "evals", "scale", *which, "--rounds", str(rounds)]
    run = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    return json.loads(run.stdout.splitlines()[-1])


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
        "--mem0", type=int, default=100_000, help="Messages given to mem0, too, where it is installed; 0 for none."
    )
    parser.add_argument("--page", type=Path, help="A page with places for the tables, as docs/benchmarks.md.")
    parser.add_argument("--section", default="growth", help="Name of these places.")
    parser.add_argument("--cell", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--beside", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.cell:
        print(json.dumps(measure(*options.cell, rounds=options.rounds)))
        return
    if options.beside:
        print(json.dumps(_beside_mem0.measure(*options.beside, rounds=options.rounds)))
        return
    began = how("scale", ("remegraph", "chromadb", "numpy"))
    table = [f"| {HEADS} |", "|" + " ---: |" * (HEADS.count("|") + 1)]
    print(*table, sep="\n")
    cells: list[Cell] = []
    for messages, users in product(options.messages, options.users):
        cells.append(_in_process(options.rounds, "--cell", str(messages), str(users)))
        table.append(row(cells[-1]))
        print(table[-1], flush=True)
    ratios = "\n".join(summary(cells))
    print("", ratios, "", began, "", sep="\n")
    if options.plots:
        draw(cells, options.plots)
    beside: list[Figure] = []
    if options.mem0 and installed({"mem0": _beside_mem0.MEM0}):
        which = ("--beside", str(options.mem0), str(max(options.users)))
        beside = _beside_mem0.figures(_in_process(options.rounds, *which))
    found = growth(cells)
    places = {"": ratios, " in full": "\n".join(table), " how": began}
    places |= {" of cost": block(found), " beside mem0": block(beside)}
    place(options.page, {options.section + name: text for name, text in places.items()})
    finish([figure for cell in cells for figure in bars(cell)] + found + beside)


if __name__ == "__main__":
    main()
