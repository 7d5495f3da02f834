"""Conclusions: episodes grouped by recurring words, and the long-term memories that a model or a person makes of them."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from remegraph.errors import InvalidAnswerError, RequestRefusedError
from remegraph.models import Abstraction, ChangeSet, Memory, Shelf
from remegraph.models.base import operation_id
from remegraph.models.standing import QUARANTINE_BELOW, confidence, recounted
from remegraph.models.supersession import derived, relation
from remegraph.ports import Concluded, Concluder
from remegraph.settings import LifecyclePolicy
from remegraph.text import table
from remegraph.text.scripts import HAN, language_of, simplified
from remegraph.text.sentences import summary_of
from remegraph.text.terms import wording

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive
    from remegraph.ports import Vectors

__all__ = [
    "ACTOR",
    "Drafter",
    "Gathered",
    "Lexicon",
    "clusters",
    "doubted",
    "gather",
    "holds",
    "may_be_mixed",
    "recurring",
]


_WORD = re.compile(rf"[^\W\d_{HAN}]{{2,}}")
_RUN = re.compile(f"[{HAN}]{{2,}}")

_COMMON_SHARE, _COMMON_LEAST = 0.1, 10
"""A word in this many of a topic's memories, by share and by number, distinguishes none of them."""

_SMALL = 50
"""Fewer memories count as this many, as they do not show how rare a word is."""

_MOST = 5
"""Recurring words by which a group is known."""


@lru_cache(maxsize=1 << 9)  # `wording`, which is most of the work, caches more
def _terms(text: str) -> frozenset[str]:
    """Return the distinctive words of a text: stems with synonyms folded; pairs of Chinese characters; no numbers."""
    telling = frozenset(word for word in wording(text).words if not word.startswith("~"))
    found = {word for match in _WORD.finditer(text) for word in wording(match.group()).words & telling}
    for match in _RUN.finditer(text):
        found |= {one + other for one, other in pairwise(match.group()) if {one, other} <= telling}
    return frozenset(found | {word for word in telling if word.startswith("=")})


class Lexicon:
    """The weights of words among the memories of one topic."""

    def __init__(self, texts: Iterable[str], names: Iterable[str]) -> None:
        said = [_terms(text) for text in texts]
        counts = Counter(word for words in said for word in words)
        most = max(_COMMON_LEAST, _COMMON_SHARE * len(said))
        about = {word for name in names for word in _terms(name)}
        self._weights = {
            word: math.log((max(len(said), _SMALL) + 1) / count)
            for word, count in counts.items()
            if count <= most and word not in about
        }

    def weight(self, word: str) -> float:
        """Return the weight of a word: 0 for one in most memories, or in none."""
        return self._weights.get(word, 0.0)

    def words(self, text: str) -> frozenset[str]:
        """Return the words of a text that have a weight."""
        return frozenset(word for word in _terms(text) if word in self._weights)

    def likeness(self, one: frozenset[str], other: frozenset[str]) -> float:
        """Return the cosine of two sets of words, rare ones weighing more."""
        shared = self._square(one & other)
        return shared / math.sqrt(self._square(one) * self._square(other)) if shared else 0.0

    def _square(self, words: Iterable[str]) -> float:
        return sum(self.weight(word) ** 2 for word in sorted(words))


def recurring(said: Sequence[frozenset[str]], lexicon: Lexicon) -> tuple[str, ...]:
    """Return the words in a third of the texts and in two at least, the most distinctive first."""
    counts = Counter(word for words in said for word in words)
    least = max(2, len(said) / 3)
    found = [word for word, count in counts.items() if count >= least]
    return tuple(sorted(found, key=lambda word: (-counts[word] * lexicon.weight(word), word))[:_MOST])


_SEED = 7

_HOLDERS = 100
"""A word in more texts makes no pairs by itself: their number grows with the square."""

Near = Callable[[int, int], float | None]
"""Cosine of two texts' meanings; None if unknown."""


def clusters(
    said: Sequence[frozenset[str]],
    lexicon: Lexicon,
    *,
    threshold: float,
    least: int,
    apart: Callable[[int, int], bool],
    near: Near = lambda _one, _other: None,
) -> list[tuple[int, ...]]:
    """Return groups of similar texts, the largest first; a text that fits nowhere is in none.

    Texts are connected if they are similar enough; groups are the communities of that graph (Blondel et al., "Fast
    unfolding of communities in large networks", 2008). A text stays in a group if it has one of the words that recur in
    it: a chain of texts of which only neighbours are alike is not a group. The same texts give the same groups.
    """
    import networkx as nx  # noqa: PLC0415 - it takes .2 s to load, and only consolidation needs it

    graph = nx.Graph()
    graph.add_nodes_from(range(len(said)))
    for one, other, words in _alike(said, lexicon):
        meaning = near(one, other)
        likeness = words if meaning is None else (words + max(meaning, 0.0)) / 2
        if likeness >= threshold and not apart(one, other):
            graph.add_edge(one, other, weight=likeness)
    found: list[tuple[int, ...]] = []
    for members in map(sorted, nx.community.louvain_communities(graph, seed=_SEED)):
        kept = frozenset(recurring([said[number] for number in members], lexicon))
        found.append(tuple(number for number in members if said[number] & kept))
    return sorted((group for group in found if len(group) >= least), key=lambda group: (-len(group), group))


def _alike(said: Sequence[frozenset[str]], lexicon: Lexicon) -> Iterator[tuple[int, int, float]]:
    """Yield pairs that share a rare word, with the cosine of all their words."""
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for number, words in enumerate(said):
        for word in words:
            holders[word].append(number)
    rare = [numbers for numbers in holders.values() if len(numbers) <= _HOLDERS]
    for one, other in sorted({pair for numbers in rare for pair in combinations(numbers, 2)}):
        yield one, other, lexicon.likeness(said[one], said[other])


def may_be_mixed(memory: Memory) -> bool:
    """Return whether a memory may be grouped: not knowledge, a rule, or anything disputed or doubtful."""
    return (
        not memory.firm
        and not memory.is_core
        and memory.status in {"active", "low_priority"}
        and memory.trust >= QUARANTINE_BELOW
    )


def holds(memory: Memory, at: datetime) -> bool:
    """Return whether a memory holds at a time: it has begun, and no end is known.

    A conclusion has no dates, so one from past, present and future facts would be false.
    """
    return memory.valid_to is None and (memory.valid_from is None or memory.valid_from <= at)


def is_over(text: str) -> bool:
    """Return whether a text says, by its words alone, that something is over."""
    return _over().search(simplified(text)) is not None


@lru_cache(maxsize=1)
def _over() -> re.Pattern[str]:
    return re.compile(table("tenses")["over"], re.IGNORECASE)


@dataclass(slots=True)
class Gathered:
    """Episodes that may belong together, and the long-term memory that they may join, if there is one."""

    terms: tuple[str, ...]
    sources: list[Memory] = field(default_factory=list)
    joined: Memory | None = None

    def memories(self) -> Sequence[Memory]:
        """Return all that it is made from."""
        return self.sources if self.joined is None else [*self.sources, self.joined]

    @property
    def why(self) -> str:
        """Why they were put together."""
        return f"alike by {', '.join(self.terms)}" if self.terms else "named together"

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all that it is made from."""
        return tuple(memory.memory_id for memory in self.memories())


def gather(
    free: Sequence[Memory],
    known: Sequence[Memory],
    lexicon: Lexicon,
    policy: LifecyclePolicy,
    vectors: Mapping[str, Vectors],
) -> list[Gathered]:
    """Return which episodes of one topic are alike; the others are left as they are.

    It continues until nothing more fits, so that a second run finds nothing to do.
    """
    left = sorted(free, key=lambda each: (each.said_at, each.memory_id))
    words = {memory.memory_id: lexicon.words(memory.content) for memory in left}
    existing = ((Abstraction.of(memory), memory) for memory in sorted(known, key=lambda each: each.memory_id))
    groups = [Gathered(abstraction.terms, joined=memory) for abstraction, memory in existing if abstraction]
    while True:
        before = len(left)
        left = [each for each in left if not _join(each, words[each.memory_id], groups, lexicon, policy)]
        made = _made(left, words, lexicon, policy, vectors)
        taken = {memory.memory_id for group in made for memory in group.sources}
        left = [each for each in left if each.memory_id not in taken]
        groups += made
        if len(left) == before:
            return [group for group in groups if group.sources]


def _join(
    memory: Memory, words: frozenset[str], groups: Sequence[Gathered], lexicon: Lexicon, policy: LifecyclePolicy
) -> bool:
    over = is_over(memory.content)

    def fits(group: Gathered) -> float:
        if any(is_over(each.content) != over for each in group.memories()):
            return 0.0
        return lexicon.likeness(frozenset(group.terms), words)

    best = max(groups, key=fits, default=None)
    if best is None or fits(best) < policy.cluster_likeness:
        return False
    best.sources.append(memory)
    return True


def _made(
    left: Sequence[Memory],
    words: Mapping[str, frozenset[str]],
    lexicon: Lexicon,
    policy: LifecyclePolicy,
    vectors: Mapping[str, Vectors],
) -> list[Gathered]:
    def apart(one: int, other: int) -> bool:
        return over[one] != over[other] or relation(left[one], left[other], one_source=False) == "disputes"

    def near(one: int, other: int) -> float | None:
        first, second = (vectors.get(left[number].memory_id) for number in (one, other))
        return None if first is None or second is None else float(np.vecdot(first, second))

    over = [is_over(memory.content) for memory in left]
    said = [words[memory.memory_id] for memory in left]
    found = clusters(
        said, lexicon, threshold=policy.cluster_likeness, least=policy.cluster_size, apart=apart, near=near
    )
    groups = ([left[number] for number in group] for group in found)
    made = [Gathered(recurring([words[each.memory_id] for each in sources], lexicon), sources) for sources in groups]
    return [group for group in made if group.terms]


ACTOR = "consolidation"

_PERSON = "person"
"""The extractor recorded for a person's conclusions."""

_QUOTES = 2
"""Quotes taken from each source; its blocks lead to the rest."""


@dataclass
class Drafter:
    """Writes long-term memories, new or grown, from the conclusions of a model or a person."""

    archive: Archive
    concluder: Concluder | None
    agreed: Mapping[frozenset[str], Concluded]
    at: datetime
    failed: list[str] = field(default_factory=list, init=False)
    """The first memory of each group for which the model could not write a conclusion."""

    def draft(self, group: Gathered) -> Memory | None:
        """Return the memory that a group becomes, or None without a conclusion."""
        written = self.agreed.get(frozenset(group.ids()))
        by = _PERSON if written else self.concluder.name if self.concluder else ""
        written = written or self._ask(group)
        return None if written is None else self._written(group, written, by)

    def _written(self, group: Gathered, written: Concluded, by: str) -> Memory:
        sources, old = group.sources, group.joined
        whole = sources if old is None else [old, *sources]
        said, trust = sum(each.merges + 1 for each in whole), min(each.trust for each in whole)
        quotes = (item for source in sources for item in source.evidence[:_QUOTES])
        fields: dict[str, Any] = {
            "content": written.conclusion,
            "evidence": tuple(dict.fromkeys((*(old.evidence if old else ()), *quotes))),
            "block_ids": tuple(dict.fromkeys(block_id for each in whole for block_id in each.block_ids)),
            "importance": max(each.importance for each in whole),
            "trust": trust,
            "origin": derived(whole),
            "extractor": by,
            "merges": said - 1,
            "said_at": max(each.said_at for each in whole),
            "recorded_at": self.at,
        }
        if old is not None:
            before = _abstraction(old).evolve(conditions=written.conditions)
            abstraction = recounted(before, said=said, against=before.contradictions, trust=trust)
            fields |= {"summary": summary_of(written.conclusion), "payload": abstraction.within(old.payload)}
            return old.evolve(version=old.version + 1, **fields)
        sure = confidence(trust, said, 0)
        abstraction = Abstraction(
            conditions=written.conditions, confidence=sure, corroborations=said, terms=group.terms
        )
        first, tags = sources[0], Counter(tag for source in sources for tag in source.tags)
        return Memory(
            memory_id=operation_id("abstract", first.partition.to_json(), *sorted(each.memory_id for each in sources)),
            partition=first.partition,
            topic=first.topic,
            kind="semantic",
            category=Counter(source.category for source in sources).most_common(1)[0][0],
            payload=abstraction.within({}),
            layer="long_term",
            tags=tuple(sorted(tag for tag, count in tags.items() if count > 1)),
            language=language_of(written.conclusion),
            **fields,
        )

    def _ask(self, group: Gathered) -> Concluded | None:
        """Return the model's conclusion, or None if there is no model, or it fails, declines or has declined before."""
        if self.concluder is None:
            return None
        memories, sources = group.memories(), group.sources
        refusal = self._refusal(self.concluder.name, memories)
        if self.archive.committed(refusal.shelves[0].partition, refusal.operation_id):
            return None
        language = language_of("\n".join(source.content for source in sources))
        ids = list(dict.fromkeys(item.message_id for source in sources for item in source.evidence))
        heard = [message.text for message in self.archive.messages([sources[0].partition], ids=ids)]
        said = [*heard, *(source.content for source in sources)]
        try:
            written = self.concluder.conclude(memories, said, language)
        except (InvalidAnswerError, RequestRefusedError):
            self.failed.append(sources[0].memory_id)
            return None
        if written is None:
            self.archive.commit(refusal)
        return written

    def _refusal(self, by: str, memories: Sequence[Memory]) -> ChangeSet:
        """Return an empty change whose operation id records that this model declined, so it is not asked again."""
        shelf = Shelf(partition=memories[0].partition, topic=memories[0].topic)
        versions = sorted(f"{memory.memory_id} {memory.version}" for memory in memories)
        return ChangeSet(
            operation_id=operation_id("refuse", by, shelf.partition.to_json(), *versions),
            actor=ACTOR,
            recorded_at=self.at,
            at_home=True,
            shelves=(shelf,),
        )


def doubted(old: Memory, against: int, at: datetime) -> Memory:
    """Return the next version of a long-term memory that more memories contradict."""
    abstraction = recounted(_abstraction(old), said=old.merges + 1, against=against, trust=old.trust)
    return old.evolve(version=old.version + 1, payload=abstraction.within(old.payload), recorded_at=at)


def _abstraction(memory: Memory) -> Abstraction:
    found = Abstraction.of(memory)
    assert found is not None
    return found
