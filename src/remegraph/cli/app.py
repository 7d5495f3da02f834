"""All commands as one program, in the order in which `--help` shows them, with the options that all share.

A command is imported when it is used: help, completion and a wrong command wait for none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from remegraph.cli.options import AsJson, Home

__all__ = ["app", "whole"]


class _Command(NamedTuple):
    """A command or a group of commands, before it is imported."""

    panel: str
    place: str
    """Its module, and its name there."""
    about: str
    """The first paragraph of a command's help, the same as in its docstring; for a group, its whole help."""


_MAKE = "Record and summarise"
_USE = "Remember"
_SERVE = "Serve other programs"
_SHARE = "Share among agents"
_KEEP = "Keep in order"

_COMMANDS: Mapping[str, _Command] = {
    "demo": _Command(
        _MAKE,
        "remegraph.cli.demo:demo",
        "Show the whole path on a bundled conversation: offline, with recorded answers of a model, in a few seconds.",
    ),
    "ingest": _Command(
        _MAKE, "remegraph.cli.ingestion:ingest", "Record the conversations of a file and make memories of them."
    ),
    "import": _Command(
        _MAKE,
        "remegraph.cli.ingestion:app",
        "Memories of another system: mem0, or a LangGraph store that LangMem filled.",
    ),
    "summarize": _Command(
        _MAKE, "remegraph.cli.work:summarize", "Make memories of what was recorded since the last time."
    ),
    "worker": _Command(
        _MAKE,
        "remegraph.cli.work:worker",
        "Do the work that waits, of every user, as it comes, until SIGTERM or Ctrl-C.",
    ),
    "work": _Command(
        _MAKE,
        "remegraph.cli.work:app",
        "The work that makes memories of messages: what waits, what failed, and what to do about it.",
    ),
    "recall": _Command(
        _USE, "remegraph.cli.recall:recall", "Recall what is known about a question. No model is called."
    ),
    "trace": _Command(_USE, "remegraph.cli.recall:trace", "Trace a memory down to the exact words that it came from."),
    "memory": _Command(
        _USE,
        "remegraph.cli.lifecycle:memory",
        "Memories: list, explain and compare them, see what fades, and change them.",
    ),
    "rule": _Command(
        _USE,
        "remegraph.cli.recall:rule",
        "Rules: what an agent is given in every conversation, and what it is given for certain words.",
    ),
    "inspect": _Command(
        _USE,
        "remegraph.cli.servers:inspect",
        "Look at the memory in a browser: topics, sources, forgetting, recall, what waits. Ctrl-C ends it.",
    ),
    "mcp": _Command(
        _SERVE,
        "remegraph.cli.servers:mcp",
        "Serve the memory to an MCP client, such as Claude: its tools, resources and prompts. No model is called.",
    ),
    "share": _Command(
        _SHARE,
        "remegraph.cli.sharing:share",
        "What agents share: grants to read, and proposals for all agents of a user.",
    ),
    "pack": _Command(
        _SHARE, "remegraph.cli.sharing:pack", "Memories in a file: for another home, or for other agents."
    ),
    "review": _Command(
        _KEEP,
        "remegraph.cli.lifecycle:review",
        "What a person decides: memories that contradict each other, and those of tools, documents and strangers, "
        "which nothing recalls until they are approved.",
    ),
    "health": _Command(
        _KEEP,
        "remegraph.cli.health:health",
        "Say within seconds whether the ledger is ready, whether the index answers, and how much work waits.",
    ),
    "doctor": _Command(
        _KEEP,
        "remegraph.cli.admin:doctor",
        "Find what is wrong with a home, how bad it is, and what to do. Exit code 1 where anything is wrong.",
    ),
    "migrate": _Command(
        _KEEP,
        "remegraph.cli.admin:migrate",
        "Show what the ledger lacks of the schema of this release, and migrate it with `--apply`.",
    ),
    "backup": _Command(_KEEP, "remegraph.cli.admin:backup", "Copies of a home on SQLite, taken while it is used."),
    "admin": _Command(
        _KEEP,
        "remegraph.cli.admin:admin",
        "Keep a home in order: verify, rebuild, count, erase, who changed what, and the key of the journal.",
    ),
}


def _empty() -> typer.Typer:
    return typer.Typer(
        name="remegraph",
        cls=_Program,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


@cache
def _imported(name: str) -> Any:
    """Import a command, and return it as the program runs it."""
    panel, place, about = _COMMANDS[name]
    module, _, attribute = place.partition(":")
    found, into = getattr(import_module(module), attribute), _empty()
    if isinstance(found, typer.Typer):
        into.add_typer(found, name=name, help=about, rich_help_panel=panel)
    else:
        into.command(name, rich_help_panel=panel)(found)
    return get_group(into).commands[name]


class _Program(TyperGroup):
    """Commands that the help lists by name and summary; a command is imported when it is used."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that the arguments name, imported."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and _imported(str(name)), rest


app = _empty()


def _later() -> None:
    """Represent a command in the help of the program."""


for _name, _each in _COMMANDS.items():
    app.command(_name, help=_each.about, rich_help_panel=_each.panel)(_later)


def whole() -> Any:
    """Return the program with all its commands imported, for those who read what there is."""
    program: Any = get_command(app)
    program.commands = {name: _imported(name) for name in program.commands}
    return program


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # noqa: PLC0415 - reads e-mail's headers, which help needs not

        typer.echo(f"remegraph {version('remegraph')}")
        raise typer.Exit


@app.callback()
def remegraph(
    context: typer.Context,
    home: Home = None,
    as_json: AsJson = False,
    version: Annotated[  # noqa: ARG001 - the program has ended where it was given
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Memory for agents: every memory can be traced to the words that it came from.

    Start with `remegraph demo`, or put a conversation in: `remegraph ingest chat.json`, then `remegraph recall "..."`.

    **Exit codes:** 0 all is well; 1 an error, in one line with its cure, or what `verify` or `doctor` found;
    2 wrong use; 130 stopped by Ctrl-C: the same command continues where it stopped.
    """
    given: dict[str, object] = ({"home": str(home)} if home else {}) | ({"as_json": True} if as_json else {})
    name = str(context.invoked_subcommand)
    context.default_map = {name: _defaults(_imported(name), given)}


def _defaults(command: Any, given: dict[str, object]) -> dict[str, object]:
    """Return the options given to a program as those of a command, or of each command in a group."""
    if not hasattr(command, "commands"):
        return given
    return {name: _defaults(each, given) for name, each in command.commands.items()}
