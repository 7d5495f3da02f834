"""The notebooks run, and show what they really print and draw."""

from __future__ import annotations

import base64
import json
import runpy
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[2]
_QUICK = ("01_quickstart", "02_sharing")
_NOTEBOOKS = [
    pytest.param(path, id=path.stem, marks=() if path.stem in _QUICK else pytest.mark.slow)
    for path in sorted((_ROOT / "notebooks").glob("*.ipynb"))
]


@pytest.fixture(scope="module")
def runner() -> dict[str, Any]:
    """What `docs/notebooks.py` defines."""
    return runpy.run_path(str(_ROOT / "docs/notebooks.py"))


@pytest.mark.requirement("C10")
@pytest.mark.parametrize("path", _NOTEBOOKS)
def test_a_notebook_runs_to_its_last_cell_and_prints_what_it_shows(
    runner: dict[str, Any], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many read it without running it: the outputs must be true. `make docs` writes them anew."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = path.read_text(encoding="utf-8")
    shown, run = json.loads(text), runner["executed"](path)
    assert runner["written"](shown) == text
    for notebook in (run, shown):
        _measure_pictures(notebook)
    assert runner["written"](run).splitlines() == runner["written"](shown).splitlines()


def _measure_pictures(notebook: dict[str, Any]) -> None:
    """Put the width and height of each picture in its place: other machines draw the same a little otherwise."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            if "image/png" in (data := output.get("data", {})):
                png = base64.b64decode(data["image/png"])
                assert png.startswith(b"\x89PNG")
                data["image/png"] = struct.unpack(">II", png[16:24])
