"""Exports: what is known of a person, for them to read, and all that is recorded of a tenant, line by line.

Words that are withheld are left out, as everywhere. In the end the file is complete, or not there at all.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from remegraph.errors import CancelledError, FileFormatError, NotFoundError
from remegraph.models import Export, Memory, Partition, Progress, Record, Subject, Tenant

if TYPE_CHECKING:
    from remegraph.kit.components import Parts

__all__ = ["export"]

_PAGE = 500

_Line = tuple[str, dict[str, Any]]
"""A record with its kind."""


def export(
    parts: Parts,
    whom: Subject | Tenant,
    path: Path,
    progress: Callable[[Progress], None] | None,
    cancel: Callable[[], bool] | None,
) -> Export:
    """Write what is recorded of a person as one JSON document, or of a tenant as JSON lines; see `Admin.export`."""
    user = whom.user if isinstance(whom, Subject) else None
    everywhere = (place for place in parts.archive.partitions() if place.tenant == whom.tenant)
    places = [place for place in everywhere if user is None or place.user == user]
    if not places:
        raise NotFoundError(f"Nothing is recorded of {whom!r}.")
    counts: Counter[str] = Counter()

    def everything() -> Iterator[tuple[Partition, Iterator[_Line]]]:
        for number, place in enumerate(places):
            if progress:
                progress(Progress(stage="export", done=number, total=len(places)))
            yield place, _checked(_records(parts, place), counts, cancel)
        if progress:
            progress(Progress(stage="export", done=len(places), total=len(places)))

    head = {**whom.model_dump(), "exported_at": parts.clock().isoformat()}
    with _draft(path) as file:
        (_write_lines if user is None else _write_document)(file, head, everything(), counts)
    return Export(whom=whom, file=str(path), counts=dict(counts), sha256=_digest(path))


def _write_document(
    file: IO[bytes], head: dict[str, Any], recorded: Iterator[tuple[Partition, Iterator[_Line]]], _: Counter[str]
) -> None:
    places: list[dict[str, Any]] = []
    for place, records in recorded:
        held: dict[str, list[dict[str, Any]]] = {}
        for kind, record in records:
            held.setdefault(kind, []).append(record)
        places.append({**place.model_dump(), **held})
    file.write(_json({**head, "places": places}, indent=1))


def _write_lines(
    file: IO[bytes], head: dict[str, Any], recorded: Iterator[tuple[Partition, Iterator[_Line]]], counts: Counter[str]
) -> None:
    file.write(_json({"kind": "export", **head}))
    for place, records in recorded:
        for kind, record in records:
            file.write(_json({"kind": kind, "place": place.model_dump(), **record}))
    file.write(_json({"kind": "end", "counts": counts}))


def _records(parts: Parts, place: Partition) -> Iterator[_Line]:
    """Yield what a place holds: messages, what was made of them, and who did what when."""
    archive, after = parts.archive, 0
    while page := archive.messages([place], first_seq=after + 1, limit=_PAGE):
        yield from (("messages", _plain(message)) for message in page)
        after = page[-1].seq
    summaries = {each.block_id: each for each in archive.summaries([place])}
    for block in archive.blocks([place]):
        entry = summaries.get(block.block_id)
        yield "blocks", {**_plain(block), "summary": None if entry is None else entry.summary}
    for memory in archive.memories([place]):
        yield "memories", _versions(archive.versions([place], memory.memory_id) or (memory,))
    yield from (("links", _plain(link)) for link in archive.links([place], None))
    with parts.items.read(place) as shelf:
        for item in shelf.below(()):
            times = {"created_at": item.created_at.isoformat(), "updated_at": item.updated_at.isoformat()}
            yield "items", {"namespace": item.namespace, "key": item.key, "value": item.value, **times}
    for entries in parts.trail.pages(place, None, None):
        yield from (("events", _plain(entry)) for entry in entries)


def _versions(versions: Sequence[Memory]) -> dict[str, Any]:
    """Return a memory as it is now, with its evidence, and as it was before."""
    *before, now = map(_plain, versions)
    return {**now, "earlier": before}


def _plain(record: Record) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(record.to_json())
    recorded.pop("partition", None)
    return recorded


def _checked(records: Iterator[_Line], counts: Counter[str], cancel: Callable[[], bool] | None) -> Iterator[_Line]:
    for number, (kind, record) in enumerate(records):
        if cancel is not None and number % _PAGE == 0 and cancel():
            raise CancelledError("The export was cancelled.", "Call again; nothing of the file is left.")
        counts[kind] += 1
        yield kind, record


def _json(value: object, indent: int | None = None) -> bytes:
    """Return a line of JSON; what UTF-8 has no form for is escaped."""
    return json.dumps(value, ensure_ascii=False, indent=indent).encode("utf-8", "backslashreplace") + b"\n"


@contextmanager
def _draft(path: Path) -> Iterator[IO[bytes]]:
    """Give a file that takes its name once all of it is on the disk; only its owner can read it."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        if path.exists():
            raise FileFormatError(f"{path} exists already.", "Name a file that does not exist yet.")
        draft.unlink(missing_ok=True)  # of one that was killed
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(descriptor)
        except BaseException:
            draft.unlink()
            raise
        draft.rename(path)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be written ({error}).", "Name a file in a folder of yours.") from error


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
