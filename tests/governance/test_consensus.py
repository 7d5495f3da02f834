"""What all agents of a user know is the word of several of them, or of a person: never of one alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any, cast

import pytest

from remegraph import (
    ConflictError,
    InputError,
    MemoryKit,
    NotFoundError,
    RecallFilter,
    Scope,
    ScopeError,
    Settings,
    SharingPolicy,
)
from remegraph.adapters import memory_tools
from remegraph.engine.frame import RECALLED
from remegraph.errors import ConsensusError
from remegraph.models import (
    Memory,
    MemoryChange,
    Message,
    Origin,
    ProposalState,
    Topic,
)
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.governance.consensus_machine import ConsensusMachine
from tests.governance.crew import HOUR, LISBON, NUMBERS, PORTO, Crew
from tests.governance.sharing_machine import SCOPES
from tests.retention.skilled import deploying
from tests.talk import NOON

# ------------------------------------------------------------------------------------------- how agents agree


@pytest.mark.requirement("B12")
def test_what_one_agent_proposes_nobody_recalls(crew: Crew) -> None:
    """Else proposing would be a way to put words into every other agent's prompt."""
    proposal = crew.proposed()
    assert (proposal.state, proposal.agents, proposal.memory.status) == ("open", ("scout",), "proposed")
    assert crew.found(crew.third) == crew.found(crew.third, only=RecallFilter(statuses=("proposed",))) == []
    assert crew.found(crew.third, only=RecallFilter(known_at=crew.clock())) == []
    assert crew.kit.recall("Lisbon", scope=crew.third, depth="messages").context == ""
    assert not crew.kit.inject("Where does Ann live?", scope=crew.third, always=True).shown
    assert crew.kit.retention.active(scope=crew.third) == ()
    archive = crew.kit.context.parts().archive
    assert [*archive.match([proposal.memory.partition], "memory", ["lisbon"])[0].record_ids] == []


@pytest.mark.requirement("B12")
def test_what_two_agents_bear_out_on_their_own_evidence_all_recall(crew: Crew) -> None:
    """That is what sharing is for; who bears it out, and by which words, stays with it."""
    proposal = crew.agreed()
    memory = proposal.memory
    assert (proposal.state, memory.status, memory.memory_id) == ("agreed", "active", proposal.proposal_id)
    assert memory.origin is not None
    assert (memory.origin.via, memory.origin.agents) == ("consensus", ("scout", "writer"))
    assert [item.quote for item in memory.evidence] == [LISBON, LISBON]
    assert crew.found(crew.third) == [LISBON]
    assert crew.kit.admin.verify().healthy
    other = crew.third.evolve(project="borealis")
    assert crew.found(other) == crew.found(crew.third.evolve(user="zoe")) == []


@pytest.mark.requirement("B12")
def test_an_agent_traces_what_was_agreed_on_to_its_own_words_only(crew: Crew) -> None:
    """The conversations of others stay theirs, and a block of one's own with the same label is no source."""
    crew.saved(crew.third, "Ann plays chess.")  # its block has the label of the others'
    proposal = crew.agreed()
    seen = crew.kit.trace(proposal.proposal_id, scope=crew.writer)
    assert [quote.message.partition.agent for quote in seen.quotes] == ["writer"]
    strange = crew.kit.trace(proposal.proposal_id, scope=crew.third)
    assert (strange.quotes, strange.blocks, strange.messages) == ((), (), ())
    assert len(strange.missing) == 2


@pytest.mark.requirement("B12")
def test_a_person_may_approve_what_one_agent_alone_knows(crew: Crew) -> None:
    """Most is learned by one agent only."""
    proposal = crew.proposed()
    found = crew.kit.sharing.decide(
        proposal.proposal_id, approve=True, scope=crew.third, actor="Dana", reason="I was there"
    )
    assert (found.state, found.agents) == ("agreed", ("scout",))
    assert crew.found(crew.third) == [LISBON]
    (agreed,) = [
        each for each in crew.kit.trace(proposal.proposal_id, scope=crew.third).events if each.action == "agree"
    ]
    assert (agreed.actor, agreed.reason) == ("Dana", "I was there")


@pytest.mark.requirement("B12")
@pytest.mark.parametrize("actor", ["scout", "Third", "team", " "])
def test_no_agent_approves_or_rejects(crew: Crew, actor: str) -> None:
    """Two clicks by one agent would be its word alone again."""
    proposal = crew.proposed()
    for approve in (True, False):
        with pytest.raises(InputError, match="no person"):
            crew.kit.sharing.decide(proposal.proposal_id, approve=approve, scope=crew.third, actor=actor)
    assert crew.state(proposal) == "open"


@pytest.mark.requirement("B12")
def test_no_tool_lets_a_model_propose_approve_or_refuse(crew: Crew) -> None:
    """What a model can call, a page that it reads can make it call."""
    names = {tool.name for tool in memory_tools(crew.kit, crew.scout)}
    assert names == {"save_memory", "search_memory", "forget_memory", "trace_memory"}


@pytest.mark.requirement("B12")
def test_the_quorum_is_a_setting(tmp_path: Path) -> None:
    """Ten agents may want three of them to agree."""
    clock, settings = FrozenClock(NOON), Settings(home=tmp_path, sharing=SharingPolicy(quorum=3))
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock) as kit:
        crew = Crew(kit, clock, *(Scope(user="ann", agent=agent) for agent in ("scout", "writer", "third")))
        proposal = crew.agreed()
        assert (proposal.state, proposal.agents, crew.found(crew.third)) == ("open", ("scout", "writer"), [])
        same = crew.saved(crew.third, LISBON)
        crew.kit.forget(proposal.endorsements[1].memory_id, scope=crew.writer)  # its word stands on nothing now
        third = kit.sharing.corroborate(proposal.proposal_id, scope=crew.third, memory_id=same.memory_id)
        assert third.state == "open"
        fourth = Scope(user="ann", agent="fourth")
        same = crew.saved(fourth, LISBON)
        last = kit.sharing.corroborate(proposal.proposal_id, scope=fourth, memory_id=same.memory_id)
        assert (last.state, last.agents) == ("agreed", ("scout", "writer", "third", "fourth"))


@pytest.mark.requirement("B12")
def test_agents_that_act_at_the_same_time_lose_no_word(tmp_path: Path) -> None:
    """Each commit expects the version that it read: who came second weighs it anew."""
    clock, settings = FrozenClock(NOON), Settings(home=tmp_path, sharing=SharingPolicy(quorum=4))
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock) as kit:
        crew = Crew(kit, clock, *(Scope(user="ann", agent=agent) for agent in ("scout", "writer", "third")))
        proposal, begin = crew.proposed(), Barrier(3)
        scopes = [crew.writer, crew.third, Scope(user="ann", agent="fourth")]
        same = [(scope, crew.saved(scope, LISBON).memory_id) for scope in scopes]

        def agree(scope: Scope, memory_id: str) -> None:
            begin.wait()
            kit.sharing.corroborate(proposal.proposal_id, scope=scope, memory_id=memory_id)

        threads = [Thread(target=agree, args=each) for each in same]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert crew.state(proposal) == "agreed"
        assert len(crew.head(proposal.proposal_id).evidence) == 4


@pytest.mark.requirement("B12")
def test_saying_the_same_again_changes_nothing(crew: Crew) -> None:
    """A host that does not know whether its call came through repeats it."""
    sharing = crew.kit.sharing
    proposal = crew.proposed()
    source = proposal.endorsements[0].memory_id
    assert sharing.propose(source, scope=crew.scout, reason="again") == proposal
    same = crew.saved(crew.writer, LISBON)
    agreed = sharing.corroborate(proposal.proposal_id, scope=crew.writer, memory_id=same.memory_id)
    assert sharing.corroborate(proposal.proposal_id, scope=crew.writer, memory_id=same.memory_id) == agreed
    assert sharing.proposals(scope=crew.third) == (agreed,)


# ------------------------------------------------------------------------------------------- what does not count


_UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "an episode": ({"layer": "episodic"}, "episodic"),
    "what is sensed": ({"layer": "sensory"}, "sensory"),
    "what is in mind": ({"layer": "working"}, "working"),
    "quarantined": ({"status": "quarantined"}, "approved first"),
    "archived": ({"status": "archived"}, "live memory"),
    "a policy": ({"memory_class": "policy"}, "A person states it"),
    "a core rule": ({"importance": 0.9}, "A person states it"),
    "of itself": ({"topic": Topic(type="self", target_name="self")}, "remember_self"),
    "untried": ({"layer": "procedural"}, "Report how a run"),
    "doubtful": ({"trust": 0.49}, "better evidence"),
    "absorbed": ({"origin": Origin(via="absorbed", agents=("mole",), at=NOON)}, "evidence of its own"),
}


@pytest.mark.requirement("B11", "B12")
@pytest.mark.parametrize(("fields", "cure"), _UNFIT.values(), ids=_UNFIT)
def test_what_is_nobodys_to_share_cannot_be_proposed(crew: Crew, fields: dict[str, Any], cure: str) -> None:
    """The refusal says what to do instead, and changes nothing."""
    memory = crew.learned(crew.scout, **fields)
    with pytest.raises(InputError, match=cure):
        crew.kit.sharing.propose(memory.memory_id, scope=crew.scout, reason="x")
    assert crew.kit.sharing.proposals(scope=crew.scout) == ()


@pytest.mark.requirement("B12")
def test_a_skill_is_shared_once_it_was_carried_out_and_another_agent_does_the_same(crew: Crew) -> None:
    """A procedure that nobody has tried is nobody's experience; one with other steps is another one."""
    skills, sharing = crew.kit.skills, crew.kit.sharing
    mine = skills.add(deploying(), scope=crew.scout)
    skills.record_outcome(mine.memory_id, True, scope=crew.scout)
    proposal = sharing.propose(mine.memory_id, scope=crew.scout, reason="it works")
    crew.clock.move(HOUR)
    other = skills.add(deploying("slow"), scope=crew.writer)
    with pytest.raises(ConsensusError, match="does not say the same"):
        sharing.corroborate(proposal.proposal_id, scope=crew.writer, memory_id=other.memory_id)
    same = skills.add(deploying(), scope=crew.writer)
    assert sharing.corroborate(proposal.proposal_id, scope=crew.writer, memory_id=same.memory_id).state == "agreed"
    assert skills.choose("Deploy the site", scope=crew.third).figures.memory_id == proposal.proposal_id


@pytest.mark.requirement("B12")
def test_only_ones_own_memories_are_proposed_and_only_by_a_named_agent(crew: Crew) -> None:
    """Neither another agent's, nor what is shared, nor another user's."""
    agreed, sharing = crew.agreed(), crew.kit.sharing
    source = agreed.endorsements[0].memory_id
    for scope, memory_id in (
        (crew.writer, source),
        (crew.scout, agreed.proposal_id),
        (crew.scout.evolve(user="z"), source),
    ):
        with pytest.raises(NotFoundError):
            sharing.propose(memory_id, scope=scope, reason="x")
    with pytest.raises(ScopeError, match="names no agent"):
        sharing.propose(source, scope=crew.scout.evolve(agent=None), reason="x")
    with pytest.raises(InputError, match="shared already"):
        sharing.propose(source, scope=crew.scout, reason="x")
    with pytest.raises(InputError, match="reason is empty"):
        sharing.propose(source, scope=crew.scout, reason=" ")
    sharing.propose(crew.saved(crew.scout, "Ann plays chess.").memory_id, scope=crew.scout, reason="x")
    same = crew.saved(crew.writer, "Ann plays chess.")
    with pytest.raises(InputError, match="Corroborate proposal"):
        sharing.propose(same.memory_id, scope=crew.writer, reason="x")


def _given(crew: Crew) -> Memory:
    """The writer learned it from a memory that somebody gave it, and concluded it anew."""
    source = crew.learned(crew.writer, origin=Origin(via="absorbed", agents=("mole",), at=NOON), status="archived")
    conclusion = source.evolve(memory_id=f"{source.memory_id} anew", origin=None, status="active")
    crew.commit(MemoryChange(memory=conclusion, expected_version=0, action="create"))
    return conclusion


def _heard_with(crew: Crew, **fields: Any) -> Memory:
    """The writer read it in a message like this."""
    name = f"heard {next(NUMBERS)}"
    message = Message(
        **{"message_id": name, "role": "user", "content": LISBON, "time": crew.clock(), "thread": name, **fields}
    )
    return crew.learned(crew.writer, message)


_WORTHLESS: dict[str, tuple[Callable[[Crew], Memory], str]] = {
    "other words": (lambda crew: crew.saved(crew.writer, "Ann plays chess."), "does not say the same"),
    "another value": (lambda crew: crew.saved(crew.writer, PORTO), "does not say the same"),
    "the contrary": (lambda crew: crew.saved(crew.writer, "Ann does not live in Lisbon."), "does not say the same"),
    "doubtful": (lambda crew: crew.learned(crew.writer, trust=0.49), "trusted 0.49"),
    "quarantined": (lambda crew: crew.learned(crew.writer, status="quarantined"), "is quarantined"),
    "absorbed": (
        lambda crew: crew.learned(crew.writer, origin=Origin(via="absorbed", agents=("scout",), at=NOON)),
        "came from another agent",
    ),
    "laundered": (_given, "own words, or on recalled"),
    "its own words": (lambda crew: _heard_with(crew, role="assistant"), "own words"),
    "recalled": (lambda crew: _heard_with(crew, extra={RECALLED: ["x"]}), "recalled memory"),
    "another project": (lambda crew: crew.saved(crew.writer, LISBON, applies_to="global"), "another project"),
}


@pytest.mark.requirement("B12", "X6")
@pytest.mark.parametrize(("heard", "why"), _WORTHLESS.values(), ids=_WORTHLESS)
def test_what_is_no_evidence_of_ones_own_bears_nothing_out(
    crew: Crew, heard: Callable[[Crew], Memory], why: str
) -> None:
    """An echo of the author is the author's word again."""
    proposal = crew.proposed()
    mine = heard(crew)
    with pytest.raises(ConsensusError, match=why):
        crew.kit.sharing.corroborate(proposal.proposal_id, scope=crew.writer, memory_id=mine.memory_id)
    assert (crew.state(proposal), crew.found(crew.third)) == ("open", [])


@pytest.mark.requirement("B12", "X6")
def test_two_agents_who_heard_the_same_message_heard_it_once(crew: Crew) -> None:
    """A group chat is captured by each of them, under one id or under two."""
    time = crew.clock()
    first = Message(message_id=f"chat {next(NUMBERS)}", role="user", content=LISBON, time=time)
    source = crew.learned(crew.scout, first)
    proposal = crew.kit.sharing.propose(source.memory_id, scope=crew.scout, reason="x")
    for message, why in (
        (first, "same messages"),
        (first.evolve(message_id="copy", thread="copy"), "at the same time"),
    ):
        mine = crew.learned(
            crew.writer.evolve(),
            message,
            memory_id=f"{message.message_id} {crew.writer.user}",
            when_to_use=message.message_id,
        )
        with pytest.raises(ConsensusError, match=why):
            crew.kit.sharing.corroborate(proposal.proposal_id, scope=crew.writer, memory_id=mine.memory_id)
        crew.kit.forget(mine.memory_id, scope=crew.writer)
    assert crew.state(proposal) == "open"


@pytest.mark.requirement("B12")
def test_nobody_bears_out_what_it_proposed_or_bore_out_before(crew: Crew) -> None:
    """One agent with two memories is one agent."""
    proposal = crew.proposed()
    again = crew.learned(crew.scout, content="Ann is living in Lisbon.")
    with pytest.raises(ConsensusError, match="already"):
        crew.kit.sharing.corroborate(proposal.proposal_id, scope=crew.scout, memory_id=again.memory_id)
    with pytest.raises(NotFoundError):
        crew.kit.sharing.corroborate(proposal.proposal_id, scope=crew.writer, memory_id=again.memory_id)
    with pytest.raises(NotFoundError):
        crew.kit.sharing.corroborate("nothing", scope=crew.scout, memory_id=again.memory_id)


@pytest.mark.requirement("B12")
def test_once_its_author_thinks_otherwise_nobody_can_agree_any_more(crew: Crew) -> None:
    """It would become everybody's what nobody stands for."""
    proposal, sharing = crew.proposed(), crew.kit.sharing
    same = crew.saved(crew.writer, LISBON)
    crew.kit.forget(proposal.endorsements[0].memory_id, scope=crew.scout)
    (found,) = sharing.proposals(scope=crew.third, state="stale")
    assert found.proposal_id == proposal.proposal_id
    with pytest.raises(ConsensusError, match="says otherwise by now"):
        sharing.corroborate(proposal.proposal_id, scope=crew.writer, memory_id=same.memory_id)
    with pytest.raises(ConsensusError, match="says otherwise by now"):
        sharing.decide(proposal.proposal_id, approve=True, scope=crew.third, actor="Dana")
    assert sharing.decide(proposal.proposal_id, approve=False, scope=crew.third, actor="Dana").state == "rejected"


@pytest.mark.requirement("B12")
def test_what_was_withdrawn_or_rejected_is_over(crew: Crew) -> None:
    """It stays in the ledger, with who said so and why; the same words are not proposed again after a no."""
    sharing = crew.kit.sharing
    first, second = crew.proposed(), crew.proposed("Ann plays chess.")
    with pytest.raises(ConsensusError, match="Its author withdraws it"):
        sharing.withdraw(first.proposal_id, scope=crew.writer)
    assert sharing.withdraw(first.proposal_id, scope=crew.scout, reason="not sure").state == "withdrawn"
    assert (
        sharing.decide(second.proposal_id, approve=False, scope=crew.third, actor="Dana", reason="wrong").state
        == "rejected"
    )
    for proposal in (first, second):
        with pytest.raises(ConsensusError, match="The proposal is"):
            sharing.decide(proposal.proposal_id, approve=True, scope=crew.third, actor="Dana")
        with pytest.raises(ConsensusError, match="The proposal is"):
            sharing.withdraw(proposal.proposal_id, scope=crew.scout)
    with pytest.raises(InputError, match="rejected"):
        sharing.propose(second.endorsements[0].memory_id, scope=crew.scout, reason="please")
    assert sharing.propose(first.endorsements[0].memory_id, scope=crew.scout, reason="sure now").state == "open"
    reasons = {each.reason for each in sharing.proposals(scope=crew.third)[1].endorsements}
    assert reasons == {"all need it", "wrong"}
    with pytest.raises(InputError, match="no state"):
        sharing.proposals(scope=crew.third, state=cast("ProposalState", "lost"))


# ------------------------------------------------------------------------------------------- what is shared


def _verbs(crew: Crew, name: str, other: str) -> dict[str, Callable[[], object]]:
    kit, scout = crew.kit, crew.scout
    (conflict,) = kit.conflicts.list(scope=scout)
    return {
        "forget": lambda: kit.forget(name, scope=scout),
        "replace": lambda: kit.save("note", "Ann moved to Faro.", scope=scout, supersedes=[name]),
        "activate": lambda: kit.retention.pin(name, scope=scout),
        "deactivate": lambda: kit.retention.pin(name, scope=scout, active=False),
        "promote": lambda: kit.rules.promote(name, scope=scout, reason="x"),
        "link": lambda: kit.topics.link(name, "related", other, scope=scout),
        "resolve": lambda: kit.conflicts.resolve(
            conflict.conflict_id, "supersede", scope=scout, by="scout", by_model=True
        ),
        "settle": lambda: kit.conflicts.resolve(
            conflict.conflict_id, "dismiss", scope=scout, by="scout", by_model=True
        ),
    }


@pytest.mark.requirement("B12", "B13")
def test_no_verb_lets_one_agent_change_what_is_shared(crew: Crew) -> None:
    """What two agreed on, one of them could else take back, replace, or hold under everybody's nose."""
    first, second = crew.agreed(), crew.agreed(PORTO)
    before = [crew.head(each.proposal_id) for each in (first, second)]
    for verb in _verbs(crew, first.proposal_id, second.proposal_id).values():
        with pytest.raises(ConsensusError, match="no agent alone"):
            verb()
    assert [crew.head(each.proposal_id) for each in (first, second)] == before
    assert len(crew.kit.conflicts.list(scope=crew.scout)) == 1


@pytest.mark.requirement("B12")
def test_a_person_changes_what_is_shared(crew: Crew) -> None:
    """The common library belongs to the person; a scope without an agent is nobody's but theirs."""
    first, second = crew.agreed(), crew.agreed(PORTO)
    (conflict,) = crew.kit.conflicts.list(scope=crew.scout)
    crew.kit.conflicts.resolve(conflict.conflict_id, "supersede", scope=crew.scout, by="Dana")
    assert crew.found(crew.third) == [PORTO]
    crew.kit.forget(second.proposal_id, scope=crew.third.evolve(agent=None))
    assert (crew.found(crew.third), crew.state(first), crew.state(second)) == ([], "agreed", "agreed")


@pytest.mark.requirement("B12")
def test_agents_that_are_declared_one_team_write_their_library_at_once(crew: Crew) -> None:
    """Who sets library="shared" says that they all speak with one voice."""
    team = crew.scout.evolve(agent="team")
    memory = crew.saved(crew.kit.context.library(team), LISBON)
    assert crew.found(crew.third) == [LISBON]
    with pytest.raises(InputError, match="shared already"):
        crew.kit.sharing.propose(memory.memory_id, scope=team, reason="x")
    crew.kit.forget(memory.memory_id, scope=team)
    assert crew.found(crew.third) == []


@pytest.mark.requirement("B12", "B13")
def test_time_moves_what_is_shared_and_any_agent_brings_it_back(crew: Crew) -> None:
    """To fade is nobody's word, and the words that were agreed on are the same when they come back."""
    agreed = crew.agreed()
    crew.clock.move(timedelta(days=4000))
    crew.kit.retention.maintain(scope=crew.scout)
    assert crew.head(agreed.proposal_id).status == "archived"
    assert crew.kit.restore(agreed.proposal_id, scope=crew.third).status == "active"
    instead = crew.agreed(PORTO, replaces=agreed.proposal_id, expected_version=agreed.memory.version)
    assert instead.state == "agreed"
    assert crew.head(agreed.proposal_id).status == "superseded"


# ------------------------------------------------------------------------------------------- versions, conflicts


@pytest.mark.requirement("B13")
def test_a_shared_memory_is_replaced_by_agreement_and_its_past_stays(crew: Crew) -> None:
    """An update is a proposal, too; archaeology tells both, with the agents that bore each out."""
    old = crew.agreed()
    proposal = crew.proposed(PORTO, replaces=old.proposal_id, expected_version=old.memory.version)
    assert crew.found(crew.third) == [LISBON]
    same = crew.saved(crew.writer, PORTO)
    new = crew.kit.sharing.corroborate(proposal.proposal_id, scope=crew.writer, memory_id=same.memory_id)
    assert (new.memory.status, new.memory.supersedes) == ("active", (old.proposal_id,))
    assert crew.found(crew.third) == [PORTO]
    chain = crew.kit.governance.archaeology(new.proposal_id, scope=crew.third)
    told = {find.memory_id: find for find in chain.finds}
    assert told[new.proposal_id].replaced == (old.proposal_id,)
    origins = [find.versions[-1].memory.origin for find in told.values()]
    assert [origin.agents for origin in origins if origin] == [("scout", "writer")] * 2
    assert [note.actor for note in told[old.proposal_id].versions] == ["scout", "writer", "writer"]


@pytest.mark.requirement("B13")
def test_who_read_an_older_version_is_told_and_loses_nothing(crew: Crew) -> None:
    """An update on what is no more so would undo what others learned."""
    old = crew.agreed()
    crew.agreed(PORTO, replaces=old.proposal_id, expected_version=old.memory.version)
    source = crew.saved(crew.third, "Ann lives in Faro.")
    with pytest.raises(NotFoundError, match="no live shared memory"):
        crew.kit.sharing.propose(
            source.memory_id,
            scope=crew.third,
            reason="x",
            replaces=old.proposal_id,
            expected_version=old.memory.version,
        )
    assert crew.head(old.proposal_id).status == "superseded"

    person = crew.scout.evolve(agent=None)
    shared = crew.saved(person, "Ann plays chess.")
    crew.saved(person, "Ann plays chess.", tags=["hobby"])  # merged: the next version has a tag
    with pytest.raises(ConflictError, match=shared.memory_id):
        crew.kit.sharing.propose(
            source.memory_id, scope=crew.third, reason="x", replaces=shared.memory_id, expected_version=1
        )
    with pytest.raises(InputError, match="Give expected_version"):
        crew.kit.sharing.propose(source.memory_id, scope=crew.third, reason="x", replaces=shared.memory_id)
    assert (
        crew.kit.sharing.propose(
            source.memory_id, scope=crew.third, reason="x", replaces=shared.memory_id, expected_version=2
        ).state
        == "open"
    )


@pytest.mark.requirement("B13")
def test_of_two_agreed_updates_of_one_memory_the_later_overwrites_nothing(crew: Crew) -> None:
    """Both were agreed on by those who knew the old one only: both stay, in dispute, each with its sources."""
    old = crew.agreed()
    rest: dict[str, Any] = {"replaces": old.proposal_id, "expected_version": old.memory.version}
    porto = crew.proposed(PORTO, **rest)
    source = crew.saved(crew.third, "Ann lives in Faro.")
    faro = crew.kit.sharing.propose(source.memory_id, scope=crew.third, reason="x", **rest)
    for proposal, content in ((porto, PORTO), (faro, "Ann lives in Faro.")):
        agent = crew.writer if proposal is porto else crew.scout.evolve(agent="fourth")
        same = crew.saved(agent, content)
        crew.kit.sharing.corroborate(proposal.proposal_id, scope=agent, memory_id=same.memory_id)
    heads = [crew.head(each.proposal_id) for each in (old, porto, faro)]
    assert [head.status for head in heads] == ["superseded", "disputed", "disputed"]
    assert [head.supersedes for head in heads] == [(), (old.proposal_id,), ()]
    (conflict,) = crew.kit.conflicts.list(scope=crew.writer)
    assert {each.memory_id for each in (conflict.older, conflict.newer)} == {porto.proposal_id, faro.proposal_id}
    agents = {each.origin.agents for each in (conflict.older, conflict.newer) if each.origin}
    assert agents == {("scout", "writer"), ("third", "fourth")}


@pytest.mark.requirement("B12")
async def test_agents_agree_in_async_code(crew: Crew) -> None:
    """The twins are the same code."""
    sharing = crew.kit.sharing
    source, same = crew.saved(crew.scout, LISBON), crew.saved(crew.writer, LISBON)
    proposal = await sharing.apropose(source.memory_id, scope=crew.scout, reason="x")
    assert (
        await sharing.acorroborate(proposal.proposal_id, scope=crew.writer, memory_id=same.memory_id)
    ).state == "agreed"
    assert len(await sharing.aproposals(scope=crew.third, state="agreed")) == 1


# ------------------------------------------------------------------------------------------- whatever happens


def run(home: Path, *, seed: int, steps: int, thorough: int) -> None:
    """Let random agents share and agree; compare with the model after each step, now and then in full."""
    clock, settings = FrozenClock(NOON), Settings(home=home)
    with MemoryKit.open(
        settings=settings, ledger_url="sqlite://", model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock
    ) as kit:
        machine = ConsensusMachine(kit, clock, seed)
        for number in range(steps):
            machine.step()
            machine.check_common()
            if number % thorough == 0:
                machine.check_books()
                machine.check_reach(machine.chance.choice(SCOPES))
        machine.check_books()
        assert machine.agreed
        assert machine.refused


@pytest.mark.requirement("B12", "X5")
def test_whatever_agents_do_nothing_shared_is_the_word_of_one(tmp_path: Path) -> None:
    """No order of proposals, words, refusals, direct writes and upkeep lets a single author in."""
    run(tmp_path, seed=1, steps=80, thorough=40)


@pytest.mark.slow
@pytest.mark.requirement("B12", "X5")
@pytest.mark.parametrize("seed", range(5))
def test_in_ten_thousand_steps_nothing_shared_is_the_word_of_one(tmp_path: Path, seed: int) -> None:
    """What a hundred steps do not meet, ten thousand may."""
    run(tmp_path, seed=seed, steps=2_000, thorough=100)
