"""Which episodes of a topic are alike enough to ask whether they make a long-term memory, or belong to one that is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from remegraph.models import Abstraction, Memory
from remegraph.rules.clustering import clusters
from remegraph.rules.slots import relation
from remegraph.rules.standing import QUARANTINE_BELOW
from remegraph.rules.terms import Lexicon, recurring
from remegraph.settings import LifecyclePolicy

if TYPE_CHECKING:
    from remegraph.ports.index import Vectors

__all__ = ["Gathered", "gather", "may_be_mixed"]


def may_be_mixed(memory: Memory) -> bool:
    """Return whether a memory may be put together with others: no knowledge, no rule, nothing disputed or doubtful."""
    return (
        not memory.firm
        and not memory.is_core
        and memory.status in {"active", "low_priority"}
        and memory.trust >= QUARANTINE_BELOW
    )


@dataclass(slots=True)
class Gathered:
    """Episodes that may belong together, and the long-term memory that they may join, if there is one."""

    terms: tuple[str, ...]
    sources: list[Memory] = field(default_factory=list)
    joined: Memory | None = None

    def memories(self) -> Sequence[Memory]:
        """Return all that it is made from."""
        return self.sources if self.joined is None else [*self.sources, self.joined]

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
    """Return which episodes of one topic are alike; those that fit nowhere are left as they are.

    It goes on until nothing fits any more, so that a run that was followed in everything finds nothing to do.

    Args:
        free: Episodes that no long-term memory was made of.
        known: Long-term memories that were abstracted.
        lexicon: The words of the topic.
        policy: How alike episodes must be, and how many.
        vectors: What the episodes mean, by id; empty where words alone count.
    """
    left = sorted(free, key=lambda each: (each.said_at, each.memory_id))
    words = {memory.memory_id: lexicon.words(memory.content) for memory in left}
    groups = [_known(memory) for memory in sorted(known, key=lambda each: each.memory_id)]
    while True:
        before = len(left)
        left = [each for each in left if not _join(each, words[each.memory_id], groups, lexicon, policy)]
        made = _made(left, words, lexicon, policy, vectors)
        taken = {memory.memory_id for group in made for memory in group.sources}
        left = [each for each in left if each.memory_id not in taken]
        groups += made
        if len(left) == before:
            return [group for group in groups if group.sources]


def _known(memory: Memory) -> Gathered:
    abstraction = Abstraction.of(memory)
    assert abstraction is not None  # only such memories are known here
    return Gathered(abstraction.terms, joined=memory)


def _join(
    memory: Memory, words: frozenset[str], groups: Sequence[Gathered], lexicon: Lexicon, policy: LifecyclePolicy
) -> bool:
    def fits(group: Gathered) -> float:
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
        return relation(left[one], left[other], one_source=False) == "disputes"

    def near(one: int, other: int) -> float | None:
        first, second = (vectors.get(left[number].memory_id) for number in (one, other))
        return None if first is None or second is None else float(first @ second)

    said = [words[memory.memory_id] for memory in left]
    found = clusters(
        said, lexicon, threshold=policy.cluster_likeness, least=policy.cluster_size, apart=apart, near=near
    )
    groups = ([left[number] for number in group] for group in found)
    made = [Gathered(recurring([words[each.memory_id] for each in sources], lexicon), sources) for sources in groups]
    return [group for group in made if group.terms]
