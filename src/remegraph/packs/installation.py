"""Install packs: offers, for items of a preset; for an export, one change that holds all of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from remegraph.errors import PackError
from remegraph.ledger.archive import Archive
from remegraph.mek.offers import Offer
from remegraph.models import (
    BlockSummary,
    Brought,
    BroughtBlock,
    ChangeSet,
    Link,
    Memory,
    MemoryChange,
    Message,
    Origin,
    Partition,
    TrustedKey,
)
from remegraph.models.base import operation_id
from remegraph.models.forms import importance_of
from remegraph.packs.format import BlockLine, Item
from remegraph.packs.reader import ExportRecords, PackFile, quotes_hold
from remegraph.settings import SharingPolicy

__all__ = ["arrival", "believed", "conflict", "offer"]

_NAMED = 5
"""Records that an error names."""


def believed(signer: TrustedKey | None, policy: SharingPolicy) -> float:
    """Return the trust in a pack: that in its signer."""
    return policy.default_trust if signer is None else policy.trust.get(signer.name, policy.default_trust)


def offer(item: Item, pack: PackFile, trust: float, at: datetime, *, active: bool) -> Offer:
    """Return an item of a preset as an offer."""
    signer = () if pack.signer is None else (pack.signer.name,)
    return Offer(
        item_id=item.item_id,
        title="",
        content=item.content,
        origin=Origin(via="pack", agents=signer, pack_id=pack.manifest.pack_id, at=at),
        trust=trust,
        raw=json.loads(item.to_json()),
        importance=importance_of(item.importance),
        tags=item.tags,
        resident=True if active else None,
    )


@dataclass(frozen=True, slots=True)
class Arrival:
    """An export, compared with the ledger."""

    messages: tuple[Message, ...]
    blocks: tuple[BlockLine, ...]
    new: tuple[tuple[Memory, ...], ...]
    """Memories that the ledger lacks, each with all its versions."""
    known: tuple[str, ...]
    """Memories that the ledger has, equal in every version."""
    conflicting: tuple[str, ...]
    """Records that the ledger has with other content."""
    links: tuple[Link, ...]
    there: frozenset[str]
    """Blocks that the ledger has."""

    def change(
        self,
        digest: str,
        lives_in: Partition,
        said_in: Partition,
        *,
        actor: str,
        at: datetime,
        recipe: str,
        at_home: bool,
    ) -> ChangeSet:
        """Return the change that installs all of it at once."""
        fresh = [block for block in self.blocks if block.block_id not in self.there]
        said = {message.message_id: message for message in self.messages}
        return ChangeSet(
            operation_id=operation_id("install", lives_in.to_json(), digest),
            actor=actor,
            recorded_at=at,
            at_home=at_home,
            changes=tuple(
                MemoryChange(memory=versions[-1], expected_version=0, action="install", history=versions[:-1])
                for versions in self.new
            ),
            links=self.links,
            summaries=tuple(_entry(block, said, said_in) for block in fresh if block.entry is not None),
            work=tuple(block.done(said_in, recipe) for block in fresh),
            brought=Brought(
                partition=said_in,
                messages=self.messages,
                blocks=tuple(
                    BroughtBlock(block_id=each.block_id, thread=each.thread, message_ids=each.message_ids)
                    for each in self.blocks
                ),
            ),
        )


def _entry(block: BlockLine, said: dict[str, Message], home: Partition) -> BlockSummary:
    assert block.entry is not None
    times = [said[message_id].time for message_id in block.message_ids]
    return BlockSummary(
        block_id=block.block_id, partition=home, start_time=min(times), end_time=max(times), **dict(block.entry)
    )


def arrival(pack: PackFile, archive: Archive, lives_in: Partition, said_in: Partition) -> Arrival:
    """Read a whole export, and compare it with the ledger."""
    records = ExportRecords(pack, lives_in)
    messages, blocks = tuple(records.messages()), tuple(records.blocks())
    said = {message.message_id: message for message in messages}
    new: list[tuple[Memory, ...]] = []
    known: list[str] = []
    conflicting = _other_words(archive, said_in, said)
    for versions in records.histories():
        if not quotes_hold(versions, said):
            raise PackError("reference", f"Memory {versions[0].memory_id} quotes words that are not in its messages.")
        here = archive.versions([lives_in], versions[0].memory_id)
        if not here:
            new.append(versions)
        else:
            (known if here == versions else conflicting).append(versions[0].memory_id)
    there = archive.blocks([said_in], ids=[block.block_id for block in blocks]) if blocks else ()
    return Arrival(
        messages=messages,
        blocks=blocks,
        new=tuple(new),
        known=tuple(known),
        conflicting=tuple(conflicting),
        links=tuple(records.links()),
        there=frozenset(block.block_id for block in there),
    )


def _other_words(archive: Archive, said_in: Partition, said: dict[str, Message]) -> list[str]:
    """Return the messages that the ledger has with other content."""
    here: Sequence[Message] = archive.messages([said_in], ids=list(said)) if said else ()
    return [
        each.message_id
        for each in here
        if any(getattr(each, name) != getattr(said[each.message_id], name) for name in Message.model_fields)
    ]


def conflict(records: Sequence[str], cure: str = "Install it into another scope, or into an empty home.") -> PackError:
    """Return the error that names the records that are here with other content."""
    more = f" and {len(records) - _NAMED} more" if len(records) > _NAMED else ""
    named = f"{', '.join(records[:_NAMED])}{more}"
    return PackError("conflict", f"What the pack holds is here already, with other content: {named}.", cure)
