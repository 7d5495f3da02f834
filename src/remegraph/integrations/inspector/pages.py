"""What every page shares: whose memory it shows, in which language, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar, cast
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from remegraph import MemoryKit, Partition, Scope
from remegraph.integrations.inspector.sessions import Session
from remegraph.integrations.inspector.words import LANGUAGES, Language, Words

__all__ = [
    "PAGE",
    "THEMES",
    "Desk",
    "Page",
    "desk",
    "mask",
    "number",
    "page_of",
    "partition_of",
    "render",
    "whole",
    "words",
]

PAGE = 30
"""Entries of a page."""

THEMES = ("auto", "light", "dark")

_HERE = Path(__file__).parent
_DIGITS = 12
_FIELDS = ("user", "agent", "project")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Desk:
    """What an inspector works with, from its start to its end."""

    kit: MemoryKit
    scope: Scope
    session: Session
    write: bool
    """Whether anything may be decided here."""
    language: Language
    """Until another one is chosen."""
    clock: Callable[[], datetime]
    """Tells what is over already."""


@dataclass(frozen=True, slots=True)
class Page(Generic[_T]):
    """A part of a list."""

    number: int
    entries: tuple[_T, ...]
    more: bool


def desk(request: Request) -> Desk:
    """Return what this inspector works with."""
    return cast("Desk", request.app.state.desk)


def words(request: Request) -> Words:
    """Return the texts in the language that the visitor chose."""
    chosen = request.cookies.get("remegraph-language", "")
    return Words(next((language for language in LANGUAGES if language == chosen), desk(request).language))


def number(request: Request, name: str, default: int, *, least: int = 1, most: int = 100_000) -> int:
    """Return a number of the address; the default where it is none."""
    given = whole(request.query_params.get(name, ""))
    return default if given is None else max(least, min(given, most))


def whole(text: str) -> int | None:
    """Return the whole number that somebody typed; none where it is none, or has more digits than any of use."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def page_of(request: Request, found: Iterable[_T]) -> Page[_T]:
    """Return the part of a list that the address asks for, and whether more follows."""
    at = number(request, "page", 1)
    entries = tuple(islice(found, (at - 1) * PAGE, at * PAGE + 1))
    return Page(at, entries[:PAGE], len(entries) > PAGE)


def mask(partition: Partition) -> str:
    """Return which fields a partition has: with the scope, all that is needed to name it in an address."""
    return "-".join(name for name in _FIELDS if getattr(partition, name) is not None)


def partition_of(scope: Scope, masked: str | None) -> Partition | None:
    """Return the partition that `mask` named; never one that the scope does not see."""
    if masked is None:
        return None
    kept = {name: getattr(scope, name) if name in masked.split("-") else None for name in _FIELDS}
    return Partition(tenant=scope.tenant, **kept)


# --------------------------------------------------------------------------------------------- writing pages


def render(request: Request, template: str, code: int = 200, **values: Any) -> HTMLResponse:
    """Return a page.

    Args:
        request: What is answered.
        template: Its file.
        code: The status of the answer.
        values: What it shows.
    """
    at, spoken = desk(request), words(request)
    theme = request.cookies.get("remegraph-theme", "")
    common = {
        "t": spoken,
        "language": spoken.language,
        "theme": theme if theme in THEMES else "auto",
        "themes": THEMES,
        "scope": at.scope,
        "write": at.write,
        "csrf": at.session.csrf,
        "path": request.url.path,
        "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "with_query": lambda **changed: _address(request, changed),
        "mask": mask,
    }
    return HTMLResponse(_environment.get_template(template).render(common | values), code)


def _address(request: Request, changed: Mapping[str, object]) -> str:
    """Return the address of this page with other values."""
    return f"{request.url.path}?{urlencode({**request.query_params, **changed})}"


def _minute(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M}"


def _day(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d}"


def _link(path: str, **query: object) -> str:
    """Return an address: nothing that a memory says gets into one unquoted."""
    return f"{path}?{urlencode(query)}"


_environment = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters |= {"minute": _minute, "day": _day}
_environment.globals |= {"link": _link}
