"""The format of packs, version 1: container, members, manifest, records and limits (docs/packs.md)."""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from remegraph.errors import PackError
from remegraph.models import (
    MEMORY_FORMS,
    BroughtBlock,
    ImportanceLevel,
    Kind,
    Memory,
    MemoryContent,
    Partition,
    Record,
    in_english,
)
from remegraph.models.base import Text, Token
from remegraph.models.exchange import PackKind

__all__ = [
    "ALLOWED",
    "FORMAT",
    "LIMITS",
    "MANIFEST",
    "MEMBERS",
    "NOWHERE",
    "PURPOSE",
    "SIGNATURE",
    "VERSION",
    "BlockEntry",
    "BlockLine",
    "Container",
    "Document",
    "Item",
    "Manifest",
    "PackLimits",
    "is_container",
    "line_of",
    "parse",
    "version_fields",
    "version_of",
]


_MIB = 1 << 20
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|([\[{])|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class PackLimits:
    """The limits of a pack, counted while it is read, whatever its headers say."""

    file: int = 32 * _MIB
    """Bytes of the file."""
    document: int = 8 * _MIB
    """Bytes of a pack that is one JSON document."""
    member: int = 64 * _MIB
    """Bytes of a member, expanded."""
    total: int = 128 * _MIB
    """Bytes of all members, expanded."""
    ratio: int = 100
    """Expansion ratio of a member, from its first mebibyte on."""
    manifest: int = 64 * 1024
    """Bytes of the manifest, and of the signature."""
    line: int = _MIB
    """Bytes of a record."""
    text: int = 256 * 1024
    """Characters of a field."""
    depth: int = 32
    """Levels of JSON."""
    records: int = 200_000
    """Records of a member."""
    items: int = 5_000
    """Items of a preset."""


LIMITS = PackLimits()


def parse(data: bytes, where: str, limits: PackLimits) -> Any:
    """Parse JSON; refuse deep nesting, duplicate fields and fields that are too large."""
    _check_depth(data, where, limits.depth)

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(names := dict(found)) != len(found):
            raise PackError("duplicate", f"{where} gives a field twice.")
        if any(isinstance(value, str) and len(value) > limits.text for value in names.values()):
            raise PackError("too_large", f"{where} has a field of more than {limits.text} characters.")
        return names

    try:
        return json.loads(data, object_pairs_hook=pairs, parse_constant=_refuse_constant)
    except PackError:
        raise
    except (ValueError, RecursionError) as error:
        raise PackError("record", f"{where} is not JSON: {error}.") from error


def _check_depth(data: bytes, where: str, most: int) -> None:
    """Refuse deep nesting before a parser follows it down."""
    if data.count(b"[") + data.count(b"{") <= most:
        return
    depth = 0
    for found in _BRACKETS.finditer(data):
        if found.group(1):
            depth += 1
        elif not found.group().startswith(b'"'):
            depth -= 1
        if depth > most:
            raise PackError("too_large", f"{where} is nested more than {most} levels deep.")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a value of JSON")


FORMAT, VERSION = "remegraph-pack", 1
MANIFEST, SIGNATURE = "manifest.json", "signature.json"
MEMBERS: Mapping[PackKind, tuple[str, ...]] = {
    "preset": ("items.jsonl",),
    "export": ("messages.jsonl", "blocks.jsonl", "memories.jsonl", "links.jsonl"),
}
"""The exact members of each kind of pack, beside the manifest and the signature."""

ALLOWED = frozenset({MANIFEST, SIGNATURE}.union(*MEMBERS.values()))
PURPOSE = "pack"
"""The purpose that a manifest is signed for."""

NOWHERE = Partition(tenant="pack")
"""Placeholder for the partition of a pack's memories, which is known only when it is installed."""


class Member(Record):
    """A member, as the manifest lists it."""

    name: Token = Field(description="Its name.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Digest of its bytes, expanded.")
    size: int = Field(ge=0, description="How many bytes these are.")
    count: int = Field(ge=0, description="How many records, one on each line.")


class Manifest(Record):
    """The content of a pack. The signature is over its bytes."""

    format: Literal["remegraph-pack"] = Field(description="Tells packs from other files.")
    version: Literal[1] = Field(description="Of the format.")
    pack_id: Token = Field(min_length=1, max_length=200, description="The pack's id.")
    kind: PackKind = Field(description="preset or export.")
    domain: tuple[Text, ...] = Field(default=(), description="The fields that it is for.")
    activate: tuple[Token, ...] = Field(default=(), description="Ids and tags that it wants to have active.")
    members: tuple[Member, ...] = Field(description="Its members.")

    @model_validator(mode="after")
    def _whole(self) -> Manifest:
        if tuple(member.name for member in self.members) != MEMBERS[self.kind]:
            raise ValueError(f"the members of a pack of kind {self.kind} are {', '.join(MEMBERS[self.kind])}")
        return self


class _Translated(Record):
    """A record whose fields may be named in Chinese, as the protocol has them."""

    @model_validator(mode="before")
    @classmethod
    def _in_english(cls, given: Any) -> Any:
        return in_english(given)


class Item(_Translated):
    """A line of `items.jsonl`: a memory for any agent, as the document has it."""

    item_id: Token = Field(default="", max_length=200, description="Its id in the pack; its place unless given.")
    memory_type: Kind = Field(description="profile, workflow, semantic or episode: the form of the content.")
    content: MemoryContent = Field(description="What it says.")
    importance: ImportanceLevel = Field(default="mid", description="high, mid or low.")
    tags: tuple[Token, ...] = Field(default=(), description="Labels.")

    @field_validator("content", mode="before")
    @classmethod
    def _in_its_form(cls, content: Any, info: ValidationInfo) -> Any:
        form = MEMORY_FORMS.get(info.data.get("memory_type", ""))
        return form.model_validate(content) if form else content


class Document(_Translated):
    """A pack that is one JSON document, as section 3.1.1 of the protocol has it."""

    pack_id: Token = Field(min_length=1, max_length=200, description="The pack's id.")
    domain: tuple[Text, ...] = Field(default=(), description="The fields that it is for.")
    items: tuple[Item, ...] = Field(min_length=1, description="Its items.")

    @field_validator("domain", mode="before")
    @classmethod
    def _one_or_more(cls, domain: Any) -> Any:
        return (domain,) if isinstance(domain, str) else domain


class BlockEntry(Record):
    """The index entry of a block."""

    summary: str = Field(description="What happened.")
    entities: tuple[str, ...] = Field(default=(), description="Names, places and things it speaks of.")
    language: str = Field(default="en", description="en or zh.")
    extractor: str = Field(default="extractive", description="The model that wrote it, or `extractive`.")


class BlockLine(BroughtBlock):
    """A line of `blocks.jsonl`."""

    entry: BlockEntry | None = Field(default=None, description="Its index entry, if it has one.")


def line_of(value: Record | Mapping[str, Any]) -> bytes:
    """Return a record as a line of ASCII; equal records give equal bytes."""
    fields = json.loads(value.to_json()) if isinstance(value, Record) else value
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def version_fields(memory: Memory) -> dict[str, Any]:
    """Return a version of a memory as JSON, without its partition."""
    fields: dict[str, Any] = json.loads(memory.to_json())
    del fields["partition"]
    if not memory.language_it_applies_to:
        del fields["applies_to"]
    return fields


def version_of(fields: Mapping[str, Any], home: Partition) -> Memory:
    """Return a version of a memory from `version_fields`, in a partition."""
    return Memory.model_validate({**fields, "partition": home})


_LOCAL = struct.Struct("<4s5H3L2H")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_STORED, _DEFLATED = 0, 8
_UTF8 = 0x800
_CHUNK = 1 << 16
_DIRECTORY = 1 << 12  # six members need less than 500
_FREE = 1 << 20  # a member this small may grow by any ratio


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    method: int
    crc: int
    packed: int
    size: int
    start: int


def is_container(path: Path) -> bool:
    """Return whether a file begins like a zip."""
    try:
        with path.open("rb") as file:
            return file.read(2) == b"PK"
    except OSError as error:
        raise PackError("unreadable", f"{path} cannot be read ({error.strerror}).", "Check the path.") from error


class Container:
    """An open pack file. Nothing of it is expanded before `stream` asks for it."""

    def __init__(self, path: Path, allowed: Collection[str], limits: PackLimits) -> None:
        self._limits = limits
        with ExitStack() as opened:
            try:
                self._file: BinaryIO = opened.enter_context(path.open("rb"))
                self._length = os.fstat(self._file.fileno()).st_size
            except OSError as error:
                raise PackError(
                    "unreadable", f"{path} cannot be read ({error.strerror}).", "Check the path."
                ) from error
            if self._length > limits.file:
                raise PackError("too_large", f"The file has {self._length} bytes, and {limits.file} are the most.")
            self._members = self._read_directory(allowed)
            self._closing = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    @property
    def names(self) -> frozenset[str]:
        """The names of its members."""
        return frozenset(self._members)

    def stream(self, name: str, most: int) -> Iterator[bytes]:
        """Yield a member, expanded piece by piece."""
        member, size, crc = self._members[name], 0, 0
        for piece in self._pieces(member):
            size += len(piece)
            crc = zlib.crc32(piece, crc)
            if size > most:
                raise PackError("too_large", f"{name} has more than {most} bytes, expanded.")
            if size > max(_FREE, member.packed * self._limits.ratio):
                raise PackError("too_large", f"{name} grows more than {self._limits.ratio} times when it is expanded.")
            if size > member.size:
                break
            yield piece
        if (size, crc) != (member.size, member.crc):
            raise PackError("container", f"{name} is not what its header says: the file was cut off or changed.")

    def _pieces(self, member: _Member) -> Iterator[bytes]:
        inflate = zlib.decompressobj(-zlib.MAX_WBITS) if member.method == _DEFLATED else None
        left, at = member.packed, member.start
        while left:
            raw = self._at(at, min(left, _CHUNK))
            left, at = left - len(raw), at + len(raw)
            if inflate is None:
                yield raw
                continue
            while raw:
                try:
                    piece = inflate.decompress(raw, _CHUNK)
                except zlib.error as error:
                    raise PackError("container", f"{member.name} cannot be expanded: {error}.") from error
                raw = inflate.unconsumed_tail
                if piece:
                    yield piece
            if inflate.eof and (left or inflate.unused_data):
                raise PackError("container", f"{member.name} ends before its header says so.")
        if inflate is not None:
            yield inflate.flush()
            if not inflate.eof:
                raise PackError("container", f"{member.name} does not end where its header says.")

    # ------------------------------------------------------------------------------------------- headers

    def _read_directory(self, allowed: Collection[str]) -> dict[str, _Member]:
        """Read the directory, and check that the members are contiguous and fill the file."""
        start, length, count = self._read_end()
        directory = self._at(start, length)
        members: dict[str, _Member] = {}
        at = follows = 0
        for _ in range(count):
            member, used, local = self._read_entry(directory[at:], allowed, follows)
            if member.name in members:
                raise PackError("duplicate", f"There are two members of the name {member.name}.")
            members[member.name] = member
            at, follows = at + used, local
        if at != length or follows != start:
            raise PackError("container", "Its members do not fill the file: there is something between or beside them.")
        return members

    def _read_end(self) -> tuple[int, int, int]:
        if self._length < _END.size:
            raise PackError("container", "The file is too short for a pack.")
        mark, disk, first, here, count, length, start, comment = _END.unpack(
            self._at(self._length - _END.size, _END.size)
        )
        if mark != b"PK\x05\x06" or comment:
            raise PackError("container", "It does not end like a pack: it was cut off, or something follows it.")
        if disk or first or here != count:
            raise PackError("container", "It is one part of several.")
        if length > _DIRECTORY:
            raise PackError("too_large", f"Its directory has {length} bytes, and {_DIRECTORY} are the most.")
        if start + length + _END.size != self._length:
            raise PackError("container", "Its directory is not where it says: something comes before or within it.")
        return start, length, count

    def _read_entry(self, entry: bytes, allowed: Collection[str], follows: int) -> tuple[_Member, int, int]:
        """Return a member, the length of its entry, and where the next member must begin."""
        if len(entry) < _ENTRY.size:
            raise PackError("container", "Its directory is cut off.")
        mark, _, _, flags, method, time, day, crc, packed, size, named, extra, comment, disk, _, mode, local = (
            _ENTRY.unpack_from(entry)
        )
        if mark != b"PK\x01\x02" or extra or comment or disk:
            raise PackError("container", "Its directory holds more than a pack's: extra fields, comments or parts.")
        raw = entry[_ENTRY.size : _ENTRY.size + named]
        name = _checked_name(raw, allowed)
        if stat.S_IFMT(mode >> 16) not in {0, stat.S_IFREG} or mode & 0x10:
            raise PackError("member", f"{name} is not a plain file.")
        if flags & ~_UTF8 or method not in {_STORED, _DEFLATED}:
            raise PackError("container", f"{name} is encrypted, or packed in a way that packs are not.")
        told = (flags, method, time, day, crc, packed, size, named, 0)
        if local != follows or _LOCAL.unpack(self._at(local, _LOCAL.size))[2:] != told:
            raise PackError("container", f"The headers of {name} contradict each other.")
        start = local + _LOCAL.size + named
        if self._at(local, 4) != b"PK\x03\x04" or self._at(local + _LOCAL.size, named) != raw:
            raise PackError("container", f"The headers of {name} contradict each other.")
        if method == _STORED and packed != size:
            raise PackError("container", f"{name} is stored, and its two sizes differ.")
        return _Member(name, method, crc, packed, size, start), _ENTRY.size + named, start + packed

    def _at(self, at: int, length: int) -> bytes:
        """Read a part of the file."""
        if at + length > self._length:
            raise PackError("container", "It names a part of the file that is not there: it was cut off or changed.")
        self._file.seek(at)
        found = self._file.read(length)
        if len(found) != length:
            raise PackError("container", "The file became shorter while it was read.")
        return found


def _checked_name(raw: bytes, allowed: Collection[str]) -> str:
    name = raw.decode("ascii", "backslashreplace")
    if name not in allowed:  # so it is not a path, and has no NUL or lookalike letter
        raise PackError("member", f"It has a member {name[:80]!r}, which no pack has.", "Do not open it otherwise.")
    return name
