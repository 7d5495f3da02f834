"""Commands for the work that makes memories of messages: do it, list it, retry what failed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text
from typer import Argument, Option

from remegraph import MemoryKit
from remegraph.cli.command import (
    Session,
    Views,
    counted,
    group,
    lines,
    logged,
    minute,
    nothing,
    of_home,
    of_scope,
    plain,
    shortened,
    state_of,
    table,
)
from remegraph.cli.options import Model
from remegraph.kit.background import at_once, until_signalled
from remegraph.kit.worker import FOREIGN
from remegraph.models import BackgroundJob, Budget, Scope, Subject, SummaryReport, Work

__all__ = ["app", "leftovers", "objections", "summarize", "work_table", "worker"]

app = group()


@of_scope()
def summarize(
    session: Session,
    scope: Scope,
    *,
    close: Annotated[
        bool, Option("--close", help="Also what may still continue: the open end of each thread.")
    ] = False,
    model: Model = None,
) -> None:
    """Make memories of what was recorded since the last time."""
    done = session.kit(model).summarize(scope=scope, close=close, progress=session.bars())
    session.show(done, *_summary(done))


@of_home()
def worker(
    session: Session,
    *,
    concurrency: Annotated[
        int | None,
        Option(
            "--concurrency",
            "-c",
            min=1,
            help="Jobs at once, each of another user. Unless given: capture.concurrency of the settings, 8.",
        ),
    ] = None,
    settings: Annotated[
        Path | None,
        Option(
            "--settings",
            help="TOML file with the settings, the one that the service reads. Unless given: $REMEGRAPH_SETTINGS.",
            metavar="FILE",
        ),
    ] = None,
    model: Model = None,
) -> None:
    """Do the work that waits, of every user, as it comes, until SIGTERM or Ctrl-C.

    Start as many as you like, on any machine, with the same $REMEGRAPH_LEDGER_URL, $REMEGRAPH_CHROMA_URL and settings:
    jobs made with other settings are left, logged and counted. On the first signal it finishes the current blocks, gives
    its jobs back, and exits with 0; on the third it ends immediately. Killed, it loses nothing: another worker takes
    over, on the same Linux machine within seconds, elsewhere once the lease of its jobs has run out.
    """
    session.enter(logged())
    stop = session.enter(until_signalled())
    kit = session.kit(model, file=settings)
    concurrency = concurrency or at_once(kit.settings)
    session.errors.print(f"Working, {concurrency} jobs at once. SIGTERM ends it.", soft_wrap=True)
    kit.work.serve(stop, concurrency=concurrency)
    counts = kit.context.health.stats()
    left = [f"{counts['jobs_foreign']} jobs were left. {FOREIGN}"] if counts["jobs_foreign"] else []
    session.show(counts, "Stopped. What is not done waits in the queue.", *left)


@of_scope(app, "list")
def waiting(session: Session, scope: Scope) -> None:
    """List what still waits: blocks to do, what failed and why, and what a person should look at."""
    found = session.kit().work.list(scope=scope)
    session.show(found, *work_table(found))


@of_home(app)
def jobs(
    session: Session,
    *,
    revive: Annotated[bool, Option("--revive", help="Retry the jobs that gave up.")] = False,
    adopt: Annotated[bool, Option("--adopt", help="Have jobs made with other settings done with these.")] = False,
) -> None:
    """List the background work of every user that is not done, and why it failed."""
    admin = session.kit().admin
    revived, adopted = admin.requeue() if revive else 0, admin.requeue("foreign") if adopt else 0
    found = admin.jobs()
    head = [f"{counted(revived + adopted, 'job')} queued again."] if revived + adopted else []

    def row(each: BackgroundJob) -> tuple[object, ...]:
        state, due = "other settings" if each.foreign else each.state, each.due_at
        user, agent = each.partition.user or "", each.partition.agent or ""
        return (
            state,
            each.kind,
            user,
            agent,
            minute(due) if due else "when asked",
            each.attempts,
            "/".join(each.worker.split("/")[:2]),
            shortened(each.reason),
        )

    session.show(
        {"revived": revived, "adopted": adopted, "jobs": found},
        *lines([*head, *([] if found else ["Nothing waits."])], "green"),
        *table(found, ("state", "kind", "user", "agent", "!due", ">tried", "!worker", "why it failed"), row),
    )


@of_home(app)
def release(
    session: Session,
    worker: Annotated[
        str,
        Argument(help="The machine, or machine/process, as `remegraph work jobs` shows it.", show_default=False),
    ],
) -> None:
    """Give the jobs of a dead worker to others now. Otherwise they wait until its lease is over."""
    released = session.kit().admin.release(worker)
    unknown = [] if released else [f"No job is held by {plain(worker)}: `remegraph work jobs` shows the workers."]
    session.show({"released": released}, f"{counted(released, 'job')} released.", *lines(unknown, "yellow"))
    if not released:
        raise typer.Exit(1)


@of_home(app)
def drain(session: Session, *, model: Model = None) -> None:
    """Do all work that waits, of every user, once: what agents leave to the background.

    A cron job can do what a process that ends too soon does not.
    """
    done = session.kit(model).drain(progress=session.bars())
    session.show(done, *_summary(done, "remegraph work drain"), *lines((f"• {why}" for why in done.degraded), ""))


@of_scope(app)
def retry(session: Session, scope: Scope, *, model: Model = None) -> None:
    """Retry failed work of this user with this agent; `remegraph work list` shows it."""
    kit = session.kit(model)
    done = kit.work.retry(scope=scope, progress=session.bars())
    elsewhere = int(kit.admin.stats()["blocks_failed"]) if not done.work else 0
    known = bool(done.work or done.blocks) or _known(kit, scope)
    none = "Nothing failed here." if known else "Nothing is recorded of this user with this agent."
    session.show(
        done,
        *(_summary(done) if done.work or done.blocks else nothing(none)),
        *lines([f"{counted(elsewhere, 'block')} of others failed: `remegraph doctor` shows whose."] * bool(elsewhere)),
    )
    if not known or any(each.state == "failed" for each in done.work):
        raise typer.Exit(1)


def _known(kit: MemoryKit, scope: Scope) -> bool:
    """Return whether there is a conversation of exactly this scope."""
    threads = kit.admin.threads(Subject(tenant=scope.tenant, user=scope.user))
    return any((each.agent, each.project) == (scope.agent, scope.project) for each in threads)


@of_scope(app)
def reread(
    session: Session,
    scope: Scope,
    *,
    by: Annotated[
        str, Option("--by", help="Blocks that this model read, instead of those that were read without one.")
    ] = "extractive",
    tokens: Annotated[
        int | None, Option("--tokens", min=1, help="Most tokens to spend; the next run continues.")
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only show how many blocks wait, and about what they would cost.")
    ] = False,
    model: Model = None,
) -> None:
    """Have the model read again what was read without one, the newest first.

    What it makes of a block replaces what was made without it, unless a person stated or changed that, or other
    blocks support it. It continues where the last run stopped.
    """
    budget = None if tokens is None else Budget(max_tokens=tokens)
    kit = session.kit(model)
    done = kit.work.reread(scope=scope, by=by, dry_run=dry_run, budget=budget, progress=session.bars())
    again, usage = "remegraph work reread", done.usage
    if not dry_run:
        session.show(done, *_summary(done, again))
    elif not done.blocks:
        session.show(done, *nothing("Nothing waits to be read again."))
    else:
        cost = f"about {counted(len(usage.calls), 'model call')}, {usage.input_tokens:,} tokens sent and "
        cost += f"{usage.output_tokens:,} received, by {plain(usage.calls[0].model)}"
        session.show(
            done,
            Text(f"{counted(len(done.blocks), 'block')} to read again: {cost}."),
            *lines([f"Read them, the newest first: `{again}`, or `{again} --tokens 100000`."], "dim"),
        )


# ----------------------------------------------------------------------------------------------- what is shown

_SUMMARIZE = "remegraph summarize"


def _summary(report: SummaryReport, again: str = _SUMMARIZE) -> Views:
    """Show what a summary did, and which command does what is left."""
    done = (
        f"{counted(len(report.blocks), 'block')} summarised: {counted(report.created, 'new memory', 'new memories')}, "
        f"{report.updated:,} updated."
    )
    calls = len(report.usage.calls)
    cost = f"{counted(calls, 'model call')}, {report.usage.input_tokens + report.usage.output_tokens:,} tokens."
    return (Text(done), *(lines([cost], "dim") if calls else ()), *leftovers(report, again), *objections(report))


def objections(report: SummaryReport) -> Views:
    """Show what the reviser objected to."""
    return lines((f"• {words}" for words in report.objections), "")


def leftovers(report: SummaryReport, again: str = _SUMMARIZE) -> Views:
    """Show what a summary left undone, and which command does it."""
    failed, review = (sum(item.state == state for item in report.work) for state in ("failed", "review"))
    hints = {
        f"{failed} failed: see `remegraph work list`, try again with `remegraph work retry`.": failed,
        f"{counted(review, 'piece')} of work for a person to look at: see `remegraph work list`.": review,
        f"{counted(len(report.warnings), 'statement')} to decide about: see `remegraph review conflicts`.": report.warnings,
        f"{counted(report.pending, 'block')} still to do: run `{again}`.": report.pending,
    }
    return lines(hint for hint, applies in hints.items() if applies)


def work_table(found: Sequence[Work]) -> Views:
    """Show work that waits or failed."""
    return table(
        found,
        ("!block", "topic", "!state", ">tries", "reason"),
        lambda each: (
            each.block_id,
            each.topic or "(digest)",
            state_of(each.state),
            each.attempts,
            shortened(each.reason),
        ),
        empty="Nothing waits.",
        whole=True,
    )
