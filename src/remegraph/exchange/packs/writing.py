"""Packs written: the same content, under the same version of zlib, is always the same file, and one that can be read."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from remegraph.errors import InputError, PackError
from remegraph.exchange.packs.layout import FORMAT, MANIFEST, MEMBERS, SIGNATURE, VERSION, Manifest, line_of
from remegraph.exchange.packs.limits import LIMITS
from remegraph.exchange.packs.reading import PackFile, Verify, record_of
from remegraph.models import Signature
from remegraph.models.packs import PackInfo, PackKind

__all__ = ["Sign", "check_place", "write"]

Sign = Callable[[bytes], Signature]

_BEGINNING = (1980, 1, 1, 0, 0, 0)


def check_place(path: Path, *, overwrite: bool) -> None:
    """Refuse to write where something is.

    Args:
        path: The file.
        overwrite: Whether a file may be replaced.

    Raises:
        InputError: Something is there that may not be replaced.
    """
    if overwrite and os.path.lexists(path) and not path.is_file():
        raise InputError(f"{path} is no file.", "Name a file.")
    if not overwrite and os.path.lexists(path):
        raise InputError(f"{path} is there already.", "Name a new file, or replace it: overwrite=True, or --force.")


def write(
    path: Path,
    kind: PackKind,
    members: Mapping[str, Sequence[bytes]],
    *,
    pack_id: str = "",
    domain: Sequence[str] = (),
    activate: Sequence[str] = (),
    overwrite: bool = False,
    sign: Sign | None = None,
    verify: Verify,
) -> PackInfo:
    """Write a pack that every reader takes, whole or not at all; return what it says of itself.

    Args:
        path: Where to.
        kind: preset or export.
        members: The lines of each member, in their order.
        pack_id: Its id; made of its content unless given.
        domain: The fields that it is for.
        activate: Ids and tags that it wants to have active.
        overwrite: Whether a file that is there is replaced.
        sign: Signs the manifest.
        verify: Tells whose signature that is.

    Raises:
        InputError: The file cannot be written, or is there already.
        PackError: A field of the manifest cannot be used, or the pack or a record of it is too large for any reader.
    """
    data = {name: b"".join(members[name]) for name in MEMBERS[kind]}
    for name, lines in members.items():
        most = LIMITS.items if kind == "preset" else LIMITS.records
        if any(len(line) > LIMITS.line for line in lines) or len(lines) > most:
            raise PackError("too_large", f"{name} is too large, or one of its records is.", "Make several packs.")
    content = [
        {"name": name, "sha256": hashlib.sha256(each).hexdigest(), "size": len(each), "count": len(members[name])}
        for name, each in data.items()
    ]
    named = pack_id or hashlib.sha256(repr(content).encode()).hexdigest()[:16]
    fields = {"format": FORMAT, "version": VERSION, "kind": kind, "pack_id": named, "members": content}
    fields |= {"domain": tuple(domain), "activate": tuple(activate)}
    manifest = line_of(record_of(Manifest, fields, MANIFEST))
    files = {MANIFEST: manifest}
    if sign is not None:
        files[SIGNATURE] = line_of(sign(manifest))
    draft = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        _write_zip(draft, files | data)
        with PackFile(draft, LIMITS, verify) as pack:
            info = pack.info
        check_place(path, overwrite=overwrite)
        if not overwrite:
            path.open("xb").close()  # it is ours from here on, whoever else comes
        draft.replace(path)
    except OSError as error:
        raise InputError(
            f"The pack {path} cannot be written ({error}).", "Name a file in a folder of yours."
        ) from error
    finally:
        draft.unlink(missing_ok=True)
    return info


def _write_zip(path: Path, files: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as pack:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _BEGINNING)
            entry.create_system = 3  # as on Unix, wherever it is made
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            pack.writestr(entry, data, compresslevel=6)
