"""The command that orchestrators and monitors run every few seconds: it imports nothing that it does not need."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from remegraph.cli.command import Session, Views, counted, lines, of_home
from remegraph.kit import health as probes
from remegraph.models import HealthReport, WorkerSign
from remegraph.settings import Settings

__all__ = ["health"]


@of_home()
def health(
    session: Session,
    *,
    overdue: Annotated[
        float | None, Option("--overdue", min=0, help="Seconds that work may wait for a worker.", metavar="SECONDS")
    ] = None,
    worker: Annotated[
        bool,
        Option(
            "--worker", help="Only ask whether the workers of this machine with this home live; no server is asked."
        ),
    ] = False,
) -> None:
    """Say within seconds whether the ledger is ready, whether the index answers, and how much work waits.

    Exit code 1 where the ledger does not answer or has another schema, where work is overdue, or with `--worker` where none
    lives. An index that does not answer is reported, and is no failure: SQL is searched meanwhile.
    """
    settings = Settings.from_env()
    settings = settings if session.home is None else settings.evolve(home=session.home)
    if worker:
        signs = probes.workers(settings.home)
        well = bool(signs) and all(each.alive for each in signs)
        session.show({"workers": signs, "healthy": well}, *_workers(signs))
    else:
        found = probes.health(settings)
        late = overdue is not None and found.queue.overdue_seconds > overdue
        well = found.healthy and not late
        shown = {**found.model_dump(mode="json", exclude={"unrecorded"}), "healthy": well, "degraded": found.degraded}
        session.show(shown, *_health(found, late=late))
    if not well:
        raise typer.Exit(1)


def _workers(signs: tuple[WorkerSign, ...]) -> Views:
    if not signs:
        return lines(["No worker of this machine runs with this home."], "red")
    said = ((f"Worker {each.process}: last sign {each.silent_seconds:.0f} seconds ago.", each.alive) for each in signs)
    return tuple(view for line, alive in said for view in lines([line], "green" if alive else "red"))


def _health(found: HealthReport, *, late: bool) -> Views:
    """Show whether the memory works, and whether its workers keep up."""
    if not found.ready:
        return lines([f"Not ready. {found.problem}"], "red")
    queue = found.queue
    waits = f"{queue.waiting} waiting, {queue.running} running, {queue.dead} gave up"
    waits = f"{waits}, {queue.later} due later, {queue.asleep} asleep until asked."
    oldest = f"The oldest that is due has waited for {queue.overdue_seconds:.0f} seconds."
    foreign = f"{counted(queue.foreign, 'job')} left to workers with other settings."
    last = f"A limit refused, and it is done once that allows it: {queue.reason}"
    return (
        *lines([f"Ledger: {found.ledger}, ready. Index: {found.index}."], "yellow" if found.degraded else "green"),
        *lines([f"Jobs: {waits}"], ""),
        *lines([oldest], "red" if late else "dim"),
        *lines([foreign] if queue.foreign else []),
        *lines([f"The index: {found.problem}"] if found.degraded else [], "yellow"),
        *lines([last if queue.refused else f"Failed last: {queue.reason}"] if queue.reason else []),
    )
