"""What happened: the conversation block by block, a block to the letter, the journal."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import groupby

from starlette.requests import Request
from starlette.responses import Response

from remegraph.integrations.inspector.pages import desk, page_of, partition_of, render
from remegraph.models import AuditEntry

__all__ = ["audit", "block", "timeline"]

_WINDOW = timedelta(days=30)


def timeline(request: Request) -> Response:
    """Show the block index, the newest day first."""
    at = desk(request)
    page = page_of(request, reversed(at.kit.blocks(scope=at.scope)))
    days = [(day, tuple(entries)) for day, entries in groupby(page.entries, lambda entry: entry.start_time.date())]
    return render(request, "timeline.html", page=page, days=days)


def block(request: Request) -> Response:
    """Show the raw messages of a block."""
    at = desk(request)
    name = request.query_params.get("id", "")
    partition = partition_of(at.scope, request.query_params.get("of"))
    found = at.kit.retrieve_block(name, scope=at.scope, partition=partition)
    return render(request, "block.html", name=name, messages=found, marked=request.query_params.get("message", ""))


def audit(request: Request) -> Response:
    """Search the journal, the newest first."""
    at, given = desk(request), request.query_params
    since = _day(given.get("since", ""))
    until = _day(given.get("until", ""))
    found = at.kit.governance.audit(
        scope=at.scope,
        since=since or at.clock() - _WINDOW,
        until=None if until is None else datetime.combine(until, time.max, UTC),
    )
    entries = [each for each in found if isinstance(each, AuditEntry) and _wanted(each, given.get("q", ""))]
    page = page_of(request, reversed(entries))
    return render(request, "audit.html", page=page, total=len(entries), q=given.get("q", ""), since=since, until=until)


def _wanted(entry: AuditEntry, text: str) -> bool:
    event = entry.event
    told = (event.actor, event.action, event.record_id, event.operation_id, event.reason)
    return all(any(word in field.casefold() for field in told) for word in text.casefold().split())


def _day(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None
