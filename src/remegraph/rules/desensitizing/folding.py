"""The text that recognisers search: as it reads, however it is typed, with the way back to the original."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remegraph.rules.desensitizing.placeholders import PLACEHOLDER

__all__ = ["ESCAPE", "Folded", "folded"]

ESCAPE = re.compile(r"\\(?P<escaped>u[0-9a-fA-F]{4}|[\"\\/bfnrt])")
"""An escape of JSON: `\n` after a word is a letter to whoever does not know."""

_ESCAPED = {"b": "", "f": " ", "n": "\n", "r": "\r", "t": "\t"}
_HOLES_AND_ESCAPES = re.compile(f"{PLACEHOLDER.pattern}|{ESCAPE.pattern}")

_HOLE = "\x1f"
"""Stands for a placeholder: no word, and white space to every pattern, but none that a pattern asks for by name."""

_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣"), "-")
_ENDS = frozenset("，；！？")
"""They stay wide: in Chinese they end a value that their narrow forms could be part of."""
_UNSEEN = frozenset({"Cc", "Cf", "Mn"})
"""Controls, zero-width characters and marks: they tear words apart for a program, and not for a reader."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A text as it is searched, and where each of its characters stands in the original."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where `text[start:end]` stands in the original."""
        return self.starts[start], self.ends[end - 1]


def folded(text: str, *, escapes: bool = False) -> Folded:
    """Return a text with full-width characters narrow, digits of all scripts as ASCII, no accents, and nothing unseen.

    Args:
        text: Any text. Placeholders in it become holes, so that nothing is found in them.
        escapes: Whether the escapes of JSON are read as what they stand for.
    """
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end, plain in _pieces(text, escapes=escapes):
        characters.extend(plain)
        starts.extend([start] * len(plain))
        ends.extend([end] * len(plain))
    return Folded("".join(characters), starts, ends)


def _pieces(text: str, *, escapes: bool) -> Iterator[tuple[int, int, str]]:
    before = 0
    for found in (_HOLES_AND_ESCAPES if escapes else PLACEHOLDER).finditer(text):
        yield from _plain(text, before, found.start())
        escaped = found["escaped"] if escapes else None
        yield *found.span(), _HOLE if escaped is None else _unescaped(escaped)
        before = found.end()
    yield from _plain(text, before, len(text))


def _unescaped(escaped: str) -> str:
    return _narrow(chr(int(escaped[1:], 16))) if len(escaped) > 1 else _ESCAPED.get(escaped, escaped)


def _plain(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    for at in range(start, end):
        character = text[at]
        yield at, at + 1, _narrow(character)


def _narrow(character: str) -> str:
    if " " <= character <= "~" or character in "\t\n\r" or character in _ENDS:
        return character
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    parts = unicodedata.normalize("NFKD", character).translate(_DASHES)
    return "".join(part for part in parts if unicodedata.category(part) not in _UNSEEN)
