"""Read packs: measured, compared with their checksums and their signature, then record by record.

Each record is validated as it is read: ids are unique, references closed, no scope named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import ValidationError

from remegraph.errors import PackError, SignatureError
from remegraph.models import Link, Memory, Message, Partition, Record, Signature, TrustedKey
from remegraph.models.exchange import PackInfo
from remegraph.models.quotes import find_quote
from remegraph.models.standing import TOMBSTONES
from remegraph.packs.format import (
    ALLOWED,
    FORMAT,
    MANIFEST,
    MEMBERS,
    SIGNATURE,
    VERSION,
    BlockLine,
    Container,
    Document,
    Item,
    Manifest,
    PackLimits,
    is_container,
    line_of,
    parse,
    version_of,
)

__all__ = ["ExportRecords", "PackFile", "Verify", "items", "record_of"]

Verify = Callable[[bytes, Signature], TrustedKey]
"""Returns the key that signed a manifest, or raises `SignatureError`."""

_R = TypeVar("_R", bound=Record)


@dataclass(slots=True)
class _Signed:
    """The outcome of checking its signature."""

    key_id: str = ""
    key: TrustedKey | None = None
    problem: str = "It is not signed."


class PackFile:
    """An open pack with valid size, checksums and manifest. Its records are read on demand."""

    def __init__(self, path: Path, limits: PackLimits, verify: Verify) -> None:
        self._limits = limits
        self._items: tuple[Item, ...] = ()
        self._container: Container | None = None
        with ExitStack() as opened:
            if is_container(path):
                self._container = opened.enter_context(Container(path, ALLOWED, limits))
                manifest = self._small(MANIFEST)
                self.manifest = _manifest(manifest, limits)
                self._signed = self._signature(manifest, verify)
                self._compare()
            else:
                self._signed = _Signed()
                document, manifest = _document(path, limits)
                self._items, self.manifest = document
            self.digest = hashlib.sha256(manifest).hexdigest()
            self._closing = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    @property
    def signer(self) -> TrustedKey | None:
        """The trusted key that signed it, if any."""
        return self._signed.key

    @property
    def info(self) -> PackInfo:
        """Its description."""
        manifest, signed = self.manifest, self._signed
        return PackInfo(
            pack_id=manifest.pack_id,
            kind=manifest.kind,
            domain=manifest.domain,
            digest=self.digest,
            counts={member.name: member.count for member in manifest.members},
            activate=manifest.activate,
            key_id=signed.key_id,
            signer=signed.key.name if signed.key else "",
            problem="" if signed.key else signed.problem,
        )

    def check_signature(self, *, required: bool) -> None:
        """Refuse a signature that is not by a trusted key, and a missing one if it is required."""
        if self.signer is None and (required or self._signed.key_id):
            raise PackError("signature", self._signed.problem, SignatureError.cure)

    def records(self, name: str) -> Iterator[tuple[str, Any]]:
        """Yield the records of a member as JSON, each with its place."""
        if self._container is None:
            for number, item in enumerate(self._items, start=1):
                yield f"item {number}", item
            return
        number = 0
        for number, line in enumerate(self._lines(name), start=1):
            where = f"{name}, line {number}"
            found = parse(line, where, self._limits)
            if not isinstance(found, dict):
                raise PackError("record", f"{where} is not a JSON object.")
            yield where, found

    # ------------------------------------------------------------------------------------------- inside

    def _small(self, name: str) -> bytes:
        assert self._container is not None
        if name not in self._container.names:
            raise PackError("format", f"It has no {name}.", f"Give a file that begins with a {MANIFEST}.")
        return b"".join(self._container.stream(name, self._limits.manifest))

    def _signature(self, manifest: bytes, verify: Verify) -> _Signed:
        assert self._container is not None
        if SIGNATURE not in self._container.names:
            return _Signed()
        found = parse(self._small(SIGNATURE), SIGNATURE, self._limits)
        signature = record_of(Signature, found, SIGNATURE)
        try:
            return _Signed(signature.key_id, verify(manifest, signature), "")
        except SignatureError as error:
            return _Signed(signature.key_id, None, error.what)

    def _compare(self) -> None:
        """Compare every member with what the manifest says of it."""
        assert self._container is not None
        total = 0
        names = {member.name for member in self.manifest.members}
        if strange := sorted(self._container.names - names - {MANIFEST, SIGNATURE}):
            raise PackError("member", f"It has a member {strange[0]!r}, which its manifest does not name.")
        for member in self.manifest.members:
            if member.name not in self._container.names:
                raise PackError("member", f"It has no {member.name}, which its manifest names.")
            if member.count > self._limits.records:
                raise PackError("too_large", f"{member.name} has more than {self._limits.records} records.")
            size = count = 0
            digest = hashlib.sha256()
            for piece in self._container.stream(member.name, min(self._limits.member, self._limits.total - total)):
                digest.update(piece)
                size, count = size + len(piece), count + piece.count(b"\n")
                if count > self._limits.records:
                    raise PackError("too_large", f"{member.name} has more than {self._limits.records} records.")
            total += size
            if (digest.hexdigest(), size, count) != (member.sha256, member.size, member.count):
                raise PackError("checksum", f"{member.name} is not what the manifest says: it was changed.")

    def _lines(self, name: str) -> Iterator[bytes]:
        assert self._container is not None
        rest = b""
        digest, expected = hashlib.sha256(), {member.name: member.sha256 for member in self.manifest.members}[name]
        for piece in self._container.stream(name, self._limits.member):
            digest.update(piece)
            *lines, rest = (rest + piece).split(b"\n")
            if any(len(line) > self._limits.line for line in (*lines, rest)):
                raise PackError("too_large", f"{name} has a record of more than {self._limits.line} bytes.")
            yield from lines
        if rest:
            raise PackError("record", f"{name} does not end with a line.")
        if digest.hexdigest() != expected:
            raise PackError("checksum", f"{name} changed while it was read.", "Copy the file first.")


def record_of(model: type[_R], found: Any, where: str) -> _R:
    """Return JSON as a record."""
    if isinstance(found, model):
        return found
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise _invalid(error, where) from error


def _invalid(error: ValidationError, where: str) -> PackError:
    """Return the error for an invalid record."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, first["loc"]))
    return PackError("record", f"{where}: {field or 'it'}: {first['msg']}.")


def _manifest(data: bytes, limits: PackLimits) -> Manifest:
    found = parse(data, MANIFEST, limits)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise PackError("format", f"Its manifest does not say that it is a {FORMAT}.", "Give a pack.")
    if found.get("version") != VERSION:
        raise PackError("version", f"It has version {found.get('version')!r} of the format.", "Upgrade remegraph.")
    return record_of(Manifest, found, MANIFEST)


def _document(path: Path, limits: PackLimits) -> tuple[tuple[tuple[Item, ...], Manifest], bytes]:
    """Read a pack that is one JSON document; return it with a manifest made for it."""
    with path.open("rb") as file:
        data = file.read(limits.document + 1)
    if len(data) > limits.document:
        raise PackError("too_large", f"The document has more than {limits.document} bytes.", "Make a pack of it.")
    found = parse(data, "the document", limits)
    if not isinstance(found, dict):
        raise PackError("format", "The file is neither a pack nor a JSON document of one.", "Give a pack.")
    document = record_of(Document, found, "the document")
    lines = b"".join(map(line_of, document.items))
    (name,) = MEMBERS["preset"]
    members = [
        {"name": name, "sha256": hashlib.sha256(lines).hexdigest(), "size": len(lines), "count": len(document.items)}
    ]
    fields = {"format": FORMAT, "version": VERSION, "kind": "preset", "pack_id": document.pack_id}
    manifest = record_of(Manifest, {**fields, "domain": document.domain, "members": members}, "the document")
    return (document.items, manifest), line_of(manifest)


_PLACES = frozenset({"partition", "partition_id", "scope", "tenant", "user", "agent", "project"})


def items(pack: PackFile, limits: PackLimits) -> Iterator[Item]:
    """Yield the items of a preset, each with an id."""
    seen: set[str] = set()
    for number, (where, found) in enumerate(pack.records("items.jsonl"), start=1):
        if number > limits.items:
            raise PackError("too_large", f"It has more than {limits.items} items.", "Ask for several packs.")
        item = record_of(Item, _of_no_place(found, where), where)
        item = item if item.item_id else item.evolve(item_id=str(number))
        _once(item.item_id, seen, where)
        yield item


@dataclass
class ExportRecords:
    """The records of an export. Read them in the order of these methods, each to its end: later ones name earlier ones.

    Only ids are kept, so an export takes little memory before it is trusted.
    """

    pack: PackFile
    home: Partition
    _threads: dict[str, str] = field(default_factory=dict, init=False)
    _blocks: dict[str, frozenset[str]] = field(default_factory=dict, init=False)
    _memories: set[str] = field(default_factory=set, init=False)

    def check(self) -> None:
        """Validate everything."""
        for records in (self.messages(), self.blocks(), self.histories(), self.links()):
            for _ in records:
                pass

    def messages(self) -> Iterator[Message]:
        """Yield the messages, in their order."""
        for where, found in self.pack.records("messages.jsonl"):
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
        for where, found in self.pack.records("blocks.jsonl"):
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
        for where, found in self.pack.records("memories.jsonl"):
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
        for where, found in self.pack.records("links.jsonl"):
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
            version = version_of(fields, self.home)
        except ValidationError as error:
            raise _invalid(error, where) from error
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
    """Return whether all quotes of the versions of a memory occur in their messages."""
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
