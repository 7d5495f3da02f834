"""Commands that keep the memory in order."""

from __future__ import annotations

import typer

from remegraph.cli import views
from remegraph.cli.options import AsJson, Heads, Home
from remegraph.cli.session import guarded, open_kit

__all__ = ["rebuild", "stats", "verify"]


def verify(*, heads: Heads = None, home: Home = None, as_json: AsJson = False) -> None:
    """Compare the ledger with its index and its journal, and every memory with its words. Exit code 1 where anything differs."""
    with guarded(as_json=as_json) as out:
        with out.bars() as report, open_kit(home) as kit:
            known = () if heads is None else kit.governance.read_heads(heads)
            found = kit.admin.verify(progress=report, heads=known)
        out.show({**found.model_dump(mode="json"), "healthy": found.healthy}, *views.verification(found))
        if not found.healthy:
            raise typer.Exit(1)


def rebuild(*, home: Home = None, as_json: AsJson = False) -> None:
    """Make the vector index anew from the ledger. Nothing is embedded again."""
    with guarded(as_json=as_json) as out:
        with out.bars() as report, open_kit(home) as kit:
            count = kit.admin.rebuild(progress=report)
        out.show({"vectors": count}, f"The index holds {count} vectors again.")


def stats(*, home: Home = None, as_json: AsJson = False) -> None:
    """Count what the memory holds."""
    with guarded(as_json=as_json) as out:
        with open_kit(home) as kit:
            found = kit.admin.stats()
        out.show(found, views.stats(found))
