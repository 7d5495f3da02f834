"""Draws a graph from its Mermaid text as a column of steps with arcs beside it: a script that could would be fetched."""

from __future__ import annotations

import re
from html import escape

__all__ = ["svg"]

_WIDTH, _BOX, _HIGH, _STEP = 460, 232, 32, 60
"""Of the drawing, and of the box of a step; how far steps are apart."""

_NODE = re.compile(r"^\s*(\w+)\(\[?.+\]?\)(?::::\w+)?$", re.MULTILINE)
_EDGE = re.compile(r"^\s*(\w+) (-->|-\.->) (\w+);$", re.MULTILINE)


def svg(mermaid: str) -> str:
    """Return the drawing, in the colour of the text around it; a dotted arrow is a choice.

    Args:
        mermaid: What LangGraph's `draw_mermaid` writes.
    """
    rows = {name: row for row, name in enumerate(_NODE.findall(mermaid))}
    arrow, told = "-".join(rows), escape(" to ".join(name.strip("_") for name in rows))
    size = f'viewBox="0 0 {_WIDTH} {len(rows) * _STEP}" style="max-width: {_WIDTH}px"'
    head = '<path d="M0 0 8 4 0 8z" fill="currentColor" stroke="none"/>'
    parts = [
        f'<svg {size} role="img" aria-label="{told}" fill="none" stroke="currentColor">',
        f'<marker id="{arrow}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
        f"{head}</marker>",
    ]
    for name, row in rows.items():
        left, top = (_WIDTH - _BOX) / 2, row * _STEP + (_STEP - _HIGH) / 2
        label = escape(name.strip("_"))
        parts.append(f'<rect x="{left:g}" y="{top:g}" width="{_BOX}" height="{_HIGH}" rx="{_HIGH / 2:g}"/>')
        parts.append(
            f'<text x="{_WIDTH / 2:g}" y="{top + 21:g}" text-anchor="middle" font-size="14" fill="currentColor" '
            f'stroke="none">{label}</text>'
        )
    for start, line, end in _EDGE.findall(mermaid):
        dotted = ' stroke-dasharray="3 4"' if line == "-.->" else ""
        parts.append(f'<path d="{_way(rows[start], rows[end])}" marker-end="url(#{arrow})"{dotted}/>')
    return "".join([*parts, "</svg>"])


def _way(start: int, end: int) -> str:
    """Straight down to the next step; past others on the right, and back on the left."""
    middle = _WIDTH / 2
    if end == start + 1:
        return f"M{middle:g} {start * _STEP + (_STEP + _HIGH) / 2:g}V{end * _STEP + (_STEP - _HIGH) / 2:g}"
    side = 1 if end > start else -1
    out = middle + side * (_BOX / 2 + 24 * abs(end - start))
    edge = middle + side * _BOX / 2
    first, last = start * _STEP + _STEP / 2 + 5, end * _STEP + _STEP / 2 - 5
    return f"M{edge:g} {first:g}C{out:g} {first:g} {out:g} {last:g} {edge:g} {last:g}"
