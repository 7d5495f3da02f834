"""Sharing between agents: what one may give another and how far it is believed, and what all agree on (B11, B12, B13, X6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from remegraph.models import GRANTABLE, Endorsement, Hit, Layer, Memory, Origin, Partition, ProposalState
from remegraph.models.identity import same
from remegraph.models.procedures import is_skill, read_workflow, same_procedure
from remegraph.models.standing import QUARANTINE_BELOW
from remegraph.settings import SharingPolicy

__all__ = [
    "WITNESSES",
    "believed",
    "borne_out",
    "doubt",
    "excess",
    "fair",
    "is_shared",
    "says",
    "source_of",
    "standing",
    "state_of",
    "unfit",
    "ungrantable",
    "untouched",
]


def ungrantable(memory: Memory, layers: Sequence[Layer]) -> str | None:
    """Return why a memory cannot be read through a grant of these layers; nothing where it can."""
    if memory.topic.type == "self":
        return "is what the agent knows of itself, and that is nobody else's"
    if not memory.live:
        return f"is {memory.status}, and only live memories are read through a grant"
    if memory.layer not in layers:
        named = f"only {', '.join(layers)} {'is' if len(layers) == 1 else 'are'} granted"
        return f"is of layer {memory.layer}, and {named if memory.layer in GRANTABLE else 'that is never shared'}"
    return None


def believed(trust: float, source: str, policy: SharingPolicy) -> float:
    """Return how far something is believed that another agent gave: no further than itself, nor than its source.

    `source` is the name of an agent, or the key of a pack.
    """
    return min(trust, policy.trust.get(source, policy.default_trust))


def source_of(origin: Origin | None, reader: str | None) -> str:
    """Return the other agent, or the pack, that alone stands behind a memory; empty: it is the reader's own, or agreed on.

    Where nothing proves from whom it is, the agent that it is said to be from counts.
    """
    if origin is None or reader in origin.agents:
        return ""
    if origin.via == "pack":
        return f"pack {origin.pack_id}"
    agreed = origin.via == "consensus" and len(origin.agents) > 1
    first = next((name for name in (*origin.agents, origin.claimed) if name), "anybody")
    return "" if agreed else f"agent {first}"


def fair(hits: Sequence[Hit], k: int, share: float, reader: str | None) -> tuple[list[Hit], list[Hit]]:
    """Return the best k hits of which no other source makes more than its share, and those that made way for it.

    What made way is followed by the next best. What is the reader's own never makes way, nor does what stands alone.
    """
    left = [(source_of(hit.origin, reader), hit) for hit in hits]
    gone: list[Hit] = []
    while (place := excess([source for source, _ in left[:k]], share)) is not None:
        gone.append(left.pop(place)[1])
    return [hit for _, hit in left[:k]], gone


def excess(sources: Sequence[str], share: float) -> int | None:
    """Return the place of the last thing of the source that has most over its share; nothing where none has.

    Sources come best first; an empty one is no other source.
    """
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, source in enumerate(sources):
        if source:
            places[source].append(place)
    most = max(places.values(), key=len, default=[])
    over = len(most) > share * len(sources) and len(sources) > 1
    return most[-1] if over else None


WITNESSES = frozenset({"propose", "corroborate"})
"""The acts by which an agent stands for what it knows itself."""

_OWN = frozenset({
    "memory_id", "version", "partition", "status", "importance", "resident", "summary", "evidence", "block_ids", "trust",
    "origin", "merges", "supersedes", "said_at", "recorded_at", "language", "source", "extractor", "prompt",
})  # fmt: skip
"""What may differ between memories that say one thing."""

_SHELVED = frozenset({"active", "disputed", "low_priority", "archived"})
"""Among these, time and open contradictions move what is agreed on; neither is the word of an agent."""


def is_shared(partition: Partition) -> bool:
    """Return whether what lives here belongs to all agents of a user, and to none of them."""
    return partition.agent is None and partition.user is not None


def says(memory: Memory) -> dict[str, object]:
    """Return what a memory says, wherever it lives and whoever bears it out."""
    return memory.model_dump(exclude=set(_OWN))


def untouched(before: Memory, after: Memory) -> bool:
    """Return whether a version only moves with time, or into a dispute and out of it: it says and cites the same."""
    if after.status in {"purged", "erased"}:
        return True
    moved = {"status", "version", "summary", "recorded_at"} | ({"importance"} if after.status == "disputed" else set())
    kept = before.model_dump(exclude=moved) == after.model_dump(exclude=moved)
    return kept and {before.status, after.status} <= _SHELVED


def unfit(memory: Memory, runs: int) -> tuple[str, str] | None:
    """Return why a memory cannot be proposed, with the cure; nothing where it can."""
    return next((why for applies, why in _misfits(memory, runs) if applies), None)


def _misfits(memory: Memory, runs: int) -> tuple[tuple[bool, tuple[str, str]], ...]:
    waits = memory.status in {"quarantined", "proposed"}
    told = memory.memory_class == "policy" or memory.is_core
    better = "Propose long-term memories and skills; episodes are shared by grant, or once they are consolidated."
    return (
        (waits, (f"is {memory.status}", "It must be approved first.")),
        (not memory.live, (f"is {memory.status}", "Propose a live memory.")),
        (memory.topic.type == "self", ("is about the agent itself", "State it with remember_self for each agent.")),
        (memory.layer not in {"long_term", "procedural"}, (f"is {memory.layer}", better)),
        (memory.layer == "procedural" and not runs, ("was never carried out", "Report how a run of it went first.")),
        (told, ("is a policy or a core rule", "A person states it, under a scope without an agent.")),
        (memory.origin is not None, ("came from elsewhere", "Whoever knows it from evidence of its own proposes it.")),
        (memory.trust < QUARANTINE_BELOW, (f"is trusted {memory.trust:g} only", "It needs better evidence.")),
    )


def doubt(mine: Memory, proposed: Memory) -> str:
    """Return why a memory does not bear a proposal out; nothing where it does.

    `mine` is of another agent than those that bear the proposal out already, whose evidence the proposal has.
    """
    if not mine.live:
        return f"is {mine.status}"
    if mine.trust < QUARANTINE_BELOW:
        return f"is trusted {mine.trust:g} only"
    if mine.origin is not None:
        return "came from another agent or a pack"
    if not mine.evidence:
        return "has no evidence"
    if {each.message_id for each in mine.evidence} & {each.message_id for each in proposed.evidence}:
        return "stands on the same messages"
    return "" if _agree(mine, proposed) else "does not say the same"


def _agree(mine: Memory, proposed: Memory) -> bool:
    if is_skill(mine) or is_skill(proposed):
        return is_skill(mine) and is_skill(proposed) and same_procedure(read_workflow(mine), read_workflow(proposed))
    return same(mine, proposed)


def standing(proposed: Memory, words: Sequence[Endorsement], heads: Mapping[str, Memory]) -> frozenset[str]:
    """Return the memories, by id, that bear a proposal out still: what its author says, and what others hold true.

    `words` begin with the author's.
    """
    live = {name for name, memory in heads.items() if memory.live}
    author = heads.get(words[0].memory_id)
    return frozenset(live if author and says(author) == says(proposed) else live - {words[0].memory_id})


def borne_out(endorsements: Collection[Endorsement], upheld: Collection[str], quorum: int) -> bool:
    """Return whether a proposal is agreed on.

    `upheld` is what `standing` returned.
    """
    if any(each.act in {"reject", "withdraw"} for each in endorsements):
        return False
    witnesses = [each for each in endorsements if each.act in WITNESSES]
    if not any(each.act == "propose" and each.memory_id in upheld for each in witnesses):
        return False
    agents = {each.by for each in witnesses if each.memory_id in upheld}
    return len(agents) >= quorum or any(each.act == "approve" for each in endorsements)


def state_of(memory: Memory, endorsements: Iterable[Endorsement], source: Memory | None) -> ProposalState:
    """Return what became of a proposal.

    `source` is the author's own memory as it is now.
    """
    acts = {each.act for each in endorsements}
    if "withdraw" in acts:
        return "withdrawn"
    if "reject" in acts:
        return "rejected"
    if memory.status != "proposed":
        return "agreed"
    return "open" if source is not None and source.live and says(source) == says(memory) else "stale"
