"""What the sizes of history cost: bars, tables and charts of what `scale` measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from evals._figures import Figure
from evals._plots import Line, plot
from evals._timing import Timing

__all__ = ["HEADS", "Cell", "bars", "draw", "growth", "row", "summary"]

_LARGE = 100_000


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
    at_once: tuple[float, float]
    """95th percentile of the milliseconds of a recall while sixteen users ask, and of full text and bucket."""
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
    crowd, crowded = cell["at_once"]
    note = f"{crowd:.0f} ms, raw {crowded:.0f} ms"
    figures.append(Figure(f"{name}: recall p95 / raw p95, 16 users at once", crowd / crowded, 4, note=note))
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


HEADS = (
    "messages | users | recall p50 / p95 | to messages p50 / p95 | raw text | raw exact | raw bucket | single add | raw commit"
    " | by 100 | by 1,000 | summarise | index | raw upserts | upserts as it comes | memory | before vectors | disk"
)


def row(cell: Cell) -> str:
    """Return all figures of a cell as a line of a table.

    Args:
        cell: What was measured.
    """

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
    return _line(cells)


def summary(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the lines of a table of ratios, which say more than seconds where a machine is busy.

    Args:
        cells: What was measured.
    """
    heads = (
        "messages",
        "users",
        "recall / raw",
        "to messages / raw",
        "p95 / p50",
        "p95 of 16 at once / raw",
        "single adds / raw commits",
        "by 100",
        "by 1,000",
        "indexing / raw upserts",
        "/ as it comes",
    )
    yield _line(heads)
    yield f"|{' ---: |' * len(heads)}"
    for cell in cells:
        raw = cell["raw_text"]["p50"] + cell["raw_bucket"]["p50"]
        yield _line(
            (
                f"{cell['messages']:,}",
                f"{cell['users']:,}",
                f"{cell['recall']['p50'] / raw:.1f}",
                f"{cell['recall_messages']['p50'] / raw:.1f}",
                f"{cell['recall']['p95'] / cell['recall']['p50']:.1f}",
                f"{cell['at_once'][0] / cell['at_once'][1]:.1f}",
                f"{cell['raw_commit']['p50'] / cell['single']['p50']:.2f}",
                f"{100_000 / cell['hundred']['p50']:,.0f}/s",
                f"{1_000_000 / cell['thousand']['p50']:,.0f}/s",
                f"{cell['index_rate'] / cell['raw_upserts']:.2f}",
                f"{cell['index_rate'] / cell['plain_upserts']:.2f}",
            )
        )


def _line(cells: Sequence[str]) -> str:
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
