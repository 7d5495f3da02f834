"""The house in figures: how many rooms it has, how they lean on each other, what one call walks through; beside goals.

    python -m evals house [--page docs/house.md]

Counted are the modules of `src/remegraph` as they stand, and one message added, summarised, recalled and one sentence
saved offline, the second time that each is done. Lines of code are those that are neither blank, comment nor
docstring. A module that only one other imports may be a part of it. An arrow goes upward where a package imports one
that the layers in `pyproject.toml` put above or beside it. An error is swallowed where a handler of all errors does
nothing. Functions are those with a name that ran; statements, those that reached the database.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import statistics
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import networkx as nx
from sqlalchemy import event
from sqlalchemy.engine import Engine

import remegraph
from evals._figures import Figure, Sense, block, finish
from evals._pages import place
from remegraph import MemoryKit, Scope, Settings
from remegraph.cli.app import whole

__all__ = ["GOALS", "Goal", "House", "Walk", "figures", "main", "upward", "walked"]

ROOT = Path(__file__).parents[1]
_SURFACES = ("adapters", "langchain")
"""Names that the package for agents has, or will have."""
_RUNS = 9
_IMPORT = "import time; began = time.process_time(); import {}; print(time.process_time() - began)"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BROAD = {"Exception", "BaseException"}


class Goal(NamedTuple):
    """What a figure was when the goal was set, 2026-11-22, and what it is to become."""

    was: str
    bar: float
    sense: Sense = "at most"


GOALS: Mapping[str, Goal] = {
    "modules": Goal("488", 220),
    "lines": Goal("61,127", 44_000),
    "lines of code": Goal("39,561", 28_000),
    "modules imported by one other only": Goal("210", 40),
    "modules ending in -ing": Goal("174", 10),
    "largest package, direct modules": Goal("73", 25),
    "public names of remegraph": Goal("73", 40),
    "public names for agents": Goal("33", 25),
    "verbs of MemoryKit": Goal("49", 18),
    "verbs of all facades": Goal("77", 90),
    "top-level commands": Goal("50", 20),
    "files visited: add": Goal("27", 15),
    "files visited: summarize": Goal("93", 45),
    "files visited: recall": Goal("58", 28),
    "files visited: save": Goal("72", 30),
    "functions visited: add": Goal("83", 41),
    "functions visited: summarize": Goal("426", 213),
    "functions visited: recall": Goal("217", 108),
    "functions visited: save": Goal("342", 171),
    "SQL statements: add": Goal("13", 8),
    "SQL statements: summarize": Goal("118", 40),
    "SQL statements: recall": Goal("37", 10),
    "SQL statements: save": Goal("125", 25),
    "imports inside functions": Goal("206", 40),
    "import remegraph / import pydantic, pydantic_settings": Goal("2.4", 1.3),
    "import cycles": Goal("0", 0),
    "swallowed errors": Goal("0", 0),
    "upward arrows": Goal("0", 0),
    "lines of a function, median": Goal("7", 9, "under"),
    "lines of a function, 90 % have fewer than": Goal("22", 28, "under"),
}


@dataclass(frozen=True)
class House:
    """A package as it stands on the disk."""

    root: Path

    @cached_property
    def modules(self) -> Mapping[str, Path]:
        """All modules by their dotted names; a package goes by its own."""
        return {_dotted(self.root, path): path for path in sorted(self.root.rglob("*.py"))}

    @cached_property
    def trees(self) -> Mapping[str, ast.Module]:
        """Their syntax trees."""
        return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in self.modules.items()}

    @cached_property
    def nodes(self) -> Mapping[str, Sequence[ast.AST]]:
        """Everything in each tree, walked once."""
        return {name: tuple(ast.walk(tree)) for name, tree in self.trees.items()}

    @cached_property
    def rooms(self) -> frozenset[str]:
        """Modules that are no packages."""
        return frozenset(name for name, path in self.modules.items() if path.name != "__init__.py")

    def imports(self, *, at_once: bool = False) -> nx.DiGraph[str]:
        """Return who imports whom, at once, later, or by a name in a table.

        Args:
            at_once: Only what an import of the module itself brings along.
        """
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self.modules)
        for name, tree in self.trees.items():
            for node, late in _imports(tree):
                targets = [target for target in self._targets(node) if target != name]
                graph.add_edges_from((name, target) for target in targets if not (at_once and late))
            if not at_once:
                graph.add_edges_from((name, target) for target in self._named(name) if target != name)
        return graph

    def _targets(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        for alias in node.names:
            parts = [alias.name] if isinstance(node, ast.Import) else [f"{node.module}.{alias.name}", str(node.module)]
            yield from [part for part in parts if part in self.modules][:1]

    def _named(self, module: str) -> Iterator[str]:
        """Yield the modules that a table of what is imported later names, as `package.module:attribute`."""
        nodes = self.nodes[module]
        texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
        yield from (text.partition(":")[0] for text in texts if text.partition(":")[0] in self.rooms)

    def shape(self) -> Iterator[tuple[str, float]]:
        """Yield what can be counted without running anything."""
        graph = self.imports()
        sizes = Counter(path.parent for path in self.modules.values())
        nodes = list(chain.from_iterable(self.nodes.values()))
        lengths = sorted(_length(node) for node in nodes if isinstance(node, _DEFINITIONS)) or [0]
        sources = {name: path.read_text(encoding="utf-8") for name, path in self.modules.items()}
        yield "modules", len(self.modules)
        yield "lines", sum(source.count("\n") for source in sources.values())
        yield "lines of code", sum(_lines_of_code(source, self.nodes[name]) for name, source in sources.items())
        yield "modules imported by one other only", sum(graph.in_degree(name) == 1 for name in self.rooms)
        yield "modules ending in -ing", sum(name.endswith("ing") for name in self.rooms)
        yield "largest package, direct modules", max(sizes.values())
        yield (
            "imports inside functions",
            sum(
                isinstance(each, ast.Import | ast.ImportFrom)
                for tree in self.trees.values()
                for node in _outermost(tree)
                for each in ast.walk(node)
            ),
        )
        components = nx.strongly_connected_components(self.imports(at_once=True))
        yield "import cycles", sum(len(component) > 1 for component in components)
        yield "swallowed errors", sum(map(_swallows, nodes))
        yield "lines of a function, median", statistics.median(lengths)
        yield "lines of a function, 90 % have fewer than", lengths[int(len(lengths) * 0.9)]


def _dotted(root: Path, path: Path) -> str:
    parts = [root.name, *path.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.AST, *, late: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield each import, and whether it waits: inside a function, or for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):  # no statement is in there
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, late
        waits = isinstance(node, _DEFINITIONS) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        )
        yield from _imports(node, late=late or waits)


def _outermost(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        yield from [node] if isinstance(node, _DEFINITIONS) else _outermost(node)


def _length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _lines_of_code(source: str, nodes: Iterable[ast.AST]) -> int:
    said = {
        line
        for node in nodes
        if _says(node) and isinstance(node, ast.Expr)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    lines = enumerate(map(str.strip, source.split("\n")), start=1)
    return len({number for number, line in lines if line and not line.startswith("#")} - said)


def _says(node: ast.AST) -> bool:
    """Return whether a statement is a text: a docstring, of a field, too."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _swallows(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
        return bool(_BROAD & {ast.unparse(each) for each in node.args})
    if not isinstance(node, ast.ExceptHandler) or (node.type is not None and ast.unparse(node.type) not in _BROAD):
        return False
    return all(
        isinstance(each, ast.Pass | ast.Continue)
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in node.body
    )


def upward(house: House, layers: Sequence[str]) -> list[tuple[str, str]]:
    """Return the arrows from a package to one above it, or beside it on the same floor.

    Args:
        house: Whose arrows.
        layers: As import-linter writes them, the uppermost first: `a | b` side by side, `(c)` may be missing.
    """
    floors = {
        name.strip(" ()"): floor for floor, layer in enumerate(layers) for name in layer.replace(":", "|").split("|")
    }

    def package(module: str) -> str:
        return module.partition(".")[2].partition(".")[0]

    return [
        (one, other)
        for one, other in house.imports().edges
        if package(one) != package(other)
        and {package(one), package(other)} <= floors.keys()
        and floors[package(other)] <= floors[package(one)]
    ]


@dataclass
class Walk:
    """What the calls under `watched` passed through."""

    codes: set[CodeType] = field(default_factory=set)
    statements: int = 0

    @property
    def files(self) -> int:
        """Source files with code that ran."""
        return len({code.co_filename for code in self.codes})

    @property
    def functions(self) -> int:
        """Named functions that ran."""
        return sum(not code.co_name.startswith("<") for code in self.codes)


@contextmanager
def walked(root: Path) -> Iterator[Callable[[Callable[[], object]], Walk]]:
    """Give what follows a call through the code below a folder, in whatever thread; made before those threads.

    Args:
        root: The folder.
    """
    walk: Walk | None = None

    def call(frame: FrameType, kind: str, _: object) -> None:
        if walk is not None and kind == "call" and frame.f_code.co_filename.startswith(str(root)):
            walk.codes.add(frame.f_code)

    def execute(*_: object) -> None:
        if walk is not None:
            walk.statements += 1

    def follow(what: Callable[[], object]) -> Walk:
        nonlocal walk
        walk = found = Walk()
        what()
        walk = None
        return found

    before = sys.getprofile()
    threading.setprofile(call)
    sys.setprofile(call)
    event.listen(Engine, "before_cursor_execute", execute)
    try:
        yield follow
    finally:
        event.remove(Engine, "before_cursor_execute", execute)
        sys.setprofile(before)
        threading.setprofile(None)  # as the documentation has it


def _walks() -> Iterator[tuple[str, float]]:
    """Yield what the second call of each verb passes through: the first one finds nothing built."""
    scope, found = Scope(user="ann", agent="remy"), dict[str, Walk]()
    with (
        tempfile.TemporaryDirectory() as home,
        walked(Path(remegraph.__file__).parent) as follow,
        MemoryKit.open(settings=Settings(home=Path(home)), model=None, embedder=None) as kit,
    ):
        for hobby in ("hiking in Wales", "chess on Sundays"):
            said = [{"role": "user", "name": "Ann", "content": f"I love {hobby}."}]
            found["add"] = follow(lambda: kit.add_messages(said, scope=scope))  # noqa: B023 - called at once
            found["summarize"] = follow(lambda: kit.summarize(scope=scope, close=True))
            found["recall"] = follow(lambda: kit.recall("What does Ann love?", scope=scope, depth="messages"))
            found["save"] = follow(lambda: kit.save(hobby, f"Berta is fond of {hobby}.", scope=scope))  # noqa: B023
    for verb, walk in found.items():
        yield f"files visited: {verb}", walk.files
        yield f"functions visited: {verb}", walk.functions
        yield f"SQL statements: {verb}", walk.statements


def _verbs(kind: type) -> int:
    """Return how many public functions a class has, an async twin not counted beside its sync one."""
    members = inspect.getmembers_static(kind, lambda each: inspect.isfunction(each) or isinstance(each, classmethod))
    names = {name for name, _ in members if not name.startswith("_")}
    return sum(not (name.startswith("a") and name[1:] in names) for name in names)


def _surface() -> Iterator[tuple[str, float]]:
    """Yield how much a user sees."""
    surface = next(name for name in _SURFACES if (Path(remegraph.__file__).parent / name).exists())
    yield "public names of remegraph", len(remegraph.__all__)
    yield "public names for agents", len(import_module(f"remegraph.{surface}").__all__)
    yield "verbs of MemoryKit", _verbs(MemoryKit)
    with tempfile.TemporaryDirectory() as home, MemoryKit.open(home, model=None, embedder=None) as kit:
        facades = [
            type(each) for name, each in vars(kit).items() if not name.startswith("_") and each is not kit.context
        ]
    yield "verbs of all facades", sum(map(_verbs, facades))
    commands = whole()
    yield "top-level commands", sum(not command.hidden for command in commands.commands.values())


def _import_ratio() -> float:
    """Return how long `import remegraph` keeps the processor busy, in imports of what it must import anyway."""

    def seconds(names: str) -> float:
        run = subprocess.run([sys.executable, "-c", _IMPORT.format(names)], check=True, capture_output=True, text=True)
        return float(run.stdout)

    taken = defaultdict[str, list[float]](list)
    for _ in range(_RUNS):
        for names in ("remegraph", "pydantic, pydantic_settings"):
            taken[names].append(seconds(names))
    ours, others = map(min, taken.values())  # what else the machine does only adds
    return ours / others


def figures(measured: Mapping[str, float]) -> list[Figure]:
    """Return each figure that has a goal, beside it.

    Args:
        measured: All of them by name.
    """
    return [
        Figure(name, measured[name], goal.bar, goal.sense, note=f"{goal.was} when the goal was set")
        for name, goal in GOALS.items()
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print all figures beside their goals."""
    parser = argparse.ArgumentParser(prog="python -m evals house", description="The house in figures.")
    parser.add_argument("--page", type=Path, help="A page with a place for the table, as docs/house.md.")
    options = parser.parse_args(argv)
    house = House(Path(remegraph.__file__).parent)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    measured = {
        **dict(house.shape()),
        **dict(_surface()),
        **dict(_walks()),
        "upward arrows": len(upward(house, layers)),
        "import remegraph / import pydantic, pydantic_settings": _import_ratio(),
    }
    found = figures(measured)
    place(options.page, {"house": block(found)})
    finish(found)


if __name__ == "__main__":
    main()
