"""What other agents give: how far it is believed, and how much of an answer one of them may make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph import SharingPolicy
from remegraph.engine.frame import shown_records
from remegraph.engine.retrieval.context import assemble, believed, fair, source_of
from remegraph.models import Hit, Origin, Partition
from remegraph.text.tokens import estimate_tokens
from tests.talk import NOON

SOURCES = ("", "bob", "cy", "dot")


def hit(number: int, agent: str, text: str = "tea") -> Hit:
    """A memory, the agent's own or another's."""
    origin = Origin(via="granted", agents=(agent,), at=NOON) if agent else None
    place = Partition(tenant="t", user="ann", agent=agent or "remy")
    return Hit(
        kind="memory",
        record_id=f"m{number}",
        partition=place,
        text=f"{number} {text}",
        score=1,
        time=NOON,
        origin=origin,
    )


@pytest.mark.requirement("B11", "X6")
@given(
    agents=st.lists(st.sampled_from(SOURCES), max_size=30),
    k=st.integers(1, 12),
    share=st.floats(0.05, 1),
)
def test_one_source_makes_at_most_its_share_and_what_is_own_is_never_left_out(
    agents: list[str], k: int, share: float
) -> None:
    """Whoever gives much must not crowd out what the agent knows itself, nor be silenced where nobody else speaks."""
    hits = [hit(number, agent) for number, agent in enumerate(agents)]
    kept, gone = fair(hits, k, share, "remy")
    told = [source_of(each.origin, "remy") for each in kept]
    for source in set(told) - {""}:
        assert told.count(source) <= share * len(kept) or len(kept) == 1
    own = [each for each in hits if each.origin is None]
    assert [each for each in kept if each.origin is None] == own[: len(kept)][: told.count("")]
    assert not [each for each in gone if each.origin is None]
    assert bool(kept) == bool(hits)
    assert kept == sorted(kept, key=hits.index)
    assert {each.record_id for each in kept}.isdisjoint(each.record_id for each in gone)
    left = [each for each in hits if each not in gone]
    assert kept == left[:k]


@pytest.mark.requirement("X6")
@pytest.mark.parametrize(
    ("origin", "source"),
    [
        (None, ""),
        (Origin(via="granted", agents=("bob",), at=NOON), "agent bob"),
        (Origin(via="absorbed", agents=("bob", "cy"), at=NOON), "agent bob"),
        (Origin(via="absorbed", agents=("bob", "remy"), at=NOON), ""),
        (Origin(via="pack", agents=("bob",), pack_id="p1", at=NOON), "pack p1"),
        (Origin(via="absorbed", claimed="bob", at=NOON), "agent bob"),
        (Origin(via="absorbed", at=NOON), "agent anybody"),
        (Origin(via="consensus", agents=("bob",), at=NOON), "agent bob"),
        (Origin(via="consensus", agents=("bob", "cy"), at=NOON), ""),
    ],
)
def test_what_one_other_agent_or_pack_alone_bears_out_is_theirs(origin: Origin | None, source: str) -> None:
    """What several agents agreed on is nobody's alone, and what the reader bears out itself is its own."""
    assert source_of(origin, "remy") == source


@pytest.mark.requirement("X6")
def test_another_agent_is_believed_no_further_than_itself_and_its_name() -> None:
    """A stranger's certainty is not the reader's."""
    policy = SharingPolicy(trust={"bob": 0.8}, default_trust=0.3)
    assert believed(0.9, "bob", policy) == 0.8
    assert believed(0.6, "bob", policy) == 0.6
    assert believed(0.9, "cy", policy) == 0.3


@pytest.mark.requirement("X6")
@given(
    agents=st.lists(st.sampled_from(SOURCES), max_size=20),
    words=st.lists(st.integers(1, 40), min_size=20, max_size=20),
    share=st.floats(0.05, 1),
)
def test_one_source_takes_at_most_its_share_of_the_contexts_tokens(
    agents: list[str], words: list[int], share: float
) -> None:
    """Few but long memories of another agent must not fill the context either."""
    budget = 600
    hits = [hit(number, agent, "tea " * words[number]) for number, agent in enumerate(agents)]
    context = assemble(hits, budget, estimate_tokens, share=share, reader="remy")
    lines = [line for line in context.text.split("\n")[1:-1] if line.startswith("[")]
    sources = [each.get("from") for each in shown_records(context.text)]
    for source in {*sources} - {None}:
        its = [at for at, each in enumerate(sources) if each == source]
        spent = sum(estimate_tokens(lines[at]) + 1 for at in its)
        assert spent <= share * budget or its == [0]
    assert bool(lines) == bool(hits)
    assert "cap" not in {context.left_out.get(each.record_id) for each in hits if each.origin is None}
