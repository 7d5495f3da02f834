"""Commands that look things up: what is remembered, where it came from, and what an agent is given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree
from typer import Argument, Option

from remegraph import models
from remegraph.cli.command import (
    SHORT_ID,
    STYLES,
    Session,
    Views,
    counted,
    grid,
    group,
    lines,
    minute,
    nothing,
    of_scope,
    plain,
    read_time,
    read_zone,
    shortened,
    state_of,
    table,
)
from remegraph.cli.options import MemoryId, Reason, Since, Timezone, Topic, Until
from remegraph.engine.frame import shown
from remegraph.models import Scope

__all__ = [
    "block_grid",
    "memory",
    "memory_list",
    "message_list",
    "recall",
    "recall_list",
    "rule",
    "skill_table",
    "tool_table",
    "topic_table",
    "topic_tree",
    "trace",
    "trace_tree",
]

memory = group()
rule = group()

_Status = Annotated[models.Status | None, Option("--status", help="Only this status; live ones unless given.")]
_Workspace = Annotated[
    Path | None,
    Option(
        "--workspace", "-w", help="Working directory: gives the languages, and the project where none is named."
    ),
]  # fmt: skip
_Context = Annotated[bool, Option("--context", help="Print the text for a prompt instead of a table.")]


@of_scope()
def recall(
    session: Session,
    scope: Scope,
    query: Annotated[str, Argument(help="What you want to know.", show_default=False)],
    *,
    k: Annotated[int | None, Option("-k", min=1, help="Hits of each kind.", show_default="10")] = None,
    depth: Annotated[
        models.Depth,
        Option("--depth", help="How far down: topic memories; blocks too; raw messages too; or summaries alone."),
    ] = "memories",
    mode: Annotated[
        models.RecallMode, Option("--mode", help="What counts: words and vectors (hybrid), or one of the other ways.")
    ] = "hybrid",
    topic: Annotated[
        list[str] | None, Option("--topic", help="Only this topic, as type:name. May be repeated.")
    ] = None,
    of_type: Annotated[models.TopicType | None, Option("--type", help="Only topics of this type.")] = None,
    tag: Annotated[list[str] | None, Option("--tag", help="Only memories with this tag. May be repeated.")] = None,
    status: _Status = None,
    min_trust: Annotated[
        float | None,
        Option("--min-trust", min=0, max=1, help="Least trust, 0 to 1; 0: also what tools and documents say."),
    ] = None,
    true_at: Annotated[str | None, Option("--true-at", help="What was true at this time.")] = None,
    known_at: Annotated[str | None, Option("--known-at", help="What was recorded by this time.")] = None,
    since: Since = None,
    until: Until = None,
    timezone: Timezone = None,
    context: _Context = False,
) -> None:
    """Recall what is known about a question. No model is called."""
    zone = read_zone(timezone)
    start, end = read_time(since, zone), read_time(until, zone)
    only = models.RecallFilter(
        types=(of_type,) if of_type else (),
        tags=tuple(tag or ()),
        statuses=(status,) if status else (),
        min_trust=min_trust,
        true_at=read_time(true_at, zone),
        known_at=read_time(known_at, zone),
    )
    found = session.kit().recall(
        query, scope=scope, k=k, depth=depth, mode=mode, time_start=start, time_end=end, topics=topic, only=only
    )
    session.show(found, *(_prompt(found) if context else recall_list(found, width=session.console.width)))


@of_scope()
def trace(session: Session, scope: Scope, memory_id: MemoryId) -> None:
    """Trace a memory down to the exact words that it came from."""
    found = session.kit().trace(session.memory_id(scope, memory_id), scope=scope)
    session.show(found, trace_tree(found))


@of_scope(memory, "list")
def memories(
    session: Session,
    scope: Scope,
    *,
    topic: Topic = None,
    status: _Status = None,
    everything: Annotated[bool, Option("--all", help="Of every status, superseded ones too.")] = False,
) -> None:
    """List the memories, topic by topic."""
    statuses = list(models.MOVES) if everything else [status] if status else sorted(models.LIVE)
    found = session.kit().memories(scope=scope, topic=topic, statuses=statuses)
    session.show(found, *memory_list(found))


@of_scope(memory)
def topics(
    session: Session,
    scope: Scope,
    *,
    graph: Annotated[bool, Option("--graph", help="Draw them around the agent, with their links.")] = False,
) -> None:
    """List the topics of memories."""
    if graph:
        drawn = session.kit().topics.graph(scope=scope)
        session.show(drawn, topic_tree(drawn))
    else:
        found = session.kit().topics.list(scope=scope)
        session.show(found, *topic_table(found))


@of_scope(memory)
def blocks(session: Session, scope: Scope) -> None:
    """List the block index: what happened when, block by block."""
    found = session.kit().sources.blocks(scope=scope)
    session.show(found, *block_grid(found))


@of_scope(memory)
def messages(
    session: Session,
    scope: Scope,
    block: Annotated[
        str | None, Argument(help="Only the messages of this block, e.g. 20260302_01.", show_default=False)
    ] = None,
    *,
    key_word: Annotated[str | None, Option("--key-word", help="Only messages that hold this text.")] = None,
    since: Since = None,
    until: Until = None,
    timezone: Timezone = None,
    limit: Annotated[int, Option("--limit", min=1, help="At most this many.")] = 50,
) -> None:
    """Read the raw messages, word for word."""
    zone = read_zone(timezone)
    start, end, kit = read_time(since, zone), read_time(until, zone), session.kit()
    found = (
        kit.sources.retrieve_message(key_word, start, end, limit, scope=scope)
        if block is None
        else kit.sources.retrieve_block(block, scope=scope)
    )
    session.show(found, *message_list(found))


@of_scope(memory)
def tools(session: Session, scope: Scope) -> None:
    """Show how often each tool was called and how often it failed."""
    found = session.kit().tools.stats(scope=scope)
    session.show(found, *tool_table(found))


@of_scope(memory)
def skills(session: Session, scope: Scope) -> None:
    """Show how each skill has gone so far: runs, success rate, and the bounds that it is chosen by."""
    found = session.kit().skills.figures(scope=scope)
    session.show(found, *skill_table(found))


@of_scope(rule, "list")
def rules(session: Session, scope: Scope, *, workspace: _Workspace = None) -> None:
    """List the rules that an agent is given in every conversation: core rules, then what applies to the project or language."""
    found = session.kit().rules.list(scope=scope, workspace=workspace)
    session.show(found, *(_injected(found) or nothing("No rules hold here.")))


@of_scope(rule)
def inject(
    session: Session,
    scope: Scope,
    text: Annotated[str, Argument(help="What the person says.", show_default=False)],
    *,
    turn: Annotated[int, Option("--turn", min=0, help="Which of their messages it is.")] = 1,
    budget: Annotated[int | None, Option("--budget", min=1, help="Tokens of the context.", show_default="2000")] = None,
    always: Annotated[bool, Option("--always", help="Always look up what is relevant to it.")] = False,
    workspace: _Workspace = None,
    context: _Context = False,
) -> None:
    """Show what an agent would be given for some words, in layers, why, and what there is no room for."""
    found = session.kit().inject(text, scope=scope, turn=turn, budget=budget, workspace=workspace, always=always)
    head = f"{found.tokens:,} of {found.budget:,} tokens." + ("" if found.triggers else " Nothing calls for a search.")
    views = (
        *(_injected(found.shown) or nothing("Nothing is given.")),
        *lines((trigger.reason for trigger in found.triggers), ""),
        *lines(f"Left out ({reason}): {record_id}" for record_id, reason in found.left_out.items()),
        *lines(f"Without {reason}" for reason in found.degraded),
        Text(head, style="dim"),
    )
    session.show(found, *(_prompt(found) if context else views))


@of_scope(rule)
def promote(session: Session, scope: Scope, memory_id: MemoryId, *, reason: Reason) -> None:
    """Make a memory of one project valid in all projects."""
    found = session.kit().rules.promote(session.memory_id(scope, memory_id), scope=scope, reason=reason)
    session.show(found, *memory_list([found]))


# ----------------------------------------------------------------------------------------------- what is shown

_WORDS = "bold reverse"
"""Style of the exact words that a memory came from; brackets mark them where there is no style."""


def _prompt(found: models.Recall | models.Injection) -> Views:
    return lines([found.context], "")


def recall_list(found: models.Recall, *, width: int = 100) -> Views:
    """Show what was found, best first, each with its score and its reasons."""
    kinds = {"Memories": found.memories, "Blocks": found.blocks, "Messages": found.messages}
    topics_ = ", ".join(map(plain, found.topics)) or "none"
    return (
        *lines((f"Self: {each.content}" for each in found.self_memories), "italic"),
        *(
            part
            for title, hits in kinds.items()
            if hits
            for part in (Text(title, style="bold"), _hits(hits, width=width))
        ),
        *(() if any(kinds.values()) else nothing("Nothing found.")),
        Text(f"Topics: {topics_}. Index: {found.index}. {found.seconds * 1000:.0f} ms.", style="dim"),
        *lines(f"Without {reason}" for reason in found.degraded),
    )


def _hits(hits: Sequence[models.Hit], *, width: int) -> RenderableType:
    best = max(hit.score for hit in hits)

    def row(hit: models.Hit) -> list[RenderableType]:
        share = round(10 * hit.score / best) if best > 0 else 0
        bar = [Text("█" * share + "░" * (10 - share), style="cyan")] if width >= 80 else []
        words = Text(shortened(hit.text) if hit.kind == "message" else plain(hit.text))
        over = hit.standing if hit.standing != "current" else hit.status
        if over not in {"active", ""}:
            words.append(f"  ({over})", style=STYLES.get(over, ""))
        age = f", {counted(hit.age.days, 'day')} ago" if hit.age.days > 0 else ""
        parts = " + ".join(f"{name} {value:.2f}" for name, value in hit.contributions.items())
        facts = (
            f"{hit.time:%Y-%m-%d}{age}",
            f"sure {hit.confidence:.2f}" if hit.kind == "memory" else "",
            plain(hit.topic),
            plain(hit.why) or parts,
            plain(_short(hit)),
        )
        words.append("\n" + " · ".join(fact for fact in facts if fact), style="dim")
        return [Text(f"{hit.score:.2f}", style="bold"), *bar, words]

    return _indented(grid(map(row, hits)))


def _short(hit: models.Hit) -> str:
    return hit.record_id[:SHORT_ID] if hit.kind == "memory" else hit.record_id


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 1, 2))


def memory_list(found: Iterable[models.Memory]) -> Views:
    """Show memories, topic by topic, with their status."""
    by_topic = sorted(found, key=lambda each: (each.topic.key, each.said_at))

    def row(each: models.Memory) -> tuple[Text, ...]:
        words = Text(plain(each.content), style="dim strike" if each.status == "superseded" else "")
        if each.live and each.valid_to:
            words.append(f"  (until {each.valid_to:%Y-%m-%d})", style="dim")
        said = Text(f"{each.said_at:%Y-%m-%d}", style="dim", no_wrap=True)
        return state_of(each.status), Text(each.memory_id[:SHORT_ID], style="dim"), said, words

    topics_ = groupby(by_topic, key=lambda each: each.topic.key)
    shelves = [(Text(plain(key), style="bold"), _indented(grid(map(row, each)))) for key, each in topics_]
    return tuple(part for shelf in shelves for part in shelf) or nothing("No memories.")


def topic_table(found: Sequence[models.Shelf]) -> Views:
    """Show the topic index."""
    return table(
        found,
        ("type", "about", "description", "shared"),
        lambda shelf: (
            shelf.topic.type,
            Text(plain(shelf.topic.target_name), style="bold"),
            shelf.topic.description,
            "with all users" if shelf.partition.user is None else "",
        ),
        empty="No topics yet.",
        whole=True,
    )


def block_grid(found: Sequence[models.BlockSummary]) -> Views:
    """Show the block index."""

    def row(entry: models.BlockSummary) -> tuple[Text, Text]:
        span = f"{minute(entry.start_time)}–{entry.end_time:%H:%M}"
        words = Text(plain(entry.summary))
        if entry.entities:
            words.append("\n" + ", ".join(map(plain, entry.entities)), style="dim")
        return Text(f"{entry.block_id}\n", style="bold").append(span, style="not bold dim"), words

    return (grid(map(row, found)),) if found else nothing("No blocks yet.")


def message_list(found: Sequence[models.StoredMessage]) -> Views:
    """Show raw messages as a transcript, day by day."""

    def row(message: models.StoredMessage) -> tuple[Text, ...]:
        words = Text(shortened(message.text) if message.role == "tool" else plain(shown(message)))
        for call in message.tool_calls:
            args = call.args if isinstance(call.args, str) else json.dumps(call.args, ensure_ascii=False)
            words.append(("\n" if words else "") + f"→ {plain(call.name)} {shortened(args)}", style="cyan")
        if message.ok is False:
            words.stylize("red")
        time = Text(f"{message.time:%H:%M}", style="dim", no_wrap=True)
        return time, Text(plain(message.speaker), style="bold"), words

    days = groupby(found, key=lambda message: f"{message.time:%Y-%m-%d}")
    shown_days = [(Text(day, style="dim"), grid(map(row, each))) for day, each in days]
    return tuple(part for day in shown_days for part in day) or nothing("No messages.")


def skill_table(found: Sequence[models.SkillFigures]) -> Views:
    """Show how each skill has gone so far."""
    return table(
        found,
        ("!id", "skill", ">version", ">runs", ">success", ">bounds"),
        lambda each: (
            each.memory_id[:SHORT_ID],
            each.name,
            each.version,
            each.runs,
            "candidate" if each.success_rate is None else f"{each.success_rate:.0%}",
            f"{each.lower:.2f} to {each.upper:.2f}",
        ),
        empty="There are no skills yet.",
        whole=True,
    )


def tool_table(found: Sequence[models.ToolStats]) -> Views:
    """Show how reliable each tool is."""
    return table(
        found,
        ("!tool", ">calls", ">failed", ">success", ">mean", "last error"),
        lambda each: (
            Text(plain(each.tool), style="bold"),
            each.calls,
            each.failed,
            "unknown" if each.success_rate is None else f"{each.success_rate:.0%}",
            "" if each.mean_seconds is None else f"{each.mean_seconds:.1f} s",
            shortened(each.last_error),
        ),
        empty="No tool was called yet.",
        whole=True,
    )


def _injected(found: Sequence[models.Injected]) -> Views:
    """Show rules, the layers in their order."""
    return table(
        found,
        ("!layer", "!rule", ">weight", "!id", counted(len(found), "entry", "entries")),
        lambda each: (
            each.layer,
            each.hit.enforcement or "",
            f"{10 * each.hit.importance:g}",
            _short(each.hit),
            f"{each.hit.summary} (summary)" if each.shortened else each.hit.text,
        ),
        whole=True,
    )


# ------------------------------------------------------------------------------------------------------- trees


def trace_tree(found: models.Trace) -> RenderableType:
    """Show the way from a memory down to the exact words."""
    origin = found.memory
    head = Text(plain(origin.content), style="bold").append("\n")
    facts = [origin.status, origin.layer, origin.topic.key, f"version {origin.version}", f"by {origin.extractor}"]
    tree = Tree(head.append(plain(" · ".join(facts)), style="not bold dim"), guide_style="dim")
    if len(found.versions) > 1:
        versions = tree.add(Text("versions", style="cyan"))
        for version in found.versions:
            versions.add(Text(f"{version.version}  {minute(version.recorded_at)}  {plain(version.content)}"))
    entries = {entry.block_id: entry for entry in found.summaries}
    placed = set()
    for block in found.blocks:
        entry = entries.get(block.block_id)
        label = Text(f"block {block.block_id}", style="cyan").append(f"  {minute(block.start_time)}", style="dim")
        branch = tree.add(label.append(f"\n{plain(entry.summary)}", style="not dim") if entry else label)
        own = {message.message_id for message in found.messages if block.first_seq <= message.seq <= block.last_seq}
        for quote in found.quotes:
            if quote.message.message_id in own and block.thread == quote.message.thread:
                branch.add(_quoted(quote))
                placed.add((quote.message.message_id, quote.start))
    for quote in found.quotes:
        if (quote.message.message_id, quote.start) not in placed:
            tree.add(_quoted(quote))
    for link in found.links:
        tree.add(Text(f"{link.type} {link.target_id[:SHORT_ID]}  {plain(link.reason)}"))
    for missing in found.missing:
        tree.add(Text(f"missing: {plain(missing)}", style="yellow"))
    return tree


def _quoted(quote: models.Quote) -> Text:
    """Return the message with the exact words between brackets, and highlighted."""
    message = quote.message
    before, after = quote.text[: quote.start], quote.text[quote.end :]
    head = f"{plain(message.speaker)}, {minute(message.time)}, message {plain(message.message_id)}\n"
    return Text.assemble((head, "dim"), plain(before), (f"[{plain(quote.words)}]", _WORDS), plain(after))


def topic_tree(graph: models.TopicGraph) -> Tree:
    """Show the topics as branches of the centre, each with what ties it to others."""
    tree = Tree(_bubble(graph.centre), guide_style="dim")
    spokes = {edge.target: edge for edge in graph.edges if edge.source == graph.centre.topic.key}
    for node in graph.topics:
        key = node.topic.key
        branch = tree.add(_bubble(node))
        ties = [edge for edge in graph.edges if key in (edge.source, edge.target) and edge not in spokes.values()]
        for edge in (spokes[key], *ties):
            if common := _common(edge):
                other = edge.target if edge.source == key else edge.source
                branch.add(Text(plain(f"{common} with {other}"), style="dim"))
    return tree


def _bubble(node: models.TopicNode) -> Text:
    facts = f" · {counted(node.memories, 'memory', 'memories')} · {counted(len(node.block_ids), 'block')}"
    return Text.assemble((plain(node.topic.key), "bold"), (facts, "dim"))


def _common(edge: models.TopicEdge) -> str:
    counts = ((len(edge.block_ids), "block"), (edge.links, "link"))
    return " and ".join(counted(number, what) for number, what in counts if number)
