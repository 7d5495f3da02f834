"""The documented drawings are those of the graphs that run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.drawing import svg
from docs.generate import drawings, filled, pages

_DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.requirement("C2", "R6", "R7")
def test_the_documented_drawings_are_those_of_the_graphs() -> None:
    """A drawing that lies is worse than none; `make docs` writes it anew."""
    generated = pages()
    assert {path.name: path.read_text(encoding="utf-8") for path in generated} == {
        path.name: page for path, page in generated.items()
    }


@pytest.mark.requirement("C2")
def test_every_node_is_explained() -> None:
    """A reader who meets a box must find a sentence about it."""
    page = (_DOCS / "graphs.md").read_text(encoding="utf-8")
    nodes = {
        line.strip().partition("(")[0]
        for drawing in drawings().values()
        for line in drawing.splitlines()
        if line.endswith(")") and "(" in line
    }
    assert {"slice", "decide", "assemble"} <= nodes
    assert {node for node in nodes if f"- **{node}** " not in page} == set()


def test_the_site_draws_every_step_and_every_way() -> None:
    """Readers of the site see no Mermaid, which needs a script; they must not see less."""
    for mermaid in drawings().values():
        drawn = svg(mermaid)
        assert drawn.count("<rect") == len(re.findall(r"^\t\w+\(", mermaid, re.MULTILINE)) > 3
        assert drawn.count("marker-end") == len(re.findall(r"-->|-\.->", mermaid)) > 2
        assert drawn.count("dasharray") == mermaid.count("-.->")


def test_a_page_without_its_place_is_an_error() -> None:
    """A marker lost in an edit must not leave an old drawing behind."""
    with pytest.raises(ValueError, match="one place for 'retriever'"):
        filled("no markers", {"retriever": "drawing"})
