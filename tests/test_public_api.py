"""What users see of the package."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from difflib import unified_diff
from importlib import import_module
from pathlib import Path

import pytest

import remegraph
from remegraph import errors
from tests.public_names import LIST, described

_PACKAGE = Path(remegraph.__file__).parent
_ROOT = Path(__file__).parents[1]
_DOORS = ("remegraph", "remegraph.adapters", "remegraph.servers.watch", "remegraph.testing")
_GUESTS = sorted([*(_ROOT / "integrations").glob("*/*/**/*.py"), *(_ROOT / "examples").glob("*.py")])
_MODULES = [path for path in sorted(_PACKAGE.rglob("*.py")) if "migrations" not in path.parts]


def _exported(path: Path) -> list[str] | None:
    """Return `__all__` of a module without running it."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case (
                ast.Assign(targets=[ast.Name("__all__")], value=value)
                | ast.AnnAssign(target=ast.Name("__all__"), value=ast.expr() as value)
            ):
                names: list[str] = ast.literal_eval(value)
                return names
    return None


def _as_isort(name: str) -> tuple[int, str]:
    """Sort key: CONSTANTS, then Classes, then functions; what `ruff --fix` writes."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_the_package_shows_exactly_what_it_exports() -> None:
    """A name that is seen is used, and must then be kept."""
    assert dir(remegraph) == remegraph.__all__
    assert all(getattr(remegraph, name).__name__ == name for name in remegraph.__all__)
    with pytest.raises(AttributeError, match="'Memoir'"):
        _ = remegraph.Memoir


@pytest.mark.parametrize("asked", ["import remegraph", "from remegraph import RemegraphError"])
def test_a_room_is_loaded_when_it_is_first_asked_for(asked: str) -> None:
    """A program that only names the package, or catches its errors, does not wait for records and settings to be built."""
    loaded = (
        "print([name for name in sys.modules if name.partition('.')[0] in {'pydantic', 'sqlalchemy', 'langgraph'}])"
    )
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; {asked}; {loaded}"], check=True, capture_output=True, text=True
    )
    assert run.stdout == "[]\n"


def test_every_error_says_whether_calling_again_may_help() -> None:
    """A host that repeats a call that can never succeed, or gives one up that would, has read the tree in vain."""
    told = re.findall(r"^[ │├└─]+(\w+Error)( ↻)?", errors.__doc__ or "", re.MULTILINE)
    kinds = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
    assert sorted((name, bool(mark)) for name, mark in told) == sorted(
        (kind.__name__, kind.retryable) for kind in kinds
    )


def test_what_is_public_changes_only_on_purpose() -> None:
    """Each of these lines is in somebody's code: a parameter that was renamed by the way breaks it."""
    listed, found = LIST.read_text(encoding="utf-8").splitlines(), described().splitlines()
    changed = [line for line in unified_diff(listed, found, n=0) if line[0] in "-+" and line[:3] not in {"---", "+++"}]
    cure = "If this is meant, run `make api`, and write it into CHANGELOG.md (docs/versioning.md says what a release may change)."
    assert changed == [], cure


@pytest.mark.parametrize("path", _MODULES, ids=lambda path: path.relative_to(_PACKAGE).as_posix())
def test_every_module_sorts_what_it_exports(path: Path) -> None:
    """The list is where readers look first."""
    exported = _exported(path)
    defined = [
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    if exported is None:
        assert defined == [], "public names, and no __all__"
    else:
        assert exported == sorted(set(exported), key=_as_isort)


@pytest.mark.parametrize("path", _GUESTS, ids=lambda path: path.relative_to(_ROOT).as_posix())
def test_what_is_built_upon_it_imports_public_names_only(path: Path) -> None:
    """A package of its own that reaches inside breaks with the next release, and shows others how to."""
    imported = [
        (node.module or "", alias.name)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    ours = [(module, name) for module, name in imported if module.partition(".")[0] == "remegraph"]
    assert ours, "what does it build upon?"
    assert [pair for pair in ours if pair[0] not in _DOORS or pair[1] not in import_module(pair[0]).__all__] == []


def test_import_is_light() -> None:
    """Who imports remegraph pays for the heavy parts when they open a kit, not before."""
    script = "import json, sys, remegraph; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(run.stdout)}
    assert "remegraph" in loaded
    assert loaded.isdisjoint(
        {"chromadb", "langchain_core", "langgraph", "mcp", "numpy", "opentelemetry", "snowballstemmer", "sqlalchemy"}
    )


@pytest.mark.slow
def test_a_small_home_is_opened_and_asked_without_what_it_has_no_use_for(tmp_path: Path) -> None:
    """A function that is started for one request waits for all that is imported on its way."""
    script = (
        "import sys\n"
        "from remegraph import MemoryKit, Scope\n"
        "ann = Scope(user='ann')\n"
        f"with MemoryKit.open({str(tmp_path)!r}, model=None, embedder=None) as kit:\n"
        "    kit.add_messages([{'role': 'user', 'content': 'I love tea.'}], scope=ann)\n"
        "    found = kit.recall('What does Ann love?', scope=ann, depth='messages')\n"
        "print(len(found.messages), *sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    count, *loaded = run.stdout.split()
    assert count == "1"
    heavy = {"chromadb", "cryptography", "jinja2", "langchain", "mcp", "networkx", "onnxruntime", "phonenumbers"}
    heavy |= {"procrastinate", "psycopg", "starlette", "tiktoken", "typer"}
    assert heavy & {name.partition(".")[0] for name in loaded} == set()
    assert [name for name in loaded if name.startswith(("remegraph.cli", "remegraph.adapters"))] == []
