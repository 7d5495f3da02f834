"""The section on grants is copied by people who let one agent read what another one knows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

_PAGE = Path(__file__).parents[2] / "docs/sharing.md"


@pytest.mark.requirement("B11")
def test_the_example_of_grants_prints_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A grant that is copied from the page opens what it should, and its revocation closes it."""
    section = _PAGE.read_text(encoding="utf-8").split("\n## Grants\n")[1].split("\n## ")[0]
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE))
    names: dict[str, Any] = {}
    exec(compile(code.replace('"~/.my-agent"', f'"{tmp_path}", model=None, embedder=None'), str(_PAGE), "exec"), names)
    names["kit"].close()

    shown, nothing = capsys.readouterr().out.rstrip().rsplit("\n", 1)
    assert '"from": "agent scout"' in shown
    assert "under the stone" in shown
    assert nothing == "()"
