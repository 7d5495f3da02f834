"""How records look on a terminal: sober, readable without colour, and in narrow windows."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Literal

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from remegraph.models import (
    BlockSummary,
    Hit,
    Memory,
    Quote,
    Recall,
    Shelf,
    StoredMessage,
    SummaryReport,
    ToolStats,
    TopicEdge,
    TopicGraph,
    TopicNode,
    Trace,
    Verification,
    Work,
)

__all__ = [
    "Views",
    "blocks",
    "ingested",
    "memories",
    "messages",
    "plain",
    "recall",
    "stats",
    "summary",
    "text",
    "tools",
    "topic_graph",
    "topics",
    "trace",
    "verification",
    "work",
]

Views = tuple[RenderableType, ...]

SHORT_ID = 8
"""Characters of a memory id that are shown; `trace` takes them."""

FIRST = 20
"""Rows shown of lists that may be very long."""

LONG = 200
"""Characters shown of a tool's output, a call or a reason."""

WORDS = "bold reverse"
"""Style of the exact words that bear a memory out; brackets mark them where there is no style."""

_STYLES = {
    "active": "green",
    "disputed": "yellow",
    "quarantined": "yellow",
    "review": "yellow",
    "superseded": "dim",
    "expired": "dim",
    "deleted": "dim",
    "failed": "red",
    "pending": "cyan",
}


def plain(value: str) -> str:
    """Return text that a terminal shows and never obeys: control characters and lone surrogates become U+FFFD."""
    return "".join(
        "\ufffd" if unicodedata.category(char) in {"Cc", "Cs"} and char not in "\n\t" else char for char in value
    )


def text(value: str) -> RenderableType:
    """Return text to be shown as it is."""
    return Text(plain(value))


# --- recording


def ingested(rows: Sequence[tuple[str, int, int, SummaryReport]], *, seconds: float, summarised: bool) -> Views:
    """Show what was recorded for each user: name, new messages, known ones, what was made of them."""
    table = _table("user", ">new", ">known", *((">blocks", ">memories", ">updated") if summarised else ()))
    for user, added, known, report in rows[:FIRST]:
        made = (len(report.blocks), report.created, report.updated) if summarised else ()
        _row(table, user, *(f"{number:,}" for number in (added, known, *made)))
    if len(rows) > FIRST:
        _row(table, f"… and {len(rows) - FIRST} more")
    total = sum(added + known for _, added, known, _ in rows)
    speed = f"{_count(total, 'message')} of {_count(len(rows), 'user')} in {seconds:.1f} s"
    reports = [report for *_, report in rows]
    return (table, Text(""), Text(speed), *(line for report in reports for line in _left(report)), *_next(rows))


def _next(rows: Sequence[tuple[str, int, int, SummaryReport]]) -> Views:
    if not rows:
        return ()
    return (Text(f'Next: remegraph recall "..." --user {plain(rows[0][0])!r}', style="dim"),)


def summary(report: SummaryReport) -> Views:
    """Show what a summary did."""
    done = (
        f"{_count(len(report.blocks), 'block')} summarised: {_count(report.created, 'new memory', 'new memories')}, "
        f"{report.updated:,} updated."
    )
    calls = len(report.usage.calls)
    cost = f"{_count(calls, 'model call')}, {report.usage.input_tokens + report.usage.output_tokens:,} tokens."
    return (Text(done), *((Text(cost, style="dim"),) if calls else ()), *_left(report), *objections(report))


def objections(report: SummaryReport) -> Views:
    """Show what the reviser objected to."""
    return tuple(Text(f"• {plain(words)}") for words in report.objections)


def _left(report: SummaryReport) -> Views:
    """Show what a summary left undone."""
    states = {state: sum(item.state == state for item in report.work) for state in ("failed", "review")}
    lines = []
    if states["failed"]:
        lines.append(f"{states['failed']} failed: see `remegraph work`, try again with `remegraph retry`.")
    if states["review"]:
        lines.append(f"{_count(states['review'], 'piece')} of work for a person to look at: see `remegraph work`.")
    if report.pending:
        lines.append(f"{_count(report.pending, 'block')} still to do: run `remegraph summarize`.")
    return tuple(Text(line, style="yellow") for line in lines)


def work(found: Sequence[Work]) -> Views:
    """Show work that waits or failed."""
    if not found:
        return _none("Nothing waits.")
    table = _table("!block", "topic", "!state", ">tries", "reason")
    for item in found:
        _row(table, item.block_id, item.topic or "(digest)", _state(item.state), item.attempts, _cut(item.reason))
    return (table,)


# --- reading


def recall(found: Recall, *, width: int = 100) -> Views:
    """Show what was found, best first, each with its score and its reasons."""
    lines: list[RenderableType] = []
    if found.self_memories:
        lines += [Text(f"Self: {plain(memory.content)}", style="italic") for memory in found.self_memories]
    for title, hits in (("Memories", found.memories), ("Blocks", found.blocks), ("Messages", found.messages)):
        if hits:
            lines += [Text(title, style="bold"), _hits(hits, width=width)]
    if not (found.memories or found.blocks or found.messages):
        lines.append(Text("Nothing found.", style="dim"))
    topics_ = ", ".join(map(plain, found.topics)) or "none"
    lines.append(Text(f"Topics: {topics_}. Index: {found.index}. {found.seconds * 1000:.0f} ms.", style="dim"))
    lines += [Text(f"Without {plain(reason)}", style="yellow") for reason in found.degraded]
    return tuple(lines)


def _hits(hits: Sequence[Hit], *, width: int) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    best = max(hit.score for hit in hits)
    for hit in hits:
        share = hit.score / best if best > 0 else 0.0
        bar = [Text("█" * round(share * 10) + "░" * (10 - round(share * 10)), style="cyan")] if width >= 80 else []
        words = Text(_cut(hit.text) if hit.kind == "message" else plain(hit.text))
        over = hit.standing if hit.standing != "current" else hit.status
        if over not in {"active", ""}:
            words.append(f"  ({over})", style=_STYLES.get(over, ""))
        record = hit.record_id[:SHORT_ID] if hit.kind == "memory" else hit.record_id
        sure = f"sure {hit.confidence:.2f}" if hit.kind == "memory" else ""
        when = f"{hit.time:%Y-%m-%d}" + (f", {_count(hit.age.days, 'day')} ago" if hit.age.days > 0 else "")
        facts = [when, sure, plain(hit.topic), plain(hit.why) or _sum(hit.contributions), plain(record)]
        words.append("\n" + " · ".join(fact for fact in facts if fact), style="dim")
        grid.add_row(Text(f"{hit.score:.2f}", style="bold"), *bar, words)
    return Padding(grid, (0, 0, 1, 2))


def _sum(contributions: Mapping[str, float]) -> str:
    return " + ".join(f"{name} {value:.2f}" for name, value in contributions.items())


def topics(found: Sequence[Shelf]) -> Views:
    """Show the topic index."""
    if not found:
        return _none("No topics yet.")
    table = _table("type", "about", "description", "shared")
    for shelf in found:
        shared = "with all users" if shelf.partition.user is None else ""
        _row(
            table, shelf.topic.type, Text(plain(shelf.topic.target_name), style="bold"), shelf.topic.description, shared
        )
    return (table,)


def topic_graph(graph: TopicGraph) -> Views:
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
    return (tree,)


def _bubble(node: TopicNode) -> Text:
    facts = f" · {_count(node.memories, 'memory', 'memories')} · {_count(len(node.block_ids), 'block')}"
    return Text.assemble((plain(node.topic.key), "bold"), (facts, "dim"))


def _common(edge: TopicEdge) -> str:
    counts = ((len(edge.block_ids), "block"), (edge.links, "link"))
    return " and ".join(_count(number, what) for number, what in counts if number)


def memories(found: Iterable[Memory]) -> Views:
    """Show memories, topic by topic, with their status."""
    by_topic = sorted(found, key=lambda memory: (memory.topic.key, memory.said_at))
    if not by_topic:
        return _none("No memories.")
    lines: list[RenderableType] = []
    for key, group in groupby(by_topic, key=lambda memory: memory.topic.key):
        grid = Table.grid(padding=(0, 2, 0, 0))
        for memory in group:
            words = Text(plain(memory.content), style="dim strike" if memory.status == "superseded" else "")
            grid.add_row(_state(memory.status), Text(memory.memory_id[:SHORT_ID], style="dim"), _day(memory), words)
        lines += [Text(plain(key), style="bold"), Padding(grid, (0, 0, 1, 2))]
    return tuple(lines)


def blocks(found: Sequence[BlockSummary]) -> Views:
    """Show the block index."""
    if not found:
        return _none("No blocks yet.")
    grid = Table.grid(padding=(0, 2, 0, 0))
    for entry in found:
        span = f"{entry.start_time:%Y-%m-%d %H:%M}–{entry.end_time:%H:%M}"
        words = Text(plain(entry.summary))
        if entry.entities:
            words.append("\n" + ", ".join(map(plain, entry.entities)), style="dim")
        grid.add_row(Text(f"{entry.block_id}\n", style="bold").append(span, style="not bold dim"), words)
    return (grid,)


def messages(found: Sequence[StoredMessage]) -> Views:
    """Show raw messages as a transcript, day by day."""
    if not found:
        return _none("No messages.")
    lines: list[RenderableType] = []
    for day, group in groupby(found, key=lambda message: f"{message.time:%Y-%m-%d}"):
        grid = Table.grid(padding=(0, 2, 0, 0))
        for message in group:
            time = Text(f"{message.time:%H:%M}", style="dim", no_wrap=True)
            grid.add_row(time, Text(plain(message.speaker), style="bold"), _said(message))
        lines += [Text(day, style="dim"), grid]
    return tuple(lines)


def _said(message: StoredMessage) -> Text:
    """Return the words and the tool calls of a message."""
    words = Text(_cut(message.text) if message.role == "tool" else plain(message.text))
    for call in message.tool_calls:
        args = call.args if isinstance(call.args, str) else json.dumps(call.args, ensure_ascii=False)
        words.append(("\n" if words else "") + f"→ {plain(call.name)} {_cut(args)}", style="cyan")
    if message.ok is False:
        words.stylize("red")
    return words


def tools(found: Sequence[ToolStats]) -> Views:
    """Show how reliable each tool is."""
    if not found:
        return _none("No tool was called yet.")
    table = _table("!tool", ">calls", ">failed", ">success", ">mean", "last error")
    for entry in found:
        rate, mean = entry.success_rate, entry.mean_seconds
        _row(
            table,
            Text(plain(entry.tool), style="bold"),
            entry.calls,
            entry.failed,
            "unknown" if rate is None else f"{rate:.0%}",
            "" if mean is None else f"{mean:.1f} s",
            _cut(entry.last_error),
        )
    return (table,)


def trace(found: Trace) -> RenderableType:
    """Show the way from a memory down to the exact words."""
    memory = found.memory
    head = Text(plain(memory.content), style="bold").append("\n")
    facts = [memory.status, memory.layer, memory.topic.key, f"version {memory.version}", f"by {memory.extractor}"]
    tree = Tree(head.append(plain(" · ".join(facts)), style="not bold dim"), guide_style="dim")
    if len(found.versions) > 1:
        versions = tree.add(Text("versions", style="cyan"))
        for version in found.versions:
            versions.add(Text(f"{version.version}  {_when(version.recorded_at)}  {plain(version.content)}"))
    entries = {entry.block_id: entry for entry in found.summaries}
    told = set()
    for block in found.blocks:
        entry = entries.get(block.block_id)
        label = Text(f"block {block.block_id}", style="cyan").append(f"  {_when(block.start_time)}", style="dim")
        branch = tree.add(label.append(f"\n{plain(entry.summary)}", style="not dim") if entry else label)
        own = {message.message_id for message in found.messages if block.first_seq <= message.seq <= block.last_seq}
        for quote in found.quotes:
            if quote.message.message_id in own and block.thread == quote.message.thread:
                branch.add(_quoted(quote))
                told.add((quote.message.message_id, quote.start))
    for quote in found.quotes:
        if (quote.message.message_id, quote.start) not in told:
            tree.add(_quoted(quote))
    for link in found.links:
        tree.add(Text(f"{link.type} {link.target_id[:SHORT_ID]}  {plain(link.reason)}"))
    for missing in found.missing:
        tree.add(Text(f"missing: {plain(missing)}", style="yellow"))
    return tree


def _quoted(quote: Quote) -> Text:
    """Return the message with the exact words between brackets, and highlighted."""
    message = quote.message
    before, after = message.text[: quote.start], message.text[quote.end :]
    head = f"{plain(message.speaker)}, {_when(message.time)}, message {plain(message.message_id)}\n"
    return Text.assemble((head, "dim"), plain(before), (f"[{plain(quote.words)}]", WORDS), plain(after))


# --- upkeep


def verification(found: Verification) -> Views:
    """Show what `verify` compared and what differs."""
    read = (
        f"{_count(found.messages, 'message')}, {_count(found.blocks, 'block')}, "
        f"{_count(found.memories, 'memory', 'memories')}, {_count(found.vectors, 'vector')} read."
    )
    if found.healthy:
        return (Text("Healthy: nothing differs.", style="green"), Text(read, style="dim"))
    table = _table("where", "record", "problem")
    for difference in found.differences[:FIRST]:
        _row(table, difference.where, difference.record_id, difference.problem)
    total = len(found.differences)
    head = Text(f"{_count(total, 'difference')}. Run `remegraph rebuild` to make the index anew.", style="red")
    more = (Text(f"… and {total - FIRST} more"),) if total > FIRST else ()
    return (head, Text(read, style="dim"), table, *more)


def stats(found: Mapping[str, object]) -> RenderableType:
    """Show counts by name."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, value in found.items():
        shown = f"{value:,}" if isinstance(value, int) else str(value)
        grid.add_row(Text(name.replace("_", " "), style="dim"), Text(plain(shown), overflow="fold"))
    return grid


# --- what they share


def _table(*headers: str) -> Table:
    """Return a table; a header that begins with > is right-aligned, one with ! or > is never wrapped."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for header in headers:
        fixed = header.startswith(("!", ">"))
        justify: Literal["left", "right"] = "right" if header.startswith(">") else "left"
        table.add_column(header.lstrip("!>"), justify=justify, no_wrap=fixed, overflow="fold")
    return table


def _row(table: Table, *cells: object) -> None:
    table.add_row(*(cell if isinstance(cell, Text) else Text(plain(str(cell))) for cell in cells))


def _state(state: str) -> Text:
    return Text(state, style=_STYLES.get(state, ""), no_wrap=True)


def _day(memory: Memory) -> Text:
    return Text(f"{memory.said_at:%Y-%m-%d}", style="dim", no_wrap=True)


def _when(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _cut(value: str) -> str:
    line = " ".join(plain(value).split())
    return line if len(line) <= LONG else line[: LONG - 1] + "…"


def _count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def _none(words: str) -> Views:
    return (Text(words, style="dim"),)
