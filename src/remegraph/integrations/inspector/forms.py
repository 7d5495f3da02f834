"""The forms: whose they are is asked first, then whether anything may be decided, then what is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from remegraph.integrations.inspector.pages import THEMES, Desk, desk, words
from remegraph.integrations.inspector.words import LANGUAGES

__all__ = ["Form", "act"]

_LONGEST = 20_000
"""Bytes of a form: whoever sends more sends no form of ours."""

Form = Mapping[str, str]


def act(decide: Callable[[Desk, Form], None], *, look: bool = False) -> Callable[[Request], Any]:
    """Return the endpoint of a form: it asks for our token first, and for leave to write.

    Args:
        decide: Does what the form asks.
        look: It changes nothing but how pages look.
    """

    async def endpoint(request: Request) -> Response:
        form = await _form(request)
        at = desk(request)
        if not at.session.sent(form.get("csrf", "")):
            raise HTTPException(403, words(request)("error.csrf"))
        if not (look or at.write):
            raise HTTPException(403, words(request)("error.read_only"))
        await run_in_threadpool(decide, at, form)
        target = form.get("next", "/")
        response = RedirectResponse(target if _ours(target) else "/", 303)
        if look:
            _keep_looks(response, form)
        return response

    return endpoint


def _ours(target: str) -> bool:
    return target.startswith("/") and not target.startswith("//") and "\\" not in target


def _keep_looks(response: Response, form: Form) -> None:
    for name, choices in (("language", LANGUAGES), ("theme", THEMES)):
        if (chosen := form.get(name, "")) in choices:
            response.set_cookie(f"remegraph-{name}", chosen, max_age=31_536_000, httponly=True, samesite="strict")


async def _form(request: Request) -> Form:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST:
            raise HTTPException(413, words(request)("error.too_long"))
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
