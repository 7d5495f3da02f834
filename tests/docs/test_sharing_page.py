"""The pages on sharing and packs are copied by people whose agents shall learn from each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from remegraph import MemoryKit, Scope
from remegraph.exchange.signing import SigningKey

_DOCS = Path(__file__).parents[2] / "docs"
_CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)


def printed(page: str, section: str, home: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run the code of a section, or of the whole page; return the lines that it prints."""
    text = (_DOCS / page).read_text(encoding="utf-8")
    text = dict(_SECTION.findall(text))[section] if section else text
    code = "\n".join(_CODE.findall(text)).replace('"~/.my-agent"', f'"{home}", model=None, embedder=None')
    names: dict[str, Any] = {}
    exec(compile(code, page, "exec", dont_inherit=True), names)
    names["kit"].close()
    return capsys.readouterr().out.splitlines()


@pytest.mark.requirement("B11")
def test_the_example_of_grants_prints_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A grant that is copied from the page opens what it should, and its revocation closes it."""
    *shown, nothing = printed("sharing.md", "Grants", tmp_path, capsys)
    assert '"from": "agent scout"' in "".join(shown)
    assert "under the stone" in "".join(shown)
    assert nothing == "()"


@pytest.mark.requirement("B12")
def test_the_example_of_consensus_prints_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is copied from the page shares nothing too early, and names who agreed."""
    assert printed("sharing.md", "Consensus", tmp_path, capsys) == ["()", "('scout', 'writer')"]


@pytest.mark.requirement("K1", "K6")
def test_the_example_of_items_runs_and_prints_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In, out, changed and taken back: the four calls of the protocol."""
    assert printed("sharing.md", "Memories as MEK items", tmp_path, capsys) == [
        "Ann: habits: early runs. Ann likes red.",
        "high {'habits': ['early runs'], 'preferences': ['red']} current 0.6666666666666666",
        "['Ann: habits: early runs. Ann likes red.', 'Ann likes red. Ann likes blue.']",
        "True False",
    ]


@pytest.mark.requirement("K7", "K8")
@pytest.mark.parametrize("section", ["From memory to knowledge", "Absorbing"])
def test_the_examples_of_knowledge_run(
    section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever copies them into an empty home gets no error, and nothing that nobody learned."""
    monkeypatch.chdir(tmp_path)
    assert printed("sharing.md", section, tmp_path, capsys) == []


@pytest.mark.requirement("K7", "K8", "B10")
def test_the_graph_of_two_agents_prints_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the first node learned, the second one does: the page's whole point, in forty lines."""
    assert printed("sharing.md", "Two agents in a LangGraph graph", tmp_path, capsys) == ["['verify', 'refund']"]


@pytest.mark.requirement("K9")
def test_the_example_of_packs_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A home is moved, and a pack of tips signed, by the lines that the page shows."""
    monkeypatch.chdir(tmp_path)
    ann = Scope(user="ann", agent="remy")
    SigningKey.generate().save(Path("ann.key"))
    with MemoryKit.open("old") as kit:
        kit.save("weekly", "A weekly report names its sources.", scope=ann, topic="task:reports")
    (told,) = printed("packs.md", "", tmp_path, capsys)
    assert "new=(" in told
    with MemoryKit.open("new") as kit:
        assert [memory.content for memory in kit.memories(scope=ann)] == ["A weekly report names its sources."]
