"""Commands for the work in the background: do it, look at it, take up what gave up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.options import AsJson, Home, Model
from remegraph.cli.session import guarded, open_kit
from remegraph.kit import serving
from remegraph.kit.draining import FOREIGN

__all__ = ["health", "jobs", "worker"]


def worker(
    *,
    concurrency: Annotated[int, typer.Option("--concurrency", "-c", min=1, help="Jobs at once.")] = 4,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings",
            help="TOML file with the settings, the one that the service reads. Unless given: $REMEGRAPH_SETTINGS.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    model: Model = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Do the work that waits, of every user, as it comes, until SIGTERM or Ctrl-C.

    Start as many as you like, on any machine, with the same $REMEGRAPH_LEDGER_URL, $REMEGRAPH_CHROMA_URL and settings:
    what was made with others is left, told in the log and counted. Told to stop, it finishes the blocks at hand, gives
    its jobs back, and exits with 0; told three times, it ends at once. Killed, it loses nothing: another worker takes
    over once the lease of its jobs has run out.
    """
    with (
        serving.until_signalled() as stop,
        guarded(as_json=as_json) as out,
        open_kit(home, model=model, file=settings) as kit,
    ):
        out.errors.print(f"Working, {concurrency} jobs at once. SIGTERM ends it.", soft_wrap=True)
        kit.serve(stop, concurrency=concurrency)
        told = kit.health.stats()
        left = [f"{told['jobs_foreign']} jobs were left. {FOREIGN}"] if told["jobs_foreign"] else []
        out.show(told, "Stopped. What is not done waits in the queue.", *left)


def jobs(
    *,
    revive: Annotated[bool, typer.Option("--revive", help="Take up again what gave up.")] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Let what was made with other settings be done with these.")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """List the work in the background that is not done, of every user, and why it failed."""
    with guarded(as_json=as_json) as out, open_kit(home) as kit:
        revived = kit.admin.revive() if revive else 0
        adopted = kit.admin.adopt() if adopt else 0
        found = kit.admin.jobs()
        out.show({"revived": revived, "adopted": adopted, "jobs": found}, *views.jobs(found, revived + adopted))


def health(
    *,
    overdue: Annotated[
        float | None,
        typer.Option("--overdue", min=0, help="Seconds that work may wait for a worker.", metavar="SECONDS"),
    ] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Say whether ledger and index answer and how much work waits. Exit code 1 where they do not, or work is overdue."""
    with guarded(as_json=as_json) as out:
        with open_kit(home) as kit:
            found = kit.admin.health()
        late = overdue is not None and found.queue.overdue_seconds > overdue
        healthy = found.healthy and not late
        out.show({**found.model_dump(mode="json"), "healthy": healthy}, *views.health(found, late=late))
        if not healthy:
            raise typer.Exit(1)
