"""The languages of a project, told by the names of its files (G1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import PurePath
from typing import NamedTuple

from remegraph.rules.tables import table

__all__ = ["is_ignored", "is_root", "languages_of"]

_SHARE = 0.1
"""A language without a manifest is one of the project's where so many of its source files are in it."""


class _Data(NamedTuple):
    roots: frozenset[str]
    ignored: frozenset[str]
    manifests: Mapping[str, str]
    extensions: Mapping[str, str]


@cache
def _data() -> _Data:
    told = table("workspaces")
    return _Data(frozenset(told["roots"]), frozenset(told["ignored"]), told["manifests"], told["extensions"])


def is_root(names: Collection[str]) -> bool:
    """Return whether a folder is the root of a project.

    Args:
        names: What it holds.
    """
    data = _data()
    return any(name in data.roots or name in data.manifests for name in names)


def is_ignored(folder: str) -> bool:
    """Return whether what stands in a folder is hidden, made, or somebody else's.

    Args:
        folder: Its name.
    """
    return folder.startswith(".") or folder in _data().ignored


def languages_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the programming languages of a project, that with most files first.

    Args:
        paths: Its files, by name or by path from its root; manifests count at the root only.
    """
    data, counted, declared = _data(), Counter[str](), set[str]()
    for path in map(PurePath, paths):
        if len(path.parts) == 1 and path.name in data.manifests:
            declared.add(data.manifests[path.name])
        if language := data.extensions.get(path.suffix.removeprefix(".").lower()):
            counted[language] += 1
    enough = _SHARE * counted.total()
    found = declared | {language for language, number in counted.items() if number >= enough}
    return tuple(sorted(found, key=lambda language: (-counted[language], language)))
