"""The site of the documentation has every page, and asks no network."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mkdocs.utils.yaml import yaml_load

import remegraph
from remegraph import adapters, testing
from tests.public_names import named

_ROOT = Path(__file__).parents[2]
_FETCHED = re.compile(
    r"<(?:script|link|img|iframe|source|video|audio|object|embed)\b[^>]*?(?:src|href|data)=\"?(?:https?:)?//[^>]*>"
)


def _listed(nav: Any) -> Iterator[str]:
    """Yield the pages of a navigation, at any depth."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav if isinstance(nav, list) else nav.values():
            yield from _listed(part)


def test_the_navigation_names_every_page() -> None:
    """A page that nobody can reach might as well not be there. Decisions are listed from their folder."""
    config = yaml_load((_ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = {page.relative_to(_ROOT / "docs").as_posix() for page in (_ROOT / "docs").rglob("*.md")}
    pages |= {f"notebooks/{notebook.stem}.md" for notebook in (_ROOT / "notebooks").glob("*.ipynb")}
    listed = set(_listed(config["nav"]))
    assert {page for page in pages - listed if not re.match(r"decisions/\d", page)} == set()
    assert {page for page in listed - pages if not page.startswith(("project/", "integrations/"))} == set()


def test_the_reference_names_all_that_is_public() -> None:
    """What is exported and told nowhere is found by reading the code, or not at all."""
    pages = [page.read_text(encoding="utf-8") for page in (_ROOT / "docs" / "reference").glob("*.md")]
    told = {name for page in pages for name in re.findall(r"^::: (\S+)", page, re.MULTILINE)}
    names = {path.rpartition(".")[2] for one in told for path, _ in named(one)}
    assert sorted({*remegraph.__all__, *adapters.__all__, *testing.__all__} - names) == []
    parts = re.findall(
        r"^        self\.[a-z]\w* = (\w+)\(context", inspect.getsource(remegraph.MemoryKit), re.MULTILINE
    )
    assert {"Skills", "Admin"} <= set(parts)
    assert sorted(set(parts) - names) == []


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    """It is read where there is no network, and by people who do not want others to know what they read."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    path = os.pathsep.join([str(_ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        command,
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": path, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    pages = {page: page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")}
    assert {page.name: _FETCHED.findall(text) for page, text in pages.items() if _FETCHED.search(text)} == {}
    assert 'id="remegraph-recall"' in pages[tmp_path / "reference" / "cli.html"]
    assert 'id="remegraph.MemoryKit.add_messages"' in pages[tmp_path / "reference" / "kit.html"]
    assert 'id="remegraph.models.Memory.content"' in pages[tmp_path / "reference" / "models.html"]
    decisions = sorted((_ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [page.stem for page in decisions if tmp_path / "decisions" / f"{page.stem}.html" not in pages] == []
    assert "project/changelog.html" in pages[tmp_path / "index.html"]
    evaluation = pages[tmp_path / "notebooks" / "06_evaluation.html"]
    assert 'src="data:image/png;base64,' in evaluation
    assert 'href="../evals.html"' in evaluation
