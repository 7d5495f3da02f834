"""What agents let each other read, and what they proposed for all."""

from __future__ import annotations

from collections.abc import Sequence

from remegraph.cli.views.looks import FIRST, SHORT_ID, Views, add_row, more, nothing, state_of, table_of
from remegraph.models import Grant, Proposal

__all__ = ["grants", "proposals"]


def grants(found: Sequence[Grant]) -> Views:
    """Show grants, each with what it opens, to whom, and until when."""
    if not found:
        return nothing("No grants.")
    table = table_of("!id", "from", "to", "what", "until", "why")
    for each in found:
        what = ", ".join((*each.layers, *filter(None, [each.topic]), *(name[:SHORT_ID] for name in each.memory_ids)))
        ends = [end for end in (each.revoked_at, each.expires_at) if end is not None]
        until = f"{min(ends):%Y-%m-%d %H:%M}" if ends else "until revoked"
        add_row(table, each.grant_id, each.giver.agent or "", each.to_agent, what, until, each.reason)
    return (table,)


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
    return (table, *more(len(found)))
