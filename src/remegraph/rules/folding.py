"""Which memories of one library are one memory, and what it is once they are folded together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence

from remegraph.models import Memory
from remegraph.rules.duplicates import content_digest
from remegraph.rules.merging import joined
from remegraph.rules.origins import derived
from remegraph.rules.slots import canonical

__all__ = ["folded_together", "twins"]


def twins(memories: Iterable[Memory]) -> Iterator[tuple[Memory, Sequence[Memory]]]:
    """Yield each memory that others of its topic repeat, with those: the same words, or the same value of one slot.

    The one to keep is the most important, then the one said most often, then the oldest. Left alone are skills,
    knowledge, policies, and what is in dispute: there the copies matter.

    Args:
        memories: Live ones of one library.
    """
    groups: defaultdict[Hashable, list[Memory]] = defaultdict(list)
    for memory in memories:
        if memory.status != "disputed" and not memory.firm and memory.layer != "procedural":
            slot = (memory.canonical_topic, canonical(memory.slot_value))
            says = slot if all(slot) else content_digest(memory.content)
            period = (memory.valid_from, memory.valid_to)
            groups[memory.topic.type, memory.topic.target, memory.perspective, period, says].append(memory)
    for group in groups.values():
        kept, *others = sorted(group, key=_rank)
        if others:
            yield kept, others


def _rank(memory: Memory) -> tuple[float, int, float, str]:
    return (-memory.importance, -memory.merges, memory.recorded_at.timestamp(), memory.memory_id)


def folded_together(kept: Memory, others: Sequence[Memory]) -> Memory:
    """Return the next version of a memory, with all that the others say and rest on.

    It is no more often said for that: whether the copies come of several witnesses, nobody knows.

    Args:
        kept: The one that stays.
        others: Those that it stands for.
    """
    content, all_of_them = kept.content, (kept, *others)
    for other in others:
        content = joined(content, other.content)
    return kept.evolve(
        version=kept.version + 1,
        content=content,
        when_to_use=kept.when_to_use.replace(kept.content, content),
        evidence=tuple(dict.fromkeys(item for each in all_of_them for item in each.evidence)),
        block_ids=tuple(dict.fromkeys(block_id for each in all_of_them for block_id in each.block_ids)),
        tags=tuple(dict.fromkeys(tag for each in all_of_them for tag in each.tags)),
        supersedes=tuple(dict.fromkeys((*kept.supersedes, *(other.memory_id for other in others)))),
        layer="long_term" if any(each.layer == "long_term" for each in all_of_them) else kept.layer,
        status="active" if any(each.status == "active" for each in all_of_them) else kept.status,
        trust=min(each.trust for each in all_of_them),
        origin=derived(all_of_them),
        said_at=max(each.said_at for each in all_of_them),
    )
