"""Lists the evals, or runs one: `python -m evals [NAME [ARGS...]]`.

An eval is a module in this folder. Its docstring's first line says what it measures; run as a
script it prints its figures and exits with 0 where they reach their targets.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

__all__ = ["main"]


def _evals() -> dict[str, str]:
    """Return the first line of each eval's docstring by its name."""
    paths = (path for path in sorted(Path(__file__).parent.glob("*.py")) if not path.stem.startswith("_"))
    docs = {path.stem: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) for path in paths}
    return {name: (doc or "").partition("\n")[0] for name, doc in docs.items()}


def main() -> None:
    """Run the eval that is named, or list them all."""
    evals = _evals()
    if len(sys.argv) == 1:
        width = max(map(len, evals))
        print("\n".join(f"{name:{width}}  {title}" for name, title in evals.items()))
        return
    name = sys.argv[1]
    if name not in evals:
        sys.exit(f"There is no eval {name!r}. There are: {', '.join(evals)}.")
    sys.argv = sys.argv[1:]
    runpy.run_module(f"evals.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
