"""What replaces what never goes in a circle: checked in the commit, so that every chain has an end that holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, select

from remegraph.errors import InputError
from remegraph.models import ChangeSet, Link
from remegraph.storage.rows import chunks
from remegraph.storage.tables import links

__all__ = ["check_no_circle", "replacing"]

_Edges = Mapping[str, set[str]]


def replacing(changes: ChangeSet) -> tuple[Link, ...]:
    """Return the links of what the memories of a set replace: the chain can be walked both ways by them."""
    return tuple(
        Link(source_id=change.memory.memory_id, type="supersedes", target_id=old)
        for change in changes.changes
        for old in change.memory.supersedes
    )


def check_no_circle(connection: Connection, changes: ChangeSet) -> None:
    """Refuse a set by which a memory would replace itself, over any number of steps.

    Args:
        connection: A write transaction.
        changes: What shall change.

    Raises:
        InputError: It would.
    """
    given: defaultdict[str, set[str]] = defaultdict(set)
    for link in (*changes.links, *replacing(changes)):
        if link.type == "supersedes":
            given[link.source_id].add(link.target_id)
    replaced = set().union(*given.values())
    made = {change.memory.memory_id for change in changes.changes if not change.expected_version}
    # What is new and replaced by nothing closes no circle: as a rule nothing need be read.
    starts = [source for source in given if source in replaced or source not in made]
    if starts:
        _check(starts, _below(connection, starts, given))


def _below(connection: Connection, starts: Iterable[str], given: _Edges) -> _Edges:
    """Return what each memory replaces, of those that can be reached."""
    found: dict[str, set[str]] = {}
    edge = set(starts)
    while edge:
        found |= {each: set(given.get(each, ())) for each in edge}
        for chunk in chunks(sorted(edge)):
            here = (links.c.source_id.in_(chunk), links.c.type == "supersedes")
            for row in connection.execute(select(links.c.source_id, links.c.target_id).where(*here)):
                found[row.source_id].add(row.target_id)
        edge = {target for each in edge for target in found[each]} - found.keys()
    return found


def _check(starts: Iterable[str], edges: _Edges) -> None:
    for start in starts:
        seen: set[str] = set()
        ahead = list(edges[start])
        while ahead:
            each = ahead.pop()
            if each == start:
                raise InputError(f"Memory {start} would replace itself.", "What replaces what must not go in a circle.")
            if each not in seen:
                seen.add(each)
                ahead += edges[each]
