"""What goes into a pack: memories of one partition, never of another; whole, or as items for any agent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remegraph.exchange.packs.layout import BlockEntry, BlockLine, Item, line_of, version_fields
from remegraph.models import (
    CausalChain,
    EpisodeContent,
    Link,
    Memory,
    MemoryContent,
    Message,
    Partition,
    Status,
    WorkflowContent,
)
from remegraph.ports import Archive
from remegraph.rules.forms import content_of, level_of

__all__ = ["CARRIED", "Clean", "Contents", "Step", "export", "preset"]

CARRIED: frozenset[Status] = frozenset({"active", "disputed", "low_priority", "archived", "superseded"})
"""The statuses of memories that an export holds unless others are asked for."""

Clean = Callable[[Any], Any]
"""Returns JSON without what may not leave."""

Step = Callable[[int, int], None]
"""Told how many memories of how many are done; raises to stop."""


@dataclass
class Contents:
    """The lines of a pack, and what is not in it."""

    members: dict[str, list[bytes]]
    left_out: dict[str, str] = field(default_factory=dict)
    dropped: int = 0


def preset(memories: Sequence[Memory], clean: Clean | None, step: Step) -> Contents:
    """Return memories as items: what they say, without ids, times, sources and whose they were.

    Args:
        memories: The memories.
        clean: Takes out what may not leave; none: nothing does.
        step: Told how far it is.
    """
    found = Contents({"items.jsonl": []})
    lines: set[bytes] = set()
    for done, memory in enumerate(memories, start=1):
        step(done, len(memories))
        if not memory.live:
            found.left_out[memory.memory_id] = f"It is {memory.status}."
            continue
        content = json.loads(_without_sources(content_of(memory)).to_json())
        tags: Any = list(memory.tags)
        if clean is not None:
            content, tags = clean(content), clean(tags)
        fields = {
            "memory_type": memory.kind,
            "content": content,
            "importance": level_of(memory.importance),
            "tags": sorted(set(tags)),
        }
        named = hashlib.sha256(line_of(fields)).hexdigest()[:16]
        lines.add(line_of(Item.model_validate({**fields, "item_id": named})))
    found.members["items.jsonl"] = sorted(lines)
    return found


def _without_sources(content: MemoryContent) -> MemoryContent:
    if isinstance(content, WorkflowContent):
        return content.evolve(source_info=None)
    if isinstance(content, EpisodeContent):
        return content.evolve(causal_chain=CausalChain())
    return content


def export(
    archive: Archive, lives_in: Partition, said_in: Partition, memories: Sequence[Memory], step: Step
) -> Contents:
    """Return memories whole: all their versions, the links between them, and the blocks and words that they cite.

    Args:
        archive: The ledger.
        lives_in: Where they live.
        said_in: Where the words are that may go along.
        memories: The memories.
        step: Told how far it is.
    """
    histories: dict[str, tuple[Memory, ...]] = {}
    for done, memory in enumerate(memories, start=1):
        step(done, len(memories))
        histories[memory.memory_id] = archive.versions([lives_in], memory.memory_id)
    words = _Words.of(archive, said_in, histories.values())
    found = Contents({"messages.jsonl": [], "blocks.jsonl": [], "memories.jsonl": [], "links.jsonl": []})
    for memory_id, versions in sorted(histories.items()):
        if why := words.lacking(versions):
            found.left_out[memory_id] = why
    kept = {each: versions for each, versions in sorted(histories.items()) if each not in found.left_out}
    for versions in kept.values():
        for version in versions:
            inside = tuple(other for other in version.supersedes if other in kept)
            found.dropped += len(version.supersedes) - len(inside)
            fields = version_fields(version) | {"supersedes": inside}
            found.members["memories.jsonl"].append(line_of(fields))
    links = archive.links([lives_in], list(kept)) if kept else ()
    inside_links = [link for link in links if {link.source_id, link.target_id} <= kept.keys()]
    found.dropped += len(links) - len(inside_links)
    found.members["links.jsonl"] = [line_of(link) for link in sorted(inside_links, key=_ends)]
    cited = {block_id for versions in kept.values() for version in versions for block_id in _blocks(version)}
    found.members |= words.lines(cited)
    return found


def _ends(link: Link) -> tuple[str, str, str]:
    return (link.source_id, link.type, link.target_id)


def _blocks(version: Memory) -> Collection[str]:
    return {*version.block_ids, *(item.block_id for item in version.evidence)}


@dataclass(frozen=True, slots=True)
class _Words:
    """The blocks that memories cite, with their messages."""

    blocks: Mapping[str, BlockLine]
    messages: Mapping[str, Message]
    """By id, in the order in which they were recorded."""

    @classmethod
    def of(cls, archive: Archive, home: Partition, histories: Collection[Sequence[Memory]]) -> _Words:
        cited = sorted({each for versions in histories for version in versions for each in _blocks(version)})
        if not cited:
            return cls({}, {})
        entries = {entry.block_id: entry for entry in archive.summaries([home], ids=cited)}
        said: dict[int, Message] = {}
        blocks: dict[str, BlockLine] = {}
        for block in archive.blocks([home], ids=cited):
            held = archive.messages([home], thread=block.thread, first_seq=block.first_seq, last_seq=block.last_seq)
            entry = entries.get(block.block_id)
            said |= {message.seq: message for message in held}
            blocks[block.block_id] = BlockLine(
                block_id=block.block_id,
                thread=block.thread,
                message_ids=tuple(message.message_id for message in held),
                entry=BlockEntry(**{name: getattr(entry, name) for name in BlockEntry.model_fields}) if entry else None,
            )
        return cls(blocks, {said[seq].message_id: said[seq] for seq in sorted(said)})

    def lacking(self, versions: Sequence[Memory]) -> str:
        """Return what of all that the versions cite cannot go along; empty where everything can."""
        cited = [item for version in versions for item in version.evidence]
        blocks = {block_id for version in versions for block_id in _blocks(version)}
        if not blocks <= self.blocks.keys() or any(item.message_id not in self.messages for item in cited):
            return "Its evidence lies in another scope."
        if any(item.attachment for item in cited):
            return "It rests on an attachment, and a pack holds none."
        return ""

    def lines(self, cited: Collection[str]) -> dict[str, list[bytes]]:
        """Return the lines of these blocks, and of the messages that they hold."""
        blocks = [block for name, block in self.blocks.items() if name in cited]
        held = {message_id for block in blocks for message_id in block.message_ids}
        return {
            "messages.jsonl": [line_of(_as_said(each)) for name, each in self.messages.items() if name in held],
            "blocks.jsonl": [line_of(block) for block in sorted(blocks, key=lambda block: block.block_id)],
        }


def _as_said(message: Message) -> Message:
    return Message(**{name: getattr(message, name) for name in Message.model_fields})
