"""What agents proposed, and who bears it out."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from remegraph.cli.views.looks import FIRST, SHORT_ID, Views, add_row, nothing, state_of, table_of
from remegraph.models import Proposal

__all__ = ["proposals"]


def proposals(found: Sequence[Proposal]) -> Views:
    """Show proposals, each with what became of it, who bears it out, and what was said last."""
    if not found:
        return nothing("No proposals.")
    table = table_of("!id", "state", "what", "agents", "last said")
    for each in found[:FIRST]:
        last = each.endorsements[-1]
        told = f"{last.act} by {last.by}" + (f": {last.reason}" if last.reason else "")
        agents = ", ".join(each.agents)
        add_row(table, each.proposal_id[:SHORT_ID], state_of(each.state), each.memory.content, agents, told)
    more = (Text(f"… and {len(found) - FIRST} more"),) if len(found) > FIRST else ()
    return (table, *more)
