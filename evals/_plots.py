"""Line charts. Where both axes are logarithmic, growth that is proportional is a straight line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path

__all__ = ["Line", "plot"]

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 230, 40, 50
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_STYLE = "font-family:sans-serif;font-size:12px"


@dataclass(frozen=True, slots=True)
class Line:
    """Points (messages, value) under one name."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _Axis:
    """Powers of ten from `low` to `high`, laid out from `start` to `end`."""

    low: int
    high: int
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> _Axis:
        low = math.floor(math.log10(min(values)))
        return cls(low, max(math.ceil(math.log10(max(values))), low + 1), start, end)

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


@dataclass(frozen=True, slots=True)
class _Ruler:
    """Numbers from 0 to `high`, laid out from `start` to `end`."""

    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> _Ruler:
        step = 10.0 ** math.floor(math.log10(max(values)))
        return cls(math.ceil(max(values) / step) * step, start, end)

    def at(self, value: float) -> float:
        return self.start + value / self.high * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        return [self.high * part / 5 for part in range(6)]


def plot(path: Path, title: str, unit: str, lines: Sequence[Line], *, proportional: bool = True) -> None:
    """Write a chart.

    Args:
        path: Where to, without an ending: `.svg`, and `.png` where matplotlib is installed.
        title: What it shows.
        unit: Of the values.
        lines: At least one, each with at least one point; all numbers are positive.
        proportional: Whether both axes are logarithmic; else they begin with 0.
    """
    points = [point for line in lines for point in line.points]
    axis = _Axis if proportional else _Ruler
    across = axis.over([x for x, _ in points], _LEFT, _WIDTH - _RIGHT)
    up = axis.over([y for _, y in points], _HEIGHT - _BOTTOM, _TOP)
    marks = [
        f'<text x="{_LEFT}" y="20" font-weight="bold">{escape(title)} ({escape(unit)})</text>',
        f'<text x="{across.end}" y="{_HEIGHT - 12}" text-anchor="end">messages of history</text>',
    ]
    for tick in across.ticks:
        marks.append(_rule(across.at(tick), up.start, across.at(tick), up.end))
        marks.append(f'<text x="{across.at(tick):.0f}" y="{up.start + 18}" text-anchor="middle">{tick:,.0f}</text>')
    for tick in up.ticks:
        marks.append(_rule(across.start, up.at(tick), across.end, up.at(tick)))
        marks.append(f'<text x="{_LEFT - 8}" y="{up.at(tick) + 4:.0f}" text-anchor="end">{tick:,g}</text>')
    for number, line in enumerate(lines):
        marks.extend(_drawn(line, number, across, up))
    body = "\n".join(marks)
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{_STYLE}">\n<rect {size} fill="white"/>\n{body}\n</svg>\n'
    path.with_suffix(".svg").write_text(svg, encoding="utf-8")
    if find_spec("matplotlib"):
        _plot_png(path.with_suffix(".png"), f"{title} ({unit})", lines, proportional=proportional)


def _plot_png(path: Path, title: str, lines: Sequence[Line], *, proportional: bool) -> None:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(7.2, 4), layout="constrained")
    axes = drawing.subplots()
    for number, line in enumerate(lines):
        across, up = zip(*sorted(line.points), strict=True)
        draw = axes.loglog if proportional else axes.plot
        draw(across, up, "o-", color=_COLOURS[number % len(_COLOURS)], label=line.name)
    if not proportional:
        axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.set_xlabel("messages of history")
    axes.grid(color="#dddddd")
    drawing.legend(loc="outside right upper", frameon=False)
    drawing.savefig(path, dpi=120)


def _drawn(line: Line, number: int, across: _Axis | _Ruler, up: _Axis | _Ruler) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    spots = [(across.at(x), up.at(y)) for x, y in sorted(line.points)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    key = _TOP + 20 * number
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots),
        f'<circle cx="{_WIDTH - _RIGHT + 20}" cy="{key}" r="4" fill="{colour}"/>',
        f'<text x="{_WIDTH - _RIGHT + 30}" y="{key + 4}">{escape(line.name)}</text>',
    ]


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'
