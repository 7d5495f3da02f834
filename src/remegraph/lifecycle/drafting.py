"""What a long-term memory says once somebody concludes it from episodes, or once it is contradicted: its next version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from remegraph.errors import InvalidAnswerError, RequestRefusedError
from remegraph.language.scripts import language_of
from remegraph.lifecycle.gathering import Gathered
from remegraph.models import Abstraction, ChangeSet, Evidence, Memory, Shelf
from remegraph.ports import Archive, Concluded, Concluder
from remegraph.rules.naming import operation_id
from remegraph.rules.origins import derived
from remegraph.rules.standing import confidence, recounted
from remegraph.rules.summarising import summary_of

__all__ = ["ACTOR", "PERSON", "Drafter", "doubted"]

ACTOR = "consolidation"

PERSON = "person"
"""The extractor of what a person concluded."""

_QUOTES = 2
"""Of each source: its first words are what it was made of, all its blocks lead to the rest."""


class Drafter:
    """Writes new long-term memories, and next versions of those that grow, where a model or a person concludes them.

    Args:
        archive: Holds the messages that no conclusion may repeat.
        concluder: Draws conclusions; none: only a person does.
        agreed: What a person concluded, by the ids of the memories that it was concluded from.
        at: Now.
    """

    def __init__(
        self,
        archive: Archive,
        concluder: Concluder | None,
        agreed: Mapping[frozenset[str], Concluded],
        at: datetime,
    ) -> None:
        self._archive = archive
        self._concluder = concluder
        self._agreed = agreed
        self._at = at
        self.failed: list[str] = []
        """The first memory of each group whose conclusion the model could not write."""

    def draft(self, group: Gathered) -> Memory | None:
        """Return what a group becomes; none where nobody concludes anything."""
        written = self._agreed.get(frozenset(group.ids()))
        by = PERSON if written else self._concluder.name if self._concluder else ""
        written = written or self._ask(group)
        if written is None:
            return None
        return self._new(group, written, by) if group.joined is None else self._grown(group.joined, group, written, by)

    def _new(self, group: Gathered, written: Concluded, by: str) -> Memory:
        sources, first = group.sources, group.sources[0]
        said = sum(source.merges + 1 for source in sources)
        trust = min(source.trust for source in sources)
        abstraction = Abstraction(
            conditions=written.conditions,
            confidence=confidence(trust, said, 0),
            corroborations=said,
            terms=group.terms,
        )
        tags = Counter(tag for source in sources for tag in source.tags)
        return Memory(
            memory_id=operation_id("abstract", first.partition.to_json(), *sorted(each.memory_id for each in sources)),
            partition=first.partition,
            topic=first.topic,
            content=written.conclusion,
            kind="semantic",
            category=Counter(source.category for source in sources).most_common(1)[0][0],
            payload=abstraction.within({}),
            evidence=_evidence(sources),
            block_ids=_block_ids(sources),
            layer="long_term",
            importance=max(source.importance for source in sources),
            tags=tuple(sorted(tag for tag, count in tags.items() if count > 1)),
            language=language_of(written.conclusion),
            trust=trust,
            origin=derived(sources),
            extractor=by,
            merges=said - 1,
            said_at=max(source.said_at for source in sources),
            recorded_at=self._at,
        )

    def _ask(self, group: Gathered) -> Concluded | None:
        """Return what the model concludes; nothing where there is none, where it fails, or refuses, now or before."""
        if self._concluder is None:
            return None
        memories, sources = group.memories(), group.sources
        refusal = self._refusal(self._concluder.name, memories)
        if self._archive.committed(refusal.shelves[0].partition, refusal.operation_id):
            return None
        language = language_of("\n".join(source.content for source in sources))
        ids = list(dict.fromkeys(item.message_id for source in sources for item in source.evidence))
        heard = [message.text for message in self._archive.messages([sources[0].partition], ids=ids)]
        said = [*heard, *(source.content for source in sources)]
        try:
            written = self._concluder.conclude(memories, said, language)
        except (InvalidAnswerError, RequestRefusedError):
            self.failed.append(sources[0].memory_id)
            return None
        if written is None:
            self._archive.commit(refusal)
        return written

    def _refusal(self, by: str, memories: Sequence[Memory]) -> ChangeSet:
        """Return the operation that changes nothing and says so: by its name, nobody asks that model the same again."""
        shelf = Shelf(partition=memories[0].partition, topic=memories[0].topic)
        versions = sorted(f"{memory.memory_id} {memory.version}" for memory in memories)
        return ChangeSet(
            operation_id=operation_id("refuse", by, shelf.partition.to_json(), *versions),
            actor=ACTOR,
            recorded_at=self._at,
            at_home=True,
            shelves=(shelf,),
        )

    def _grown(self, old: Memory, group: Gathered, written: Concluded, by: str) -> Memory:
        sources = group.sources
        said = old.merges + 1 + sum(source.merges + 1 for source in sources)
        trust = min(old.trust, *(source.trust for source in sources))
        before = _abstraction(old).evolve(conditions=written.conditions)
        abstraction = recounted(before, said=said, against=before.contradictions, trust=trust)
        return old.evolve(
            version=old.version + 1,
            content=written.conclusion,
            summary=summary_of(written.conclusion),
            payload=abstraction.within(old.payload),
            evidence=tuple(dict.fromkeys((*old.evidence, *_evidence(sources)))),
            block_ids=tuple(dict.fromkeys((*old.block_ids, *_block_ids(sources)))),
            importance=max(old.importance, *(source.importance for source in sources)),
            trust=trust,
            origin=derived((old, *sources)),
            extractor=by,
            merges=said - 1,
            said_at=max(old.said_at, *(source.said_at for source in sources)),
            recorded_at=self._at,
        )


def doubted(old: Memory, against: int, at: datetime) -> Memory:
    """Return the next version of a long-term memory that more memories contradict.

    Args:
        old: Its head.
        against: How many.
        at: Now.
    """
    abstraction = recounted(_abstraction(old), said=old.merges + 1, against=against, trust=old.trust)
    return old.evolve(version=old.version + 1, payload=abstraction.within(old.payload), recorded_at=at)


def _abstraction(memory: Memory) -> Abstraction:
    found = Abstraction.of(memory)
    assert found is not None
    return found


def _evidence(sources: Iterable[Memory]) -> tuple[Evidence, ...]:
    return tuple(dict.fromkeys(item for source in sources for item in source.evidence[:_QUOTES]))


def _block_ids(sources: Iterable[Memory]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(block_id for source in sources for block_id in source.block_ids))
