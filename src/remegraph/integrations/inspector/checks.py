"""What will be forgotten, what waits and failed, and how the home is."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from remegraph.integrations.inspector.pages import PAGE, desk, number, page_of, render

__all__ = ["forecast", "health"]


def forecast(request: Request) -> Response:
    """Show what will be forgotten, the next first; try a clean-up where that is asked for, as it looks at everything."""
    at = desk(request)
    days = number(request, "days", 30, most=3650)
    found = at.kit.forecast(days, scope=at.scope)
    now = at.clock()
    cleanup = at.kit.maintain(scope=at.scope, dry_run=True) if request.query_params.get("cleanup") else None
    due = sum(each.forget_at <= now for each in found)
    return render(
        request,
        "forecast.html",
        page=page_of(request, found),
        total=len(found),
        due=due,
        days=days,
        now=now,
        cleanup=cleanup,
        most=PAGE,
    )


def health(request: Request) -> Response:
    """Show counts and the work left undone; look for whatever is wrong where that is asked for, as it takes a while."""
    at = desk(request)
    examined = at.kit.admin.examine() if request.query_params.get("examine") else None
    return render(
        request, "health.html", stats=at.kit.admin.stats(), work=at.kit.work(scope=at.scope), examined=examined
    )
