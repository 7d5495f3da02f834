"""The sharing rules and prohibitions of the brain-like layers (sections 4 and 5): each line has its test, named after it."""

from __future__ import annotations

import ast
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from remegraph import ConflictError, InputError, Message
from remegraph.errors import ConsensusError
from remegraph.models import MemoryChange
from tests.governance.crew import HOUR, LISBON, PORTO, Crew
from tests.retention.skilled import deploying

_TESTS = Path(__file__).parents[1]

LINES: dict[str, str] = {
    "M1 ❌": "test_m1_is_not_shared",
    "M2 ❌": "test_m2_is_not_shared",
    "M3 ⚠️ 需授权": "test_m3_is_shared_by_grant",
    "LTM ✅": "test_ltm_is_shared",
    "Procedural ✅": "test_procedural_is_shared",
    "权限标签": "test_permission_labels",
    "版本控制": "test_version_control",
    "冲突合并": "test_conflicts_are_merged",
    "❌ Agent 私有经验直接污染 LTM": "test_private_experience_never_pollutes_ltm_directly",
    "❌ 无共识直接写共享知识": "test_shared_knowledge_is_never_written_without_consensus",
    "Agent A 写入后 Agent B 是否可控读取": "test_what_agent_a_writes_agent_b_reads_under_control",
    "冲突事实是否保留多版本": "test_conflicting_facts_keep_several_versions",
    "无“单 Agent 霸权记忆”": "test_no_memory_is_ruled_by_one_agent",
    "冲突可追溯来源": "test_conflicts_are_traced_to_their_sources",
    "❌ 把 ES / Mongo 当万能全文存储": "test_full_text_search_is_no_store_of_texts",
    "❌ 用“召回率”掩盖结构缺失": (
        "retention/test_consolidation.py::test_whatever_is_told_none_is_isolated_and_no_source_is_lost"
    ),
    "❌ 没有遗忘机制": "retention/test_maintenance.py::test_what_fades_is_lowered_then_archived_and_says_why",
    "❌ Agent 直接写数据库 schema": "test_house.py::test_what_agents_touch_knows_no_database",
    "❌ 把上下文当长期记忆": "engine/test_voices.py::test_nothing_is_learned_from_what_was_merely_recalled",
}
"""Every line of the two sections, with the test that holds it."""


def test_every_line_of_both_sections_has_its_test() -> None:
    """A line that nobody holds is a wish; tests that stand elsewhere are named, not doubled."""
    for line, name in LINES.items():
        home, _, test = name.rpartition("::")
        path = _TESTS / home if home else Path(__file__)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert test in found, line
        assert home or line in str(ast.get_docstring(found[test])), line


# ------------------------------------------------------------------------------------------- 共享层级（硬规则）


@pytest.mark.requirement("B11")
def test_m1_is_not_shared(crew: Crew) -> None:
    """M1 ❌: what one agent senses no other one can read, be granted, or agree on."""
    kit = crew.kit
    kit.working.sense("The lighthouse blinks thrice.", scope=crew.scout, attention=0.01)
    assert kit.working.chunks(scope=crew.writer) == kit.working.chunks(scope=crew.scout) == ()
    assert kit.recall("lighthouse", scope=crew.writer, depth="messages").context == ""
    with pytest.raises(InputError, match="sensory"):
        kit.sharing.grant("writer", scope=crew.scout, layers=["sensory"], reason="x", actor="ann")


@pytest.mark.requirement("B11")
def test_m2_is_not_shared(crew: Crew) -> None:
    """M2 ❌: what one agent has in mind no other one can read, be granted, or agree on."""
    kit = crew.kit
    kit.working.sense("The lighthouse blinks thrice.", scope=crew.scout, task="harbour", attention=0.9)
    assert len(kit.working.chunks(scope=crew.scout, task="harbour")) == 1
    assert kit.working.chunks(scope=crew.writer, task="harbour") == ()
    assert kit.recall("lighthouse", scope=crew.writer, task="harbour").working == ()
    with pytest.raises(InputError, match="working"):
        kit.sharing.grant("writer", scope=crew.scout, layers=["working"], reason="x", actor="ann")


@pytest.mark.requirement("B11")
def test_m3_is_shared_by_grant(crew: Crew) -> None:
    """M3 ⚠️ 需授权: an episode is read by another agent while it is granted, and cannot become everybody's."""
    episode = crew.learned(crew.scout, layer="episodic")
    assert crew.found(crew.writer) == []
    with pytest.raises(InputError, match="episodic"):
        crew.kit.sharing.propose(episode.memory_id, scope=crew.scout, reason="x")
    grant = crew.kit.sharing.grant("writer", scope=crew.scout, reason="one task", actor="ann")
    assert (crew.found(crew.writer), crew.found(crew.third)) == ([LISBON], [])
    crew.kit.sharing.revoke(grant.grant_id, scope=crew.scout, reason="done", actor="ann")
    assert crew.found(crew.writer) == []


@pytest.mark.requirement("B11")
def test_ltm_is_shared(crew: Crew) -> None:
    """LTM ✅: a long-term memory that agents agree on is known to all agents of the user."""
    assert crew.agreed().memory.layer == "long_term"
    assert [crew.found(scope) for scope in (crew.third, crew.third.evolve(agent="new"))] == [[LISBON], [LISBON]]


@pytest.mark.requirement("B11")
def test_procedural_is_shared(crew: Crew) -> None:
    """Procedural ✅: a skill that was carried out and approved is chosen by all agents of the user."""
    skill = crew.kit.skills.add(deploying(), scope=crew.scout)
    crew.kit.skills.record_outcome(skill.memory_id, ok=True, scope=crew.scout)
    proposal = crew.kit.sharing.propose(skill.memory_id, scope=crew.scout, reason="it works")
    crew.kit.sharing.decide(proposal.proposal_id, approve=True, scope=crew.scout, actor="Dana")
    choice = crew.kit.skills.choose("Deploy the site", scope=crew.third)
    assert choice.figures.memory_id == proposal.proposal_id


# ------------------------------------------------------------------------------------------- 重点


@pytest.mark.requirement("B11")
def test_permission_labels(crew: Crew) -> None:
    """权限标签: each memory says whose it is, and by whose leave another agent sees it."""
    crew.saved(crew.scout, "Ann plays chess.")
    crew.kit.sharing.grant("third", scope=crew.scout, layers=["long_term"], reason="x", actor="ann")
    crew.agreed()
    hits = {hit.text: hit for hit in crew.kit.recall("Ann chess Lisbon", scope=crew.third).memories}
    granted, agreed = hits["Ann plays chess."], hits[LISBON]
    assert (granted.granted, granted.partition.agent) == (True, "scout")
    assert agreed.origin is not None
    assert (agreed.granted, agreed.partition.agent, agreed.origin.agents) == (False, None, ("scout", "writer"))


@pytest.mark.requirement("B13")
def test_version_control(crew: Crew) -> None:
    """版本控制: a shared memory changes under the version that was read only, and every version stays."""
    old = crew.agreed()
    new = crew.agreed(PORTO, replaces=old.proposal_id, expected_version=old.memory.version)
    assert [each.status for each in crew.kit.trace(old.proposal_id, scope=crew.third).versions] == [
        "proposed",
        "active",
        "superseded",
    ]
    head = crew.head(new.proposal_id)
    late = MemoryChange(memory=head.evolve(version=head.version), expected_version=head.version - 1, action="refine")
    with pytest.raises(ConflictError):
        crew.commit(late)


@pytest.mark.requirement("B13")
def test_conflicts_are_merged(crew: Crew) -> None:
    """冲突合并: contradictions wait in one queue; a person merges them, or keeps both, and no version is lost."""
    first, second = crew.agreed(), crew.agreed(PORTO)
    (conflict,) = crew.kit.conflicts.list(scope=crew.third)
    crew.kit.conflicts.resolve(conflict.conflict_id, "merge", scope=crew.third, by="Dana")
    assert [crew.head(each.proposal_id).status for each in (first, second)] == ["superseded", "active"]
    assert crew.head(second.proposal_id).supersedes == (first.proposal_id,)
    assert crew.kit.conflicts.list(scope=crew.third) == ()


# ------------------------------------------------------------------------------------------- 禁忌


@pytest.mark.requirement("B12")
def test_private_experience_never_pollutes_ltm_directly(crew: Crew) -> None:
    """❌ Agent 私有经验直接污染 LTM: whatever an agent hears, saves and consolidates stays its own."""
    kit = crew.kit
    said = [Message(role="user", content=f"I water the roses on day {day}.", time=crew.clock()) for day in range(4)]
    kit.add_messages(said, scope=crew.scout)
    kit.summarize(scope=crew.scout, close=True)
    crew.saved(crew.scout, LISBON)
    crew.clock.move(timedelta(days=1))
    kit.retention.maintain(scope=crew.scout)
    assert kit.memories(scope=crew.scout)
    assert kit.memories(scope=crew.third) == ()
    assert crew.found(crew.third, "roses Lisbon") == []


@pytest.mark.requirement("B12")
def test_shared_knowledge_is_never_written_without_consensus(crew: Crew) -> None:
    """❌ 无共识直接写共享知识: the ledger itself refuses it, whoever asks and by whatever way."""
    library = crew.scout.evolve(agent=None).partition()
    memory = crew.saved(crew.scout, LISBON)
    for status in ("active", "disputed", "low_priority", "archived", "quarantined", "proposed"):
        forged = memory.evolve(memory_id=f"{memory.memory_id} {status}", partition=library, status=status, block_ids=())
        with pytest.raises(ConsensusError, match="no agent alone"):
            crew.commit(MemoryChange(memory=forged, expected_version=0, action="create"))
    assert crew.kit.memories(scope=crew.third) == ()


# ------------------------------------------------------------------------------------------- 测试用例


@pytest.mark.requirement("B11", "B12")
def test_what_agent_a_writes_agent_b_reads_under_control(crew: Crew) -> None:
    """Agent A 写入后 Agent B 是否可控读取: not at all, by a leave that ends, or once it is agreed on."""
    memory = crew.saved(crew.scout, LISBON)
    assert crew.found(crew.writer) == []
    options: dict[str, Any] = {
        "layers": ["long_term"],
        "expires_at": crew.clock() + HOUR,
        "reason": "x",
        "actor": "ann",
    }
    crew.kit.sharing.grant("writer", scope=crew.scout, **options)
    assert crew.found(crew.writer) == [LISBON]
    crew.clock.move(HOUR)
    assert crew.found(crew.writer) == []
    proposal = crew.kit.sharing.propose(memory.memory_id, scope=crew.scout, reason="x")
    assert crew.found(crew.writer) == []
    crew.kit.sharing.decide(proposal.proposal_id, approve=True, scope=crew.scout, actor="Dana")
    assert crew.found(crew.writer) == [LISBON]


@pytest.mark.requirement("B13")
def test_conflicting_facts_keep_several_versions(crew: Crew) -> None:
    """冲突事实是否保留多版本: what two agents say and two others deny is recalled with both sides."""
    crew.agreed()
    crew.agreed(PORTO)
    assert sorted(crew.found(crew.third)) == [LISBON, PORTO]


# ------------------------------------------------------------------------------------------- 验收方式


@pytest.mark.requirement("B12")
def test_no_memory_is_ruled_by_one_agent(crew: Crew) -> None:
    """无“单 Agent 霸权记忆”: one agent, however loud, puts nothing into the others' prompts, and takes nothing out."""
    agreed = crew.agreed()
    for number in range(5):
        loud = crew.saved(crew.scout, f"Ann lives in hut number {number}.")
        crew.kit.sharing.propose(loud.memory_id, scope=crew.scout, reason="believe me")
    with pytest.raises(ConsensusError):
        crew.kit.forget(agreed.proposal_id, scope=crew.scout)
    assert crew.found(crew.third) == [LISBON]


@pytest.mark.requirement("B13")
def test_conflicts_are_traced_to_their_sources(crew: Crew) -> None:
    """冲突可追溯来源: each side of a conflict names its agents and the words that they heard."""
    crew.agreed()
    proposal = crew.proposed(PORTO)
    crew.kit.sharing.decide(proposal.proposal_id, approve=True, scope=crew.third, actor="Dana")
    (conflict,) = crew.kit.conflicts.list(scope=crew.third)
    told = {
        side.content: (side.origin.agents, [item.quote for item in side.evidence])
        for side in (conflict.older, conflict.newer)
        if side.origin
    }
    assert told == {LISBON: (("scout", "writer"), [LISBON, LISBON]), PORTO: (("scout",), [PORTO])}
    actors = {event.actor for event in crew.kit.trace(proposal.proposal_id, scope=crew.third).events}
    assert {"scout", "Dana"} <= actors


# ------------------------------------------------------------------------------------------- 5. 全局禁忌


def test_full_text_search_is_no_store_of_texts(crew: Crew) -> None:
    """❌ 把 ES / Mongo 当万能全文存储: the index holds the stems of words, and can be made anew from the ledger."""
    sentence = f"The gardener of {crew.scout.user} was counting magnolias."
    crew.saved(crew.scout, sentence)
    with crew.kit.context.parts().archive.database.read() as connection:
        names = connection.execute(
            text("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'texts%' AND name <> 'texts_fts'")
        )
        tables = list(names.scalars())
        rows = [row for name in tables for row in connection.execute(text(f'SELECT * FROM "{name}"'))]
    assert rows
    assert not [row for row in rows if "counting magnolias" in repr(row).casefold()]
