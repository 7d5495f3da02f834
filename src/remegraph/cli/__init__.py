"""The command line: `remegraph --help`.

Exit codes: 0 all is well; 1 an error, in one line with its cure, or a `verify` that found differences; 2 the
command was used wrongly; 130 stopped by Ctrl-C, after which the same command continues where it stopped.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. Without typer and rich it says how to install them."""
    try:
        from remegraph.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit(f"The command line needs {error.name}. Install it: pip install 'remegraph[cli]'")
    app(prog_name="remegraph")
