"""From whom a memory comes that is made of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import cast

import pytest

from remegraph.ledger.archive import Archive
from remegraph.models import Evidence, Memory, Origin, Partition, Topic
from remegraph.models.supersession import derived, folded_together
from remegraph.ports import Concluded
from remegraph.retention.conclusions import Drafter, Gathered, Lexicon
from tests.talk import NOON

pytestmark = pytest.mark.requirement("K8", "X6")

HOME = Partition(tenant="t", user="ann", agent="bee")


def memory(name: str, trust: float = 1.0, *agents: str, **fields: object) -> Memory:
    """A memory, absorbed from these agents, or one's own."""
    origin = Origin(via="absorbed", agents=agents, knowledge_id=name, at=NOON) if agents else None
    return Memory.model_validate(
        {
            "memory_id": name,
            "partition": HOME,
            "topic": Topic(type="task", target_name="shop"),
            "content": f"The shop opens at {name}.",
            "evidence": (Evidence(message_id=name, quote="words", block_id="20250304_01"),),
            "block_ids": ("20250304_01",),
            "trust": trust,
            "origin": origin,
            "said_at": NOON,
            "recorded_at": NOON,
            **fields,
        }
    )


OWN, SCOUT, CLERK = memory("9"), memory("8", 0.9, "scout"), memory("7", 0.7, "clerk", "scout")


def drafted(sources: Sequence[Memory], joined: Memory | None = None) -> Memory:
    """What similar memories become, or one that they join."""
    terms = tuple(sorted(Lexicon([OWN.content, "Ann jogs."], []).words(OWN.content)))
    group = Gathered(terms=terms, sources=list(sources), joined=joined)
    agreed = {frozenset(group.ids()): Concluded("Ann jogs often.", ("on Sundays",))}
    made = Drafter(cast("Archive", None), None, agreed, NOON).draft(group)  # a person concludes: nothing is read
    assert made is not None
    return made


def test_all_agents_stand_behind_it_the_first_one_first_and_ones_own_have_none() -> None:
    """Whom to ask, and whose word it rests on, must survive every merge."""
    assert derived([OWN, OWN]) is None
    later = SCOUT.evolve(origin=Origin(via="pack", pack_id="p", agents=("ant",), at=NOON + timedelta(days=1)))
    found = derived([OWN, CLERK, SCOUT, later])
    assert found is not None
    assert (found.via, found.agents, found.knowledge_id) == ("absorbed", ("clerk", "scout", "ant"), "7")
    assert found.at == NOON + timedelta(days=1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: drafted([OWN, SCOUT, CLERK]),
        lambda: drafted([SCOUT, CLERK], joined=drafted([OWN, OWN])),
        lambda: folded_together(OWN, [SCOUT, CLERK]),
    ],
    ids=["abstracted", "grown", "folded"],
)
def test_what_is_made_of_anothers_memories_says_so_and_is_believed_no_more_than_the_least(
    make: Callable[[], Memory],
) -> None:
    """Poison would else be washed clean by being summed up."""
    made = make()
    assert made.origin is not None
    assert set(made.origin.agents) == {"scout", "clerk"}
    assert made.trust == 0.7
