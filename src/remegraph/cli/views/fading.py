"""How memories last or fade: what is left of one and why, what goes next, what consolidation and maintenance did."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from remegraph.cli.views.looks import FIRST, SHORT_ID, Views, add_row, counted, minute, more, nothing, plain, table_of
from remegraph.cli.views.reading import skills
from remegraph.cli.views.trees import trace
from remegraph.models import Abstraction, Consolidation, Explanation, Fading, Maintenance

__all__ = ["consolidation", "explanation", "forecast", "maintenance"]


def explanation(found: Explanation) -> Views:
    """Show what a memory answers about itself: its way to the words, then its weight, then every event."""
    ends = "never" if found.forget_at is None else f"from {minute(found.forget_at)} on, unless it is reviewed before"
    last = f", last {minute(found.reviews[-1])}" if found.reviews else ""
    events = table_of("!time", "event", "by", "reason")
    for event in found.trace.events:
        add_row(events, minute(event.time), event.action, event.actor, event.reason)
    return (
        trace(found.trace),
        Text(f"{found.layer}, {found.tier} tier, {found.status}. Forgotten: {ends}.", style="bold"),
        Text(plain(found.weight.reason)),
        Text(f"{counted(len(found.reviews), 'review')}{last}", style="dim"),
        *(skills([found.skill]) if found.skill else ()),
        events,
    )


def forecast(found: Sequence[Fading], days: float) -> Views:
    """Show what will be forgotten, the next first."""
    if not found:
        return nothing(f"Nothing will be forgotten in the next {days:g} days.")
    table = table_of("!forgotten from", ">weight", "!id", "memory")
    for each in found[:FIRST]:
        memory = each.memory
        add_row(table, minute(each.forget_at), f"{each.weight:.2f}", memory.memory_id[:SHORT_ID], memory.content)
    return (table, *more(len(found)))


def maintenance(found: Maintenance) -> Views:
    """Show what was moved and merged, or would be, with reasons."""
    verb = "would be moved" if found.dry_run else "moved"
    looked = counted(found.examined, "live memory", "live memories")
    head = Text(f"{len(found.moves):,} of {looked} {verb}.", style="bold")
    table = table_of("from", "to", "!id", "memory", "reason")
    for move in found.moves[:FIRST]:
        memory = move.memory
        add_row(table, memory.status, move.to, memory.memory_id[:SHORT_ID], memory.content, move.reason)
    late = len(found.skipped)
    notes = [f"{late} left alone: changed meanwhile."] if late else []
    notes += [f"Without {plain(reason)}" for reason in found.degraded]
    merged = table_of("!kept", "memory", "merged into it")
    for each in found.merges[:FIRST]:
        others = "\n".join(other.content for other in each.merged)
        add_row(merged, each.kept.memory_id[:SHORT_ID], each.kept.content, others)
    learned = table_of("!id", "abstracted or written")
    made = (*found.abstracted, *found.guidelines)
    for memory in made[:FIRST]:
        add_row(learned, memory.memory_id[:SHORT_ID], memory.content)
    shown = ((table, len(found.moves)), (merged, len(found.merges)), (learned, len(made)))
    tables = tuple(part for each, total in shown if total for part in (each, *more(total)))
    return (head, *tables, *(Text(note, style="yellow") for note in notes))


def consolidation(found: Consolidation) -> Views:
    """Show which long-term memories were made or grew, or would, with how sure they are and when they apply."""
    would = "would be " if found.dry_run else ""
    looked = counted(found.examined, "live memory", "live memories")
    head = (
        f"Of {looked}, {counted(len(found.made), 'long-term memory', 'long-term memories')} {would}made; "
        f"{len(found.grown):,} grown, {len(found.proposed):,} only proposed, {counted(found.linked, 'link')}."
    )
    table = table_of("!id", "conclusion", "when", ">sure", ">said")
    changed = (*found.made, *found.grown)
    for memory in changed[:FIRST]:
        abstraction = Abstraction.of(memory)
        when = ", ".join(abstraction.conditions) if abstraction else ""
        sure = f"{abstraction.confidence:.2f}" if abstraction else ""
        add_row(table, memory.memory_id[:SHORT_ID], memory.content, when, sure, f"{memory.merges + 1}")
    notes = [f"{len(found.waiting)} wait for something to be linked with."] if found.waiting else []
    notes += [f"{len(found.skipped)} left alone: changed meanwhile."] if found.skipped else []
    notes += [f"{len(found.offline)} not concluded: the model's answers could not be used."] if found.offline else []
    notes += [f"Without {plain(reason)}" for reason in found.degraded]
    groups = table_of("!alike, for a model or a person to conclude from")
    for group in found.proposed[:FIRST]:
        add_row(groups, "  ".join(memory_id[:SHORT_ID] for memory_id in group))
    shown = ((table, len(changed)), (groups, len(found.proposed)))
    tables = tuple(part for each, total in shown if total for part in (each, *more(total)))
    return (Text(head, style="bold"), *tables, *(Text(note, style="yellow") for note in notes))
