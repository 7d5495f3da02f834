"""Names that are known: whole, in their parts, in any case."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from remegraph.language.scripts import CJK, has_cjk
from remegraph.language.tokens import stop_words
from remegraph.rules.desensitizing.finding import Finding
from remegraph.rules.desensitizing.folding import folded

__all__ = ["names"]

_WORD = re.compile(rf"[^\W_{CJK}]+")
_GAP = 3
"""Characters between two words of one name at most."""


def names(text: str, known: Collection[str]) -> Iterator[Finding]:
    """Yield where names stand. Latin ones are whole words; Chinese ones stand anywhere, as no space divides words.

    Args:
        text: Any text.
        known: The names, or ids. Parts of a name count from three letters, or two characters of Chinese; one that is an
            ordinary word, such as "will", only as it is written in the name. An id such as "thread-12" has no parts.
    """
    sought = _sought(frozenset(known))
    yield from _latin(text, sought)
    yield from _chinese(text, sought)


@dataclass(frozen=True, slots=True)
class _Sought:
    """Names as they are looked for."""

    latin: Mapping[str, set[tuple[str, ...]]]
    """The words of each name and part, by the first one."""
    as_written: frozenset[str]
    chinese: Mapping[str, set[str]]
    """Each name whole and without its surname, by the first character."""


@lru_cache(maxsize=8)
def _sought(known: frozenset[str]) -> _Sought:
    """Return names as they are looked for: a share looks for the same ones in text after text."""
    plain = {folded(name).text.strip() for name in known}
    spaced = {name for name in plain if not has_cjk(name)}
    wanted = {name for name in spaced if len(name) > 1} | {part for name in spaced for part in _parts(name)}
    latin: dict[str, set[tuple[str, ...]]] = {}
    for name in wanted:
        if words := tuple(word.casefold() for word in _WORD.findall(name)):
            latin.setdefault(words[0], set()).add(words)
    chinese: dict[str, set[str]] = {}
    for name in plain - spaced:
        given = {3: name[1:], 4: name[2:]}.get(len(name))  # after a surname of one character, or of two
        for each in (name, given or ""):
            if len(each) > 1:
                chinese.setdefault(each[0].casefold(), set()).add(each.casefold())
    return _Sought(latin, frozenset(wanted), chinese)


def _latin(text: str, sought: _Sought) -> Iterator[Finding]:
    found = list(_WORD.finditer(text)) if sought.latin else []
    for at, word in enumerate(found):
        for words in sought.latin.get(word.group().casefold(), ()):
            last = _followed(found, at, words)
            ordinary = len(words) == 1 and words[0] in stop_words() and word.group() not in sought.as_written
            if last is not None and not ordinary:
                yield Finding(word.start(), last.end(), "name")


def _parts(name: str) -> list[str]:
    words = _WORD.findall(name)
    is_name = " " in name and not any(map(str.isdigit, name))
    return [word for word in words if len(word) > 2] if is_name else []


def _followed(found: list[re.Match[str]], at: int, words: tuple[str, ...]) -> re.Match[str] | None:
    """Return the last word of a name that begins at a word, or None where it does not go on so."""
    here = found[at : at + len(words)]
    close = all(right.start() - left.end() <= _GAP for left, right in pairwise(here))
    same = tuple(word.group().casefold() for word in here) == words
    return here[-1] if same and close else None


def _chinese(text: str, sought: _Sought) -> Iterator[Finding]:
    for at, character in enumerate(text) if sought.chinese else ():
        for name in sought.chinese.get(character.casefold(), ()):
            if text[at : at + len(name)].casefold() == name:
                yield Finding(at, at + len(name), "name")
