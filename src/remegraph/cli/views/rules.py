"""What an agent is given: rules, and layers with the reasons for them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from remegraph.cli.views.looks import SHORT_ID, Views, add_row, counted, nothing, plain, table_of
from remegraph.models import Injected, Injection

__all__ = ["injection", "rules"]


def rules(found: Sequence[Injected]) -> Views:
    """Show rules, the layers in their order."""
    return _given(found) or nothing("No rules hold here.")


def injection(found: Injection) -> Views:
    """Show what is given, why the third layer was looked up, and what is left out."""
    head = f"{found.tokens:,} of {found.budget:,} tokens. " + ("" if found.triggers else "Nothing calls for a search.")
    left = [f"Left out ({reason}): {record_id}" for record_id, reason in found.left_out.items()]
    return (
        *(_given(found.shown) or nothing("Nothing is given.")),
        *(Text(plain(trigger.reason)) for trigger in found.triggers),
        *(Text(plain(line), style="yellow") for line in left),
        *(Text(f"Without {plain(reason)}", style="yellow") for reason in found.degraded),
        Text(head.strip(), style="dim"),
    )


def _given(found: Sequence[Injected]) -> Views:
    if not found:
        return ()
    table = table_of("!layer", "!rule", ">weight", "!id", counted(len(found), "entry", "entries"))
    for each in found:
        hit = each.hit
        record = hit.record_id[:SHORT_ID] if hit.kind == "memory" else hit.record_id
        words = f"{hit.summary} (summary)" if each.shortened else hit.text
        add_row(table, each.layer, hit.enforcement or "", f"{10 * hit.importance:g}", record, words)
    return (table,)
