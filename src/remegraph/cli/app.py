"""The commands as one program: in the order in which `--help` shows them, with the options that hold for all."""

from __future__ import annotations

import typer

from remegraph.cli import (
    backups,
    conflicts,
    demo,
    erasing,
    fading,
    governing,
    granting,
    importing,
    inspecting,
    keys,
    packs,
    quarantine,
    reading,
    rules,
    serving,
    sharing,
    upkeep,
    working,
    writing,
)
from remegraph.cli.options import AsJson, Home

__all__ = ["app"]

app = typer.Typer(
    name="remegraph",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_START, _READ, _SERVE = "Record and summarise", "Remember", "Serve other programs"
_SHARE, _KEEP = "Share among agents", "Keep in order"

app.command("demo", rich_help_panel=_START)(demo.demo)
app.command("ingest", rich_help_panel=_START)(writing.ingest)
app.add_typer(importing.app, name="import", rich_help_panel=_START)
app.command("summarize", rich_help_panel=_START)(writing.summarize)
app.command("drain", rich_help_panel=_START)(writing.drain)
app.command("worker", rich_help_panel=_START)(working.worker)
app.command("work", rich_help_panel=_START)(writing.work)
app.command("retry", rich_help_panel=_START)(writing.retry)
app.command("recall", rich_help_panel=_READ)(reading.recall)
app.command("topics", rich_help_panel=_READ)(reading.topics)
app.command("memories", rich_help_panel=_READ)(reading.memories)
app.command("blocks", rich_help_panel=_READ)(reading.blocks)
app.command("messages", rich_help_panel=_READ)(reading.messages)
app.command("tools", rich_help_panel=_READ)(reading.tools)
app.command("skills", rich_help_panel=_READ)(reading.skills)
app.command("trace", rich_help_panel=_READ)(reading.trace)
app.command("rules", rich_help_panel=_READ)(rules.rules)
app.command("inject", rich_help_panel=_READ)(rules.inject)
app.command("explain", rich_help_panel=_READ)(fading.explain)
app.command("archaeology", rich_help_panel=_READ)(governing.archaeology)
app.command("diff", rich_help_panel=_READ)(governing.diff)
app.command("forecast", rich_help_panel=_READ)(fading.forecast)
app.command("inspect", rich_help_panel=_READ)(inspecting.inspect)
app.command("mcp", rich_help_panel=_SERVE)(serving.mcp)
app.command("consolidate", rich_help_panel=_KEEP)(fading.consolidate)
app.command("maintain", rich_help_panel=_KEEP)(fading.maintain)
app.command("cleanup", rich_help_panel=_KEEP, hidden=True)(fading.maintain)  # as governance protocols call it
app.command("restore", rich_help_panel=_KEEP)(fading.restore)
app.command("promote", rich_help_panel=_KEEP)(rules.promote)
app.command("audit", rich_help_panel=_KEEP)(governing.audit)
app.command("conflicts", rich_help_panel=_KEEP)(conflicts.conflicts)
app.command("resolve", rich_help_panel=_KEEP)(conflicts.resolve)
app.add_typer(quarantine.app, name="quarantine", rich_help_panel=_KEEP)
app.command("grants", rich_help_panel=_SHARE)(granting.grants)
app.command("grant", rich_help_panel=_SHARE)(granting.grant)
app.command("revoke", rich_help_panel=_SHARE)(granting.revoke)
app.command("proposals", rich_help_panel=_SHARE)(sharing.proposals)
app.command("propose", rich_help_panel=_SHARE)(sharing.propose)
app.command("corroborate", rich_help_panel=_SHARE)(sharing.corroborate)
app.command("approve", rich_help_panel=_SHARE)(sharing.approve)
app.command("reject", rich_help_panel=_SHARE)(sharing.reject)
app.command("withdraw", rich_help_panel=_SHARE)(sharing.withdraw)
app.add_typer(packs.app, name="pack", rich_help_panel=_SHARE)
app.add_typer(backups.app, name="backup", rich_help_panel=_KEEP)
app.command("doctor", rich_help_panel=_KEEP)(upkeep.doctor)
app.command("erase", rich_help_panel=_KEEP)(erasing.erase)
app.add_typer(keys.app, name="key", rich_help_panel=_KEEP)
app.command("health", rich_help_panel=_KEEP)(working.health)
app.command("jobs", rich_help_panel=_KEEP)(working.jobs)
app.command("verify", rich_help_panel=_KEEP)(upkeep.verify)
app.command("rebuild", rich_help_panel=_KEEP)(upkeep.rebuild)
app.command("stats", rich_help_panel=_KEEP)(upkeep.stats)


@app.callback()
def remegraph(
    context: typer.Context,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Memory for agents: every memory can be traced to the words that it came from.

    Start with `remegraph demo`, or put a conversation in: `remegraph ingest chat.json`, then `remegraph recall "..."`.

    **Exit codes:** 0 all is well; 1 an error, told in one line with its cure, or what `verify` or `doctor` found;
    2 wrong use; 130 stopped by Ctrl-C: the same command goes on where it stopped.
    """
    given: dict[str, object] = ({"home": str(home)} if home else {}) | ({"as_json": True} if as_json else {})
    context.default_map = _to_each(app, given)


def _to_each(commands: typer.Typer, given: dict[str, object]) -> dict[str, object]:
    """Return the options given to a program as those of each of its commands, also of those in groups."""
    names = (each.name or (each.callback.__name__ if each.callback else "") for each in commands.registered_commands)
    groups = {
        str(each.name): _to_each(each.typer_instance, given)
        for each in commands.registered_groups
        if each.typer_instance is not None
    }
    return {**dict.fromkeys(names, given), **groups}
