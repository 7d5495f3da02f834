"""What was recorded, summarised, and left undone."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from remegraph.cli.views.looks import FIRST, Views, add_row, counted, nothing, plain, shortened, state_of, table_of
from remegraph.models import SummaryReport, Work

__all__ = ["ingested", "objections", "summary", "work"]


def ingested(rows: Sequence[tuple[str, int, int, SummaryReport]], *, seconds: float, summarised: bool) -> Views:
    """Show what was recorded for each user: name, new messages, known ones, what was made of them."""
    table = table_of("user", ">new", ">known", *((">blocks", ">memories", ">updated") if summarised else ()))
    for user, added, known, report in rows[:FIRST]:
        made = (len(report.blocks), report.created, report.updated) if summarised else ()
        add_row(table, user, *(f"{number:,}" for number in (added, known, *made)))
    if len(rows) > FIRST:
        add_row(table, f"… and {len(rows) - FIRST} more")
    total = sum(added + known for _, added, known, _ in rows)
    speed = f"{counted(total, 'message')} of {counted(len(rows), 'user')} in {seconds:.1f} s"
    reports = [report for *_, report in rows]
    return (table, Text(""), Text(speed), *(line for report in reports for line in _left(report)), *_next(rows))


def _next(rows: Sequence[tuple[str, int, int, SummaryReport]]) -> Views:
    if not rows:
        return ()
    return (Text(f'Next: remegraph recall "..." --user {plain(rows[0][0])!r}', style="dim"),)


def summary(report: SummaryReport) -> Views:
    """Show what a summary did."""
    done = (
        f"{counted(len(report.blocks), 'block')} summarised: {counted(report.created, 'new memory', 'new memories')}, "
        f"{report.updated:,} updated."
    )
    calls = len(report.usage.calls)
    cost = f"{counted(calls, 'model call')}, {report.usage.input_tokens + report.usage.output_tokens:,} tokens."
    return (Text(done), *((Text(cost, style="dim"),) if calls else ()), *_left(report), *objections(report))


def objections(report: SummaryReport) -> Views:
    """Show what the reviser objected to."""
    return tuple(Text(f"• {plain(words)}") for words in report.objections)


def _left(report: SummaryReport) -> Views:
    """Show what a summary left undone."""
    states = {state: sum(item.state == state for item in report.work) for state in ("failed", "review")}
    lines = []
    if states["failed"]:
        lines.append(f"{states['failed']} failed: see `remegraph work`, try again with `remegraph retry`.")
    if states["review"]:
        lines.append(f"{counted(states['review'], 'piece')} of work for a person to look at: see `remegraph work`.")
    if report.warnings:
        lines.append(f"{counted(len(report.warnings), 'statement')} to decide about: see `remegraph conflicts`.")
    if report.pending:
        lines.append(f"{counted(report.pending, 'block')} still to do: run `remegraph summarize`.")
    return tuple(Text(line, style="yellow") for line in lines)


def work(found: Sequence[Work]) -> Views:
    """Show work that waits or failed."""
    if not found:
        return nothing("Nothing waits.")
    table = table_of("!block", "topic", "!state", ">tries", "reason")
    for item in found:
        add_row(
            table, item.block_id, item.topic or "(digest)", state_of(item.state), item.attempts, shortened(item.reason)
        )
    return (table,)
