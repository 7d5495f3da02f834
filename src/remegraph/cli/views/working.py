"""The work in the background."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from remegraph.cli.views.looks import FIRST, Views, add_row, counted, more, plain, shortened, table_of
from remegraph.models import BackgroundJob, HealthReport

__all__ = ["health", "jobs"]


def jobs(found: Sequence[BackgroundJob], revived: int) -> Views:
    """Show jobs that are not done."""
    head = (Text(f"{counted(revived, 'job')} taken up again.", style="green"),) if revived else ()
    if not found:
        return (*head, Text("Nothing waits.", style="green"))
    table = table_of("state", "kind", "user", "agent", "due", "tried", "why it failed")
    for each in found[:FIRST]:
        due = f"{each.due_at:%Y-%m-%d %H:%M}" if each.due_at else "when asked"
        where = each.partition
        add_row(
            table,
            "other settings" if each.foreign else each.state,
            each.kind,
            where.user or "",
            where.agent or "",
            due,
            each.attempts,
            shortened(each.reason),
        )
    return (*head, table, *more(len(found)))


def health(found: HealthReport, *, late: bool) -> Views:
    """Show whether the memory works, and whether its workers keep up."""
    queue = found.queue
    waits = (
        f"{queue.waiting} waiting, {queue.running} running, {queue.dead} gave up, {queue.asleep} asleep until asked."
    )
    style = "red" if late else "dim"
    lines = [
        Text(f"Ledger: {found.ledger}. Index: {found.index}.", style="green" if found.healthy else "red"),
        Text(f"Jobs: {waits}"),
        Text(f"The oldest that is due has waited for {queue.overdue_seconds:.0f} seconds.", style=style),
    ]
    lines += [Text(f"{counted(queue.foreign, 'job')} left to workers with other settings.", style="yellow")] * bool(
        queue.foreign
    )
    lines += [Text(plain(f"The index: {found.problem}"), style="red")] if found.problem else []
    lines += [Text(plain(f"Failed last: {queue.reason}"), style="yellow")] if queue.reason else []
    return tuple(lines)
