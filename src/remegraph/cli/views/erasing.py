"""What went, what is left, and what is not covered."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from remegraph.cli.views.looks import Views, add_row, counted, nothing, table_of
from remegraph.models import Erasure

__all__ = ["erasures"]


def erasures(receipts: Sequence[Erasure]) -> Views:
    """Show receipts."""
    if not receipts:
        return nothing("Nothing is unfinished.")
    return tuple(part for receipt in receipts for part in _receipt(receipt))


def _receipt(receipt: Erasure) -> Views:
    table = table_of("place", ">removed", ">left")
    for place in receipt.places:
        add_row(table, place.place.replace("_", " "), place.removed, place.left)
    done = Text(f"Erased; {receipt.left} left.", style="green" if receipt.complete else "red")
    kept = Text(f"{counted(receipt.rederived, 'memory', 'memories')} made anew from other words.", style="dim")
    covered: list[RenderableType] = [Text(f"Not covered: {each}.", style="dim") for each in receipt.not_covered]
    return (done, table, kept, *covered, Text(f"Receipt {receipt.erasure_id}", style="dim"))
