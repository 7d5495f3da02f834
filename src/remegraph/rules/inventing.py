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
        for found in _FIGURE.findall(text):
            if found not in figures:
                return found
        for found in _named(text):
            if found.casefold() not in known:
                return found
    return ""


def _named(text: str) -> Iterator[str]:
    yield from _ADDRESS.findall(text)
    for entity in entities(text):
        if entity.kind != "date":
            yield entity.text
    for match in _CAPITAL.finditer(text):
        if match.start() and not re.search(r"[.!?:;。！？：；\n]\s*$|[\"“(]$", text[: match.start()]):
            yield match.group()
