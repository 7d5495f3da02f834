"""Which project a working directory belongs to, and what it is written in."""

from __future__ import annotations

from pathlib import Path

import pytest

from remegraph import InputError
from remegraph.governance.injection import languages_of, read_workspace
from remegraph.models import Workspace


@pytest.mark.requirement("G1")
@pytest.mark.parametrize(
    ("names", "languages"),
    [
        (["pyproject.toml", "README.md"], ("python",)),
        (["package.json", "src/a.ts", "src/b.tsx"], ("typescript", "javascript")),
        (["go.mod", "main.go", "tools/gen.py"], ("go", "python")),
        (["Cargo.toml", *(f"src/{n}.rs" for n in range(20)), "run.sh"], ("rust",)),
        (["examples/web/package.json", "a.py"], ("python",)),
        (["notes.txt", "LICENSE"], ()),
        ([], ()),
    ],
)
def test_manifests_and_most_files_tell_the_languages(names: list[str], languages: tuple[str, ...]) -> None:
    """A rule for Go must not reach a Python project because of one helper script."""
    assert languages_of(names) == languages


@pytest.mark.requirement("G1")
def test_a_folder_inside_a_project_is_of_that_project(tmp_path: Path) -> None:
    """An agent that was started three folders down works on the same thing."""
    inside = tmp_path / "atlas" / "src" / "deep"
    inside.mkdir(parents=True)
    (tmp_path / "atlas" / "pyproject.toml").touch()
    (inside / "main.py").touch()
    for ignored in ("node_modules", ".git", "__pycache__"):
        (tmp_path / "atlas" / ignored).mkdir()
        (tmp_path / "atlas" / ignored / "other.js").touch()
    expected = Workspace(project="atlas", languages=("python",))
    assert read_workspace(inside) == read_workspace(str(tmp_path / "atlas")) == expected


@pytest.mark.requirement("G1")
def test_what_is_no_folder_is_told(tmp_path: Path) -> None:
    """A mistyped path would otherwise look like a project without rules."""
    for wrong in (tmp_path / "nowhere", "a\x00b"):
        with pytest.raises(InputError, match="cannot be read as a folder"):
            read_workspace(wrong)
