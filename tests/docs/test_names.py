"""The names of our own in the sentences of the documentation are those of the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remegraph import MemoryKit, adapters, models, settings
from remegraph.testing import InMemoryVectorIndex
from tests.docs.blocks import PAGES, ROOT, prose

_CODE = [
    (page, code)
    for page in PAGES
    if page.parent.name != "decisions"
    for code in re.findall(r"`([^`\n]+)`", prose(page))
]
"""Decisions are about the day on which they were made."""


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """One to look at."""
    with MemoryKit.open(
        tmp_path_factory.mktemp("kit"), model=None, embedder=None, index=InMemoryVectorIndex()
    ) as opened:
        yield opened


def _has(found: Any, path: str) -> bool:
    for name in path.strip(".").split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


def test_every_verb_of_a_kit_exists(kit: MemoryKit) -> None:
    """A verb that was renamed is an AttributeError in a reader's program."""
    named = [
        (page.name, path)
        for page, code in _CODE
        for path in re.findall(r"(?<![\w.])kit((?:\.[a-z]\w*)+)(?!\w*/)", code)
    ]
    assert len(named) > 100
    assert [(page, path) for page, path in named if not _has(kit, path)] == []


def test_every_field_exists() -> None:
    """A setting that does not exist is refused, and a reader does not know what it is called now."""
    known = {name: getattr(module, name) for module in (adapters, models, settings) for name in module.__all__}
    named = [
        (page.name, known[owner], name)
        for page, code in _CODE
        for owner, name in re.findall(r"\b([A-Z]\w+)[.(]([a-z]\w*)(?=[^\w(.]|$)", code)
        if hasattr(known.get(owner), "model_fields")
    ]
    assert len(named) > 30
    assert [row for row in named if not (row[2] in row[1].model_fields or hasattr(row[1], row[2]))] == []


def test_every_file_exists() -> None:
    """Who wants to see how it is done goes there."""
    roots = (ROOT, ROOT / "src" / "remegraph")
    folders = "|".join(each.name for root in roots for each in root.iterdir() if each.is_dir())
    named = {path for _, code in _CODE for path in re.findall(rf"(?<![\w./])(?:{folders})/[\w/.]+\.\w+", code)}
    assert len(named) > 30
    assert [path for path in named if not any(Path(root, path).exists() for root in roots)] == []


def test_the_reference_of_settings_lists_the_values_of_a_setting_that_takes_no_others() -> None:
    """Whoever writes a settings file should not have to guess a word, and have it refused at the start."""
    rows = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8").splitlines()
    (trigger,) = (row for row in rows if row.startswith("| `agent.extraction.trigger` |"))
    assert "One of: `gathered`, `per-turn`, `session-end`, `manual`." in trigger
    (redact,) = (row for row in rows if row.startswith("| `redact` |"))
    assert "Any of: `cn-id`, " in redact
    (open_,) = (row for row in rows if row.startswith("| `agent.extraction.never_remember` |"))
    assert "One of" not in open_, "sentences of one's own will do as well"


def test_the_reference_of_settings_lists_the_bounds_of_every_number() -> None:
    """A number that is out of range is refused at the start, and the page that was read before must have said so."""
    rows = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8").splitlines()

    def row(name: str) -> str:
        (found,) = (row for row in rows if row.startswith(f"| `{name}` |"))
        return found

    for name, bounds in {
        "pool.size": "At least 1.",
        "pool.overflow": "At least 0.",
        "pool.wait": "At least 0.",
        "slicing.gap": "More than 0 s.",
        "sharing.source_share": "More than 0 and at most 1.",
        "limits.user.stored_bytes": "At least 1.",
    }.items():
        assert row(name).endswith(f" {bounds} |")
