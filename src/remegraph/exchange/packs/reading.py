"""Packs at the door: measured, then compared with their checksums, then with their signature, then read line by line."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import ValidationError

from remegraph.errors import PackError, SignatureError
from remegraph.exchange.packs.container import Container, is_container
from remegraph.exchange.packs.layout import (
    ALLOWED,
    FORMAT,
    MANIFEST,
    MEMBERS,
    SIGNATURE,
    VERSION,
    Document,
    Item,
    Manifest,
    line_of,
)
from remegraph.exchange.packs.limits import PackLimits, parse
from remegraph.models import Record, Signature, TrustedKey
from remegraph.models.packs import PackInfo

__all__ = ["PackFile", "Verify", "invalid", "record_of"]

Verify = Callable[[bytes, Signature], TrustedKey]
"""Returns the key that signed a manifest, or raises `SignatureError`."""

_R = TypeVar("_R", bound=Record)


@dataclass(slots=True)
class _Signed:
    """What its signature is worth."""

    key_id: str = ""
    key: TrustedKey | None = None
    problem: str = "It is not signed."


class PackFile:
    """An open pack whose size, checksums and manifest are in order. Its records are read when they are asked for.

    Args:
        path: The file: a pack, or a JSON document in the protocol's form.
        limits: What it may not exceed.
        verify: Tells whose signature a manifest has.

    Raises:
        PackError: It is no pack, or is broken, or too large.
    """

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.close()

    @property
    def signer(self) -> TrustedKey | None:
        """The trusted key that signed it; none where that cannot be said."""
        return self._signed.key

    @property
    def info(self) -> PackInfo:
        """What it says of itself."""
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
        """Refuse it where its signature is not that of a trusted key.

        Args:
            required: Whether to refuse it without any signature, too.

        Raises:
            PackError: It is refused.
        """
        if self.signer is None and (required or self._signed.key_id):
            raise PackError("signature", self._signed.problem, SignatureError.cure)

    def records(self, name: str) -> Iterator[tuple[str, Any]]:
        """Yield the records of a member, as JSON, each with where it stands.

        Args:
            name: A member of its kind of pack.

        Raises:
            PackError: A line is too long, too deep, or no JSON object; or the file changed meanwhile.
        """
        if self._container is None:
            for number, item in enumerate(self._items, start=1):
                yield f"item {number}", item
            return
        number = 0
        for number, line in enumerate(self._lines(name), start=1):
            where = f"{name}, line {number}"
            found = parse(line, where, self._limits)
            if not isinstance(found, dict):
                raise PackError("record", f"{where} is no JSON object.")
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
    """Return JSON as a record.

    Raises:
        PackError: It is none; says which field is wrong, and where.
    """
    if isinstance(found, model):
        return found
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise invalid(error, where) from error


def invalid(error: ValidationError, where: str) -> PackError:
    """Return what to raise where a record is none."""
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
    """Read a pack that is one JSON document; its manifest is made here."""
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
