"""Names that are known: whole, in their parts, in any case."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
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
    plain = {folded(name).text.strip() for name in known}
    yield from _latin(text, {name for name in plain if not has_cjk(name)})
    yield from _chinese(text, {name for name in plain if has_cjk(name)})


def _latin(text: str, known: Collection[str]) -> Iterator[Finding]:
    wanted = {name for name in known if len(name) > 1} | {part for name in known for part in _parts(name)}
    by_first: dict[str, set[tuple[str, ...]]] = {}
    for name in wanted:
        if words := tuple(word.casefold() for word in _WORD.findall(name)):
            by_first.setdefault(words[0], set()).add(words)
    found = list(_WORD.finditer(text)) if by_first else []
    for at, word in enumerate(found):
        for words in by_first.get(word.group().casefold(), ()):
            last = _followed(found, at, words)
            ordinary = len(words) == 1 and words[0] in stop_words() and word.group() not in wanted
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


def _chinese(text: str, known: Collection[str]) -> Iterator[Finding]:
    by_first: dict[str, set[str]] = {}
    for name in known:
        given = {3: name[1:], 4: name[2:]}.get(len(name))  # after a surname of one character, or of two
        for each in (name, given or ""):
            if len(each) > 1:
                by_first.setdefault(each[0].casefold(), set()).add(each.casefold())
    for at, character in enumerate(text) if by_first else ():
        for name in by_first.get(character.casefold(), ()):
            if text[at : at + len(name)].casefold() == name:
                yield Finding(at, at + len(name), "name")
