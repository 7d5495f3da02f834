"""The notebooks run, and show what they really print."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[2]
_NOTEBOOKS = sorted((_ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def runner() -> dict[str, Any]:
    """What `docs/notebooks.py` defines."""
    return runpy.run_path(str(_ROOT / "docs/notebooks.py"))


@pytest.mark.requirement("C10")
@pytest.mark.parametrize("path", _NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_to_its_last_cell_and_prints_what_it_shows(
    runner: dict[str, Any], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many read it without running it: the outputs must be true. `make docs` writes them anew."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run = runner["written"](runner["executed"](path))
    assert run.splitlines() == path.read_text(encoding="utf-8").splitlines()
