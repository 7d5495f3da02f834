"""How sound and how large the memory is."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from remegraph.cli.views.looks import FIRST, Views, add_row, counted, plain, table_of
from remegraph.models import Verification

__all__ = ["stats", "verification"]


def verification(found: Verification) -> Views:
    """Show what `verify` compared and what differs."""
    read = (
        f"{counted(found.messages, 'message')}, {counted(found.blocks, 'block')}, "
        f"{counted(found.memories, 'memory', 'memories')}, {counted(found.events, 'event')}, "
        f"{counted(found.vectors, 'vector')} read."
    )
    if found.healthy:
        return (Text("Healthy: nothing differs.", style="green"), Text(read, style="dim"))
    table = table_of("where", "record", "problem")
    for difference in found.differences[:FIRST]:
        add_row(table, difference.where, difference.record_id, difference.problem)
    total = len(found.differences)
    head = Text(f"{counted(total, 'difference')}. Run `remegraph rebuild` to make the index anew.", style="red")
    more = (Text(f"… and {total - FIRST} more"),) if total > FIRST else ()
    return (head, Text(read, style="dim"), table, *more)


def stats(found: Mapping[str, object]) -> RenderableType:
    """Show counts by name."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, value in found.items():
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        grid.add_row(Text(name.replace("_", " "), style="dim"), Text(plain(shown), overflow="fold"))
    return grid
