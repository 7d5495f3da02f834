"""Users never meet: through no verb, by no id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remegraph import MemoryKit, NotFoundError, Scope, Settings
from remegraph.models import Partition, Record
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.talk import ANN, NOON, called, open_kit, returned, said

STRANGERS = [
    Scope(user="bob", agent="remy"),
    Scope(user="ann"),
    Scope(user="ann", agent="other"),
    Scope(user="ann", agent="remy", tenant="other"),
    Scope(user="%", agent="%", tenant="%"),
    Scope(user="Ann", agent="remy"),
]
SECRET = "I love the hidden orchard."

READS: dict[str, Callable[[MemoryKit, Scope], tuple[Record, ...]]] = {
    "memories": lambda kit, scope: kit.memories(scope=scope),
    "topics": lambda kit, scope: kit.topics.list(scope=scope),
    "blocks": lambda kit, scope: kit.sources.blocks(scope=scope),
    "work": lambda kit, scope: kit.work.list(scope=scope, states=["pending", "done", "failed", "review"]),
    "tool_stats": lambda kit, scope: kit.tools.stats(scope=scope),
    "retrieve_message": lambda kit, scope: kit.sources.retrieve_message(scope=scope),
    "time_match_memories": lambda kit, scope: kit.sources.time_match_memories((NOON, NOON), scope=scope),
    "recall: memories": lambda kit, scope: kit.recall("hidden orchard", scope=scope).memories,
    "recall: blocks": lambda kit, scope: kit.recall("hidden orchard", scope=scope, depth="blocks").blocks,
    "recall: messages": lambda kit, scope: kit.recall("hidden orchard", scope=scope, depth="messages").messages,
    "recall: by topic": lambda kit, scope: kit.recall("orchard", scope=scope, topics=["personal:Ann"]).memories,
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """A ledger in which one user has told a secret, and all others have told something, too."""
    with open_kit(tmp_path_factory.mktemp("home")) as kit:
        told = [said(SECRET, message_id="1"), called("mail", "c"), returned("c", "sent", minutes=1)]
        kit.add_messages(told, scope=ANN)
        for scope in (ANN, *STRANGERS):
            kit.add_messages([said("I live in a city.", message_id="2", minutes=600)], scope=scope)
            kit.summarize(scope=scope, close=True)
        yield kit


@pytest.mark.requirement("X5")
@pytest.mark.parametrize("verb", READS)
def test_no_verb_shows_what_another_scope_told(shared: MemoryKit, verb: str) -> None:
    """One leaked sentence ends the trust in a memory for good."""
    read = READS[verb]
    assert read(shared, ANN)
    mine = ANN.partition()
    for stranger in STRANGERS:
        for record in read(shared, stranger):
            assert "orchard" not in record.to_json()
            assert getattr(record, "partition", None) != mine


@pytest.mark.requirement("X5")
@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda scope: scope.to_json())
def test_an_id_of_another_scope_is_not_found(shared: MemoryKit, stranger: Scope) -> None:
    """Ids turn up in logs and links; to know one must not open anything."""
    secret = next(memory for memory in shared.memories(scope=ANN) if "orchard" in memory.content)
    with pytest.raises(NotFoundError, match="ids of other users are never found"):
        shared.trace(secret.memory_id, scope=stranger)
    only_anns = "20250304_02"
    assert "city" in shared.sources.retrieve_block(only_anns, scope=ANN)[0].text
    with pytest.raises(NotFoundError):
        shared.sources.retrieve_block(only_anns, scope=stranger)
    assert "orchard" not in shared.sources.retrieve_block("20250304_01", scope=stranger)[0].text


@pytest.mark.requirement("X5")
def test_a_label_means_the_own_block_and_any_other_is_named_by_its_partition(shared: MemoryKit) -> None:
    """Labels repeat from partition to partition: whoever follows one must read the right conversation."""
    inside, label = ANN.evolve(project="p"), "20250304_01"
    shared.add_messages([said("I plan a garden.", message_id="3", minutes=700)], scope=inside)
    shared.summarize(scope=inside, close=True)

    assert "garden" in shared.sources.retrieve_block(label, scope=inside)[0].text
    assert "orchard" in shared.sources.retrieve_block(label, scope=inside, partition=ANN.partition())[0].text
    with pytest.raises(NotFoundError):
        shared.sources.retrieve_block(label, scope=inside, partition=STRANGERS[0].partition())


@pytest.mark.requirement("X5", "G8")
def test_a_project_is_seen_from_inside_only(tmp_path: Path) -> None:
    """What is said in no project is known in each; what is said in one stays in it."""
    inside, other = ANN.evolve(project="p"), ANN.evolve(project="q")
    with open_kit(tmp_path) as kit:
        kit.add_messages([said("I love tea.")], scope=ANN)
        kit.add_messages([said(SECRET)], scope=inside)
        for scope in (ANN, inside):
            kit.summarize(scope=scope, close=True)

        def known(scope: Scope) -> set[str]:
            return {memory.content for memory in kit.memories(scope=scope)}

        assert known(inside) == {"Ann: I love tea.", f"Ann: {SECRET}"}
        assert known(ANN) == known(other) == {"Ann: I love tea."}


@pytest.mark.requirement("X5", "R1")
def test_the_same_message_id_is_another_message_in_another_scope(tmp_path: Path) -> None:
    """Ids of a host are unique in its own conversation, and tell nothing of another user's."""
    with open_kit(tmp_path) as kit:
        for number, scope in enumerate((ANN, *STRANGERS)):
            receipt = kit.add_messages([said(f"Text {number}.", message_id="1")], scope=scope)
            assert receipt.added == 1
        assert [message.text for message in kit.sources.retrieve_message(scope=STRANGERS[0])] == ["Text 1."]


@pytest.mark.requirement("X5")
def test_users_of_a_team_share_what_is_learned_and_not_what_was_said(tmp_path: Path) -> None:
    """A support team's agent learns for all of them; the conversation itself stays with who had it."""
    settings = Settings(home=tmp_path, trust_boundary="agent")
    bob, outsider = STRANGERS[0], STRANGERS[2]
    with MemoryKit.open(
        settings=settings, model=None, embedder=None, index=InMemoryVectorIndex(), clock=FrozenClock(NOON)
    ) as kit:
        kit.add_messages([said(SECRET)], scope=ANN)
        kit.summarize(scope=ANN, close=True)

        recall = kit.recall("hidden orchard", scope=bob, depth="messages")
        assert [hit.text for hit in recall.memories] == [f"Ann: {SECRET}"]
        assert (recall.blocks, recall.messages) == ((), ())
        assert kit.sources.retrieve_message(scope=bob) == ()
        assert kit.sources.blocks(scope=bob) == ()
        trace = kit.trace(recall.memories[0].record_id, scope=bob)
        assert (trace.quotes, trace.messages, trace.blocks) == ((), (), ())
        assert len(trace.missing) == 2
        assert kit.trace(recall.memories[0].record_id, scope=ANN).quotes[0].words == SECRET
        assert kit.recall("hidden orchard", scope=outsider, depth="messages").memories == ()
        assert kit.admin.verify().healthy


@pytest.mark.requirement("X5")
def test_what_an_agent_is_told_of_itself_is_that_agents_alone(tmp_path: Path) -> None:
    """Each of its users meets the same agent; no other agent and no other tenant takes its words for its own."""
    with open_kit(tmp_path) as kit:
        memory = kit.remember_self("I answer in verse.", scope=ANN.evolve(project="atlas"))
        assert memory.partition == Partition(tenant=ANN.tenant, agent=ANN.agent)
        trace = kit.trace(memory.memory_id, scope=ANN)
        assert {message.partition for message in trace.messages} == {memory.partition}
        assert {block.partition for block in trace.blocks} == {memory.partition}
        for scope in (ANN, *STRANGERS):
            its_own = (scope.tenant, scope.agent) == (ANN.tenant, ANN.agent)
            assert kit.recall("verse", scope=scope).self_memories == ((memory,) if its_own else ())


@pytest.mark.requirement("X5")
def test_where_no_agent_is_named_nobody_is_a_team(tmp_path: Path) -> None:
    """What a user tells without naming an agent would be told to all users of all agents of the tenant."""
    settings = Settings(home=tmp_path, trust_boundary="agent")
    ann, bob = Scope(user="ann"), Scope(user="bob")
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        kit.save("secret", SECRET, scope=ann)
        assert [hit.text for hit in kit.recall("hidden orchard", scope=ann).memories] == [SECRET]
        for stranger in (bob, *STRANGERS[:1]):
            assert kit.recall("hidden orchard", scope=stranger).memories == ()
