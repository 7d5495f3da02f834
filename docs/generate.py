"""Writes what code knows better into the pages of the documentation: `make docs`.

A page holds pairs of markers, `<!-- begin: name -->` and `<!-- end: name -->`; what stands between them is generated.
`tests/engine/test_drawings.py` holds the pages to it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from langgraph.graph.state import CompiledStateGraph

from remegraph import MemoryKit
from remegraph.testing import InMemoryVectorIndex

__all__ = ["drawings", "filled", "pages", "prompts"]

_DOCS = Path(__file__).parent


def drawings() -> dict[str, str]:
    """Return the drawing of each graph, in Mermaid, by its name."""
    with (
        tempfile.TemporaryDirectory() as home,
        MemoryKit.open(home, model=None, embedder=None, index=InMemoryVectorIndex()) as kit,
    ):
        parts = kit._open_parts()
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


def prompts() -> dict[str, str]:
    """Return the English prompts by which evals have answers made and judged, by name."""
    files = sorted((_DOCS.parent / "evals/prompts").glob("*.en.md"))
    return {path.name.split(".")[0]: f"\n```text\n{path.read_text(encoding='utf-8').strip()}\n```\n" for path in files}


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
    parts = {_DOCS / "graphs.md": graphs, _DOCS / "evals.md": prompts()}
    return {page: filled(page.read_text(encoding="utf-8"), each) for page, each in parts.items()}


if __name__ == "__main__":
    for path, page in pages().items():
        path.write_text(page, encoding="utf-8")
