"""Commands for the key that the journal is sealed with: made when somebody asks for it, and changed while agents go on."""

from __future__ import annotations

from typing import Annotated

import typer

from remegraph.cli.options import AsJson, Home, Reason, group
from remegraph.cli.session import guarded, open_kit
from remegraph.errors import SetupError
from remegraph.settings import Settings
from remegraph.storage.keys import FILE, add_key, keys_in, new_key

__all__ = ["app"]

app = group("The key that the journal is sealed with.")

_SEALED = "The newest key seals from now on. Keep those before it: they verify what they have sealed."


@app.command()
def make(
    *,
    show: Annotated[
        bool,
        typer.Option("--print", help="Print it and keep it nowhere, for a store of secrets or $REMEGRAPH_JOURNAL_KEY."),
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Make the first key of a home, or the next one. The next one seals nothing yet: see `rotate`."""
    with guarded(as_json=as_json) as out:
        settings = Settings.from_env()
        folder = (home or settings.home).expanduser()
        if show:
            key = new_key()
            out.show({"key": key}, key)
            return
        if settings.journal_key:
            raise SetupError(
                f"REMEGRAPH_JOURNAL_KEY is set, so {folder / FILE} is not read.",
                "Make one with --print, and set it there.",
            )
        then = (
            "Restart all processes with it, then: remegraph key rotate."
            if keys_in(folder)
            else "Give the same to all processes that share the ledger."
        )
        add_key(folder)
        out.show({"file": str(folder / FILE)}, f"{folder / FILE} has a new key. {then}")


@app.command()
def rotate(
    *,
    despite: Annotated[
        bool, typer.Option("--despite", help="Seal what does not fit, too. The journal keeps that it was so.")
    ] = False,
    reason: Reason = "",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Seal the journal with the newest key from now on. Keep those before it: they verify what they have sealed."""
    with guarded(as_json=as_json) as out:
        with open_kit(home) as kit:
            found = kit.admin.seal_journal(reason, despite=despite)
        told = {"did_not_fit": [each.model_dump(mode="json") for each in found]}
        out.show(told, _SEALED, *([f"{len(found)} places did not fit; the journal says so."] if found else []))
