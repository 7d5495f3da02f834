"""What commands share in how they are typed: options, each said once, how their values are read, and groups."""

from __future__ import annotations

from datetime import datetime, tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from pydantic import ValidationError

from remegraph.errors import MessageError, ScopeError
from remegraph.exchange.times import parse_time
from remegraph.models import Scope

__all__ = [
    "ME",
    "Agent",
    "AsJson",
    "By",
    "Heads",
    "Home",
    "MemoryId",
    "Model",
    "Note",
    "Project",
    "Reason",
    "Since",
    "Tenant",
    "Timezone",
    "Until",
    "User",
    "group",
    "read_time",
    "read_zone",
    "scope_of",
]

ME = "me"
"""The user, where neither an option nor a file names one."""

_WHO = "Who asks"
_WHERE = "Where and how"

MemoryId = Annotated[
    str, typer.Argument(help="The memory: its id, or the beginning of it.", metavar="ID", show_default=False)
]
By = Annotated[str, typer.Option("--by", help="Who decides; the user unless given.", show_default=False)]
Note = Annotated[str, typer.Option("--note", help="Why, for the journal.", show_default=False)]
Reason = Annotated[str, typer.Option("--reason", help="Why, for the journal.", show_default=False)]
User = Annotated[
    str, typer.Option("--user", "-u", envvar="REMEGRAPH_USER", help="The person talked with.", rich_help_panel=_WHO)
]
Agent = Annotated[
    str | None,
    typer.Option("--agent", envvar="REMEGRAPH_AGENT", help="The agent that remembers.", rich_help_panel=_WHO),
]
Project = Annotated[
    str | None,
    typer.Option("--project", envvar="REMEGRAPH_PROJECT", help="The project worked on.", rich_help_panel=_WHO),
]
Tenant = Annotated[
    str, typer.Option("--tenant", envvar="REMEGRAPH_TENANT", help="The organisation.", rich_help_panel=_WHO)
]
Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="Folder of the memory. Unless given: $REMEGRAPH_HOME, else ~/.remegraph.",
        show_default=False,
        rich_help_panel=_WHERE,
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.", rich_help_panel=_WHERE)
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Chat model as provider:model, or 'none' to work without one. Unless given: $REMEGRAPH_MODEL; OpenAI "
        "where its key is set; else none.",
        show_default=False,
        rich_help_panel=_WHERE,
    ),
]
Timezone = Annotated[
    str | None,
    typer.Option("--timezone", "-z", help="Zone of times that name none, e.g. Asia/Shanghai.", show_default=False),
]
Heads = Annotated[
    Path | None,
    typer.Option(
        "--heads",
        help="File with the last lines of an earlier export, kept where nobody could change them.",
        metavar="FILE",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", help="Only what was said at this time or later, e.g. 2026-03-01T00:00Z.", show_default=False
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--until", help="Only what was said at this time or earlier.", show_default=False),
]


def group(about: str) -> typer.Typer:
    """Return an empty group of commands.

    Args:
        about: What they are for.
    """
    return typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}, help=about)


def scope_of(user: str, agent: str | None, project: str | None, tenant: str) -> Scope:
    """Return the scope that the options name.

    Raises:
        ScopeError: A value is empty or holds what no name may hold.
    """
    try:
        return Scope(user=user, agent=agent, project=project, tenant=tenant)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        cure = "Give names that are not empty and free of NUL."
        raise ScopeError(f"--{first['loc'][0]}: {first['msg']}.", cure) from error


def read_zone(name: str | None) -> tzinfo | None:
    """Return the zone of this name.

    Raises:
        typer.BadParameter: There is none.
    """
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise typer.BadParameter(f"There is no zone {name!r}: give one such as Asia/Shanghai.") from error


def read_time(text: str | None, zone: tzinfo | None) -> datetime | None:
    """Return the time that an option gives.

    Raises:
        typer.BadParameter: It cannot be read.
    """
    if text is None:
        return None
    try:
        return parse_time(text, timezone=zone)
    except MessageError as error:
        raise typer.BadParameter(f"{error.what} Give one such as 2026-03-01T00:00Z, or a --timezone.") from error
