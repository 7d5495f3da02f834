"""Bar charts of a comparison, as PNG and SVG, which say how and when they were made."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evals._results import Result

__all__ = ["draw"]

_SHOWN = ("R@5", "R@10", "nDCG@10")
_COLOURS = ("#9ecae1", "#4292c6", "#08519c")


def draw(path: Path, title: str, results: Mapping[str, Result]) -> None:
    """Draw the main metrics of each memory into PATH.png and PATH.svg.

    Args:
        path: Without an ending; its folder is made.
        title: What was measured.
        results: The memories' results by name, ours first.
    """
    from matplotlib.figure import Figure

    names = list(results)[::-1]
    drawing = Figure(figsize=(9, 1.5 + 0.45 * len(names)), layout="constrained")
    axes = drawing.subplots()
    height = 0.8 / len(_SHOWN)
    for number, (metric, colour) in enumerate(zip(_SHOWN, _COLOURS, strict=True)):
        places = [row + 0.4 - (number + 0.5) * height for row in range(len(names))]
        bars = axes.barh(places, [results[name].mean(metric) for name in names], height, color=colour, label=metric)
        axes.bar_label(bars, fmt="%.3f", fontsize=6, padding=2)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(0, 1)
    axes.set_title(title)
    axes.legend(loc="lower right", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    drawing.supxlabel(_origin(results), fontsize=6)
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in ("png", "svg"):
        drawing.savefig(path.with_suffix(f".{ending}"), dpi=120)


def _origin(results: Mapping[str, Result]) -> str:
    """Return the command, with the names of its files only, the versions and the date."""
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    versions = ", ".join(dict.fromkeys(result.version for result in results.values()))
    return f"python -m evals compare {shlex.join(words)}\n{versions}; {datetime.now(UTC):%Y-%m-%d} UTC"
