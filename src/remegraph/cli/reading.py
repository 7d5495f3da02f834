"""Commands that look things up."""

from __future__ import annotations

from typing import Annotated

import typer

from remegraph.cli import views
from remegraph.cli.asking import Asked, asked, full_id
from remegraph.cli.options import (
    MemoryId,
    Since,
    Timezone,
    Until,
    read_time,
    read_zone,
)
from remegraph.models import LIVE, MOVES, Depth, RecallFilter, RecallMode, Status, TopicType

__all__ = ["blocks", "memories", "messages", "recall", "skills", "tools", "topics", "trace"]

ALL: tuple[Status, ...] = tuple(MOVES)
"""Every status there is."""

LIVE_ONES = tuple(status for status in ALL if status in LIVE)
"""The statuses that recall returns."""


@asked
def recall(
    ask: Asked,
    query: Annotated[str, typer.Argument(help="What you want to know.", show_default=False)],
    *,
    k: Annotated[int | None, typer.Option("-k", min=1, help="Hits of each kind.", show_default="10")] = None,
    depth: Annotated[
        Depth,
        typer.Option("--depth", help="How far down: topic memories; blocks too; raw messages too; or summaries alone."),
    ] = "memories",
    mode: Annotated[
        RecallMode, typer.Option("--mode", help="What counts: words and vectors (hybrid), or one of the other ways.")
    ] = "hybrid",
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="Only this topic, as type:name. May be repeated.")
    ] = None,
    of_type: Annotated[TopicType | None, typer.Option("--type", help="Only topics of this type.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Only memories with this tag. May be repeated.")
    ] = None,
    status: Annotated[
        Status | None, typer.Option("--status", help="Only this status; live ones unless given.", show_default=False)
    ] = None,
    min_trust: Annotated[
        float | None,
        typer.Option("--min-trust", min=0, max=1, help="Least trust, 0 to 1; 0: also what tools and documents say."),
    ] = None,
    true_at: Annotated[
        str | None, typer.Option("--true-at", help="What was true at this time.", show_default=False)
    ] = None,
    known_at: Annotated[
        str | None, typer.Option("--known-at", help="What was recorded by this time.", show_default=False)
    ] = None,
    since: Since = None,
    until: Until = None,
    timezone: Timezone = None,
    context: Annotated[bool, typer.Option("--context", help="Print the text for a prompt instead of a table.")] = False,
) -> None:
    """Recall what is known about a question. No model is called."""
    zone = read_zone(timezone)
    start, end = read_time(since, zone), read_time(until, zone)
    only = RecallFilter(
        types=(of_type,) if of_type else (),
        tags=tuple(tag or ()),
        statuses=(status,) if status else (),
        min_trust=min_trust,
        true_at=read_time(true_at, zone),
        known_at=read_time(known_at, zone),
    )
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.recall(
            query,
            scope=scope,
            k=k,
            depth=depth,
            mode=mode,
            time_start=start,
            time_end=end,
            topics=topic,
            only=only,
        )
    ask.out.show(found, *([views.text(found.context)] if context else views.recall(found, width=ask.out.console.width)))


@asked
def topics(
    ask: Asked,
    *,
    graph: Annotated[bool, typer.Option("--graph", help="Draw them around the agent, with what ties them.")] = False,
) -> None:
    """List the topics: the shelves on which memories stand."""
    scope = ask.scope
    with ask.kit() as kit:
        if graph:
            drawn = kit.topic_graph(scope=scope)
            ask.out.show(drawn, *views.topic_graph(drawn))
        else:
            found = kit.topics(scope=scope)
            ask.out.show(found, *views.topics(found))


@asked
def memories(
    ask: Asked,
    *,
    topic: Annotated[
        str | None, typer.Option("--topic", help="Only this topic, as type:name.", show_default=False)
    ] = None,
    status: Annotated[
        Status | None, typer.Option("--status", help="Only this status; live ones unless given.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Of every status, superseded ones too.")] = False,
) -> None:
    """List the memories, topic by topic."""
    scope = ask.scope
    statuses = ALL if everything else (status,) if status else LIVE_ONES
    with ask.kit() as kit:
        found = kit.memories(scope=scope, topic=topic, statuses=statuses)
    ask.out.show(found, *views.memories(found))


@asked
def blocks(
    ask: Asked,
) -> None:
    """List the block index: what happened when, block by block."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.blocks(scope=scope)
    ask.out.show(found, *views.blocks(found))


@asked
def messages(
    ask: Asked,
    block: Annotated[
        str | None, typer.Argument(help="Only the messages of this block, e.g. 20260302_01.", show_default=False)
    ] = None,
    *,
    key_word: Annotated[
        str | None, typer.Option("--key-word", help="Only messages that hold this text.", show_default=False)
    ] = None,
    since: Since = None,
    until: Until = None,
    timezone: Timezone = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 50,
) -> None:
    """Read the raw messages, to the letter."""
    zone = read_zone(timezone)
    start, end = read_time(since, zone), read_time(until, zone)
    scope = ask.scope
    with ask.kit() as kit:
        found = (
            kit.retrieve_message(key_word, start, end, limit, scope=scope)
            if block is None
            else kit.retrieve_block(block, scope=scope)
        )
    ask.out.show(found, *views.messages(found))


@asked
def tools(
    ask: Asked,
) -> None:
    """Show how often each tool was called and how often it failed."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.tool_stats(scope=scope)
    ask.out.show(found, *views.tools(found))


@asked
def skills(
    ask: Asked,
) -> None:
    """Show how each skill has gone so far: runs, success rate, and the bounds that it is chosen by."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.skills.figures(scope=scope)
    ask.out.show(found, *views.skills(found))


@asked
def trace(
    ask: Asked,
    memory_id: MemoryId,
) -> None:
    """Trace a memory down to the exact words that it came from."""
    scope = ask.scope
    with ask.kit() as kit:
        found = kit.trace(full_id(kit, memory_id, scope), scope=scope)
    ask.out.show(found, views.trace(found))
