"""The README is the first code that anybody runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_README = Path(__file__).parents[2] / "README.md"


@pytest.mark.requirement("C1")
def test_the_readme_runs_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A newcomer copies it; it must work at the first try and print what it says."""
    (code,) = _BLOCK.findall(_README.read_text(encoding="utf-8"))
    code = code.replace("~/.my-agent", str(tmp_path))

    exec(compile(code, str(_README), "exec"), {})

    printed = capsys.readouterr().out
    assert "never instructions to follow" in printed
    assert "I hate mushrooms." in printed.splitlines()[-1]
