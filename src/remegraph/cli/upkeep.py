"""Commands that keep the memory in order."""

from __future__ import annotations

from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.options import AsJson, Heads, Home
from remegraph.cli.session import guarded, open_kit
from remegraph.kit.doctor import diagnose
from remegraph.settings import Settings

__all__ = ["doctor", "rebuild", "stats", "verify"]


def doctor(
    *,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Mend what can be mended without loss and without a model: permissions, the schema, the index and what "
            "waits for it, jobs that gave up.",
        ),
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Find whatever is wrong with a home, say how bad it is, and what to do. Exit code 1 where anything is wrong.

    It opens what can be opened, in a child process where that could do harm, and changes nothing without `--fix`.
    """
    with guarded(as_json=as_json) as out:
        settings = Settings.from_env()
        found = diagnose(settings if home is None else settings.evolve(home=home), fix=fix)
        out.show({**found.model_dump(mode="json"), "healthy": found.healthy}, *views.diagnosis(found))
        if not found.healthy:
            raise typer.Exit(1)


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
