"""Which episodes of a topic become a long-term memory, and which join one that is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from remegraph.models import Abstraction, Claim, Memory
from remegraph.rules.abstracting import agreed
from remegraph.rules.claims import conflicting
from remegraph.rules.clustering import clusters
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
    """Episodes that belong together, and the long-term memory that they join, if there is one."""

    terms: tuple[str, ...]
    claims: tuple[Claim, ...]
    sources: list[Memory] = field(default_factory=list)
    joined: Memory | None = None

    def memories(self) -> Sequence[Memory]:
        """Return all that it is made from."""
        return self.sources if self.joined is None else [*self.sources, self.joined]

    def welcomes(self, memory: Memory, words: frozenset[str], lexicon: Lexicon) -> float:
        """Return how well an episode fits, 0 to 1; not at all where it says the contrary."""
        if conflicting(self.claims, memory.claims):
            return 0.0
        return lexicon.likeness(frozenset(self.terms), words)


def gather(
    free: Sequence[Memory],
    known: Sequence[Memory],
    lexicon: Lexicon,
    policy: LifecyclePolicy,
    vectors: Mapping[str, Vectors],
) -> list[Gathered]:
    """Return what becomes of the episodes of one topic; those that fit nowhere are left as they are.

    It goes on until nothing fits any more, so that a second run finds nothing to do.

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
    return Gathered(abstraction.terms, abstraction.claims, joined=memory)


def _join(
    memory: Memory, words: frozenset[str], groups: Sequence[Gathered], lexicon: Lexicon, policy: LifecyclePolicy
) -> bool:
    best = max(groups, key=lambda group: group.welcomes(memory, words, lexicon), default=None)
    if best is None or best.welcomes(memory, words, lexicon) < policy.cluster_likeness:
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
        return conflicting(left[one].claims, left[other].claims)

    def near(one: int, other: int) -> float | None:
        first, second = (vectors.get(left[number].memory_id) for number in (one, other))
        return None if first is None or second is None else float(first @ second)

    said = [words[memory.memory_id] for memory in left]
    found = clusters(
        said, lexicon, threshold=policy.cluster_likeness, least=policy.cluster_size, apart=apart, near=near
    )
    result: list[Gathered] = []
    for group in found:
        claims = agreed([left[number] for number in group])
        sources = [left[number] for number in group if not conflicting(claims, left[number].claims)]
        terms = recurring([words[memory.memory_id] for memory in sources], lexicon)
        if terms and len(sources) >= policy.cluster_size:
            result.append(Gathered(terms, claims, sources))
    return result
