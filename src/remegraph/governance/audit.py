"""Exports of the journal that end with heads, and the check of one against heads kept elsewhere.

Each partition is a chain of its own. The head of an export says how many events it holds and where their chain begins and
ends, and seals their lines to the letter: given the head, nothing in the file can be changed or left out unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from remegraph.errors import FileFormatError
from remegraph.models import AuditEntry, AuditHead, Event, Mismatch, Partition

if TYPE_CHECKING:
    from remegraph.ledger.audit import AuditTrail

__all__ = ["check_export", "entries", "export", "read_heads"]


def entries(
    trail: AuditTrail, partitions: Sequence[Partition], since: datetime | None, until: datetime | None
) -> Iterator[AuditEntry | AuditHead]:
    """Yield the events of partitions, each partition's in their order; then the head of each."""
    chains = {partition: _Chain(trail, partition) for partition in partitions}
    for partition, chain in chains.items():
        for page in trail.pages(partition, since, until):
            for entry in page:
                chain.add(entry)
                yield entry
    yield from (head for chain in chains.values() if (head := chain.head()) is not None)


def export(path: Path, found: Iterator[AuditEntry | AuditHead]) -> tuple[AuditHead, ...]:
    """Write what `entries` yields as JSON lines; return the heads."""
    heads: list[AuditHead] = []
    try:
        with path.open("x", encoding="ascii", newline="\n") as file:
            for each in found:
                file.write(f"{each.to_json()}\n")
                if isinstance(each, AuditHead):
                    heads.append(each)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be written ({error}).", "Name a file that is not there yet.") from error
    return tuple(heads)


def read_heads(path: Path) -> tuple[AuditHead, ...]:
    """Return the heads of a file: of a whole export, or of its last lines."""
    heads = tuple(each for _, line in _lines(path) if isinstance(each := _read(line), AuditHead))
    if not heads:
        raise FileFormatError(f"{path} holds no head.", "Name a file with the last lines of an export.")
    return heads


def check_export(trail: AuditTrail, path: Path, heads: Sequence[AuditHead]) -> tuple[Mismatch, ...]:
    """Return what changed in an exported file since its export; nothing where it is whole."""
    chains: dict[Partition, _Chain] = {}
    ended: list[AuditHead] = []
    found: list[Mismatch] = []
    for number, line in _lines(path):
        each = _read(line)
        if each is None:
            found.append(_mismatch(path, number, "it is no line of an export"))
        elif isinstance(each, AuditHead):
            ended.append(each)
        else:
            partition = each.event.partition
            if problem := chains.setdefault(partition, _Chain(trail, partition)).add(each):
                found.append(_mismatch(path, number, problem))
    wanted = {head.partition: head for head in heads or ended}
    found.extend(
        _mismatch(path, 0, f"what it holds of {partition.to_json()} does not end with its head")
        for partition in {**wanted, **chains}
        if partition not in chains or not chains[partition].ends_with(wanted.get(partition))
    )
    return tuple(found)


@dataclass
class _Chain:
    """The events of one partition, as they come."""

    trail: AuditTrail
    partition: Partition
    events: int = 0
    begins: str = ""
    chain: str = ""
    seals: tuple[str, ...] = ()

    @cached_property
    def _fits(self) -> Callable[[str, Event], bool]:
        return self.trail.walk()

    def add(self, entry: AuditEntry) -> str:
        """Take the next event; return what is wrong with it, if anything."""
        problem = ""
        if self.events and entry.previous != self.chain:
            problem = "an event before it was moved or taken away"
        elif not self._fits(entry.previous, entry.event):
            problem = "the event was changed"
        self.begins = self.begins or entry.previous
        self.events += 1
        self.chain = entry.event.chain
        self.seals = self.trail.seals(self.seals, entry.to_json())
        return problem

    def ends_with(self, head: AuditHead | None) -> bool:
        """Return whether this is the head, sealed by a known key."""
        own = self.head()
        return own is not None and head is not None and head.seal in self.seals and head.evolve(seal=own.seal) == own

    def head(self) -> AuditHead | None:
        """Return the head; None without events."""
        if not self.events:
            return None
        return AuditHead(
            partition=self.partition, events=self.events, previous=self.begins, chain=self.chain, seal=self.seals[0]
        )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from enumerate(file, start=1)
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path} cannot be read ({error}).", "Name a file that `audit` exported.") from error


def _read(line: str) -> AuditEntry | AuditHead | None:
    try:
        kind = AuditHead if json.loads(line).get("kind") == "head" else AuditEntry
        return kind.from_json(line)
    except (ValueError, AttributeError):
        return None


def _mismatch(path: Path, line: int, problem: str) -> Mismatch:
    return Mismatch(where=path.name, record_id=f"line {line}" if line else "", problem=problem)
