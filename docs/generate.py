"""Writes what code knows better into the pages of the documentation: `make docs`.

A page holds pairs of markers, `<!-- begin: name -->` and `<!-- end: name -->`; what stands between them is generated.
`tests/engine/test_drawings.py` holds the pages to it.
"""

from __future__ import annotations

import ast
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Literal, get_args, get_origin

from langgraph.graph.state import CompiledStateGraph
from pydantic.fields import FieldInfo

from remegraph import MemoryKit, Settings
from remegraph.settings import _IN_ENVIRONMENT, _fields
from remegraph.testing import InMemoryVectorIndex

__all__ = ["drawings", "filled", "named_in", "named_in_tests", "pages", "requirements", "settings"]

_DOCS = Path(__file__).parent
_ROOT = _DOCS.parent


@cache
def drawings() -> Mapping[str, str]:
    """Return the drawing of each graph, in Mermaid, by its name."""
    with (
        tempfile.TemporaryDirectory() as home,
        MemoryKit.open(home, model=None, embedder=None, index=InMemoryVectorIndex()) as kit,
    ):
        parts = kit.context.parts()
        # LangGraph's xray looks only into subgraphs that may keep checkpoints: ours never do, so it is drawn by itself.
        sub_agent = parts.summarizer.builder.nodes["sub_agent"].runnable
        assert isinstance(sub_agent, CompiledStateGraph)
        graphs = {
            "summarizer": parts.summarizer,
            "sub_agent": sub_agent,
            "retriever": parts.retriever,
            "extractor": kit.knowledge._extractor,
        }
        return {name: graph.get_graph().draw_mermaid() for name, graph in graphs.items()}


def named_in(source: str) -> set[str]:
    """Return the ids in all `pytest.mark.requirement(...)` of a module.

    Found in the syntax tree, so marks on functions, classes, modules and parameters count alike, and no selection of
    tests can hide one.

    Args:
        source: The code of the module.
    """
    return {
        ast.literal_eval(argument)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.requirement")
        for argument in node.args
    }


@cache
def named_in_tests() -> Mapping[str, list[str]]:
    """Return the test modules by the id that they name; those about the marks themselves aside."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((*(_ROOT / "tests").rglob("test_*.py"), *_ROOT.glob("integrations/*/tests/test_*.py"))):
        if path.name != "test_requirements.py":
            for name in named_in(path.read_text(encoding="utf-8")):
                found[name].append(path.relative_to(_ROOT).as_posix())
    return found


def requirements() -> dict[str, str]:
    """Return a table of the requirements of each letter, with the tests that prove them."""
    manifest = tomllib.loads((_ROOT / "tests/requirements.toml").read_text(encoding="utf-8"))
    proofs = named_in_tests()
    tables: defaultdict[str, list[str]] = defaultdict(list)
    for name, entry in manifest.items():
        tests = proofs.get(name, []) if entry["status"] == "done" else []
        links = ", ".join(f"[{path.removeprefix('tests/')}](../{path})" for path in tests) or "not yet"
        sentence = entry["sentence"].replace("|", "\\|")
        tables[name[0]].append(f"| {name} | {sentence} | {links} |")
    head = "\n| | what must hold | tests |\n|---|---|---|\n"
    return {letter: head + "\n".join(rows) + "\n" for letter, rows in tables.items()}


_IN_FILES = {
    "ledger_url": "; its password: the file that `?password_file=` names, mode 600 or 640, or libpq's `PGPASSFILE`, 600",
    "journal_key": ", or `journal.key` in the home, mode 600 or 640",
}
"""Where secrets may be kept instead, by the setting."""

_BESIDE = """\
| all of these | none | `REMEGRAPH_SETTINGS` | TOML file that has them by name; of commands, `--settings` names another one. |
| key of the provider | none | `OPENAI_API_KEY` | Unless others are given, `openai:gpt-5-mini` is the model where it is set, and `openai:text-embedding-3-small` the embedder. Keys of other providers are named as their LangChain package has it. |
| `--user` | `me` | `REMEGRAPH_USER` | Command line: the person talked with. |
| `--agent` | none | `REMEGRAPH_AGENT` | Command line: the agent that remembers. |
| `--project` | none | `REMEGRAPH_PROJECT` | Command line: the project worked on. |
| `--tenant` | `default` | `REMEGRAPH_TENANT` | Command line: the organisation. |
| token of `remegraph mcp --http` | a new one, which is printed | `REMEGRAPH_MCP_TOKEN` | Stands for the user of the options. |
| `--tokens` of the same | none | a file of JSON, mode 600 or 640 | The user of each token; read again when it changes. |
"""


def settings() -> str:
    """Return a table of all settings, with their defaults, and the variables and files of secrets that hold them."""
    rows = [
        f"| `{name}` | {_default(field)} | {_variable(name)}{_IN_FILES.get(name, '')} | "
        f"{(field.description or '').replace('|', chr(92) + '|')}{_allowed(field.annotation)}{_bounds(field)} |"
        for name, field in _fields(Settings)
    ]
    head = "\n| setting | unless given | variable, or file | what |\n|---|---|---|---|\n"
    return head + "\n".join(rows) + f"\n{_BESIDE}"


def _variable(name: str) -> str:
    return f"`REMEGRAPH_{name.upper()}`" if name in _IN_ENVIRONMENT else ""


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s" if value < timedelta(days=1) else f"{value / timedelta(days=1):g} days"
    if isinstance(value, frozenset | set | tuple | dict):
        return f"`{', '.join(sorted(map(str, value)))}`" if value else "none"
    return "none" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _allowed(kind: object) -> str:
    """Return the values of a setting that takes no others."""
    several = get_origin(kind) in (frozenset, tuple)
    options = get_args(get_args(kind)[0] if several else kind)
    values = [each for option in options for each in get_args(option) or [option] if isinstance(each, str)]
    closed = all(isinstance(each, str) or each is type(None) or get_origin(each) is Literal for each in options)
    return (
        f" {'Any' if several else 'One'} of: {', '.join(f'`{each}`' for each in values)}." if values and closed else ""
    )


_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def _bounds(field: FieldInfo) -> str:
    """Return between which numbers a setting lies."""
    found = [
        f"{words} {_number(bound)}"
        for name, words in _BOUNDS.items()
        for rule in field.metadata
        if (bound := getattr(rule, name, None)) is not None
    ]
    return f" {' and '.join(found).capitalize()}." if found else ""


def _number(bound: object) -> str:
    return f"{bound.total_seconds():g} s" if isinstance(bound, timedelta) else f"{bound}"


def filled(text: str, parts: Mapping[str, str]) -> str:
    """Return a page with each of these parts between its markers.

    Args:
        text: The page.
        parts: What stands between the markers of each name.

    Raises:
        ValueError: The page lacks the markers of a part.
    """
    for name, part in parts.items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"The page must have one place for {name!r}, between {begin} and {end}.")
        before, after = text.partition(begin)[0], text.partition(end)[2]
        text = f"{before}{begin}\n{part}\n{end}{after}"
    return text


def pages() -> dict[Path, str]:
    """Return each generated page as it should be."""
    graphs = {name: f"\n```mermaid\n{drawing.strip()}\n```\n" for name, drawing in drawings().items()}
    parts = {
        _DOCS / "graphs.md": graphs,
        _DOCS / "requirements.md": requirements(),
        _DOCS / "reference" / "settings.md": {"settings": settings()},
    }
    return {page: filled(page.read_text(encoding="utf-8"), each) for page, each in parts.items()}


if __name__ == "__main__":
    for path, page in pages().items():
        path.write_text(page, encoding="utf-8")
