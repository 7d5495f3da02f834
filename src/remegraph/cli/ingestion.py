"""Commands that import conversations, and memories of other systems."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from rich.text import Text
from typer import Argument, Option

from remegraph.cli.command import (
    FIRST,
    Report,
    Session,
    Views,
    counted,
    group,
    lines,
    of_home,
    plain,
    read_time,
    read_zone,
    scope_of,
    table,
)
from remegraph.cli.options import ME, Agent, Model, Project, Tenant, Timezone
from remegraph.cli.work import leftovers
from remegraph.errors import ScopeError
from remegraph.importers.conversations import Conversation, read_conversations
from remegraph.models import ForeignMemory, Imported, Progress, Scope, SummaryReport

__all__ = ["app", "ingest"]

app = group()

_BATCH = 500
"""Messages recorded in one transaction."""

_WHO = "Who asks"


@dataclass(slots=True)
class _Ingested:
    """Result for one user."""

    user: str
    added: int = 0
    known: int = 0
    summary: SummaryReport = field(default_factory=SummaryReport)


@of_home()
def ingest(
    session: Session,
    file: Annotated[
        Path,
        Argument(
            help="OpenAI chat JSON or fine-tuning JSONL, LangChain messages as JSON or JSONL, or JSONL with one user per "
            'line: {"user": ..., "messages": [...]}.',
            show_default=False,
        ),
    ],
    *,
    user: Annotated[
        str | None,
        Option(
            "--user",
            "-u",
            envvar="REMEGRAPH_USER",
            help=f"The person talked with. Unless given: as the file says, else '{ME}'.",
            rich_help_panel=_WHO,
        ),
    ] = None,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    timezone: Timezone = None,
    time_: Annotated[
        str | None, Option("--time", help="Time of messages that have none. Unless given: the file's own.")
    ] = None,
    no_summary: Annotated[bool, Option("--no-summary", help="Record only; summarise later.")] = False,
    model: Model = None,
) -> None:
    """Record the conversations of a file and make memories of them.

    The whole file is checked before anything is recorded. Ingesting it again changes nothing, so a run that was stopped
    is simply run again.
    """
    zone = read_zone(timezone)
    said, started, report = read_time(time_, zone), time.perf_counter(), session.bars()
    total = _checked(read_conversations(file, timezone=zone, default_time=said), report)
    kit, recorded, done = session.kit(model, create=True), 0, dict[Scope, _Ingested]()
    for conversation in read_conversations(file, timezone=zone, default_time=said):
        scope = scope_of(user or conversation.user or ME, agent, project, tenant)
        entry = done.setdefault(scope, _Ingested(scope.user))
        for start in range(0, len(conversation.messages), _BATCH):
            receipt = kit.add_messages(conversation.messages[start : start + _BATCH], scope=scope)
            entry.added += receipt.added
            entry.known += receipt.known
            recorded += len(receipt.message_ids)
            report(Progress(stage="Record", done=recorded, total=total, detail=scope.user))
    for scope, entry in () if no_summary else done.items():
        entry.summary = kit.summarize(scope=scope, close=True, progress=report)
    session.opened.close()
    seconds, rows = time.perf_counter() - started, list(done.values())
    data = {"file": str(file), "seconds": round(seconds, 3), "users": rows}
    session.show(data, *_ingested(rows, seconds=seconds, summarised=not no_summary))


def _checked(conversations: Iterator[Conversation], report: Report) -> int:
    """Read all conversations, so that a bad line is found before anything is recorded; return the number of messages."""
    total = 0
    for conversation in conversations:
        total += len(conversation.messages)
        report(Progress(stage="Check", done=total, total=0))
    report(Progress(stage="Check", done=total, total=total))
    return total


def _ingested(rows: list[_Ingested], *, seconds: float, summarised: bool) -> Views:
    """Show what was recorded for each user and what was made of it."""

    def cells(row: _Ingested) -> list[str]:
        made = (len(row.summary.blocks), row.summary.created, row.summary.updated) if summarised else ()
        return [row.user, *(f"{number:,}" for number in (row.added, row.known, *made))]

    total = sum(row.added + row.known for row in rows)
    headers = ("user", ">new", ">known", *((">blocks", ">memories", ">updated") if summarised else ()))
    return (
        *table(rows, headers, cells),
        Text(f"\n{counted(total, 'message')} of {counted(len(rows), 'user')} in {seconds:.1f} s"),
        *(line for row in rows for line in leftovers(row.summary)),
        *lines((f'Next: remegraph recall "..." --user {plain(row.user)!r}' for row in rows[:1]), "dim"),
    )


# ------------------------------------------------------------------------------------ memories of other systems

_User = Annotated[
    str | None,
    Option(
        "--user",
        "-u",
        help="Whose they are here; refused for an export of several users. Unless given: as the export says.",
        rich_help_panel=_WHO,
    ),
]
_Skip = Annotated[bool, Option("--skip-invalid", help="Leave out records that cannot be read, and list them.")]


@of_home(app)
def mem0(
    session: Session,
    file: Annotated[
        Path, Argument(help="What get_all() returned, or a list of memories, as JSON or JSONL.", show_default=False)
    ],
    *,
    user: _User = None,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    timezone: Timezone = None,
    skip_invalid: _Skip = False,
) -> None:
    """Import memories of mem0. The same export again changes nothing."""
    done = session.kit(create=True).imports.mem0(
        file,
        scope=_whose(user, agent, project, tenant),
        timezone=read_zone(timezone),
        skip_invalid=skip_invalid,
        progress=session.bars(),
    )
    session.show(done, *_imported(done))


@of_home(app)
def langmem(
    session: Session,
    file: Annotated[
        Path, Argument(help="Items of the store with namespace, key and value, as JSON or JSONL.", show_default=False)
    ],
    *,
    user: _User = None,
    prefix: Annotated[
        list[str] | None, Option("--prefix", help="Only below this namespace; once for each label.")
    ] = None,
    user_at: Annotated[int, Option("--user-at", help="The place in the namespace, from 0, that names the user.")] = 1,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    timezone: Timezone = None,
    skip_invalid: _Skip = False,
) -> None:
    """Import the items of a LangGraph store that LangMem filled. The same items again change nothing."""
    done = session.kit(create=True).imports.langmem(
        file,
        scope=_whose(user, agent, project, tenant),
        prefix=prefix or (),
        user_at=user_at,
        timezone=read_zone(timezone),
        skip_invalid=skip_invalid,
        progress=session.bars(),
    )
    session.show(done, *_imported(done))


def _whose(
    user: str | None, agent: str | None, project: str | None, tenant: str
) -> Scope | Callable[[ForeignMemory], Scope]:
    """Return the scope of all records, or what reads it from each."""

    def owner(each: ForeignMemory) -> Scope:
        if not each.user:
            raise ScopeError(f"Record {each.record_id!r} does not say of which user it is.", "Give --user.")
        return scope_of(each.user, agent, project, tenant)

    return owner if user is None else scope_of(user, agent, project, tenant)


def _imported(done: Imported) -> Views:
    """Show what an import did."""
    others = f" and {len(done.users) - FIRST} more" if len(done.users) > FIRST else ""
    users = plain(f"{', '.join(done.users[:FIRST])}{others}")
    fresh = Text(f"{counted(done.created, 'memory', 'memories')} taken in for {users}.", style="green")
    counts = {
        "say what a memory says already": done.corroborated,
        "were imported before": done.known,
        "were imported before with other words, which stay": len(done.changed),
        "were erased here, and stay so": done.erased,
        "relations of a graph are left out": done.relations,
    }
    return (
        fresh if done.created + done.corroborated else Text("Nothing new: nothing changed.", style="dim"),
        *lines((f"{count:,} {what}" for what, count in counts.items() if count), "dim"),
        *lines(f"Skipped: {each}" for each in done.invalid),
        *lines(f"Not up to date: {each}" for each in done.degraded),
    )
