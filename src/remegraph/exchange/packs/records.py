"""The records of a pack, each validated as it is read: ids are unique, references closed, no scope named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from remegraph.errors import PackError
from remegraph.exchange.packs.layout import BlockLine, Item, version_of
from remegraph.exchange.packs.limits import PackLimits
from remegraph.exchange.packs.reading import PackFile, invalid, record_of
from remegraph.models import Link, Memory, Message, Partition
from remegraph.rules.quotes import find_quote
from remegraph.rules.tombstones import TOMBSTONES

__all__ = ["ExportRecords", "items"]

_PLACES = frozenset({"partition", "partition_id", "scope", "tenant", "user", "agent", "project"})


def items(pack: PackFile, limits: PackLimits) -> Iterator[Item]:
    """Yield the items of a preset, each with an id.

    Args:
        pack: A preset.
        limits: How many there may be.

    Raises:
        PackError: One is none, or its id is given twice.
    """
    seen: set[str] = set()
    for number, (where, found) in enumerate(pack.records("items.jsonl"), start=1):
        if number > limits.items:
            raise PackError("too_large", f"It has more than {limits.items} items.", "Ask for several packs.")
        item = record_of(Item, _of_no_place(found, where), where)
        item = item if item.item_id else item.evolve(item_id=str(number))
        _once(item.item_id, seen, where)
        yield item


class ExportRecords:
    """The records of an export. Read them in the order of these methods, each to its end: later ones name earlier ones.

    What is kept are ids only, so that an export costs no memory before it is believed.

    Args:
        pack: An export.
        home: Where its memories shall live.
    """

    def __init__(self, pack: PackFile, home: Partition) -> None:
        self._pack = pack
        self._home = home
        self._threads: dict[str, str] = {}
        self._blocks: dict[str, frozenset[str]] = {}
        self._memories: set[str] = set()

    def check(self) -> None:
        """Read everything, and keep nothing.

        Raises:
            PackError: Something does not hold.
        """
        for records in (self.messages(), self.blocks(), self.histories(), self.links()):
            for _ in records:
                pass

    def messages(self) -> Iterator[Message]:
        """Yield the messages, in their order."""
        for where, found in self._pack.records("messages.jsonl"):
            message = record_of(Message, _of_no_place(found, where), where)
            if not message.message_id:
                raise PackError("record", f"{where}: message_id: it is empty.")
            if message.message_id in self._threads:
                raise _twice(message.message_id, where)
            self._threads[message.message_id] = message.thread
            yield message

    def blocks(self) -> Iterator[BlockLine]:
        """Yield the blocks; each message is in one of them."""
        held: set[str] = set()
        for where, found in self._pack.records("blocks.jsonl"):
            block = record_of(BlockLine, _of_no_place(found, where), where)
            if block.block_id in self._blocks:
                raise _twice(block.block_id, where)
            for message_id in block.message_ids:
                if self._threads.get(message_id) != block.thread:
                    raise PackError("reference", f"{where} names message {message_id!r}, which is not of its thread.")
            self._blocks[block.block_id] = frozenset(block.message_ids)
            held.update(block.message_ids)
            yield block
        if len(held) < len(self._threads):
            raise PackError("reference", "It has messages that are in none of its blocks.")

    def histories(self) -> Iterator[tuple[Memory, ...]]:
        """Yield the memories, each with all its versions, oldest first."""
        replaced: set[str] = set()
        versions: list[Memory] = []
        for where, found in self._pack.records("memories.jsonl"):
            version = self._version(found, where)
            replaced.update(version.supersedes)
            if versions and version.memory_id != versions[-1].memory_id:
                yield tuple(versions)
                versions = []
            if not versions:
                _once(version.memory_id, self._memories, where)
            versions.append(version)
            if version.version != len(versions):
                raise PackError("reference", f"{where} is version {version.version}, and {len(versions)} is missing.")
        if versions:
            yield tuple(versions)
        if strange := sorted(replaced - self._memories):
            raise PackError("reference", f"A memory replaces {strange[0]!r}, which is not in the pack.")

    def links(self) -> Iterator[Link]:
        """Yield the links; both ends are in the pack."""
        seen: set[str] = set()
        for where, found in self._pack.records("links.jsonl"):
            link = record_of(Link, _of_no_place(found, where), where)
            for end in (link.source_id, link.target_id):
                if end not in self._memories:
                    raise PackError("reference", f"{where} names memory {end!r}, which is not in the pack.")
            _once(f"{link.source_id}\n{link.type}\n{link.target_id}", seen, where)
            yield link

    def _version(self, found: Any, where: str) -> Memory:
        fields = _of_no_place(found, where)
        applies_to = fields.get("applies_to", "lang:")
        if not (isinstance(applies_to, str) and applies_to.startswith("lang:")):
            raise PackError("foreign_scope", f"{where} applies to {str(applies_to)[:80]!r}: a pack names no scope.")
        try:
            version = version_of(fields, self._home)
        except ValidationError as error:
            raise invalid(error, where) from error
        if version.status in TOMBSTONES:
            raise PackError("record", f"{where} is {version.status}: nothing is left of it that a pack could hold.")
        for block_id in version.block_ids:
            if block_id not in self._blocks:
                raise PackError("reference", f"{where} names block {block_id!r}, which is not in the pack.")
        for item in version.evidence:
            if item.message_id not in self._blocks.get(item.block_id, frozenset()):
                raise PackError("reference", f"{where} cites message {item.message_id!r}, which is not in its block.")
            if item.attachment:
                raise PackError("reference", f"{where} cites an attachment, and a pack holds none.")
        return version


def quotes_hold(versions: tuple[Memory, ...], said: dict[str, Message]) -> bool:
    """Return whether all words that the versions of a memory cite stand in their messages."""
    return all(
        find_quote(item.quote, said[item.message_id].text) is not None
        for version in versions
        for item in version.evidence
    )


def _of_no_place(found: Any, where: str) -> Any:
    if isinstance(found, dict) and (named := sorted(_PLACES & found.keys())):
        raise PackError("foreign_scope", f"{where} has the field {named[0]!r}: a pack names no scope.")
    return found


def _once(name: str, seen: set[str], where: str) -> None:
    if name in seen:
        raise _twice(name.replace("\n", " "), where)
    seen.add(name)


def _twice(name: str, where: str) -> PackError:
    return PackError("duplicate", f"{where} gives {name[:200]!r} a second time.")
