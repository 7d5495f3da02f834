"""Commands that take in what other memory systems exported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.options import Agent, AsJson, Home, Project, Tenant, Timezone, group, read_zone, scope_of
from remegraph.cli.session import guarded, open_kit
from remegraph.errors import ScopeError
from remegraph.models import ForeignMemory, Scope

__all__ = ["app"]

app = group("Memories of another system: mem0, or a LangGraph store that LangMem filled.")

_User = Annotated[
    str | None,
    typer.Option(
        "--user",
        "-u",
        help="Whose they are here; refused for an export of several users. Unless given: as the export says.",
        show_default=False,
        rich_help_panel="Who asks",
    ),
]
_Skip = Annotated[bool, typer.Option("--skip-invalid", help="Leave out records that cannot be read, and list them.")]


@app.command()
def mem0(
    file: Annotated[
        Path,
        typer.Argument(help="What get_all() returned, or a list of memories, as JSON or JSONL.", show_default=False),
    ],
    *,
    user: _User = None,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    timezone: Timezone = None,
    skip_invalid: _Skip = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Take in memories of mem0. The same export again changes nothing."""
    with guarded(as_json=as_json) as out, out.bars() as report, open_kit(home, create=True) as kit:
        done = kit.imports.mem0(
            file,
            scope=_whose(user, agent, project, tenant),
            timezone=read_zone(timezone),
            skip_invalid=skip_invalid,
            progress=report,
        )
        out.show(done, *views.imported(done))


@app.command()
def langmem(
    file: Annotated[
        Path,
        typer.Argument(help="Items of the store with namespace, key and value, as JSON or JSONL.", show_default=False),
    ],
    *,
    user: _User = None,
    prefix: Annotated[
        list[str] | None, typer.Option("--prefix", help="Only below this namespace; once for each label.")
    ] = None,
    user_at: Annotated[
        int, typer.Option("--user-at", help="The place in the namespace, from 0, that names the user.")
    ] = 1,
    agent: Agent = None,
    project: Project = None,
    tenant: Tenant = "default",
    timezone: Timezone = None,
    skip_invalid: _Skip = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Take in the items of a LangGraph store that LangMem filled. The same items again change nothing."""
    with guarded(as_json=as_json) as out, out.bars() as report, open_kit(home, create=True) as kit:
        done = kit.imports.langmem(
            file,
            scope=_whose(user, agent, project, tenant),
            prefix=prefix or (),
            user_at=user_at,
            timezone=read_zone(timezone),
            skip_invalid=skip_invalid,
            progress=report,
        )
        out.show(done, *views.imported(done))


def _whose(
    user: str | None, agent: str | None, project: str | None, tenant: str
) -> Scope | Callable[[ForeignMemory], Scope]:
    """Return the scope of all records, or what reads it from each."""

    def told(each: ForeignMemory) -> Scope:
        if not each.user:
            raise ScopeError(f"Record {each.record_id!r} does not say of which user it is.", "Give --user.")
        return scope_of(each.user, agent, project, tenant)

    return told if user is None else scope_of(user, agent, project, tenant)
