"""Grants: what an agent lets another read is read, told as the giver's, and nothing around it ever is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from remegraph import InputError, MemoryKit, Message, NotFoundError, RecallFilter, Scope, Settings, SharingPolicy
from remegraph.adapters import MemoryRetriever, memory_tools
from remegraph.engine.frame import shown_records
from remegraph.models import AuditEntry, ChangeSet, Grant, Memory, MemoryChange
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.governance.conftest import DAY, Office
from tests.governance.sharing_machine import SCOPES, SharingMachine
from tests.talk import NOON


def run(home: Path, *, seed: int, steps: int, thorough: int) -> None:
    """Let random agents share, and compare with the model after each step, now and then through every surface."""
    clock = FrozenClock(NOON)
    settings = Settings(sharing=SharingPolicy(source_share=1.0), home=home)
    with MemoryKit.open(
        settings=settings, ledger_url="sqlite://", model=None, embedder=None, index=InMemoryVectorIndex(), clock=clock
    ) as kit:
        machine = SharingMachine(kit, clock, seed)
        for number in range(steps):
            machine.step()
            machine.check(machine.chance.choice(SCOPES))
            if number % thorough == 0:
                machine.check_surfaces(machine.chance.choice(SCOPES))
                for scope in SCOPES:
                    machine.check(scope)
        assert machine.revoked
        assert not [each for each in kit.admin.verify().differences if each.where == "journal"]


@pytest.mark.requirement("B11", "X5")
def test_whatever_agents_grant_revoke_and_change_each_reads_exactly_what_it_may(tmp_path: Path) -> None:
    """No order of grants, revocations, expiries and changes opens more, or less, than the rules say."""
    run(tmp_path, seed=1, steps=50, thorough=5)


@pytest.mark.slow
@pytest.mark.requirement("B11", "X5")
@pytest.mark.parametrize("seed", range(5))
def test_ten_thousand_steps_of_sharing_never_leave_the_rules(tmp_path: Path, seed: int) -> None:
    """What sixty steps do not meet, ten thousand may."""
    run(tmp_path, seed=seed, steps=2_000, thorough=20)


# ------------------------------------------------------------------------------------- what a reader sees


@dataclass(frozen=True)
class Team:
    """Ann's agents in one project: scout, who learns, and remy, who may be let read."""

    office: Office
    scout: Scope
    remy: Scope

    def told(self, *texts: str, scope: Scope | None = None) -> list[Memory]:
        """Let Ann tell scout something, which makes episodes of it."""
        scope, kit = scope or self.scout, self.office.kit
        for text in texts:
            message = Message(role="user", name="Ann", content=text, time=self.office.clock(), thread=text)
            kit.add_messages([message], scope=scope)
        kit.summarize(scope=scope, close=True)
        known = {memory.content.removeprefix("Ann: "): memory for memory in kit.memories(scope=scope)}
        return [known[text] for text in texts]

    def grant(self, **options: Any) -> Grant:
        """Let remy read what scout knows."""
        named: dict[str, Any] = {"scope": self.scout, "reason": "to work together", "actor": "ann"} | options
        return self.office.kit.sharing.grant("remy", **named)

    def found(self, query: str = "Where is the key of the shed?", **options: Any) -> list[str]:
        """What remy recalls."""
        hits = self.office.kit.recall(query, scope=self.remy, **options).memories
        return [hit.text.removeprefix("Ann: ") for hit in hits]


GOODS = ("apples", "a bicycle", "a hammer", "curtains", "six chairs", "two books")
KEY = "I keep the key of the shed under the stone."


@pytest.fixture
def team(office: Office) -> Team:
    """Two agents of a person whom nobody has met before."""
    return Team(office, office.ann.evolve(agent="scout"), office.ann)


@pytest.mark.requirement("B11")
def test_an_episode_is_read_by_another_agent_once_it_is_granted_and_told_as_the_givers(team: Team) -> None:
    """Agents need not learn twice what one of them was told; and none mistakes another's experience for its own."""
    (memory,) = team.told(KEY)
    assert team.found() == []
    team.grant()
    recall = team.office.kit.recall("Where is the key of the shed?", scope=team.remy)
    (hit,) = recall.memories
    assert (hit.record_id, hit.granted, hit.trust) == (memory.memory_id, True, 0.4)
    (line,) = shown_records(recall.context)
    assert (line["from"], line["date"], line["trust"]) == ("agent scout", f"{memory.said_at:%Y-%m-%d}", "0.4")
    assert team.office.kit.sharing.granted(scope=team.remy) == (team.office.head(memory, team.scout),)


@pytest.mark.requirement("B11", "X6")
def test_another_agents_rule_binds_nobody_and_its_voice_is_not_the_readers(team: Team) -> None:
    """Else one agent could give another orders, or words that it never said."""
    (memory,) = team.told(KEY)
    rule = {"memory_class": "policy", "enforcement_level": "hard", "perspective": "first-person", "importance": 1.0}
    _commit(team.office, memory, **rule)
    team.grant()
    recall = team.office.kit.recall("Where is the key of the shed?", scope=team.remy)
    assert {"by", "rule"}.isdisjoint(*shown_records(recall.context))
    assert team.office.kit.rules.list(scope=team.remy) == ()


@pytest.mark.requirement("B11")
def test_what_is_granted_meets_the_conditions_of_a_recall_like_all_else(team: Team) -> None:
    """Who asks for a topic, a time, a tag or a trust wants nothing besides, whoever knows it."""
    (memory,) = team.told(KEY)
    team.grant()
    before, after = memory.said_at - DAY, memory.said_at + DAY
    met: list[dict[str, Any]] = [
        {"topics": [memory.topic.key.upper()]},
        {"time_end": after},
        {"mode": "exact", "query": "the shed"},
    ]
    unmet: list[dict[str, Any]] = [
        {"topics": ["task:other"]},
        {"time_end": before},
        {"time_start": after},
        {"time_start": before, "time_end": before, "mode": "temporal"},
        {"mode": "exact", "query": "the shed is"},
        {"only": RecallFilter(min_trust=0.5)},
        {"only": RecallFilter(types=("tool",))},
        {"only": RecallFilter(statuses=("archived",))},
        {"depth": "summaries"},
    ]
    assert [team.found(**options) for options in met] == [[KEY]] * len(met)
    assert [team.found(**options) for options in unmet] == [[]] * len(unmet)


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("end", ["revoked", "expired"])
def test_a_grant_that_is_over_opens_nothing_at_the_next_call(team: Team, end: str) -> None:
    """Whoever takes a permission back, or sets it a time, relies on it: no index, buffer or id remembers it."""
    kit, clock = team.office.kit, team.office.clock
    (memory,) = team.told(KEY)
    grant = team.grant(expires_at=clock() + timedelta(hours=1) if end == "expired" else None)
    retriever = MemoryRetriever(kit=kit, scope=team.remy)
    search = next(tool for tool in memory_tools(kit, scope=team.remy) if tool.name == "search_memory")
    surfaces: tuple[Callable[[], object], ...] = (
        lambda: kit.recall(KEY, scope=team.remy).context,
        lambda: kit.inject(KEY, scope=team.remy, always=True).context,
        lambda: retriever.invoke(KEY),
        lambda: search.invoke({"query": KEY}),
    )
    assert all("under the stone" in str(read()) for read in surfaces)
    if end == "revoked":
        kit.sharing.revoke(grant.grant_id, scope=team.scout, reason="done", actor="ann")
    clock.move(timedelta(hours=2))
    assert not any("under the stone" in str(read()) for read in surfaces)
    for verb in (kit.trace, kit.explain, kit.retention.metadata, kit.governance.archaeology):
        with pytest.raises(NotFoundError):
            verb(memory.memory_id, scope=team.remy)
    (listed,) = kit.sharing.grants(scope=team.remy)
    assert (listed.grant_id, listed.open_at(clock())) == (grant.grant_id, False)


@pytest.mark.requirement("B11", "X5")
def test_a_granted_memory_leads_to_its_quotes_and_index_entry_and_to_no_message(team: Team) -> None:
    """A leave to read one memory is none to read the conversation that it came from."""
    kit = team.office.kit
    first, _secret = team.told(KEY, "I wrote the code 4711 on the door of the safe.")
    team.grant(memory_ids=[first.memory_id])
    trace = kit.trace(first.memory_id, scope=team.remy)
    assert [evidence.quote for evidence in trace.memory.evidence] == [KEY]
    assert {summary.block_id for summary in trace.summaries} == set(first.block_ids)
    assert (trace.messages, trace.quotes, trace.blocks, trace.links, trace.events) == ((), (), (), (), ())
    assert "scout" in trace.missing[0]
    everything = kit.recall("What is the code of the safe?", scope=team.remy, depth="messages")
    assert "4711" not in everything.to_json()
    assert not kit.sources.retrieve_message("safe", scope=team.remy)
    assert not kit.memories(scope=team.remy)


@pytest.mark.requirement("B11")
def test_what_a_memory_said_before_it_was_granted_stays_the_givers(team: Team) -> None:
    """Whoever corrects something, then lets it be read, has not let the old words be read."""
    kit = team.office.kit
    (memory,) = team.told(KEY)
    team.office.clock.move(DAY)
    _commit(team.office, memory, content="The key of the shed is with the neighbour.")
    team.grant()
    team.office.clock.move(DAY)
    _commit(team.office, team.office.head(memory, team.scout), content="The key of the shed is lost.")
    said = [version.content for version in kit.trace(memory.memory_id, scope=team.remy).versions]
    assert said == ["The key of the shed is with the neighbour.", "The key of the shed is lost."]
    (find,) = kit.governance.archaeology(memory.memory_id, scope=team.remy).finds
    assert [note.memory.content for note in find.versions] == said
    with pytest.raises(NotFoundError):
        kit.governance.diff(memory.memory_id, 1, 2, scope=team.remy)
    assert team.found(only=RecallFilter(known_at=team.office.clock() - timedelta(hours=1))) == said[:1]
    assert team.found(only=RecallFilter(known_at=team.office.clock() - timedelta(days=1, hours=1))) == []


@pytest.mark.requirement("B11")
def test_reading_anothers_memory_neither_strengthens_nor_changes_it(team: Team) -> None:
    """A grant is a leave to read: what scout forgets does not hang on what remy asks."""
    kit = team.office.kit
    (memory,) = team.told(KEY)
    team.grant()
    for _ in range(3):
        assert team.found()
    assert kit.retention.metadata(memory.memory_id, scope=team.scout).access_count == 0
    refused: tuple[Callable[[], object], ...] = (
        lambda: kit.retention.used([memory.memory_id], scope=team.remy),
        lambda: kit.restore(memory.memory_id, scope=team.remy),
        lambda: kit.restore(memory.memory_id, version=1, scope=team.remy),
        lambda: kit.rules.promote(memory.memory_id, scope=team.remy, reason="mine now"),
        lambda: team.grant(scope=team.remy, memory_ids=[memory.memory_id]),
    )
    for attempt in refused:
        with pytest.raises((NotFoundError, InputError)):
            attempt()
    assert team.office.head(memory, team.scout).version == memory.version


@pytest.mark.requirement("B11", "X5")
def test_a_grant_reaches_no_other_user_project_or_agent(team: Team) -> None:
    """Sharing is among the agents of one person in one project, whatever they are called elsewhere."""
    team.told(KEY)
    team.grant()
    kit, remy = team.office.kit, team.remy
    others = (remy.evolve(user="zoe"), remy.evolve(project="other"), remy.evolve(project=None), remy.evolve(tenant="t"))
    for scope in (*others, remy.evolve(agent="third"), remy.evolve(agent=None)):
        assert not kit.recall("Where is the key of the shed?", scope=scope).memories
        assert not kit.sharing.grants(scope=scope)


@pytest.mark.requirement("B11", "X5")
def test_what_is_granted_is_found_however_much_the_giver_keeps_to_itself(team: Team) -> None:
    """A search that looked at the giver's nearest memories, then left out most, would come back with nothing."""
    (memory, *_) = team.told(KEY, *(f"I bought {each} with the key of the shed." for each in GOODS))
    team.grant(memory_ids=[memory.memory_id])
    assert team.found("I bought apples with the key of the shed.", mode="semantic", k=1) == [KEY]


# ------------------------------------------------------------------------------------------------ the door


@pytest.mark.requirement("B11")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"layers": ["sensory"]}, "never shared"),
        ({"layers": ["episodic", "working"]}, "never shared"),
        ({"layers": []}, "empty"),
        ({"layers": "episodic"}, "one text"),
        ({"memory_ids": "m1"}, "one text"),
        ({"memory_ids": [7]}, "of type int"),
        ({"memory_ids": ["nowhere"]}, "no memory 'nowhere'"),
        ({"topic": "task:nothing"}, "no topic 'task:nothing'"),
        ({"topic": "self:self"}, "no topic 'self:self'"),
        ({"expires_at": NOON - DAY}, "would be over"),
        ({"expires_at": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001 - that is the defect
        ({"reason": " "}, "empty"),
        ({"actor": ""}, "empty"),
        ({"scope": Scope(user="ann")}, "names no agent"),
        ({"scope": None}, "scope is needed"),
        ({"scope": Scope(user="ann", agent="remy")}, "without a grant"),
    ],
)
def test_a_grant_that_makes_no_sense_is_refused_at_the_door(team: Team, options: dict[str, Any], told: str) -> None:
    """A permission that means nothing, or something else than was meant, is the worst kind."""
    with pytest.raises(InputError, match=told):
        team.grant(**options)
    assert team.office.kit.sharing.grants(scope=team.scout) == ()


@pytest.mark.requirement("B11")
def test_what_is_quarantined_or_of_another_layer_cannot_be_granted(team: Team) -> None:
    """What waits for approval in one agent must not reach another one around it."""
    (memory,) = team.told(KEY)
    with pytest.raises(InputError, match="of layer episodic, and only long_term is granted"):
        team.grant(memory_ids=[memory.memory_id], layers=["long_term"])
    _commit(team.office, memory, status="quarantined")
    with pytest.raises(InputError, match="is quarantined"):
        team.grant(memory_ids=[memory.memory_id])
    team.grant()
    assert team.found() == []


@pytest.mark.requirement("B11", "B14")
def test_the_journal_tells_who_let_whom_read_and_who_took_it_back(team: Team) -> None:
    """A permission without a trace could be denied by whoever gave it."""
    kit = team.office.kit
    grant = team.grant()
    for _ in range(2):
        kit.sharing.revoke(grant.grant_id, scope=team.scout, reason="done", actor="zoe")
    with pytest.raises(NotFoundError, match="no grant"):
        kit.sharing.revoke(grant.grant_id, scope=team.remy, reason="mine", actor="remy")
    entries = [each for each in kit.governance.audit(scope=team.scout) if isinstance(each, AuditEntry)]
    told = [(each.event.action, each.event.actor, each.event.reason) for each in entries]
    assert told == [("grant", "ann", "to work together"), ("revoke", "zoe", "done")]
    assert not [each for each in kit.admin.verify().differences if each.where == "journal"]


# --------------------------------------------------------------------------------------- one source's share


@pytest.mark.requirement("B11", "X6")
def test_no_other_agent_makes_more_than_its_share_of_a_recall(team: Team) -> None:
    """An agent that writes much must not drown what another one knows itself."""
    kit = team.office.kit
    team.told(*(f"I bought {each} with the key of the shed." for each in GOODS))
    team.grant()
    alone = kit.recall("Which key has the shed?", scope=team.remy)
    assert len(alone.memories) == 1
    assert sorted(alone.left_out.values()) == ["cap"] * 5
    team.told("I bought paint for the shed.", "I bought a ring for the green key.", scope=team.remy)
    found = kit.recall("Which key has the shed?", scope=team.remy)
    assert [hit.granted for hit in found.memories].count(True) == 2
    assert len(found.memories) == 4
    both = kit.recall("Which key has the shed?", scope=team.remy, k=2).memories
    assert {hit.granted for hit in both} == {True, False}
    assert sorted(found.left_out.values()) == ["cap"] * 4


@pytest.mark.requirement("B11", "X6")
def test_one_long_memory_of_another_agent_does_not_fill_the_context(team: Team) -> None:
    """What an agent knows itself must find room beside what others wrote at length."""
    kit = team.office.kit
    (memory,) = team.told(KEY)
    _commit(team.office, memory, content=f"{KEY} {'It hangs on a long and very old red string. ' * 150}")
    team.grant()
    team.told("I bought the key of the shed.", scope=team.remy)
    found = kit.recall("the key of the shed", scope=team.remy)
    assert len(found.memories) == 2
    assert found.left_out == {memory.memory_id: "cap"}
    given = kit.inject("the key of the shed", scope=team.remy, always=True)
    assert given.left_out == {memory.memory_id: "cap"}


def _commit(office: Office, memory: Memory, **changes: Any) -> None:
    """Let a memory be another, by its own agent."""
    changed = memory.evolve(recorded_at=office.clock(), **changes)
    change = MemoryChange(memory=changed, expected_version=memory.version, action="refine")
    office.kit.context.parts().archive.commit(
        ChangeSet(
            operation_id=office.kit.context.new_id(), actor="scout", recorded_at=office.clock(), changes=(change,)
        )
    )
