"""What a pack becomes: offers, for items of a preset; for an export, one change that holds all of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from remegraph.errors import PackError
from remegraph.exchange.bringing import done
from remegraph.exchange.offers import Offer
from remegraph.exchange.packs.layout import BlockLine, Item
from remegraph.exchange.packs.reading import PackFile
from remegraph.exchange.packs.records import ExportRecords, quotes_hold
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
from remegraph.ports import Archive
from remegraph.rules.forms import importance_of
from remegraph.rules.naming import operation_id
from remegraph.settings import SharingPolicy

__all__ = ["Arrival", "arrival", "believed", "offer"]


def believed(signer: TrustedKey | None, policy: SharingPolicy) -> float:
    """Return how far a pack is believed: as its signer is.

    Args:
        signer: The trusted key that signed it; none where nobody is known to stand behind it.
        policy: Says how far.
    """
    return policy.default_trust if signer is None else policy.trust.get(signer.name, policy.default_trust)


def offer(item: Item, pack: PackFile, trust: float, at: datetime, *, active: bool) -> Offer:
    """Return an item of a preset as what is offered.

    Args:
        item: The item, with its id.
        pack: The pack that it is of.
        trust: How far it is believed.
        at: Now.
        active: Whether its memory shall stand ready without a query.
    """
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
    """An export, held against what is here."""

    messages: tuple[Message, ...]
    blocks: tuple[BlockLine, ...]
    new: tuple[tuple[Memory, ...], ...]
    """The memories that are not here yet, each with all its versions."""
    known: tuple[str, ...]
    """The memories that are here, the same in every version."""
    conflicting: tuple[str, ...]
    """Records that are here with other content."""
    links: tuple[Link, ...]
    there: frozenset[str]
    """Blocks that are here."""

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
        """Return the change that installs it, all at once.

        Args:
            digest: Of the pack: the same one is installed once.
            lives_in: Where its memories shall live.
            said_in: Where its words shall be.
            actor: Who installs it, for the journal.
            at: Now.
            recipe: Name of the way of summarising, for the work rows.
            at_home: Whether what all agents of the user own is the installer's to change.
        """
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
            work=done((block.block_id for block in fresh), said_in, recipe),
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
    """Read an export whole, and hold it against what is here.

    Args:
        pack: An export.
        archive: The ledger.
        lives_in: Where its memories shall live.
        said_in: Where its words shall be.

    Raises:
        PackError: A record does not hold.
    """
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
    """Return the messages that are here with other words."""
    here: Sequence[Message] = archive.messages([said_in], ids=list(said)) if said else ()
    return [
        each.message_id
        for each in here
        if any(getattr(each, name) != getattr(said[each.message_id], name) for name in Message.model_fields)
    ]
