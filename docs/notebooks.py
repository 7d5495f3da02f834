"""Runs the notebooks and writes what they print into them: `make docs`.

`tests/docs/test_notebooks.py` holds them to it. Cells print, and show nothing else: so a page of Python is enough to run
them, in this process, and what they print is the same wherever they run.
"""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

__all__ = ["NOTEBOOKS", "executed", "written"]

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def executed(path: Path) -> dict[str, Any]:
    """Return a notebook with the outputs of a run from its first cell to its last.

    Args:
        path: The notebook.
    """
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    code = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    for number, cell in enumerate(code, start=1):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec", dont_inherit=True), names)  # noqa: S102 - that is its job
        text = printed.getvalue().splitlines(keepends=True)
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
        cell["execution_count"] = number
    return notebook


def written(notebook: dict[str, Any]) -> str:
    """Return a notebook as it stands in its file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for each in sorted(NOTEBOOKS.glob("*.ipynb")):
        each.write_text(written(executed(each)), encoding="utf-8")
