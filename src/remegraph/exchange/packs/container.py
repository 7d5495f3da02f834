"""The file of a pack: a plain zip, read by the letter of its format, and expanded only as far as it is allowed to be.

Whatever two readers could understand in two ways is refused: gaps, overlaps, comments, extra fields, headers that
contradict each other, anything before the first member or after the directory.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from remegraph.errors import PackError
from remegraph.exchange.packs.limits import PackLimits

__all__ = ["Container", "is_container"]

_LOCAL = struct.Struct("<4s5H3L2H")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_STORED, _DEFLATED = 0, 8
_UTF8 = 0x800
_CHUNK = 1 << 16
_DIRECTORY = 1 << 12  # six members need less than 500
_FREE = 1 << 20  # so small a member may grow by any ratio


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    method: int
    crc: int
    packed: int
    size: int
    start: int


def is_container(path: Path) -> bool:
    """Return whether a file begins like a zip.

    Raises:
        PackError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(2) == b"PK"
    except OSError as error:
        raise PackError("unreadable", f"{path} cannot be read ({error.strerror}).", "Check the path.") from error


class Container:
    """An open pack file. Nothing of it is expanded before `stream` asks for it.

    Args:
        path: The file.
        allowed: Names that its members may have.
        limits: What it may not exceed.

    Raises:
        PackError: It is no plain zip, or holds anything else.
    """

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.close()

    @property
    def names(self) -> frozenset[str]:
        """The names of its members."""
        return frozenset(self._members)

    def stream(self, name: str, most: int) -> Iterator[bytes]:
        """Yield a member, expanded piece by piece.

        Args:
            name: One of `names`.
            most: More bytes than this are refused, as soon as they come.

        Raises:
            PackError: It is larger than that, grows too much, or is not what the headers say.
        """
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
        """Read the directory, and check that the members stand side by side and fill the file."""
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
            raise PackError("container", "Its directory is not where it says: something stands before or within it.")
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
            raise PackError("member", f"{name} is no plain file.")
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
        """Read a part of the file.

        Raises:
            PackError: It has no such part.
        """
        if at + length > self._length:
            raise PackError("container", "It names a part of the file that is not there: it was cut off or changed.")
        self._file.seek(at)
        found = self._file.read(length)
        if len(found) != length:
            raise PackError("container", "The file became shorter while it was read.")
        return found


def _checked_name(raw: bytes, allowed: Collection[str]) -> str:
    name = raw.decode("ascii", "backslashreplace")
    if name not in allowed:  # so it is no path, holds no NUL, and no letter that looks like another
        raise PackError("member", f"It has a member {name[:80]!r}, which no pack has.", "Do not open it otherwise.")
    return name
