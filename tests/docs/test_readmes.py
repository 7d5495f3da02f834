"""The README says what its pages say, and the Chinese one what the English one says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def _prose(text: str) -> str:
    return _FENCED.sub("", text)


def _headings(text: str) -> list[int]:
    """Return the level of each heading, in order."""
    return [len(marks) for marks in re.findall(r"^(#+) ", _prose(text), re.MULTILINE)]


def _rows(text: str) -> list[list[str]]:
    """Return what is code in each row of the tables, in order of the alphabet: word order differs."""
    rows = [line for line in _prose(text).splitlines() if line.startswith("|")]
    return [sorted(re.findall(r"`[^`]+`", row)) for row in rows]


def _names(text: str) -> set[str]:
    """Return all that is code in the text."""
    return set(re.findall(r"`[^`]+`", _prose(text)))


def _figures(text: str) -> list[list[str]]:
    """Return the figures in each row of the tables."""
    rows = [line for line in _prose(text).splitlines() if line.startswith("|")]
    return [sorted(re.findall(r"\.?\d+(?:,\d{3})*(?:\.\d+)?", row)) for row in rows]


def _targets(text: str) -> set[str]:
    return set(re.findall(r"\]\(([^)]+)\)", _prose(text))) - {"README.md", "README.zh-CN.md"}


@pytest.mark.parametrize("of", [_headings, _FENCED.findall, _rows, _names, _figures, _targets])
def test_both_readmes_have_the_same_headings_commands_figures_and_links(of: Callable[[str], object]) -> None:
    """Who reads Chinese must not read about last month's release."""
    english, chinese = (of((_ROOT / name).read_text(encoding="utf-8")) for name in ("README.md", "README.zh-CN.md"))
    assert chinese == english


def test_the_comparison_is_that_of_its_page() -> None:
    """Two tables that say different things of another project would both be doubted."""
    whole = (_ROOT / "docs" / "comparison.md").read_text(encoding="utf-8").splitlines()
    section = (
        (_ROOT / "README.md").read_text(encoding="utf-8").partition("## Compared with others")[2].partition("\n## ")[0]
    )
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert rows
    assert [row for row in rows if row not in whole] == []
