"""The inspector: a local web page on which a person looks at a memory, and decides where something waits.

Its pages are one application behind one door.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from remegraph import ConflictError, InputError, MemoryKit, NotFoundError, RemegraphError, Scope
from remegraph.servers.inspector import decisions, views
from remegraph.servers.inspector.access import Guard, Session, cookie_name, shown
from remegraph.servers.inspector.pages import Desk, Language, desk, render, words
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
            *decisions.ROUTES,
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
    """Let in the visitor who has the token, and tell others where it is shown."""
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
