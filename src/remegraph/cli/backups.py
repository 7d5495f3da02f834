"""Commands about backups: taken while agents go on, checked, and brought back to where no home is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.options import AsJson, Home, group
from remegraph.cli.session import guarded, open_kit
from remegraph.kit.backing_up import inspect_backup, restore_backup
from remegraph.settings import Settings

__all__ = ["app"]

app = group("Copies of a home on SQLite, taken while it is used.")

_Folder = Annotated[Path, typer.Argument(help="The folder of the backup.", show_default=False)]


@app.command()
def make(folder: _Folder, *, home: Home = None, as_json: AsJson = False) -> None:
    """Copy the ledger, the attachments and the journal's key to a new folder, as of now; nobody has to wait meanwhile."""
    with guarded(as_json=as_json) as out:
        with out.bars() as report, open_kit(home) as kit:
            taken = kit.admin.backup(folder, progress=report)
        out.show(taken, *views.backup(taken))


@app.command()
def check(folder: _Folder, *, home: Home = None, as_json: AsJson = False) -> None:  # noqa: ARG001 - all have it
    """Read all of a backup, and compare it with its checksums."""
    with guarded(as_json=as_json) as out:
        found = inspect_backup(folder)
        out.show(found, *views.backup(found))


@app.command()
def restore(folder: _Folder, *, home: Home = None, as_json: AsJson = False) -> None:
    """Bring a backup back as a home, which must be missing or empty. Its index is made the next time it is opened."""
    with guarded(as_json=as_json) as out:
        with out.bars() as report:
            found = restore_backup(folder, home or Settings.from_env().home, progress=report)
        out.show(found, *views.backup(found), "Now run `remegraph rebuild`, then `remegraph verify`.")
