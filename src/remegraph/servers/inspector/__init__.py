"""The inspector: a local web page on which a person looks at a memory, and decides where something waits.

Its pages are one application behind one door. The forms by which a person decides are here, and the pages that lead to them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from remegraph import ConflictError, InputError, MemoryKit, NotFoundError, RemegraphError, Scope
from remegraph.models import ConflictKind, Decision
from remegraph.servers.inspector import views
from remegraph.servers.inspector.access import Guard, Session, cookie_name, shown
from remegraph.servers.inspector.pages import LANGUAGES, THEMES, Desk, Language, desk, page_of, render, whole, words
from remegraph.servers.watch import AccessLog, probes

__all__ = ["Session", "inspector"]


def inspector(
    kit: MemoryKit,
    scope: Scope,
    *,
    session: Session,
    hosts: Collection[str],
    write: bool = False,
    language: Language = "en",
    clock: Callable[[], datetime] | None = None,
) -> Starlette:
    """Return the inspector of what a scope may see, as an ASGI application.

    Args:
        kit: The memory.
        scope: The only scope that is shown; it cannot be changed.
        session: Lets one person in.
        hosts: The names, with port, under which it is served.
        write: Whether that person may also decide.
        language: Until another one is chosen.
        clock: Used instead of the kit's.
    """
    app = Starlette(
        routes=[
            Route("/login", _login),
            *views.ROUTES,
            *_DECISIONS,
            *probes(kit),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ],
        middleware=[
            Middleware(AccessLog, server="inspector", shown=shown),
            Middleware(Guard, session=session, hosts=hosts),
        ],
        exception_handlers={RemegraphError: _failed, HTTPException: _refused},
    )
    app.state.desk = Desk(kit, scope, session, write, language, clock or kit.context.clock)
    return app


async def _login(request: Request) -> Response:
    """Let in the visitor who has the token, and show others where to find it."""
    session, name = desk(request).session, cookie_name(request.headers["host"])
    if session.knows(request.cookies.get(name, "")):
        return RedirectResponse("/", 303)
    cookie = session.enter(request.query_params.get("token", ""))
    if cookie is None:
        return await run_in_threadpool(render, request, "login.html", 401)
    response = RedirectResponse("/", 303)
    response.set_cookie(name, cookie, httponly=True, samesite="strict")
    return response


def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RemegraphError)
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 503)
    return render(request, "error.html", status, what=error.what, cure=error.cure)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = words(request)("error.no_page") if error.status_code == 404 else error.detail
    return render(request, "error.html", error.status_code, what=what, cure="")


_STATUS: tuple[tuple[type[RemegraphError], int], ...] = ((NotFoundError, 404), (ConflictError, 409), (InputError, 400))


# ------------------------------------------------------------------------------------------- what a person decides


_LONGEST = 20_000
"""Bytes of a form; ours are shorter."""

_Fieldset = Mapping[str, str]


def _conflicts(request: Request) -> Response:
    """Show the conflicts, both sides of each."""
    at = desk(request)
    resolved = request.query_params.get("state") == "resolved"
    found = at.kit.conflicts.list(
        scope=at.scope, state="resolved" if resolved else "open", kinds=get_args(ConflictKind)
    )
    return render(
        request, "conflicts.html", page=page_of(request, found), resolved=resolved, decisions=get_args(Decision)
    )


def _proposals(request: Request) -> Response:
    """Show what agents propose for all."""
    at = desk(request)
    return render(request, "proposals.html", page=page_of(request, at.kit.sharing.proposals(scope=at.scope)))


def _quarantine(request: Request) -> Response:
    """Show what nothing recalls until a person approves it."""
    at = desk(request)
    return render(request, "quarantine.html", page=page_of(request, at.kit.knowledge.waiting(scope=at.scope)))


def _resolve(at: Desk, fields: _Fieldset) -> None:
    """Decide a conflict."""
    at.kit.conflicts.resolve(
        fields.get("id", ""),
        cast("Decision", fields.get("decision", "")),
        scope=at.scope,
        by=at.scope.user,
        note=fields.get("note", ""),
        keep=fields.get("keep", ""),
    )


def _decide_proposal(at: Desk, fields: _Fieldset) -> None:
    """Approve or reject a proposal."""
    at.kit.sharing.decide(
        fields.get("id", ""),
        approve=_approved(fields),
        scope=at.scope,
        actor=at.scope.user,
        reason=fields.get("note", ""),
    )


def _decide_quarantined(at: Desk, fields: _Fieldset) -> None:
    """Let a quarantined memory hold, or delete it."""
    at.kit.knowledge.decide(
        fields.get("id", ""), approve=_approved(fields), scope=at.scope, by=at.scope.user, note=fields.get("note", "")
    )


def _approved(fields: _Fieldset) -> bool:
    decision = fields.get("decision", "")
    if decision not in {"approve", "reject"}:
        raise InputError(f"{decision!r} is no decision.", "Send approve or reject.")
    return decision == "approve"


def _restore(at: Desk, fields: _Fieldset) -> None:
    """Bring an archived memory back, or let an old version hold again."""
    at.kit.restore(fields.get("id", ""), scope=at.scope, version=whole(fields.get("version", "")))


def _form(decide: Callable[[Desk, _Fieldset], None] | None) -> Callable[[Request], Any]:
    """Return the endpoint of a form: it checks our token, then whether the visitor may write, and then decides.

    Args:
        decide: Does what the form asks; `None` for the form that only changes how pages look.
    """

    async def endpoint(request: Request) -> Response:
        fields, at = await _fields(request), desk(request)
        if not at.session.sent(fields.get("csrf", "")):
            raise HTTPException(403, words(request)("error.csrf"))
        if decide is not None:
            if not at.write:
                raise HTTPException(403, words(request)("error.read_only"))
            await run_in_threadpool(decide, at, fields)
        target = fields.get("next", "/")
        ours = target.startswith("/") and not target.startswith("//") and "\\" not in target
        response = RedirectResponse(target if ours else "/", 303)
        for name, choices in (("language", LANGUAGES), ("theme", THEMES)) if decide is None else ():
            if (chosen := fields.get(name, "")) in choices:
                response.set_cookie(f"remegraph-{name}", chosen, max_age=31_536_000, httponly=True, samesite="strict")
        return response

    return endpoint


async def _fields(request: Request) -> _Fieldset:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST:
            raise HTTPException(413, words(request)("error.too_long"))
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


_DECISIONS = [
    Route("/conflicts", _conflicts),
    Route("/proposals", _proposals),
    Route("/quarantine", _quarantine),
    Route("/conflicts/resolve", _form(_resolve), methods=["POST"]),
    Route("/proposals/decide", _form(_decide_proposal), methods=["POST"]),
    Route("/quarantine/decide", _form(_decide_quarantined), methods=["POST"]),
    Route("/memory/restore", _form(_restore), methods=["POST"]),
    Route("/look", _form(None), methods=["POST"]),
]
