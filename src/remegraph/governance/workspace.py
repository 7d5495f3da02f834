"""Which project a working directory belongs to, and what it is written in (G1): names of files are read, no file is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from remegraph.errors import InputError
from remegraph.models import Workspace
from remegraph.rules.workspaces import is_ignored, is_root, languages_of

__all__ = ["read_workspace"]

_FILES = 2000
_DEPTH = 3


def read_workspace(path: str | Path) -> Workspace:
    """Return the workspace of a folder: the nearest one above it, or itself, that is the root of a project.

    Without such a root it is no project, and has the languages of its files.

    Args:
        path: The working directory.

    Raises:
        InputError: It is no folder, or cannot be read.
    """
    try:
        folder = Path(path).expanduser().resolve(strict=True)
        roots = (each for each in (folder, *folder.parents) if is_root([inside.name for inside in each.iterdir()]))
        root = next(roots, None)
        languages = languages_of(islice(_files(root or folder), _FILES))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a folder ({error}).", "Name a working directory.") from error
    return Workspace(project=root.name or None if root else None, languages=languages)


def _files(root: Path) -> Iterator[str]:
    """Yield the files of a project by their paths from its root, not too deep."""
    for folder, inside, names in os.walk(root):
        here = Path(folder).relative_to(root)
        inside[:] = sorted(name for name in inside if not is_ignored(name)) if len(here.parts) < _DEPTH else []
        yield from (str(here / name) for name in sorted(names))
