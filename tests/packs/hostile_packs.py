"""Packs made to break or to deceive whoever reads them. Each is told with the reason for which it must be refused."""

from __future__ import annotations

import hashlib
import io
import json
import random
import stat
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remegraph.mek.items import SigningKey
from remegraph.models import PackKind, PackReason
from remegraph.packs.format import FORMAT, MANIFEST, SIGNATURE

__all__ = ["CASES", "Case", "Forge", "deep", "zipped"]

Lines = dict[str, list[bytes]]

_RANDOM = random.Random(20)


def deep(levels: int = 10_000) -> bytes:
    """JSON that a parser would follow down until its stack is used up."""
    return b"[" * levels + b"]" * levels


@dataclass
class Forge:
    """Makes packs of a good one: its lines, and keys that are trusted, revoked and unknown."""

    export: Lines
    preset: Lines
    trusted: SigningKey
    revoked: SigningKey
    stranger: SigningKey = field(default_factory=SigningKey.generate)

    def lines(self, kind: PackKind) -> Lines:
        """A copy of the good lines."""
        return {name: list(lines) for name, lines in (self.export if kind == "export" else self.preset).items()}

    def pack(self, kind: PackKind = "preset", lines: Lines | None = None, **manifest: Any) -> dict[str, bytes]:
        """The files of a pack whose checksums are right."""
        data = {name: b"".join(each) for name, each in (lines or self.lines(kind)).items()}
        members = [
            {"name": name, "sha256": hashlib.sha256(each).hexdigest(), "size": len(each), "count": each.count(b"\n")}
            for name, each in data.items()
        ]
        told = {"format": FORMAT, "version": 1, "kind": kind, "pack_id": "p", "members": members} | manifest
        return {MANIFEST: json.dumps(told).encode(), **data}

    def signed(self, key: SigningKey, purpose: str = "pack", **changes: Any) -> bytes:
        """A pack with a signature."""
        files = self.pack()
        signature = key.sign(files[MANIFEST], purpose=purpose)
        return zipped({**files, SIGNATURE: signature.evolve(**changes).to_json().encode()})


def zipped(files: Mapping[str, bytes] | Iterable[tuple[str, bytes]], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items() if isinstance(files, Mapping) else files:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = method
            archive.writestr(entry, data)
    return buffer.getvalue()


@dataclass(frozen=True)
class Case:
    """A pack that must be refused."""

    name: str
    reason: PackReason
    make: Callable[[Forge], bytes]
    required: bool = False
    """Whether a signature is asked for."""
    trust: float | None = 1.0


# ------------------------------------------------------------------------------------------ containers


def _cut(share: float) -> Callable[[Forge], bytes]:
    def make(forge: Forge) -> bytes:
        whole = zipped(forge.pack("export"))
        return whole[: 4 + int(share * (len(whole) - 5))]

    return make


def _with(name: str, data: bytes = b"#!/bin/sh\nrm -rf /\n") -> Callable[[Forge], bytes]:
    return lambda forge: zipped({**forge.pack(), name: data})


def _renamed(name: bytes) -> Callable[[Forge], bytes]:
    """A member whose name zip tools would not write: both headers say it."""

    def make(forge: Forge) -> bytes:
        placeholder = "x" * len(name)
        return zipped({**forge.pack(), placeholder: b"x"}).replace(placeholder.encode(), name)

    return make


def _symlink(forge: Forge) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in forge.pack().items():
            entry = zipfile.ZipInfo(name)
            if name == "items.jsonl":
                entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(entry, data)
    return buffer.getvalue()


def _twice(forge: Forge) -> bytes:
    files = forge.pack()
    whole = zipped([*files.items(), ("items.jsonX", b"{}\n")])
    return whole.replace(b"items.jsonX", b"items.jsonl")


def _field(
    offset: int, form: str, value: int, *, local: int | None = None, member: int = -1
) -> Callable[[Forge], bytes]:
    """A pack with a field of a directory entry, and of the local header where its offset is given, set to a value."""

    def make(forge: Forge) -> bytes:
        whole = bytearray(zipped(forge.pack()))
        entry = _entries(whole)[member]
        struct.pack_into(form, whole, entry + offset, value)
        if local is not None:
            (start,) = struct.unpack_from("<L", whole, entry + 42)
            struct.pack_into(form, whole, start + local, value)
        return bytes(whole)

    return make


def _entries(whole: bytearray) -> list[int]:
    found, at = [], whole.find(b"PK\x01\x02")
    while at >= 0:
        found.append(at)
        at = whole.find(b"PK\x01\x02", at + 4)
    return found


def _end(offset: int, form: str, value: int) -> Callable[[Forge], bytes]:
    def make(forge: Forge) -> bytes:
        whole = bytearray(zipped(forge.pack()))
        struct.pack_into(form, whole, len(whole) - 22 + offset, value)
        return bytes(whole)

    return make


def _overlapping(forge: Forge) -> bytes:
    whole = bytearray(zipped(forge.pack("export")))
    first, second = _entries(whole)[:2]
    whole[second + 42 : second + 46] = whole[first + 42 : first + 46]
    return bytes(whole)


def _within(forge: Forge) -> bytes:
    """A member that stands within another one, headers and all: what one reader checks, another one does not see."""
    inner = zipped({SIGNATURE: b"{}"}, method=zipfile.ZIP_STORED)
    files = [(MANIFEST, inner), (SIGNATURE, b"{}"), ("items.jsonl", b"".join(forge.preset["items.jsonl"]))]
    whole = bytearray(zipped(files, method=zipfile.ZIP_STORED))
    struct.pack_into("<L", whole, _entries(whole)[2] + 42, whole.find(inner))  # the first entry is the inner one's own
    return bytes(whole)


def _gap(forge: Forge) -> bytes:
    whole = bytearray(zipped(forge.pack()))
    start = _entries(whole)[0]
    hidden = b"hidden"
    struct.pack_into("<L", whole, len(whole) - 6, start + len(hidden))
    return bytes(whole[:start] + hidden + whole[start:])


def _bomb(forge: Forge) -> bytes:
    return zipped({**forge.pack(), "items.jsonl": b" " * (40 << 20)})


def _lying_bomb(forge: Forge) -> bytes:
    whole = bytearray(_bomb(forge))
    entry = _entries(whole)[-1]
    (start,) = struct.unpack_from("<L", whole, entry + 42)
    struct.pack_into("<L", whole, entry + 24, 100)
    struct.pack_into("<L", whole, start + 22, 100)
    return bytes(whole)


def _many_lines(forge: Forge) -> bytes:
    return zipped({**forge.pack(), "items.jsonl": b"\n" * 300_000})


# ------------------------------------------------------------------------------- manifests and signatures


def _manifest(**changes: Any) -> Callable[[Forge], bytes]:
    return lambda forge: zipped(forge.pack(**changes))


def _manifest_bytes(make: Callable[[bytes], bytes]) -> Callable[[Forge], bytes]:
    def made(forge: Forge) -> bytes:
        files = forge.pack()
        return zipped({**files, MANIFEST: make(files[MANIFEST])})

    return made


def _member(**changes: Any) -> Callable[[Forge], bytes]:
    def make(forge: Forge) -> bytes:
        files = forge.pack()
        (member,) = json.loads(files[MANIFEST])["members"]
        return zipped(forge.pack(members=[member | changes]))

    return make


def _without(name: str) -> Callable[[Forge], bytes]:
    return lambda forge: zipped({each: data for each, data in forge.pack("export").items() if each != name})


def _changed(forge: Forge) -> bytes:
    files = forge.pack()
    return zipped({**files, "items.jsonl": files["items.jsonl"].replace(b"a", b"e")})


def _changed_after(forge: Forge) -> bytes:
    files = forge.pack()
    signature = forge.trusted.sign(files[MANIFEST], purpose="pack").to_json().encode()
    return zipped({**forge.pack(pack_id="other"), SIGNATURE: signature})


# -------------------------------------------------------------------------------------------- records


def _item(line: bytes) -> Callable[[Forge], bytes]:
    return lambda forge: zipped(forge.pack(lines={"items.jsonl": [line + b"\n"]}))


def _fields(kind: str = "semantic", *, content: Any = None, **changes: Any) -> bytes:
    content = {"concept_name": "tea", "definition": "A drink."} if content is None else content
    return json.dumps({"memory_type": kind, "content": content} | changes).encode()


def _again(forge: Forge) -> bytes:
    line = _fields(item_id="one") + b"\n"
    return zipped(forge.pack(lines={"items.jsonl": [line, line]}))


def _records(name: str, change: Callable[[list[dict[str, Any]]], Sequence[dict[str, Any]]]) -> Callable[[Forge], bytes]:
    """An export with the records of a member changed."""

    def make(forge: Forge) -> bytes:
        lines = forge.lines("export")
        changed = change([json.loads(line) for line in lines[f"{name}.jsonl"]])
        lines[f"{name}.jsonl"] = [json.dumps(each).encode() + b"\n" for each in changed]
        return zipped(forge.pack("export", lines))

    return make


def _set(**changes: Any) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    return lambda found: [found[0] | changes, *found[1:]]


def _twin(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*found, found[0]]


def _misquoted(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    evidence = [found[0]["evidence"][0] | {"quote": "I owe Mallory 1,000 dollars."}]
    return [found[0] | {"evidence": evidence}, *found[1:]]


def _elsewhere(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    evidence = [found[0]["evidence"][0] | {"message_id": "of somebody else"}]
    return [found[0] | {"evidence": evidence}, *found[1:]]


def _from_a_picture(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    evidence = [found[0]["evidence"][0] | {"attachment": "0" * 64}]
    return [found[0] | {"evidence": evidence}, *found[1:]]


def _partition(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    place = {"tenant": "default", "user": "victim", "agent": None, "project": None}
    return _set(partition=place)(found)


def _document(text: bytes) -> Callable[[Forge], bytes]:
    return lambda _: text


_NAMES = (
    "../evil.jsonl", "../../../../etc/cron.d/evil", "/etc/passwd", "..\\evil.jsonl", "C:\\evil.jsonl", "items.jsonl/",
    "./items.jsonl", "a/../items.jsonl", "install.sh", "setup.py", "run.exe", "__main__.py", "pack.zip", "іtems.jsonl",
    "items.JSONL", "items.jsonl ",
)  # fmt: skip

_NOISE = [_RANDOM.randbytes(100_000).hex() for _ in range(6)]  # it hardly shrinks, so no ratio tells

CASES: list[Case] = [
    *(Case(f"cut off at {each} %", "container", _cut(each / 100)) for each in sorted(_RANDOM.sample(range(100), 8))),
    Case("an empty file", "record", _document(b"")),
    Case("something behind it", "container", lambda forge: zipped(forge.pack()) + b"MZ\x90"),
    Case("something before it", "container", lambda forge: b"PK" + zipped(forge.pack())),
    Case("a script before it", "record", lambda forge: b"#!/bin/sh\n" + zipped(forge.pack())),
    Case("something between", "container", _gap),
    *(Case(f"a member {name!r}", "member", _with(name)) for name in _NAMES),
    Case("a member with NUL in its name", "member", _renamed(b"items.jsonl\0.sh")),
    Case("a member that is a symbolic link", "member", _symlink),
    Case("two members of one name", "duplicate", _twice),
    Case("an encrypted member", "container", _field(8, "<H", 1, local=6)),
    Case("a member of unknown size", "container", _field(8, "<H", 8, local=6)),
    Case("a member packed otherwise", "container", _field(10, "<H", 12, local=8)),
    Case("a member on another disk", "container", _field(34, "<H", 1)),
    Case("a directory on another disk", "container", _end(4, "<H", 1)),
    Case("fewer members than it says", "container", _end(10, "<H", 9)),
    Case("a size that zip64 would tell", "container", _field(24, "<L", 0xFFFFFFFF, local=22)),
    Case("a start beyond the file", "container", _field(42, "<L", 0xFFFFFFF0)),
    Case("a directory as large as the file", "container", _end(16, "<L", 0)),
    Case("a directory that is too large", "too_large", _end(12, "<L", 1 << 20)),
    Case("members that overlap", "container", _overlapping),
    Case("a member within another", "container", _within),
    Case("headers that contradict each other", "container", _field(16, "<L", 1)),
    Case("a sum that is not the member's", "container", _field(16, "<L", 1, local=14)),
    Case("a size that is not the member's", "container", _field(24, "<L", 3, local=22)),
    Case("a bomb", "too_large", _bomb),
    Case("a bomb whose header lies", "container", _lying_bomb),
    Case("a bomb in the manifest", "too_large", _manifest_bytes(lambda data: data + b" " * (8 << 20))),
    Case("more records than anybody reads", "too_large", _many_lines),
    Case("version 2", "version", _manifest(version=2)),
    Case("a version that is no number", "version", _manifest(version="1.0")),
    Case("another format", "format", _manifest(format="other")),
    Case("no manifest", "format", lambda _: zipped({"items.jsonl": b"{}\n"})),
    Case("a manifest that is no JSON", "record", _manifest_bytes(lambda data: data[:-1])),
    Case("a manifest 10,000 levels deep", "too_large", _manifest_bytes(lambda _: deep())),
    Case("a manifest that says a thing twice", "duplicate", _manifest_bytes(lambda d: d[:-1] + b', "kind": "export"}')),
    Case("a manifest of another kind", "record", _manifest(kind="script")),
    Case("a manifest with a field too many", "record", _manifest(run="install.sh")),
    Case("a manifest that names too little", "record", _manifest(members=[])),
    Case("a member that is missing", "member", _without("links.jsonl")),
    Case("a member that the manifest does not name", "member", _with("links.jsonl")),
    Case("a changed member", "checksum", _changed),
    Case("a checksum that is wrong", "checksum", _member(sha256="0" * 64)),
    Case("a size that is wrong", "checksum", _member(size=1)),
    Case("a count that is wrong", "checksum", _member(count=99)),
    Case("a signature by nobody who is known", "signature", lambda forge: forge.signed(forge.stranger)),
    Case("a signature by a revoked key", "signature", lambda forge: forge.signed(forge.revoked)),
    Case(
        "a signature in another's name",
        "signature",
        lambda forge: forge.signed(forge.stranger, key_id=forge.trusted.key_id),
    ),
    Case("a signature of something else", "signature", lambda forge: forge.signed(forge.trusted, "item")),
    Case("a manifest changed after it was signed", "signature", _changed_after),
    Case("a signature that is none", "record", _with(SIGNATURE, b'{"key_id": "x", "value": "y"}')),
    Case("no signature where one is asked for", "signature", lambda forge: zipped(forge.pack()), required=True),
    Case("an export that nobody vouches for", "untrusted", lambda forge: zipped(forge.pack("export")), trust=None),
    Case("an item 10,000 levels deep", "too_large", _item(_fields()[:-1] + b', "further": ' + deep() + b"}")),
    Case("a field too large", "too_large", _item(_fields(content={"concept_name": "x" * 300_000}))),
    Case(
        "a record too large",
        "too_large",
        _item(_fields(content={"concept_name": "x", "properties": {"a": _NOISE}})),
    ),
    Case("too many items", "too_large", lambda f: zipped(f.pack(lines={"items.jsonl": [_fields() + b"\n"] * 5001}))),
    Case("an id given twice", "duplicate", _again),
    Case("a field given twice", "duplicate", _item(_fields()[:-1] + b', "memory_type": "profile"}')),
    Case("a line that is no JSON", "record", _item(b"import os")),
    Case("a line that is no object", "record", _item(b"[1]")),
    Case("a line that is not Unicode", "record", _item(b'{"a": "\xff"}')),
    Case("a number that JSON has not", "record", _item(_fields()[:-1] + b', "importance": NaN}')),
    Case("a number beyond all bounds", "record", _item(_fields()[:-1] + b', "importance": ' + b"9" * 9999 + b"}")),
    Case("an item in another's form", "record", _item(_fields("profile"))),
    Case("an item with a name that holds NUL", "record", _item(_fields(tags=["a\0b"]))),
    Case("an item in two languages", "record", _item(_fields(重要性等级="高", importance="low"))),
    Case("an item that names a user", "foreign_scope", _item(_fields(user="victim"))),
    Case("a memory that names a place", "foreign_scope", _records("memories", _partition)),
    Case("a memory of a project", "foreign_scope", _records("memories", _set(applies_to="project:theirs"))),
    Case("a message that names a tenant", "foreign_scope", _records("messages", _set(tenant="theirs"))),
    Case("a message given twice", "duplicate", _records("messages", _twin)),
    Case("a block given twice", "duplicate", _records("blocks", _twin)),
    Case("a memory given twice", "duplicate", _records("memories", _twin)),
    Case("a version that is missing", "reference", _records("memories", _set(version=2))),
    Case("evidence that is missing", "reference", _records("memories", _elsewhere)),
    Case("evidence in a picture that no pack holds", "reference", _records("memories", _from_a_picture)),
    Case("a quote that nobody said", "reference", _records("memories", _misquoted)),
    Case("a block that is missing", "reference", _records("memories", _set(block_ids=["20990101_01"]))),
    Case("a memory that replaces a stranger", "reference", _records("memories", _set(supersedes=["another's"]))),
    Case(
        "a link to a stranger",
        "reference",
        _records("links", lambda _: [{"source_id": "a", "type": "related", "target_id": "b"}]),
    ),
    Case("a message in no block", "reference", _records("blocks", lambda found: found[1:])),
    Case("a block of another thread", "reference", _records("blocks", _set(thread="another"))),
    Case("a label that is none", "record", _records("blocks", _set(block_id="20240101_99999999999"))),
    Case("a memory that was erased", "record", _records("memories", _set(status="erased"))),
    Case("a trust beyond all bounds", "record", _records("memories", _set(trust=9))),
    Case("a document 10,000 levels deep", "too_large", _document(b'{"items": ' + deep() + b"}")),
    Case("a document that is no object", "format", _document(b'["items"]')),
    Case("a document without items", "record", _document('{"包标识": "x", "内容列表": []}'.encode())),
]
