"""The commands as one program: in the order in which `--help` shows them, with the options that hold for all."""

from __future__ import annotations

import typer

from remegraph.cli import admin, demo, health, ingestion, lifecycle, packs, recall, review, servers, sharing, work
from remegraph.cli.command import AsJson, Home

__all__ = ["app"]

app = typer.Typer(
    name="remegraph",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_PANELS = {
    "Record and summarise": (
        ("demo", demo.demo),
        ("ingest", ingestion.ingest),
        ("import", ingestion.app),
        ("summarize", work.summarize),
        ("worker", work.worker),
        ("work", work.app),
    ),
    "Remember": (
        ("recall", recall.recall),
        ("trace", recall.trace),
        ("memory", lifecycle.memory),
        ("rule", recall.rule),
        ("inspect", servers.inspect),
    ),
    "Serve other programs": (("mcp", servers.mcp),),
    "Share among agents": (("share", sharing.app), ("pack", packs.app)),
    "Keep in order": (
        ("conflict", review.conflict),
        ("quarantine", review.quarantine),
        ("health", health.health),
        ("doctor", admin.doctor),
        ("migrate", admin.migrate),
        ("admin", admin.admin),
        ("backup", admin.backup),
        ("key", admin.key),
    ),
}

for _panel, _entries in _PANELS.items():
    for _name, _entry in _entries:
        if isinstance(_entry, typer.Typer):
            app.add_typer(_entry, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, rich_help_panel=_panel)(_entry)


@app.callback()
def remegraph(context: typer.Context, home: Home = None, as_json: AsJson = False) -> None:
    """Memory for agents: every memory can be traced to the words that it came from.

    Start with `remegraph demo`, or put a conversation in: `remegraph ingest chat.json`, then `remegraph recall "..."`.

    **Exit codes:** 0 all is well; 1 an error, told in one line with its cure, or what `verify` or `doctor` found;
    2 wrong use; 130 stopped by Ctrl-C: the same command goes on where it stopped.
    """
    given: dict[str, object] = ({"home": str(home)} if home else {}) | ({"as_json": True} if as_json else {})
    context.default_map = _defaults(app, given)


def _defaults(commands: typer.Typer, given: dict[str, object]) -> dict[str, object]:
    """Return the options given to a program as those of each of its commands, also of those in groups."""
    names = (each.name or (each.callback.__name__ if each.callback else "") for each in commands.registered_commands)
    groups = {
        str(each.name): _defaults(each.typer_instance, given)
        for each in commands.registered_groups
        if each.typer_instance is not None
    }
    return {**dict.fromkeys(names, given), **groups}
