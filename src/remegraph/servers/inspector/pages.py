"""Common ground of all pages: whose memory each shows, in which language, and how it is written."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast, get_args
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from remegraph import MemoryKit, Partition, Scope
from remegraph.servers.inspector.access import Session

__all__ = [
    "LANGUAGES",
    "PAGE",
    "THEMES",
    "Desk",
    "Language",
    "Page",
    "Words",
    "catalogue",
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

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
THEMES = ("auto", "light", "dark")

_HERE = Path(__file__).parent
_DIGITS = 12
_FIELDS = ("user", "agent", "project")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Desk:
    """State of an inspector, from its start to its end."""

    kit: MemoryKit
    scope: Scope
    session: Session
    write: bool
    """Whether anything may be decided here."""
    language: Language
    """Until another one is chosen."""
    clock: Callable[[], datetime]
    """Decides what is over already."""


def desk(request: Request) -> Desk:
    """Return what this inspector works with."""
    return cast("Desk", request.app.state.desk)


# --------------------------------------------------------------------------------------------------- language


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Return each text of the inspector by key and language."""
    sections = tomllib.loads((_HERE / "words.toml").read_text(encoding="utf-8")).items()
    return {f"{section}.{name}": texts for section, entries in sections for name, texts in entries.items()}


@dataclass(frozen=True, slots=True)
class Words:
    """The texts in one language."""

    language: Language

    def __call__(self, key: str, **values: object) -> str:
        """Return the text of a key, `section.name`, with values for the names in braces; integers get separators."""
        shown = {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
        return catalogue()[key][self.language].format(**shown)


def words(request: Request) -> Words:
    """Return the texts in the language that the visitor chose."""
    chosen = request.cookies.get("remegraph-language", "")
    return Words(next((language for language in LANGUAGES if language == chosen), desk(request).language))


# ------------------------------------------------------------------------------------------ reading addresses


@dataclass(frozen=True, slots=True)
class Page(Generic[_T]):
    """A part of a list."""

    number: int
    entries: tuple[_T, ...]
    more: bool


def page_of(request: Request, found: Iterable[_T]) -> Page[_T]:
    """Return the part of a list that the address asks for, and whether more follows."""
    at = number(request, "page", 1)
    entries = tuple(islice(found, (at - 1) * PAGE, at * PAGE + 1))
    return Page(at, entries[:PAGE], len(entries) > PAGE)


def number(request: Request, name: str, default: int, *, most: int = 100_000) -> int:
    """Return a number of the address, from 1 to `most`; the default where it is none."""
    given = whole(request.query_params.get(name, ""))
    return default if given is None else max(1, min(given, most))


def whole(text: str) -> int | None:
    """Return the whole number that was typed; `None` where it is none, or has more digits than are of use."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def mask(partition: Partition) -> str:
    """Return which fields a partition has: with the scope, all that is needed to name it in an address."""
    return "-".join(name for name in _FIELDS if getattr(partition, name) is not None)


def partition_of(scope: Scope, masked: str | None) -> Partition | None:
    """Return the partition that `mask` named; never one that the scope does not see."""
    if masked is None:
        return None
    kept = {name: getattr(scope, name) if name in masked.split("-") else None for name in _FIELDS}
    return Partition(tenant=scope.tenant, **kept)


# ---------------------------------------------------------------------------------------------- writing pages


def render(request: Request, template: str, code: int = 200, **values: Any) -> HTMLResponse:
    """Return the page of a template that shows some values, with a status code."""
    at, spoken = desk(request), words(request)
    theme, path = request.cookies.get("remegraph-theme", ""), request.url.path
    common = {
        "t": spoken,
        "language": spoken.language,
        "theme": theme if theme in THEMES else "auto",
        "themes": THEMES,
        "scope": at.scope,
        "write": at.write,
        "csrf": at.session.csrf,
        "path": path,
        "here": path + (f"?{request.url.query}" if request.url.query else ""),
        "with_query": lambda **changed: f"{path}?{urlencode({**request.query_params, **changed})}",
        "mask": mask,
    }
    return HTMLResponse(_environment.get_template(template).render(common | values), code)


def _link(path: str, **query: object) -> str:
    """Return an address in which everything that a memory says is quoted."""
    return f"{path}?{urlencode(query)}"


_environment = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters |= {
    "minute": lambda time: "" if time is None else f"{time:%Y-%m-%d %H:%M}",
    "day": lambda time: "" if time is None else f"{time:%Y-%m-%d}",
}
_environment.globals |= {"link": _link}
