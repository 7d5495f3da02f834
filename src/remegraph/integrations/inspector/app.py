"""The pages as one application, behind one door."""

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
from remegraph.integrations.inspector import checks, deciding, history, memories, playground, topics, waiting
from remegraph.integrations.inspector.forms import act
from remegraph.integrations.inspector.guarding import Guard, cookie_name
from remegraph.integrations.inspector.pages import Desk, desk, render, words
from remegraph.integrations.inspector.sessions import Session
from remegraph.integrations.inspector.words import Language

__all__ = ["inspector"]


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
        scope: Who looks: nothing else is shown, and nobody can change that.
        session: Lets one person in.
        hosts: The names, with port, under which it is served.
        write: Whether that person may also decide.
        language: Until another one is chosen.
        clock: Tells the time instead of the kit's.
    """
    app = Starlette(
        routes=[
            Route("/login", _login),
            Route("/", topics.show),
            Route("/graph", topics.graph),
            Route("/graph/topic", topics.around),
            Route("/memories", memories.browse),
            Route("/memory", memories.show),
            Route("/timeline", history.timeline),
            Route("/block", history.block),
            Route("/recall", playground.show),
            Route("/conflicts", waiting.conflicts),
            Route("/proposals", waiting.proposals),
            Route("/quarantine", waiting.quarantine),
            Route("/forecast", checks.forecast),
            Route("/health", checks.health),
            Route("/audit", history.audit),
            Route("/conflicts/resolve", act(deciding.resolve), methods=["POST"]),
            Route("/proposals/decide", act(deciding.decide_proposal), methods=["POST"]),
            Route("/quarantine/decide", act(deciding.decide_quarantined), methods=["POST"]),
            Route("/memory/restore", act(deciding.restore), methods=["POST"]),
            Route("/look", act(lambda _desk, _form: None, look=True), methods=["POST"]),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ],
        middleware=[Middleware(Guard, session=session, hosts=hosts)],
        exception_handlers={RemegraphError: _failed, HTTPException: _refused},
    )
    app.state.desk = Desk(kit, scope, session, write, language, clock or kit.clock)
    return app


async def _login(request: Request) -> Response:
    """Let in who has the token, and say to others where it is shown."""
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
