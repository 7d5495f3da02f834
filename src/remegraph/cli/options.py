"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

__all__ = [
    "ME",
    "Agent",
    "AsJson",
    "By",
    "DryRun",
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
    "Topic",
    "Until",
    "User",
]

ME = "me"
"""The user, where neither an option nor a file names one."""

_WHO = "Who asks"
_WHERE = "Where and how"

MemoryId = Annotated[
    str, Argument(help="The memory: its id, or the beginning of it.", metavar="ID", show_default=False)
]
By = Annotated[str, Option("--by", help="Who decides; the user unless given.", show_default=False)]
Note = Annotated[str, Option("--note", help="Why, for the journal.", show_default=False)]
Reason = Annotated[str, Option("--reason", help="Why, for the journal.", show_default=False)]
DryRun = Annotated[bool, Option("--dry-run", help="Only show what would be done.")]
Topic = Annotated[str | None, Option("--topic", help="Only this topic, as type:name.")]
Timezone = Annotated[str | None, Option("--timezone", "-z", help="Zone of times that name none, e.g. Asia/Shanghai.")]
Since = Annotated[
    str | None, Option("--since", help="Only what was said at this time or later, e.g. 2026-03-01T00:00Z.")
]
Until = Annotated[str | None, Option("--until", help="Only what was said at this time or earlier.")]
Heads = Annotated[
    Path | None,
    Option(
        "--heads",
        help="File with the last lines of an earlier export, kept where they could not be changed.",
        metavar="FILE",
    ),
]
Model = Annotated[
    str | None,
    Option(
        "--model",
        help="Chat model as provider:model, or 'none' to work without one. Unless given: $REMEGRAPH_MODEL; OpenAI "
        "where its key is set; else none.",
        rich_help_panel=_WHERE,
    ),
]
User = Annotated[
    str, Option("--user", "-u", envvar="REMEGRAPH_USER", help="The person talked with.", rich_help_panel=_WHO)
]
Agent = Annotated[
    str | None, Option("--agent", envvar="REMEGRAPH_AGENT", help="The agent that remembers.", rich_help_panel=_WHO)
]
Project = Annotated[
    str | None, Option("--project", envvar="REMEGRAPH_PROJECT", help="The project worked on.", rich_help_panel=_WHO)
]
Tenant = Annotated[str, Option("--tenant", envvar="REMEGRAPH_TENANT", help="The organisation.", rich_help_panel=_WHO)]
Home = Annotated[
    Path | None,
    Option(
        "--home",
        help="Folder of the memory. Unless given: $REMEGRAPH_HOME, else ~/.remegraph.",
        rich_help_panel=_WHERE,
    ),
]
AsJson = Annotated[
    bool, Option("--json", help="Print one JSON document on stdout and nothing else.", rich_help_panel=_WHERE)
]
