"""The page about operations runs, and names each check of the doctor."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from remegraph.models import Check

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


@pytest.mark.slow
def test_the_page_about_operations_runs_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is read on a bad day, and copied without a second look."""
    (code,) = _BLOCK.findall(_PAGE.read_text(encoding="utf-8"))
    exec(compile(code.replace("~/", f"{tmp_path}/"), str(_PAGE), "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["1 message, 2 files", "healthy: True"]


def test_every_check_of_the_doctor_is_explained() -> None:
    """Who gets a finding looks it up by its name."""
    rows = re.findall(r"^\| ([a-z, ]+) \|", _PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(name for row in rows for name in row.split(", ")) == sorted(get_args(Check))
