"""Figures beside their bars, printed as one table; what every eval ends with."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Figure", "Sense", "block", "explain_data", "finish", "lines"]


Sense = Literal["at most", "at least", "exactly", "under", "over"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number, and what it must reach; a figure without a bar is for information."""

    name: str
    value: float
    bar: float | None = None
    sense: Sense = "at most"
    unit: str = ""
    note: str = ""

    @property
    def verdict(self) -> str:
        """PASS, FAIL, or nothing where there is no bar."""
        if self.bar is None:
            return ""
        met = {
            "at most": self.value <= self.bar,
            "at least": self.value >= self.bar,
            "exactly": self.value == self.bar,
            "under": self.value < self.bar,
            "over": self.value > self.bar,
        }[self.sense]
        return "PASS" if met else "FAIL"

    @property
    def cells(self) -> tuple[str, ...]:
        """What the table shows."""
        bar = "" if self.bar is None else f"{self.sense} {_number(self.bar)}"
        return self.name, _number(self.value), self.unit, bar, self.verdict, self.note


def _number(value: float) -> str:
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3f}"


def lines(figures: Sequence[Figure]) -> Iterator[str]:
    """Yield the lines of a table.

    Args:
        figures: Its rows.
    """
    rows = [("", "figure", "", "bar", "", ""), *(figure.cells for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for name, value, *rest in rows:
        cells = [name.ljust(widths[0]), value.rjust(widths[1])]
        cells += [cell.ljust(width) for cell, width in zip(rest, widths[2:], strict=True)]
        yield "  ".join(cells).rstrip()


def block(figures: Sequence[Figure]) -> str:
    """Return the table as it stands on a page.

    Args:
        figures: What was measured.
    """
    return "\n".join(("```text", *lines(figures), "```"))


def finish(figures: Sequence[Figure]) -> None:
    """Print the table; exit with 1 where a bar is missed.

    Args:
        figures: What was measured.
    """
    print("\n".join(lines(figures)))
    missed = sum(figure.verdict == "FAIL" for figure in figures)
    if missed:
        print(f"{missed} of {sum(bool(figure.verdict) for figure in figures)} bars are missed.")
        sys.exit(1)


def explain_data(name: str, what: str) -> None:
    """Say which file an eval needs; it measures nothing without one, and that is no failure.

    Args:
        name: The eval.
        what: The file, in a few words.
    """
    print(f"{name}: give --data {what}, one memory store per line:")
    print(
        '  {"store": "ann", "messages": [{"id": "1", "thread": "main", "name": "Ann", "role": "user", '
        '"content": "I love hiking.", "time": "2025-03-04T12:00:00Z"}],'
    )
    print('   "questions": [{"text": "What does Ann love?", "gold": ["1"]}]}')
