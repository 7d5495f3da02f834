"""What `pyproject.toml` asks for is what the code uses."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_EXTRAS = {name: needs for name, needs in _PROJECT["optional-dependencies"].items() if name != "dev"}


def _name(requirement: str) -> str:
    """Return the normalised name of a distribution, without its versions and extras."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def _imported() -> set[str]:
    """Return the top-level packages that the sources import, anywhere in a module; ours and Python's aside."""
    found: set[str] = set()
    for path in (_ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"remegraph"}


def test_every_package_that_is_imported_is_declared() -> None:
    """What comes along by luck is gone after somebody else's release."""
    declared = {_name(need) for need in (*_PROJECT["dependencies"], *chain.from_iterable(_EXTRAS.values()))}
    owners = packages_distributions()
    undeclared = {
        package for package in _imported() if declared.isdisjoint(_name(owner) for owner in owners.get(package, ()))
    }
    assert undeclared == set()


def test_all_holds_every_extra() -> None:
    """`pip install remegraph[all]` promises it."""
    (everything,) = _EXTRAS["all"]
    assert set(re.findall(r"[\w-]+", everything)[1:]) == _EXTRAS.keys() - {"all"}


def test_constraints_are_names_and_exact_versions() -> None:
    """A host or a path in there would work on one machine only."""
    lines = (_ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pin = re.compile(r"#.*|[\w.-]+==[\w.+!-]+")
    assert [line for line in lines if not pin.fullmatch(line)] == []
