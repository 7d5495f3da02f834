"""What was taken in of another system."""

from __future__ import annotations

from rich.text import Text

from remegraph.cli.views.looks import FIRST, Views, counted, plain
from remegraph.models import Imported

__all__ = ["imported"]


def imported(done: Imported) -> Views:
    """Show what an import did."""
    fresh = done.created + done.corroborated
    views = [
        Text(f"{counted(done.created, 'memory', 'memories')} taken in for {plain(_named(done.users))}.", style="green")
        if fresh
        else Text("Nothing new: nothing changed.", style="dim")
    ]
    told = {
        "say what a memory says already": done.corroborated,
        "were imported before": done.known,
        "were imported before with other words, which stay": len(done.changed),
        "were erased here, and stay so": done.erased,
        "relations of a graph are left out": done.relations,
    }
    views += [Text(f"{count:,} {what}", style="dim") for what, count in told.items() if count]
    views += [Text(plain(f"Skipped: {each}"), style="yellow") for each in done.invalid]
    views += [Text(plain(f"Not up to date: {each}"), style="yellow") for each in done.degraded]
    return tuple(views)


def _named(users: tuple[str, ...]) -> str:
    more = f" and {len(users) - FIRST} more" if len(users) > FIRST else ""
    return f"{', '.join(users[:FIRST])}{more}"
