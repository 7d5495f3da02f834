"""Rows of one tenant are never found by another, whatever either writes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remegraph.errors import ConflictError, InputError, NotFoundError
from remegraph.models import Link, Partition, Scope, Shelf, Topic, visible
from remegraph.text.tokens import query_tokens, tokenize
from tests.ledger.conftest import ANN, BOB, Ledger, create, following

pytestmark = pytest.mark.requirement("X5")

HOSTILE = [
    "a",
    "a%",
    "a_",
    "ab",
    "A",
    "a'; DROP TABLE messages; --",
    '"a" OR "b"',
    "%",
    "*",
    "null",
    '["t",null]',
    "_1_message",
    "p1message",
    "NEAR(a b)",
    "a\\",
]
PLACES = [Partition(tenant=tenant, user=user) for tenant in ("t", "t%") for user in HOSTILE]
PLACES += [Partition(tenant="t"), Partition(tenant="t", agent="a"), Partition(tenant="t", user="a", agent="a")]


def test_hostile_names_and_words_never_leak(ledger: Ledger) -> None:
    """Names are compared, never parsed: a user called `%` reads her own rows, and no operator reads another's."""
    for number, place in enumerate(PLACES):
        ledger.say(place, f"{place.user} secret{number} shared", *HOSTILE)
    for number, place in enumerate(PLACES):
        mine = ledger.archive.messages([place])
        assert len(mine) == len(HOSTILE) + 1
        assert {message.partition for message in mine} == {place}
        ids = {message.message_id for message in mine}
        words = (*HOSTILE, "shared", *(f"secret{other}" for other in range(len(PLACES))))
        tokens = [token for word in words for token in (*tokenize(word), *query_tokens(word), word)]
        assert ledger.found(place, "message", *tokens) <= ids
        assert len(ledger.found(place, "message", "share")) == 1
        assert ledger.found(place, "message", f"secret{(number + 1) % len(PLACES)}") == set()
        assert ledger.archive.messages([place], key_word=f"secret{(number + 1) % len(PLACES)} shared") == ()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places=st.lists(st.sampled_from(PLACES), min_size=1, max_size=6), scope=st.sampled_from(PLACES))
def test_visible_is_what_the_rule_says(ledger: Ledger, places: list[Partition], scope: Partition) -> None:
    """SQL and the rule in `models` must agree on who may read what."""
    for place in places:
        ledger.say(place, "hello")
    caller = Scope(tenant=scope.tenant, user=scope.user or "a", agent=scope.agent, project=scope.project)
    assert ledger.archive.visible(caller) == visible(caller, ledger.archive.partitions())


def test_statistics_are_untouched_by_other_tenants(ledger: Ledger) -> None:
    """Ranking must not shift, and nothing be learned, when a neighbour writes much."""
    ledger.say(ANN, "tea is good")
    before = _statistics(ledger)
    ledger.say(BOB, *["tea"] * 50)
    assert _statistics(ledger) == before


def _statistics(ledger: Ledger) -> tuple[object, ...]:
    (found,) = ledger.archive.match([ANN], "message", ["tea"])
    columns = (found.seqs, found.lengths, found.counts)
    return tuple(found.record_ids), found.total, found.total_length, *(column.tolist() for column in columns)


def test_no_id_resolves_elsewhere(ledger: Ledger) -> None:
    """A leaked id opens nothing: every read names its partitions."""
    memory = ledger.learn()
    block_id, message_id = memory.block_ids[0], memory.evidence[0].message_id
    archive = ledger.archive
    ledger.say(BOB, "hello")
    for elsewhere in ([BOB], [Partition(tenant="t")], [Partition(tenant="u", user="ann")], []):
        assert archive.messages(elsewhere, ids=[message_id]) == ()
        assert archive.blocks(elsewhere, ids=[block_id], message_ids=[message_id]) == ()
        assert archive.memories(elsewhere, ids=[memory.memory_id]) == ()
        assert archive.memories(elsewhere, block_ids=[block_id]) == ()
        assert archive.shelved(elsewhere, [memory.memory_id]) == {}
        assert archive.versions(elsewhere, memory.memory_id) == ()
        assert archive.links(elsewhere, [memory.memory_id]) == ()
        assert archive.events(elsewhere, record_id=memory.memory_id) == ()
        assert archive.topics(elsewhere) == ()
        assert archive.tool_stats(elsewhere) == ()
        assert archive.work(elsewhere, states=["pending"]) == ()


def test_memories_are_grouped_by_the_topic_that_they_stand_on(ledger: Ledger) -> None:
    """Recall sends each topic its own candidates, and no other's."""
    tea, chess, theirs = ledger.learn(), ledger.learn("Ann likes chess."), ledger.learn(partition=BOB)
    other = ledger.memory("Ann uses a calculator.").evolve(topic=Topic(type="tool", target_name="calculator"))
    ledger.commit(create(other))
    ids = [each.memory_id for each in (tea, chess, theirs, other)]
    assert ledger.archive.shelved([ANN], [*ids, "unknown"]) == {
        Shelf(partition=ANN, topic=tea.topic): {tea.memory_id, chess.memory_id},
        Shelf(partition=ANN, topic=other.topic): {other.memory_id},
    }


def test_nobody_elses_words_are_evidence(ledger: Ledger) -> None:
    """A memory about Bob cannot be built on what Ann said, even where the id is known."""
    foreign = ledger.memory()
    with pytest.raises(NotFoundError):
        ledger.commit(create(foreign.evolve(partition=BOB)))
    with pytest.raises(NotFoundError):
        ledger.commit(create(foreign.evolve(partition=BOB, evidence=())))
    assert ledger.archive.partitions() == (ANN,)


def test_a_shared_memory_stands_on_the_words_of_those_who_share_it(ledger: Ledger) -> None:
    """What a team knows is traced to what its members said, each in his own place."""
    ledger.block(BOB, "Berlin is cold.")  # a block with the same label as Ann's
    memory = ledger.memory().evolve(partition=Partition(tenant="t"))
    ledger.commit(create(memory))
    assert ledger.archive.memories([memory.partition, ANN], block_ids=memory.block_ids) == (ledger.head(memory),)
    assert ledger.archive.memories([memory.partition, BOB], block_ids=memory.block_ids) == ()


def test_a_memory_of_somebody_else_cannot_be_changed(ledger: Ledger) -> None:
    """Neither taken over, nor replaced under its id, nor linked to, nor superseded."""
    theirs, mine = ledger.learn(), ledger.learn("Bob likes tea.", partition=BOB)
    stolen = mine.evolve(memory_id=theirs.memory_id)
    with pytest.raises(NotFoundError):
        ledger.commit(following(stolen))
    with pytest.raises(ConflictError):
        ledger.commit(create(stolen))
    link = Link(source_id=mine.memory_id, type="related", target_id=theirs.memory_id)
    with pytest.raises(NotFoundError):
        ledger.archive.commit(ledger.set_of(following(mine)).evolve(links=(link,)))
    with pytest.raises(NotFoundError):
        ledger.commit(following(mine, supersedes=(theirs.memory_id,)))
    assert ledger.head(theirs) == theirs
    assert ledger.head(mine) == mine


def test_one_change_set_is_of_one_tenant(ledger: Ledger) -> None:
    """Tenants never meet, not even in one transaction."""
    other = ledger.memory(partition=Partition(tenant="u", user="ann"))
    with pytest.raises(InputError, match="tenant"):
        ledger.commit(create(ledger.memory()), create(other))


def test_the_same_operation_id_elsewhere_is_another_operation(ledger: Ledger) -> None:
    """Nobody can block or read another's commit by guessing its name."""
    first = ledger.commit(create(ledger.memory()), operation_id="op")
    second = ledger.commit(create(ledger.memory("Bob likes tea.", partition=BOB)), operation_id="op")
    assert (first.replayed, second.replayed) == (False, False)
    assert first.memory_ids != second.memory_ids


def test_links_to_what_one_may_not_see_are_not_shown(ledger: Ledger) -> None:
    """A link from the team's memory to Ann's does not tell Bob that Ann's exists."""
    team = Partition(tenant="t")
    source = ledger.memory("Tea is popular.").evolve(partition=team)
    target = ledger.learn()
    link = Link(source_id=source.memory_id, type="derived_from", target_id=target.memory_id)
    ledger.archive.commit(ledger.set_of(create(source)).evolve(links=(link,)))
    assert ledger.archive.links([team, ANN], [source.memory_id]) == (link,)
    assert ledger.archive.links([team, BOB], [source.memory_id]) == ()
