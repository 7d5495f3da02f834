"""Private data in a text: the findings, the text that is searched, and the words that announce a value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from remegraph.settings import PrivateKind
from remegraph.text import table

__all__ = [
    "BLANK",
    "ESCAPE",
    "KINDS",
    "MOST",
    "PLACEHOLDER",
    "Finding",
    "Folded",
    "Kind",
    "announced",
    "either",
    "folded",
    "united",
]

Kind = Literal[PrivateKind, "name"]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""The most certain kind first; names last, as only known names are found."""

_RANK = {kind: rank for rank, kind in enumerate(KINDS)}

MOST = 99_999
"""Highest number of a placeholder."""
PLACEHOLDER = re.compile(rf"<({'|'.join(KINDS)})-([1-9][0-9]{{0,{len(str(MOST)) - 1}}})>")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something private: `text[start:end]`."""

    start: int
    end: int
    kind: Kind


def united(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in order, with overlapping ones merged so that no part of any is left.

    The longest names the kind of a merged finding; among equals, the most certain.
    """
    kept: list[Finding] = []
    names: list[tuple[int, int]] = []  # of each that is kept, how long and how certain the finding is that names it
    for each in sorted(findings, key=lambda found: found.start):
        weight = (each.end - each.start, -_RANK[each.kind])
        if kept and each.start < kept[-1].end:
            last, end = kept[-1], max(kept[-1].end, each.end)
            kept[-1] = Finding(last.start, end, each.kind if weight > names[-1] else last.kind)
            names[-1] = max(names[-1], weight)
        elif each.start < each.end:
            kept.append(each)
            names.append(weight)
    return tuple(kept)


ESCAPE = re.compile(r"\\(?P<escaped>u[0-9a-fA-F]{4}|[\"\\/bfnrt])")
"""An escape of JSON: `\n` after a word looks like a letter unless it is read as an escape."""

_ESCAPED = {"b": "", "f": " ", "n": "\n", "r": "\r", "t": "\t"}
_HOLES_AND_ESCAPES = re.compile(f"{PLACEHOLDER.pattern}|{ESCAPE.pattern}")

_HOLE = "\x1f"
"""Takes the place of a placeholder: not a word, and white space to every pattern, but no pattern names it."""

_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣"), "-")
_ENDS = frozenset("，；！？")
"""They stay wide: in Chinese they end a value that their narrow forms could be part of."""
_UNSEEN = frozenset({"Cc", "Cf", "Mn"})
"""Controls, zero-width characters and marks: they tear words apart for a program, and not for a reader."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A text as it is searched, and the place of each of its characters in the original."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the place of `text[start:end]` in the original."""
        return self.starts[start], self.ends[end - 1]


def folded(text: str, *, escapes: bool = False) -> Folded:
    """Return a text with narrow characters, ASCII digits, no accents and nothing invisible.

    Placeholders become holes, so that nothing is found in them. With `escapes`, the escapes of JSON are read.
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
        yield from ((at, at + 1, _narrow(text[at])) for at in range(before, found.start()))
        escaped, plain = found["escaped"] if escapes else None, _HOLE
        if escaped is not None:
            plain = _narrow(chr(int(escaped[1:], 16))) if len(escaped) > 1 else _ESCAPED.get(escaped, escaped)
        yield *found.span(), plain
        before = found.end()
    yield from ((at, at + 1, _narrow(text[at])) for at in range(before, len(text)))


def _narrow(character: str) -> str:
    if " " <= character <= "~" or character in "\t\n\r" or character in _ENDS:
        return character
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    parts = unicodedata.normalize("NFKD", character).translate(_DASHES)
    return "".join(part for part in parts if unicodedata.category(part) not in _UNSEEN)


BLANK = r"[ \t]{0,3}"


def either(words: Iterable[str], *, first: bool = True, last: bool = True) -> str:
    """Return a pattern of any of some words, the longest first. A space in one may also be `_`, `-` or nothing.

    `first` and `last` say whether an English word must begin and end there; the `Id` of `userId` does not begin one.
    """
    longest = sorted(words, key=len, reverse=True)
    english = [
        r"[ _-]?".join(map(re.escape, word.split())) for word in longest if word[0].isascii() and word[0].isalnum()
    ]
    start, end = "(?<![A-Za-z0-9])" if first else "", "(?![A-Za-z])" if last else ""
    whole = [rf"{start}(?:{'|'.join(english)}){end}"] if english else []
    others = [re.escape(word) for word in longest if not (word[0].isascii() and word[0].isalnum())]
    return f"(?:{'|'.join(whole + others)})"


def announced(cues: Iterable[str], value: str, *, openly: bool = True) -> re.Pattern[str]:
    """Return a pattern of a value that words announce: `order no. 12`, `订单号是12`. The value is its group `value`.

    With `openly`, something such as a colon or "is" must come between.
    """
    between = rf"{BLANK}{either(table('cues')['between'])}" + ("" if openly else "?")
    number = rf"(?:{BLANK}{either(table('cues')['number'], first=False)}\.?)?"
    quote = "(?:[\"`“”‘’「]|'(?!s))?+"
    pattern = rf"{either(cues)}{number}{quote}{between}{BLANK}{quote}(?P<value>{value})"
    return re.compile(pattern, re.IGNORECASE)
