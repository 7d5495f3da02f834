"""What packs hold, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from remegraph.cli.views.looks import FIRST, Views, add_row, counted, more, plain, table_of
from remegraph.models import PackBuilt, PackDiff, PackInfo, PackInstalled, TrustedKey

__all__ = ["built", "installed", "keys", "new_key", "pack", "pack_difference"]


def pack(found: PackInfo) -> Views:
    """Show what a pack says of itself."""
    signed = f"signed by {found.signer}" if found.signer else found.problem
    grid = Table.grid(padding=(0, 2, 0, 0))
    rows = {
        "pack": f"{found.pack_id} ({found.kind})",
        "for": ", ".join(found.domain),
        "holds": ", ".join(f"{count:,} {name.removesuffix('.jsonl')}" for name, count in found.counts.items()),
        "signature": f"{signed} {f'key {found.key_id}' if found.key_id else ''}".strip(),
        "digest": found.digest,
    }
    for name, value in rows.items():
        if value:
            grid.add_row(Text(name, style="dim"), Text(plain(value), overflow="fold"))
    return (grid,)


def built(done: PackBuilt) -> Views:
    """Show what was written, and what stayed behind."""
    views: list[RenderableType] = [Text(f"Written to {plain(done.path)}.", style="green")]
    if done.left_out:
        table = table_of("left out", "why")
        for memory_id, why in list(done.left_out.items())[:FIRST]:
            add_row(table, memory_id, why)
        views += [table, *more(len(done.left_out))]
    if done.dropped:
        views.append(Text(f"{counted(done.dropped, 'reference')} to memories that stayed behind.", style="dim"))
    return (*pack(done.pack), *views)


def pack_difference(found: PackDiff) -> Views:
    """Show what a pack would do."""
    parts = {
        "new": found.new,
        "known": found.known,
        "conflicting": found.conflicting,
        "waiting for approval": found.quarantined,
        "refused": found.refused,
    }
    table = table_of("what", ">how many", "which")
    for name, ids in parts.items():
        rest = ", …" if len(ids) > FIRST else ""
        add_row(table, name, len(ids), ", ".join(ids[:FIRST]) + rest)
    return (*pack(found.pack), Text(f"Believed {found.trust:g} of 1.", style="dim"), table)


def installed(done: PackInstalled) -> Views:
    """Show what was taken in."""
    if done.replayed:
        return (Text("It was installed before: nothing changed.", style="dim"),)
    views: list[Text | Table] = [
        Text(f"{counted(len(done.memory_ids), 'memory', 'memories')} taken in.", style="green")
    ]
    outcomes = Counter(item.outcome for item in done.items)
    if outcomes:
        views.append(Text(", ".join(f"{count} {name}" for name, count in sorted(outcomes.items())), style="dim"))
    views += [Text(plain(f"Not up to date: {each}"), style="yellow") for each in done.degraded]
    return tuple(views)


def keys(found: Sequence[TrustedKey]) -> Views:
    """Show keys."""
    table = table_of("name", "!key", "state")
    for key in found:
        add_row(table, key.name, key.key_id, "revoked" if key.revoked else "trusted")
    return (table,)


def new_key(key_id: str, public: str) -> Views:
    """Show the public half of a new key."""
    return (Text(f"Key {key_id}. Others trust it with:"), Text(f"remegraph pack trust NAME {public}", style="bold"))
