"""Whether a text says something that what it was made from does not: a figure, a name, an address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from remegraph.language.entities import entities

__all__ = ["invented"]

_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_ADDRESS = re.compile(r"[a-z][\w+.-]*://\S+|\S+@\S+|\bwww\.\S+|<[^<>\s]*>", re.IGNORECASE)
_CAPITAL = re.compile(r"[^\W\d_]*[A-Z][\w’'-]*")


def invented(texts: Iterable[str], sources: Iterable[str]) -> str:
    """Return what is new in texts; empty where nothing is.

    Args:
        texts: What was written.
        sources: What it was made from.
    """
    known = "\n".join(sources).casefold()
    figures = set(_FIGURE.findall(known))
    for text in texts:
        new = [figure.group() for figure in _FIGURE.finditer(text) if figure.group() not in figures]
        new += [name for name in _named(text) if name.casefold() not in known]
        if new:
            return new[0]
    return ""


def _named(text: str) -> Iterator[str]:
    yield from (match.group() for match in _ADDRESS.finditer(text))
    for entity in entities(text):
        if entity.kind != "date":
            yield entity.text
    for match in _CAPITAL.finditer(text):
        if match.start() and not re.search(r"[.!?:;。！？：；\n]\s*$|[\"“(]$", text[: match.start()]):
            yield match.group()
