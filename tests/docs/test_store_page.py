"""The page about the store runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PAGE = Path(__file__).parents[2] / "docs" / "store.md"


@pytest.mark.requirement("C5")
def test_the_page_about_the_store_runs_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader copies it; it must work at the first try."""
    (code,) = _BLOCK.findall(_PAGE.read_text(encoding="utf-8"))
    exec(compile(code.replace("~/.my-agent", str(tmp_path)), str(_PAGE), "exec"), {})
    assert capsys.readouterr().out.startswith("drink {'text': 'Ann likes green tea.', 'cups': 3} 0.")
