"""Commands that record and summarise."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.asking import Asked, asked
from remegraph.cli.options import (
    ME,
    Agent,
    AsJson,
    Home,
    Model,
    Project,
    Tenant,
    Timezone,
    read_time,
    read_zone,
    scope_of,
)
from remegraph.cli.session import Report, guarded, open_kit
from remegraph.exchange.conversations import Conversation, read_conversations
from remegraph.kit import MemoryKit
from remegraph.models import Progress, Scope, SummaryReport

__all__ = ["Ingested", "drain", "ingest", "ingest_file", "retry", "summarize", "work"]

BATCH = 500
"""Messages recorded in one transaction."""


@dataclass(slots=True)
class Ingested:
    """What `ingest` did for one user."""

    scope: Scope
    added: int = 0
    known: int = 0
    report: SummaryReport = field(default_factory=SummaryReport)

    def to_json(self) -> dict[str, object]:
        """Return it as the JSON document tells it."""
        return {
            "user": self.scope.user,
            "added": self.added,
            "known": self.known,
            "summary": self.report.model_dump(mode="json"),
        }


def ingest(
    file: Annotated[
        Path,
        typer.Argument(
            help="OpenAI chat JSON or fine-tuning JSONL, LangChain messages as JSON or JSONL, or JSONL with one user per "
            'line: {"user": ..., "messages": [...]}.',
            show_default=False,
        ),
    ],
    *,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            "-u",
            envvar="REMEGRAPH_USER",
            help=f"The person talked with. Unless given: as the file says, else '{ME}'.",
            show_default=False,
            rich_help_panel="Who asks",
        ),
    ] = None,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    timezone: Timezone = None,
    time_: Annotated[
        str | None,
        typer.Option(
            "--time", help="Time of messages that have none. Unless given: the file's own.", show_default=False
        ),
    ] = None,
    no_summary: Annotated[bool, typer.Option("--no-summary", help="Record only; summarise later.")] = False,
    model: Model = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Record the conversations of a file and make memories of them.

    The whole file is checked before anything is recorded. Ingesting it again changes nothing, so a run that was stopped
    is simply run again.
    """
    zone = read_zone(timezone)
    said = read_time(time_, zone)
    with guarded(as_json=as_json) as out:
        started = time.perf_counter()
        with out.bars() as report:
            total = _checked(read_conversations(file, timezone=zone, default_time=said), report)
            with open_kit(home, model=model, create=True) as kit:
                conversations = read_conversations(file, timezone=zone, default_time=said)
                scoped = (
                    (scope_of(user or found.user or ME, agent, project, tenant), found) for found in conversations
                )
                done = ingest_file(kit, scoped, total=total, summarise=not no_summary, progress=report)
        seconds = time.perf_counter() - started
        data = {"file": str(file), "seconds": round(seconds, 3), "users": [entry.to_json() for entry in done]}
        rows = [(entry.scope.user, entry.added, entry.known, entry.report) for entry in done]
        out.show(data, *views.ingested(rows, seconds=seconds, summarised=not no_summary))


def _checked(conversations: Iterator[Conversation], report: Report) -> int:
    """Read all conversations once, so that a bad line is found before anything is recorded; return the messages."""
    total = 0
    for conversation in conversations:
        total += len(conversation.messages)
        report(Progress(stage="Check", done=total, total=0))
    report(Progress(stage="Check", done=total, total=total))
    return total


def ingest_file(
    kit: MemoryKit,
    conversations: Iterator[tuple[Scope, Conversation]],
    *,
    total: int,
    summarise: bool,
    progress: Report,
) -> list[Ingested]:
    """Record conversations, then summarise for each of their users, in the order of the file.

    Args:
        kit: The memory.
        conversations: Each with the scope it belongs to.
        total: Messages in all, for the progress.
        summarise: Whether memories are made now.
        progress: Told how far it is.
    """
    done: dict[Scope, Ingested] = {}
    recorded = 0
    for scope, conversation in conversations:
        entry = done.setdefault(scope, Ingested(scope))
        for start in range(0, len(conversation.messages), BATCH):
            receipt = kit.add_messages(conversation.messages[start : start + BATCH], scope=scope)
            entry.added += receipt.added
            entry.known += receipt.known
            recorded += len(receipt.message_ids)
            progress(Progress(stage="Record", done=recorded, total=total, detail=scope.user))
    for entry in done.values() if summarise else ():
        entry.report = kit.summarize(scope=entry.scope, close=True, progress=progress)
    return list(done.values())


@asked
def summarize(
    ask: Asked,
    *,
    close: Annotated[
        bool, typer.Option("--close", help="Also what may still go on: the open end of each thread.")
    ] = False,
    model: Model = None,
) -> None:
    """Make memories of what was recorded since the last time."""
    scope = ask.scope
    with ask.out.bars() as report, ask.kit(model) as kit:
        done = kit.summarize(scope=scope, close=close, progress=report)
    ask.out.show(done, *views.summary(done))


def drain(
    *,
    model: Model = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Do all work that waits, of every user, once: what agents leave to the background.

    A cron job can do what a process that ends too soon does not.
    """
    with guarded(as_json=as_json) as out:
        with out.bars() as report, open_kit(home, model=model) as kit:
            done = kit.drain(progress=report)
        out.show(done, *views.summary(done))


@asked
def work(
    ask: Asked,
) -> None:
    """List what still waits: blocks to do, what failed and why, and what a person should look at."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.work(scope=scope)
    ask.out.show(found, *views.work(found))


@asked
def retry(
    ask: Asked,
    *,
    model: Model = None,
) -> None:
    """Try failed work again."""
    scope = ask.scope
    with ask.out.bars() as report, ask.kit(model) as kit:
        done = kit.retry(scope=scope, progress=report)
    ask.out.show(done, *views.summary(done))
