"""What is known by name around some memories: people, places, threads, ids; none of it leaves."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from remegraph.language.entities import entities
from remegraph.models import Memory, Partition, Scope
from remegraph.ports import Archive
from remegraph.rules.generalizing import common_words
from remegraph.rules.persons import persons

__all__ = ["Known", "known"]

_CAPITAL = re.compile(r"[A-Z][^\W_]*(?:[ '’.-]+[^\W_]+)*")
_WORD = re.compile(r"[^\W\d_]+")
_OF = re.compile(r" of (?:the )?")
_ID = re.compile(r"(?=.*\d).{6,}", re.DOTALL)
"""What is long enough, and odd enough, to be no word."""

Known = frozenset[str]


def known(
    archive: Archive,
    scope: Scope,
    agent: str,
    memories: Sequence[Memory],
    *,
    said: Iterable[str],
    public: Collection[str],
) -> Known:
    """Return the names that may not leave with these memories.

    Args:
        archive: The ledger.
        scope: Whose memories they are.
        agent: Who shares them.
        memories: What is shared.
        said: All that they say.
        public: Names that everybody may know, by the sharer's word.
    """
    places = archive.visible(scope)
    people = (s.topic.target_name for s in archive.topics(places) if s.topic.type in {"self", "personal"})
    callers = (scope.user, scope.tenant, scope.project or "", agent)
    allowed = common_words() | {name.casefold() for name in public}
    spoken = (*people, *callers, *_shown(said), *_spoken(memories), *_indexed(archive, places, memories))
    names = (name for name in spoken if len(name) > 1 and name.casefold() not in allowed)
    return frozenset((*names, *(each for each in _ids(archive, places, memories) if _ID.fullmatch(each))))


def _shown(said: Iterable[str]) -> Iterator[str]:
    """Yield the names that texts show by their form; of "Rules of the Ritz", rules are none where they are common here."""
    texts = tuple(said)
    ordinary = {word for text in texts for word in _WORD.findall(text) if word.islower()}
    for text in texts:
        yield from persons(text)
        for each in entities(text):
            if each.kind == "name":
                first, *rest = _OF.split(each.text)
                yield from rest
                if not rest or first.casefold() not in ordinary:
                    yield first


def _spoken(memories: Iterable[Memory]) -> Iterator[str]:
    """Yield the names that memories have in their slots: whose they are."""
    for memory in memories:
        whose, _, attribute = memory.canonical_topic.partition(":")
        if attribute and memory.topic.type == "personal":
            yield whose


def _indexed(archive: Archive, places: Sequence[Partition], memories: Sequence[Memory]) -> Iterator[str]:
    """Yield the names in the index entries of the blocks that they came from."""
    blocks = list(dict.fromkeys(block_id for memory in memories for block_id in memory.block_ids))
    for summary in archive.summaries(places, ids=blocks):
        yield from (name for name in summary.entities if _CAPITAL.fullmatch(name))


def _ids(archive: Archive, places: Sequence[Partition], memories: Sequence[Memory]) -> Iterator[str]:
    blocks = list(dict.fromkeys(block_id for memory in memories for block_id in memory.block_ids))
    yield from blocks
    yield from (block.thread for block in archive.blocks(places, ids=blocks))
    for memory in memories:
        yield memory.memory_id
        yield from (item.message_id for item in memory.evidence)
