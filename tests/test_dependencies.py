"""What `pyproject.toml` asks for is what the code uses."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[1]
_PROJECTS = [_ROOT, *(path.parent for path in sorted((_ROOT / "integrations").glob("*/pyproject.toml")))]


def _project(home: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((home / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def _extras(project: dict[str, Any]) -> dict[str, list[str]]:
    return {name: needs for name, needs in project.get("optional-dependencies", {}).items() if name != "dev"}


def _name(requirement: str) -> str:
    """Return the normalised name of a distribution, without its versions and extras."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def _imported(sources: Path) -> set[str]:
    """Return the top-level packages that the sources import, anywhere in a module; ours and Python's aside."""
    found: set[str] = set()
    for path in sources.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {path.name for path in sources.iterdir()}


@pytest.mark.parametrize("home", _PROJECTS, ids=lambda home: home.name)
def test_every_package_that_is_imported_is_declared(home: Path) -> None:
    """What comes along by luck is gone after somebody else's release."""
    project = _project(home)
    declared = {_name(need) for need in chain(project["dependencies"], *_extras(project).values())}
    owners = {"remegraph": ["remegraph"], **packages_distributions()}  # an editable install is not listed
    undeclared = {
        package
        for package in _imported(home / "src")
        if declared.isdisjoint(_name(owner) for owner in owners.get(package, ()))
    }
    assert undeclared == set()


def test_all_holds_every_extra() -> None:
    """`pip install remegraph[all]` promises it."""
    extras = _extras(_project(_ROOT))
    (everything,) = extras["all"]
    assert set(re.findall(r"[\w-]+", everything)[1:]) == extras.keys() - {"all"}


def test_constraints_are_names_and_exact_versions() -> None:
    """A host or a path in there would work on one machine only."""
    lines = (_ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pin = re.compile(r"#.*|[\w.-]+==[\w.+!-]+")
    assert [line for line in lines if not pin.fullmatch(line)] == []
