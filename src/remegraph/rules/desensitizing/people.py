"""Names that are known: whole, in their parts, in any case."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise

from remegraph.language.scripts import has_cjk
from remegraph.language.tokens import stop_words
from remegraph.rules.desensitizing.finding import Finding
from remegraph.rules.desensitizing.folding import folded

__all__ = ["names"]

_WORD = re.compile(r"[^\W_]+")
_GAP = 3
"""Characters between two words of one name at most."""


def names(text: str, known: Collection[str]) -> Iterator[Finding]:
    """Yield where names stand. Latin ones are whole words; Chinese ones stand anywhere, as no space divides words.

    Args:
        text: Any text.
        known: The names. Parts of one count from three letters, or two characters of Chinese; a part that is an
            ordinary word, such as "will", only as it is written in the name.
    """
    plain = {folded(name).text.strip() for name in known}
    yield from _latin(text, {name for name in plain if not has_cjk(name)})
    yield from _chinese(text, {name for name in plain if has_cjk(name)})


def _latin(text: str, known: Collection[str]) -> Iterator[Finding]:
    by_first: dict[str, set[tuple[str, ...]]] = {}
    as_written: set[str] = set()
    for name in known:
        words = _WORD.findall(name)
        parts = [word for word in words if len(word) > 2 and len(words) > 1 and not word.isdigit()]
        as_written.update(part for part in (parts or words) if part.lower() in stop_words())
        for each in ([words] if len(name) > 1 else []) + [[part] for part in parts]:
            key = tuple(word.casefold() for word in each)
            by_first.setdefault(key[0], set()).add(key) if key else None
    if not by_first:
        return
    found = list(_WORD.finditer(text))
    for at, word in enumerate(found):
        for name_words in by_first.get(word.group().casefold(), ()):
            last = _followed(found, at, name_words)
            alone = len(name_words) == 1 and word.group().lower() in stop_words()
            if last is not None and not (alone and word.group() not in as_written):
                yield Finding(word.start(), last.end(), "name")


def _followed(found: list[re.Match[str]], at: int, words: tuple[str, ...]) -> re.Match[str] | None:
    """Return the last word of a name that begins at a word, or None where it does not go on so."""
    here = found[at : at + len(words)]
    close = all(right.start() - left.end() <= _GAP for left, right in pairwise(here))
    same = tuple(word.group().casefold() for word in here) == words
    return here[-1] if same and close else None


def _chinese(text: str, known: Collection[str]) -> Iterator[Finding]:
    by_first: dict[str, set[str]] = {}
    for name in known:
        given = name[1:] if len(name) == 3 else name[2:]
        for each in (name, given):
            if len(each) > 1:
                by_first.setdefault(each[0].casefold(), set()).add(each.casefold())
    for at, character in enumerate(text) if by_first else ():
        for name in by_first.get(character.casefold(), ()):
            if text[at : at + len(name)].casefold() == name:
                yield Finding(at, at + len(name), "name")
