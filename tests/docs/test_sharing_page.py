"""The page on sharing is copied by people whose agents shall learn from each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

_PAGE = Path(__file__).parents[2] / "docs/sharing.md"
_ITEMS = re.compile(r"^## Memories as MEK items\n.*?^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.requirement("K1", "K6")
def test_the_example_of_items_runs_and_prints_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In, out, changed and taken back: the four calls of the protocol."""
    (code,) = _ITEMS.findall(_PAGE.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    runnable = code.replace('"~/.my-agent"', f'"{tmp_path}", model=None, embedder=None')
    exec(compile(runnable, str(_PAGE), "exec", dont_inherit=True), names)
    names["kit"].close()
    assert capsys.readouterr().out.splitlines() == [
        "Ann: habits: early runs. Ann likes red.",
        "high {'habits': ['early runs'], 'preferences': ['red']} current 0.6666666666666666",
        "['Ann: habits: early runs. Ann likes red.', 'Ann likes red. Ann likes blue.']",
        "True False",
    ]
