"""Runs the notebooks and writes into them what they print and draw: `make docs`.

`tests/docs/test_notebooks.py` holds them to it. Cells print, and draw with matplotlib: so a page of Python is enough to
run them, in this process, and what they print is the same wherever they run.
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

__all__ = ["NOTEBOOKS", "executed", "written"]

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"

_DOTS = 90
"""To the inch: sharp enough on a page, and small enough to be kept in a repository."""


def executed(path: Path) -> dict[str, Any]:
    """Return a notebook with the outputs of a run from its first cell to its last.

    Args:
        path: The notebook.
    """
    os.environ["MPLBACKEND"] = "agg"  # a window would wait for somebody to close it
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    code = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    for number, cell in enumerate(code, start=1):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec", dont_inherit=True), names)  # noqa: S102 - that is its job
        text = printed.getvalue().splitlines(keepends=True)
        stream = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
        cell["outputs"] = [*stream, *_drawn()]
        cell["execution_count"] = number
    return notebook


def _drawn() -> Iterator[dict[str, Any]]:
    """Yield the figures that a cell has left open, as Jupyter shows them after it, and close them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:  # nobody has drawn, and it would take half a second to import
        return
    for number in pyplot.get_fignums():
        figure, file = pyplot.figure(number), io.BytesIO()
        figure.savefig(file, dpi=_DOTS, metadata={"Software": None})
        pyplot.close(figure)
        data = {"image/png": base64.b64encode(file.getvalue()).decode(), "text/plain": [figure.get_suptitle()]}
        yield {"data": data, "metadata": {}, "output_type": "display_data"}


def written(notebook: dict[str, Any]) -> str:
    """Return a notebook as it stands in its file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for each in sorted(NOTEBOOKS.glob("*.ipynb")):
        each.write_text(written(executed(each)), encoding="utf-8")
