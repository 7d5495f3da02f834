"""How memories came about, what differs between versions, and the journal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from rich.tree import Tree

from remegraph.cli.views.looks import (
    FIRST,
    SHORT_ID,
    Views,
    add_row,
    counted,
    minute,
    more,
    nothing,
    plain,
    shortened,
    state_of,
    table_of,
)
from remegraph.models import Archaeology, AuditEntry, AuditHead, Diff, Find, Mismatch, Quote, VersionNote

__all__ = ["archaeology", "audit", "checked", "difference", "exported"]

_STYLES = {"same": "", "removed": "red strike", "added": "green"}
_SIGNS = {"same": "{}", "removed": "[-{}-]", "added": "[+{}+]"}
"""The differences are readable without colour, too."""


def archaeology(found: Archaeology) -> Views:
    """Show the chain of a memory as a tree, and what of it holds."""
    tree = _with_versions(Tree(_head(found.memory), guide_style="dim"), found.memory)
    for name, older in (("replaced by", False), ("replaced", True)):
        if finds := found.beyond(found.memory, older=older):
            _add(tree.add(Text(name, style="cyan")), found, finds, older=older)
    holds = [f"{memory.memory_id[:SHORT_ID]}  {plain(memory.content)}" for memory in found.held]
    return (tree, Text("Holds: " + ("; ".join(holds) or "none of it"), style="bold"))


def _add(branch: Tree, found: Archaeology, finds: Sequence[Find], *, older: bool) -> None:
    for find in finds:
        _add(_with_versions(branch.add(_head(find)), find), found, found.beyond(find, older=older), older=older)


def _head(find: Find) -> Text:
    return Text.assemble(
        plain(find.head.content), "  ", state_of(find.status), (f"  {find.memory_id[:SHORT_ID]}", "dim")
    )


def _with_versions(tree: Tree, find: Find) -> Tree:
    told: list[Quote] = []
    for note in find.versions:
        tree.add(_version(note, [quote for quote in note.quotes if quote not in told]))
        told += note.quotes
    return tree


def _version(note: VersionNote, quotes: Sequence[Quote]) -> Text:
    memory = note.memory
    begins = minute(memory.valid_from or memory.said_at)
    times = f"true from {begins}" + (f" to {minute(memory.valid_to)}" if memory.valid_to else "")
    times = "never true" if memory.corrected else times
    done = f"{memory.version}  {minute(memory.recorded_at)}  {note.action} by {plain(note.actor)}"
    shown = Text(done + (f": {plain(note.reason)}" if note.reason else ""))
    shown.append(f"\n   {times}, said {minute(memory.said_at)}", style="dim")
    for quote in quotes:
        shown.append(f"\n   “{shortened(quote.words)}”", style="italic")
    return shown


def difference(found: Diff) -> Views:
    """Show what differs between two versions."""
    if not found.fields:
        return nothing(f"Versions {found.before} and {found.after} say the same.")
    words = Text()
    for run in found.words:
        kept = run.words.rstrip()
        words.append(_SIGNS[run.change].format(plain(kept)), style=_STYLES[run.change]).append(run.words[len(kept) :])
    table = table_of("!field", f"version {found.before}", f"version {found.after}")
    for field in found.fields:
        add_row(table, field.name, shortened(field.before), shortened(field.after))
    return (words, table)


def audit(found: Sequence[AuditEntry | AuditHead]) -> Views:
    """Show the newest events, and where each partition's chain stands."""
    events = [each for each in found if isinstance(each, AuditEntry)]
    if not events:
        return nothing("Nothing happened.")
    table = table_of("!time", "event", "!record", "!versions", "by", "reason")
    for entry in events[-FIRST:]:
        event = entry.event
        versions = f"{entry.before} → {entry.after}" if entry.after else ""
        add_row(
            table, minute(event.time), event.action, event.record_id[:SHORT_ID], versions, event.actor, event.reason
        )
    left_out = len(events) - FIRST
    earlier = (Text(f"{left_out:,} earlier ones: see --export or --json."),) if left_out > 0 else ()
    return (*earlier, table, *_heads([each for each in found if isinstance(each, AuditHead)]))


def exported(name: str, heads: Sequence[AuditHead]) -> Views:
    """Show what was exported, and the heads to be kept."""
    total = counted(sum(head.events for head in heads), "event")
    keep = "Keep the last lines of it where nobody can change them: they show later whether anything was taken away."
    return (Text(f"{total} written to {plain(name)}."), *_heads(heads), Text(keep, style="dim"))


def _heads(heads: Sequence[AuditHead]) -> Views:
    return tuple(Text(f"{counted(head.events, 'event')} up to {head.chain}", style="dim") for head in heads)


def checked(name: str, wrong: Sequence[Mismatch]) -> Views:
    """Show whether an exported file is whole."""
    if not wrong:
        return (Text(f"{plain(name)} is whole.", style="green"),)
    table = table_of("!line", "problem")
    for mismatch in wrong[:FIRST]:
        add_row(table, mismatch.record_id, mismatch.problem)
    return (Text(f"{plain(name)} is not what was exported.", style="red"), table, *more(len(wrong)))
