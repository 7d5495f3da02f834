"""The section on consensus is copied by people whose agents shall learn from each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

_PAGE = Path(__file__).parents[2] / "docs/sharing.md"


@pytest.mark.requirement("B12")
def test_the_example_of_consensus_prints_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is copied from the page shares nothing too early, and names who agreed."""
    section = _PAGE.read_text(encoding="utf-8").split("\n## Consensus\n")[1].split("\n## ")[0]
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE))
    names: dict[str, Any] = {}
    exec(compile(code.replace('"~/.my-agent"', f'"{tmp_path}", model=None, embedder=None'), str(_PAGE), "exec"), names)
    names["kit"].close()
    assert capsys.readouterr().out.split("\n") == ["()", "('scout', 'writer')", ""]
