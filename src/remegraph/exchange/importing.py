"""Memories of another system become one's own: each with its words as a raw record, in a block, as evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from remegraph.exchange.bringing import brought, done
from remegraph.language.plain import folded
from remegraph.language.scripts import language_of
from remegraph.models import (
    LIVE,
    BlockSummary,
    BroughtBlock,
    ChangeSet,
    Evidence,
    ForeignMemory,
    Memory,
    MemoryChange,
    Message,
    Partition,
    Topic,
)
from remegraph.ports import Archive
from remegraph.rules.naming import operation_id

__all__ = ["Importing"]


@dataclass
class Importing:
    """Takes the records of one user in, batch by batch."""

    archive: Archive
    user: str
    said_in: Partition
    lives_in: Partition
    actor: str
    recipe: str
    at_home: bool
    created: int = 0
    corroborated: int = 0
    known: int = 0
    erased: int = 0
    changed: list[str] = field(default_factory=list)

    def news(self, records: Sequence[ForeignMemory]) -> list[ForeignMemory]:
        """Return the records that were not imported before; count the others.

        Args:
            records: All of one batch.
        """
        ids = [self._message_id(each) for each in records]
        here = {each.message_id: each.text for each in self.archive.messages([self.said_in], ids=ids)}
        self.known += len(here)
        said = {each.record_id: here.get(name) for each, name in zip(records, ids, strict=True)}
        self.changed += [each.record_id for each in records if said[each.record_id] not in (None, each.content)]
        return [each for each in records if said[each.record_id] is None]

    def change(self, records: Sequence[ForeignMemory], now: datetime) -> ChangeSet:
        """Return the change that takes new records in, all of them at once.

        What says the same as a memory that is there, or as a record before it, bears that out: it has both as evidence.

        Args:
            records: Those of `news`.
            now: When they are taken in.
        """
        messages = [self._message(each, now) for each in records]
        raw = brought(self.archive, self.said_in, messages)
        topic = self._topic()
        heads = {
            folded(each.content): each
            for each in self.archive.memories([self.lives_in], topics=[topic], statuses=sorted(LIVE))
        }
        changes: dict[str, MemoryChange] = {}
        for each, message, block in zip(records, messages, raw.blocks, strict=True):
            words = folded(each.content)
            if (old := heads.get(words)) is None:
                memory = self._memory(each, message, block, topic, now)
                changes[words] = MemoryChange(
                    memory=memory, expected_version=0, action="create", reason=f"from {each.system}"
                )
            else:
                before = changes.get(words)
                version = before.expected_version if before else old.version
                memory = self._borne_out(old, each, message, block).evolve(version=version + 1)
                action = before.action if before else "corroborate"
                changes[words] = MemoryChange(
                    memory=memory, expected_version=version, action=action, reason=f"from {each.system}"
                )
            heads[words] = changes[words].memory
        return ChangeSet(
            operation_id=operation_id("import", self.lives_in.to_json(), *(message.message_id for message in messages)),
            actor=self.actor,
            recorded_at=now,
            at_home=self.at_home,
            changes=tuple(changes.values()),
            summaries=tuple(self._entry(message, block) for message, block in zip(messages, raw.blocks, strict=True)),
            work=done((block.block_id for block in raw.blocks), self.said_in, self.recipe),
            brought=raw,
        )

    # ------------------------------------------------------------------------------------------- raw records

    def _message_id(self, each: ForeignMemory) -> str:
        return operation_id("import", each.system, *each.namespace, each.record_id)

    def _message(self, each: ForeignMemory, now: datetime) -> Message:
        name = self._message_id(each)
        return Message(
            message_id=name,
            thread=f"imported:{each.system}:{name}",
            role="system",
            name=each.system,
            content=each.content,
            time=each.updated_at or each.created_at or now,
            extra={"imported": each.system, "record": each.record},
        )

    def _entry(self, message: Message, block: BroughtBlock) -> BlockSummary:
        return BlockSummary(
            block_id=block.block_id,
            partition=self.said_in,
            start_time=message.time,
            end_time=message.time,
            summary=message.text,
            language=language_of(message.text),
        )

    # ------------------------------------------------------------------------------------------- memories

    def _topic(self) -> Topic:
        wanted = Topic(type="personal", target_name=self.user)
        here = (shelf.topic for shelf in self.archive.topics([self.lives_in]))
        return next((topic for topic in here if (topic.type, topic.target) == ("personal", wanted.target)), wanted)

    def _memory(
        self, each: ForeignMemory, message: Message, block: BroughtBlock, topic: Topic, now: datetime
    ) -> Memory:
        return Memory(
            memory_id=operation_id("import", self.lives_in.to_json(), message.message_id),
            partition=self.lives_in,
            topic=topic,
            content=each.content,
            kind="profile",
            payload=_source(each),
            evidence=(_evidence(message, block),),
            block_ids=(block.block_id,),
            layer="long_term",
            tags=each.tags,
            language=language_of(each.content),
            trust=message.trust,
            source="factual",
            extractor=each.system,
            said_at=message.time,
            recorded_at=now,
        )

    def _borne_out(self, old: Memory, each: ForeignMemory, message: Message, block: BroughtBlock) -> Memory:
        return old.evolve(
            evidence=(*old.evidence, _evidence(message, block)),
            block_ids=tuple(dict.fromkeys((*old.block_ids, block.block_id))),
            tags=tuple(dict.fromkeys((*old.tags, *each.tags))),
            merges=old.merges + 1,
            said_at=max(old.said_at, message.time),
        )


def _source(each: ForeignMemory) -> Mapping[str, object]:
    """Return where a memory came from, for its payload; the session under the name that all memories have it by."""
    times = {"created_at": each.created_at, "updated_at": each.updated_at}
    told = {"system": each.system, "id": each.record_id, "namespace": list(each.namespace), "agent": each.agent}
    told |= {name: time.isoformat() for name, time in times.items() if time}
    imported = {name: value for name, value in told.items() if value}
    return {"imported": imported} | ({"session": each.session} if each.session else {})


def _evidence(message: Message, block: BroughtBlock) -> Evidence:
    return Evidence(message_id=message.message_id, quote=message.text, block_id=block.block_id)
