"""What a long-term memory says once episodes become one, join it, or contradict it: its next version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from remegraph.errors import InvalidAnswerError, RequestRefusedError
from remegraph.language.scripts import language_of
from remegraph.lifecycle.gathering import Gathered
from remegraph.models import Abstraction, Evidence, Memory, Topic
from remegraph.ports import Archive, Concluded, Concluder
from remegraph.rules.abstracting import conclusion, conditions, phrased, recounted, repeats
from remegraph.rules.folding import origin_of_all
from remegraph.rules.naming import operation_id
from remegraph.rules.standing import confidence

__all__ = ["Drafter", "doubted", "united"]

_QUOTES = 2
"""Of each source: its first words are what it was made of, all its blocks lead to the rest."""

_COUNTED = "extractive"


class Drafter:
    """Writes new long-term memories, and next versions of those that grow.

    Args:
        archive: Holds the messages that no conclusion may repeat.
        concluder: Writes conclusions; none: they are counted.
        at: Now.
    """

    def __init__(self, archive: Archive, concluder: Concluder | None, at: datetime) -> None:
        self._archive = archive
        self._concluder = concluder
        self._at = at
        self.failed: list[str] = []
        """New memories whose conclusion the model could not write."""

    def draft(self, group: Gathered) -> Memory:
        """Return what a group becomes."""
        return self._new(group) if group.joined is None else self._grown(group.joined, group.sources)

    def _new(self, group: Gathered) -> Memory:
        sources, first = group.sources, group.sources[0]
        memory_id = operation_id("abstract", first.partition.to_json(), *sorted(each.memory_id for each in sources))
        language = language_of("\n".join(source.content for source in sources))
        words = phrased(sources, group.terms)
        said = sum(source.merges + 1 for source in sources)
        trust = min(source.trust for source in sources)
        written = self._ask(memory_id, sources, language)
        abstraction = Abstraction(
            conditions=written.conditions if written else conditions(sources, words, language),
            confidence=confidence(trust, said, 0),
            corroborations=said,
            terms=group.terms,
            words=() if written else words,
            claims=group.claims,
        )
        return Memory(
            memory_id=memory_id,
            partition=first.partition,
            topic=first.topic,
            content=written.conclusion if written else _told(first.topic, abstraction, sources, language),
            kind="semantic",
            category=Counter(source.category for source in sources).most_common(1)[0][0],
            payload=abstraction.within({}),
            evidence=_evidence(sources),
            block_ids=_block_ids(sources),
            layer="long_term",
            importance=max(source.importance for source in sources),
            tags=words,
            language=language,
            trust=trust,
            extractor=self._concluder.name if self._concluder and written else _COUNTED,
            merges=said - 1,
            said_at=max(source.said_at for source in sources),
            recorded_at=self._at,
        )

    def _ask(self, memory_id: str, sources: Sequence[Memory], language: str) -> Concluded | None:
        """Return what the model concludes; nothing where there is none, or where it fails to."""
        if self._concluder is None:
            return None
        ids = list(dict.fromkeys(item.message_id for source in sources for item in source.evidence))
        heard = [message.text for message in self._archive.messages([sources[0].partition], ids=ids)]
        said = [*heard, *(source.content for source in sources)]
        try:
            return self._concluder.conclude(sources, said, language)
        except (InvalidAnswerError, RequestRefusedError):
            self.failed.append(memory_id)
            return None

    def _grown(self, old: Memory, sources: Sequence[Memory]) -> Memory:
        said = old.merges + 1 + sum(source.merges + 1 for source in sources)
        trust = min(old.trust, *(source.trust for source in sources))
        before = _abstraction(old)
        abstraction = recounted(before, said=said, against=before.contradictions, trust=trust)
        return old.evolve(
            version=old.version + 1,
            content=_told(old.topic, abstraction, sources, old.language) if abstraction.words else old.content,
            payload=abstraction.within(old.payload),
            evidence=tuple(dict.fromkeys((*old.evidence, *_evidence(sources)))),
            block_ids=tuple(dict.fromkeys((*old.block_ids, *_block_ids(sources)))),
            importance=max(old.importance, *(source.importance for source in sources)),
            trust=trust,
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


def united(kept: Memory, retired: Memory, at: datetime) -> Memory:
    """Return the next version of a long-term memory that takes in another that says the same.

    Args:
        kept: Its head.
        retired: The other.
        at: Now.
    """
    said, trust = kept.merges + retired.merges + 2, min(kept.trust, retired.trust)
    own, other = Abstraction.of(kept), Abstraction.of(retired)
    before = own or (other and other.evolve(words=()))  # what somebody wrote stays as it is written
    payload = kept.payload
    if before is not None:
        against = before.contradictions
        payload = recounted(before, said=said, against=against, trust=trust).within(payload)
    return kept.evolve(
        version=kept.version + 1,
        payload=payload,
        evidence=tuple(dict.fromkeys((*kept.evidence, *retired.evidence))),
        block_ids=tuple(dict.fromkeys((*kept.block_ids, *retired.block_ids))),
        importance=max(kept.importance, retired.importance),
        trust=trust,
        origin=origin_of_all(kept, [retired]),
        merges=said - 1,
        supersedes=(*kept.supersedes, retired.memory_id),
        said_at=max(kept.said_at, retired.said_at),
        recorded_at=at,
    )


def _abstraction(memory: Memory) -> Abstraction:
    found = Abstraction.of(memory)
    assert found is not None
    return found


def _told(topic: Topic, abstraction: Abstraction, sources: Iterable[Memory], language: str) -> str:
    """Return a counted conclusion; what the sources state is left out where that would repeat their words."""
    told = partial(conclusion, topic, abstraction.words, count=abstraction.corroborations, language=language)
    text = told(claims=abstraction.claims)
    return told(claims=()) if repeats([text], (source.content for source in sources)) else text


def _evidence(sources: Iterable[Memory]) -> tuple[Evidence, ...]:
    return tuple(dict.fromkeys(item for source in sources for item in source.evidence[:_QUOTES]))


def _block_ids(sources: Iterable[Memory]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(block_id for source in sources for block_id in source.block_ids))
