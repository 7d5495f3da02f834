"""What more workers bring: throughput on PostgreSQL and a Chroma server, and what is left when workers are killed.

    python -m evals workers [--workers 1 2 4] [--users 200] [--blocks 2] [--kills 15] [--page docs/scaling.md]

Both servers are real, and run on this machine beside the workers; only the model is scripted, and takes 0.2 s a call,
two calls a block. Every worker does two jobs at once. The clock runs from when all workers are ready until nothing
waits. Processor time is that of the workers; what the rest of the machine does meanwhile costs wall time, so figures
of several runs are to be compared by their ratios.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

import psycopg
from psycopg import sql

from evals._crew import Crew, Order, effects, fill
from evals._figures import Figure, block, finish
from evals._pages import place
from evals._servers import ChromaServer, postgres

__all__ = ["main"]

_LEASE = 10.0
_BARS = {2: 1.8, 4: 3.0}
_PAUSE = Event()


@contextmanager
def _fresh(server: str, name: str) -> Iterator[Order]:
    """A database and a Chroma server of its own."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        chroma = ChromaServer(Path(folder))
        with chroma.running():
            url = server.replace("/postgres?", f"/{name}?")
            yield Order(home=f"{folder}/home", ledger_url=url, chroma_url=chroma.url, queue="procrastinate", lease=300)


def throughput(order: Order, workers: int, users: int, blocks: int) -> tuple[float, float, int]:
    """Return blocks per second, the workers' processor seconds per block, and how much went wrong."""
    with order.open() as kit, Crew(order) as crew:
        fill(kit, users, *range(blocks))
        crew.hire(workers)
        before, began = crew.processor_seconds(), time.monotonic()
        while kit.admin.jobs():
            _PAUSE.wait(0.1)
        seconds, processor = time.monotonic() - began, crew.processor_seconds() - before
        crew.dismiss()
        return users * blocks / seconds, processor / (users * blocks), effects(kit, users, blocks).total()


def killed(order: Order, users: int, blocks: int, kills: int) -> int:
    """Kill workers while all is done; return how much went wrong."""
    rng = random.Random(9)
    order = replace(order, lease=_LEASE)
    with order.open() as kit, Crew(order) as crew:
        fill(kit, users, *range(blocks))
        crew.hire(4)
        for _ in range(kills):
            while kit.admin.jobs() and not kit.admin.health().queue.running:
                _PAUSE.wait(0.02)
            crew.kill(rng.randrange(4))
            crew.hire(1)
        while kit.admin.jobs():
            _PAUSE.wait(0.1)
        crew.dismiss()
        return effects(kit, users, blocks).total()


def main(argv: Sequence[str] | None = None) -> None:
    """Print all figures, and write them into a page."""
    parser = argparse.ArgumentParser(prog="python -m evals workers", description="What more workers bring.")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="How many, in turn; 1 first.")
    parser.add_argument("--users", type=int, default=200, help="Whose blocks wait.")
    parser.add_argument("--blocks", type=int, default=2, help="Blocks of each.")
    parser.add_argument("--kills", type=int, default=15, help="Workers that are killed; 0: none.")
    parser.add_argument("--page", type=Path, help="Page that the table is written into.")
    options = parser.parse_args(argv)
    figures: list[Figure] = []
    with postgres() as server:
        first = 0.0
        for count in options.workers:
            with _fresh(server, f"workers{count}") as order:
                rate, processor, wrong = throughput(order, count, options.users, options.blocks)
            first = first or rate
            name = f"{count} worker{'s' * (count > 1)}"
            figures += [
                Figure(f"{name}: blocks per second", rate, note=f"processor {processor * 1000:.0f} ms a block"),
                Figure(f"{name}: of one worker", rate / first, _BARS.get(count), "at least"),
                Figure(f"{name}: lost, twice or out of order", wrong, 0, "exactly"),
            ]
        if options.kills:
            with _fresh(server, "killed") as order:
                wrong = killed(order, options.users, options.blocks, options.kills)
            figures.append(Figure(f"{options.kills} kills: lost, twice or out of order", wrong, 0, "exactly"))
    place(options.page, {"workers": block(figures)})
    finish(figures)


if __name__ == "__main__":
    main()
