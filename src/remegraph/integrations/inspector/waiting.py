"""What waits for a person: contradictions, what agents propose, what nobody vouches for."""

from __future__ import annotations

from typing import get_args

from starlette.requests import Request
from starlette.responses import Response

from remegraph.integrations.inspector.pages import desk, page_of, render
from remegraph.models import ConflictKind, Decision

__all__ = ["conflicts", "proposals", "quarantine"]


def conflicts(request: Request) -> Response:
    """Show the conflicts, both sides of each."""
    at = desk(request)
    resolved = request.query_params.get("state") == "resolved"
    found = at.kit.conflicts.list(
        scope=at.scope, state="resolved" if resolved else "open", kinds=get_args(ConflictKind)
    )
    return render(
        request, "conflicts.html", page=page_of(request, found), resolved=resolved, decisions=get_args(Decision)
    )


def proposals(request: Request) -> Response:
    """Show what agents propose for all."""
    at = desk(request)
    found = at.kit.sharing.proposals(scope=at.scope)
    return render(request, "proposals.html", page=page_of(request, found))


def quarantine(request: Request) -> Response:
    """Show what nothing recalls until somebody approves it."""
    at = desk(request)
    return render(request, "quarantine.html", page=page_of(request, at.kit.knowledge.waiting(scope=at.scope)))
