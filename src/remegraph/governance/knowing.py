"""What an agent knew at a time: what it was shown, in the versions of then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remegraph.models import Known, Memory, Partition, Shown
from remegraph.ports import Archive

__all__ = ["known"]


def known(archive: Archive, partitions: Sequence[Partition], records: Iterable[Shown]) -> tuple[Known, ...]:
    """Return what each record tells of, as far as it is kept.

    Args:
        archive: The ledger.
        partitions: What the caller may see.
        records: What was shown.
    """
    versions: dict[str, dict[int, Memory]] = {}
    found: list[Known] = []
    for shown in records:
        for memory_id in shown.versions.keys() - versions.keys():
            every = archive.versions(partitions, memory_id) if partitions else ()
            versions[memory_id] = {each.version: each for each in every}
        memories = {memory_id: versions[memory_id].get(number) for memory_id, number in shown.versions.items()}
        found.append(
            Known(
                shown=shown,
                memories=tuple(each for each in memories.values() if each is not None),
                missing=tuple(memory_id for memory_id, each in memories.items() if each is None),
            )
        )
    return tuple(found)
