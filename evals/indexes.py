"""Recall and speed of the vector indexes that processes share: a Chroma server and pgvector, on one machine in one run.

    python -m evals indexes [--page docs/benchmarks.md]
    python -m evals indexes --vectors 20000 --questions 20

Vectors lie around two hundred centres, drawn from a seed. A third of them belongs to users who have 10 each, a third to
users with 100, a third to users with 1,000, side by side in collections as large as the library makes them; then all belong
to one user. Each question asks both indexes, in turn, for the 100 nearest vectors of one user. Recall is the share of those
that are nearest when all are compared; of equal ones each counts. Both servers have the settings that they come with, but
PostgreSQL does not wait for the disk.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evals._figures import Figure, block, finish
from evals._pages import how, place
from evals._servers import ChromaServer, postgres
from evals._timing import Stopwatch
from remegraph.ledger.database import Database
from remegraph.ledger.index.chroma import ChromaIndex
from remegraph.ledger.index.pgvector import PgvectorIndex
from remegraph.ledger.index.placement import CAPACITY

if TYPE_CHECKING:
    from remegraph.ports import VectorIndex, Vectors

__all__ = ["Layout", "compare", "main"]

_CENTRES = 200
_SPREAD = 1.2  # of a vector around its centre, by the deviation of the centres themselves
_BATCH = 500  # as the indexer writes
_NEAREST = 100  # as recall asks for, at least
_EQUAL = 1e-3  # of cosines that half precision does not tell apart


@dataclass(frozen=True, slots=True)
class Layout:
    """Which vectors belong to which user, and where they are."""

    name: str
    sizes: tuple[int, ...]
    """How many vectors a user has; each size has the same share of all vectors."""

    def users(self, vectors: int) -> Iterator[tuple[int, range]]:
        """Yield how many vectors users have, and which.

        Args:
            vectors: In all.
        """
        first = 0
        for size in self.sizes:
            for _ in range(max(1, vectors // len(self.sizes) // size)):
                yield size, range(first, first + size)
                first += size


@contextmanager
def _servers() -> Iterator[dict[str, VectorIndex]]:
    with ExitStack() as stack:
        chroma = ChromaServer(Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))))
        stack.enter_context(chroma.running())
        database = stack.enter_context(closing(Database.open(stack.enter_context(postgres()))))
        yield {
            "Chroma server": stack.enter_context(closing(ChromaIndex.server(chroma.url))),
            "pgvector": stack.enter_context(closing(PgvectorIndex.open(database))),
        }


def _drawn(vectors: int, dimension: int) -> Vectors:
    random = np.random.default_rng(7)
    centres = random.normal(size=(_CENTRES, dimension)).astype(np.float32)
    found = centres[random.integers(_CENTRES, size=vectors)]
    found += _SPREAD * random.normal(size=found.shape).astype(np.float32)
    unit: Vectors = found / np.linalg.norm(found, axis=1, keepdims=True)
    return unit


def compare(layout: Layout, vectors: int, dimension: int, questions: int) -> Iterator[Figure]:
    """Fill both indexes, and ask both the same.

    Args:
        layout: Whose the vectors are.
        vectors: How many, in all.
        dimension: Of each.
        questions: Of each size of a user's memory.
    """
    users = list(layout.users(vectors))
    given, asked = np.split(_drawn(users[-1][1].stop + questions, dimension), [users[-1][1].stop])
    with _servers() as indexes:
        for name, index in indexes.items():
            began = time.perf_counter()
            for collection in dict.fromkeys(_home(user) for _, user in users):
                for part in _batches([user for _, user in users if _home(user) == collection]):
                    shelves = [str(user.start) for user, some in part for _ in some]
                    rows = [at for _, some in part for at in some]
                    index.upsert(collection, [str(at) for at in rows], shelves, given[rows])
                index.optimize(collection)
            yield Figure(f"{layout.name}, written: {name}", len(given) / (time.perf_counter() - began), unit="a second")
        for size in layout.sizes:
            yield from _asked(indexes, [user for each, user in users if each == size], given, asked)


def _home(user: range) -> str:
    """Return the collection of a user: a large one has its own."""
    return f"evals-{user.start // CAPACITY}"


def _batches(users: Sequence[range]) -> Iterator[list[tuple[range, range]]]:
    """Yield users with those of their vectors that are written together."""
    part: list[tuple[range, range]] = []
    for user in users:
        for first in range(user.start, user.stop, _BATCH):
            some = range(first, min(first + _BATCH, user.stop))
            if sum(len(each) for _, each in part) + len(some) > _BATCH:
                yield part
                part = []
            part.append((user, some))
    yield part


def _asked(indexes: dict[str, VectorIndex], users: Sequence[range], given: Vectors, asked: Vectors) -> Iterator[Figure]:
    watch = Stopwatch()
    found: dict[str, list[float]] = {name: [] for name in indexes}
    for number, vector in enumerate(asked):
        user = users[number * 7919 % len(users)]
        cosines = given[user.start : user.stop] @ vector
        least = np.sort(cosines)[-_NEAREST:][0] - _EQUAL
        shelves = [str(user.start)] if len(user) < CAPACITY else None
        for name, index in indexes.items():
            hits: list[tuple[str, float]] = []
            ask = partial(index.query, _home(user), shelves, vector, _NEAREST)
            watch.time(name, lambda: hits.extend(ask()))  # noqa: B023 - called at once
            good = sum(cosines[int(record) - user.start] >= least for record, _ in hits)
            found[name].append(good / min(_NEAREST, len(user)))
    for name in indexes:
        timing = watch.timing(name)
        what = f"{len(users[0]):,} a user"
        bar = 0.99 if name == "pgvector" else None
        yield Figure(f"{what}, recall: {name}", float(np.mean(found[name])), bar, "at least")
        yield Figure(f"{what}, p50: {name}", timing["p50"], unit="ms", note=f"p95 {timing['p95']:.1f} ms")


def main(argv: Sequence[str] | None = None) -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m evals indexes", description="A Chroma server beside pgvector.")
    parser.add_argument("--vectors", type=int, default=100_000, help="In all.")
    parser.add_argument("--dimension", type=int, default=384, help="Of each.")
    parser.add_argument("--questions", type=int, default=100, help="For each size of a user's memory.")
    parser.add_argument("--page", type=Path, help="A page with places for the tables, as docs/benchmarks.md.")
    options = parser.parse_args(argv)
    began = how("indexes", ["remegraph", "chromadb", "psycopg"])
    figures: list[Figure] = []
    for layout in (Layout("users side by side", (10, 100, 1_000)), Layout("one user", (options.vectors,))):
        figures += compare(layout, options.vectors, options.dimension, options.questions)
    place(options.page, {"indexes how": began, "indexes": block(figures)})
    finish(figures)


if __name__ == "__main__":
    main()
