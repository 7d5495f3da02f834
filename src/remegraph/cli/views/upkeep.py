"""How sound and how large the memory is."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from remegraph.cli.views.looks import FIRST, Views, add_row, counted, more, plain, table_of, text
from remegraph.models import Backup, Diagnosis, Verification

__all__ = ["backup", "diagnosis", "stats", "verification"]


_SEVERITY = {"error": "red", "warning": "yellow", "note": "cyan"}


def backup(found: Backup) -> Views:
    """Show what a backup holds."""
    rows = ", ".join(
        counted(found.counts.get(name, 0), one, name)
        for name, one in (("messages", "message"), ("memories", "memory"), ("events", "event"))
    )
    size = f"{found.size / 1e6:,.1f} MB in {counted(len(found.files), 'file')}, schema {found.revision}."
    lost = f"{counted(len(found.missing), 'attachment')} could not be copied: the home has lost them."
    return (
        Text(f"As of {found.taken_at:%Y-%m-%d %H:%M:%S} UTC: {rows}."),
        Text(size, style="dim"),
        *((Text(lost, style="yellow"),) if found.missing else ()),
    )


def diagnosis(found: Diagnosis) -> Views:
    """Show what a doctor found, how bad it is, and what to do."""
    looked = Text(f"Looked at: {', '.join(found.checks)}.", style="dim")
    if not found.findings:
        return (Text("Healthy: nothing is wrong.", style="green"), looked)
    grid = Table.grid(padding=(0, 2, 0, 0))
    for each in found.findings:
        style = "green" if each.done else _SEVERITY[each.severity]
        grid.add_row(Text("mended" if each.done else each.severity, style=style), Text(each.check), text(each.what))
        what = f"{each.done[0].upper()}{each.done[1:]}." if each.done else each.cure
        grid.add_row("", "", Text(plain(what), style="dim"))
    left = sum(each.fixable and not each.done for each in found.findings)
    hint = (Text(f"`remegraph doctor --fix` mends {left} of them."),) if left else ()
    return (grid, looked, *hint)


def verification(found: Verification) -> Views:
    """Show what `verify` compared and what differs."""
    read = (
        f"{counted(found.messages, 'message')}, {counted(found.blocks, 'block')}, "
        f"{counted(found.memories, 'memory', 'memories')}, {counted(found.events, 'event')}, "
        f"{counted(found.vectors, 'vector')} read."
    )
    if found.healthy:
        return (Text("Healthy: nothing differs.", style="green"), Text(read, style="dim"))
    waiting = {each.record_id for each in found.differences if each.where == "dirty set"}
    if all(each.record_id in waiting for each in found.differences):  # the records themselves, and their vectors
        wait = f"Waiting for the index, and found by SQL until then: {counted(len(waiting), 'record')}."
        return (Text(f"{wait} Run `remegraph doctor --fix`, or go on.", style="yellow"), Text(read, style="dim"))
    table = table_of("where", "record", "problem")
    for difference in found.differences[:FIRST]:
        add_row(table, difference.where, difference.record_id, difference.problem)
    total = len(found.differences)
    head = Text(f"{counted(total, 'difference')}. Run `remegraph rebuild` to make the index anew.", style="red")
    return (head, Text(read, style="dim"), table, *more(total))


def stats(found: Mapping[str, object]) -> RenderableType:
    """Show counts by name."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, value in found.items():
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        grid.add_row(Text(name.replace("_", " "), style="dim"), Text(plain(shown), overflow="fold"))
    return grid
