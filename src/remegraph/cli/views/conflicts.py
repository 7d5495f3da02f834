"""Memories that contradict each other, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from remegraph.cli.views.looks import FIRST, SHORT_ID, Views, add_row, minute, more, nothing, plain, state_of, table_of
from remegraph.models import Conflict, Memory

__all__ = ["conflicts"]

_SHORT = 6
"""Characters of a conflict's id that are shown; `resolve` takes them."""


def conflicts(found: Sequence[Conflict]) -> Views:
    """Show conflicts, each with both memories, and what was decided."""
    if not found:
        return nothing("No conflicts.")
    table = table_of("!id", "what", "older", "newer", "in what, or decided")
    for each in found[:FIRST]:
        what = Text(each.kind if each.certain else f"{each.kind}?")
        add_row(table, each.conflict_id[:_SHORT], what, _said(each.older), _said(each.newer), _outcome(each))
    return (table, *more(len(found)))


def _said(memory: Memory) -> Text:
    return Text.assemble(
        plain(memory.content), " ", state_of(memory.status), (f" {memory.memory_id[:SHORT_ID]}", "dim")
    )


def _outcome(conflict: Conflict) -> str:
    decided = conflict.decided
    if decided is not None:
        note = f": {decided.note}" if decided.note else ""
        return f"{decided.decision} by {decided.by}, {minute(decided.at)}{note}"
    return conflict.reason if conflict.state == "open" else "over: one of the two is gone"
