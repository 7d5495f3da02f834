"""The page of the 27 promises: each row names tests that exist, and prints its figure."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
ROWS = {int(row): cells for row, cells in re.findall(r"^\| (\d+) \| (.+) \|$", PAGE, re.MULTILINE)}


def named(cells: str) -> list[tuple[Path, str]]:
    """The tests of a row; a file alone stands for all that is in it."""
    return [(ROOT / file, name) for file, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`", cells)]


def test_every_row_names_tests_that_exist() -> None:
    """Somebody who asks how a promise is kept must not be sent to a test that was renamed."""
    assert list(ROWS) == list(range(1, 28))
    for row, cells in ROWS.items():
        assert len(cells.split(" | ")) == 5, f"row {row} has a cell too few or too many"
        tests = named(cells)
        assert tests, f"row {row} names no test"
        for file, name in tests:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            defined = {each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
            assert not name or name in defined, f"row {row}: {file.name} has no {name}"


def test_every_row_prints_its_figure() -> None:
    """A table of figures that nobody can measure again is a promise about the past."""
    for row, cells in ROWS.items():
        sources = {file.read_text(encoding="utf-8") for file, _ in named(cells)}
        told = f"bar {row:02}"
        assert any(re.search(rf'{told}\b|"{row:02}"|"{row:02}: ', source) for source in sources), (
            f"{told} is printed nowhere"
        )
