"""What memory holds: what was found, memories, blocks, messages, tools, topics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from remegraph.cli.views.looks import (
    SHORT_ID,
    STYLES,
    Views,
    add_row,
    counted,
    day_of,
    nothing,
    plain,
    shortened,
    state_of,
    table_of,
)
from remegraph.models import BlockSummary, Hit, Memory, Recall, Shelf, SkillFigures, StoredMessage, ToolStats
from remegraph.rules.perceiving import shown

__all__ = ["blocks", "memories", "messages", "recall", "skills", "tools", "topics"]


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
        words = Text(shortened(hit.text) if hit.kind == "message" else plain(hit.text))
        over = hit.standing if hit.standing != "current" else hit.status
        if over not in {"active", ""}:
            words.append(f"  ({over})", style=STYLES.get(over, ""))
        record = hit.record_id[:SHORT_ID] if hit.kind == "memory" else hit.record_id
        age = f", {counted(hit.age.days, 'day')} ago" if hit.age.days > 0 else ""
        sure = f"sure {hit.confidence:.2f}" if hit.kind == "memory" else ""
        reasons = plain(hit.why) or _sum(hit.contributions)
        facts = [f"{hit.time:%Y-%m-%d}{age}", sure, plain(hit.topic), reasons, plain(record)]
        words.append("\n" + " · ".join(fact for fact in facts if fact), style="dim")
        grid.add_row(Text(f"{hit.score:.2f}", style="bold"), *bar, words)
    return Padding(grid, (0, 0, 1, 2))


def _sum(contributions: Mapping[str, float]) -> str:
    return " + ".join(f"{name} {value:.2f}" for name, value in contributions.items())


def topics(found: Sequence[Shelf]) -> Views:
    """Show the topic index."""
    if not found:
        return nothing("No topics yet.")
    table = table_of("type", "about", "description", "shared")
    for shelf in found:
        shared = "with all users" if shelf.partition.user is None else ""
        add_row(
            table, shelf.topic.type, Text(plain(shelf.topic.target_name), style="bold"), shelf.topic.description, shared
        )
    return (table,)


def memories(found: Iterable[Memory]) -> Views:
    """Show memories, topic by topic, with their status."""
    by_topic = sorted(found, key=lambda memory: (memory.topic.key, memory.said_at))
    if not by_topic:
        return nothing("No memories.")
    lines: list[RenderableType] = []
    for key, group in groupby(by_topic, key=lambda memory: memory.topic.key):
        grid = Table.grid(padding=(0, 2, 0, 0))
        for memory in group:
            words = Text(plain(memory.content), style="dim strike" if memory.status == "superseded" else "")
            if memory.live and memory.valid_to:
                words.append(f"  (until {memory.valid_to:%Y-%m-%d})", style="dim")
            grid.add_row(state_of(memory.status), Text(memory.memory_id[:SHORT_ID], style="dim"), day_of(memory), words)
        lines += [Text(plain(key), style="bold"), Padding(grid, (0, 0, 1, 2))]
    return tuple(lines)


def blocks(found: Sequence[BlockSummary]) -> Views:
    """Show the block index."""
    if not found:
        return nothing("No blocks yet.")
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
        return nothing("No messages.")
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
    words = Text(shortened(message.text) if message.role == "tool" else plain(shown(message)))
    for call in message.tool_calls:
        args = call.args if isinstance(call.args, str) else json.dumps(call.args, ensure_ascii=False)
        words.append(("\n" if words else "") + f"→ {plain(call.name)} {shortened(args)}", style="cyan")
    if message.ok is False:
        words.stylize("red")
    return words


def skills(found: Sequence[SkillFigures]) -> Views:
    """Show how each skill has gone so far."""
    if not found:
        return nothing("There are no skills yet.")
    table = table_of("!id", "skill", ">version", ">runs", ">success", ">bounds")
    for each in found:
        rate = each.success_rate
        add_row(
            table,
            each.memory_id[:SHORT_ID],
            each.name,
            each.version,
            each.runs,
            "candidate" if rate is None else f"{rate:.0%}",
            f"{each.lower:.2f} to {each.upper:.2f}",
        )
    return (table,)


def tools(found: Sequence[ToolStats]) -> Views:
    """Show how reliable each tool is."""
    if not found:
        return nothing("No tool was called yet.")
    table = table_of("!tool", ">calls", ">failed", ">success", ">mean", "last error")
    for entry in found:
        rate, mean = entry.success_rate, entry.mean_seconds
        add_row(
            table,
            Text(plain(entry.tool), style="bold"),
            entry.calls,
            entry.failed,
            "unknown" if rate is None else f"{rate:.0%}",
            "" if mean is None else f"{mean:.1f} s",
            shortened(entry.last_error),
        )
    return (table,)
