"""The protocol's flow from one agent's experience to another one's task, step by step (MEK 2.2.2 and 2.2.3).

Offline, and with a scripted model. Each test is one step of the picture, named after its box.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from remegraph import MemoryKit, Scope, Settings, SharingPolicy, SummaryPolicy
from remegraph.adapters.services import MemoryService
from remegraph.kit import OpenOptions
from remegraph.models import (
    Absorption,
    Conclusion,
    Consolidation,
    Extraction,
    KnowledgeItem,
    Memory,
    MemoryItem,
    SemanticContent,
    SkillChoice,
)
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ScriptedChatModel, SequentialIds
from tests.retention.skilled import deploying, refunding
from tests.talk import NOON, create, digest, proposal, said

pytestmark = pytest.mark.requirement("K8")

SCOUT, BEE = Scope(user="henrietta", agent="scout"), Scope(user="henrietta", agent="bee")
EPISODES = (
    "I got the refund after the invoice came.",
    "My refund took long, as the invoice was missing.",
    "I sent the invoice, and the refund was there.",
)
OTHERS = ("I jog along the river on Sundays.", "My sister teaches chemistry.", "The garden needs new roses.")
CONCLUSION = "Refunds depend on an invoice."
WINDOW, OWN_WINDOW = "refund window: length: 14 days.", "refund window: length: 30 days."
TASK = "Refund an order"


@dataclass(frozen=True)
class Flow:
    """What each step of the flow gave."""

    kit: MemoryKit
    built: tuple[Memory, ...]
    consolidated: Consolidation
    skill: Memory
    retrieved: tuple[str, ...]
    extracted: Extraction
    own: Memory
    before: SkillChoice
    absorbed: Absorption

    def of(self, kind: str) -> KnowledgeItem:
        """The shared item of a kind; of what is known in general, what was concluded."""
        of_kind = (item for item in self.extracted.items if item.source_memory_type == kind)
        return next(item for item in of_kind if kind == "workflow" or "invoice" in item.to_json())

    def memory_of(self, item: KnowledgeItem) -> Memory:
        """What it became."""
        done = next(each for each in self.absorbed.items if each.item_id == item.knowledge_id)
        archive = self.kit.context.parts().archive
        return archive.memories([BEE.partition()], ids=[done.memory_id])[0]


def script() -> dict[str, Any]:
    """A model that writes episodes, concludes, and says things in general."""
    texts = (*EPISODES, *OTHERS)
    made = [create(text.replace("I ", "Henrietta ", 1), n, text) for n, text in enumerate(texts, start=1)]
    conclusion = {"conclusion": CONCLUSION, "conditions": ["when money is sent back"]}
    return {
        "DigestAnswer": digest("personal:Henrietta"),
        "ProposalAnswer": proposal(*made),
        "VerdictAnswer": {"objections": []},
        "ConclusionAnswer": conclusion,
        "NamesAnswer": {"names": []},
        "GeneralAnswer": {"items": []},
    }


@pytest.fixture(scope="module", params=["offline", "with a model"])
def flow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    """The whole flow, done once."""
    offline = request.param == "offline"
    sharing = SharingPolicy(trust={"scout": 0.9})
    home: Path = tmp_path_factory.mktemp("flow")
    with MemoryKit.open(
        settings=Settings(home=home, sharing=sharing, summary=SummaryPolicy(backoff=0, reviser="rules")),
        model=None if offline else ScriptedChatModel(script=script()),
        embedder=None,
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON),
        options=OpenOptions(new_id=SequentialIds()),
    ) as kit:
        yield run(kit, learns=offline)


def run(kit: MemoryKit, *, learns: bool) -> Flow:
    """Go the whole way: scout builds, retrieves and extracts; bee absorbs and fuses, and has a task to do."""
    messages = [said(text, name="Henrietta", minutes=n) for n, text in enumerate((*EPISODES, *OTHERS))]
    for together in [[each] for each in messages] if learns else [messages]:
        kit.add_messages(together, scope=SCOUT)
        kit.summarize(scope=SCOUT, close=True)
    built = kit.memories(scope=SCOUT)
    consolidated = kit.retention.consolidate(scope=SCOUT, conclusions=[concluded(built)] if learns else ())
    MemoryService(kit, SCOUT).add(window("14 days"))
    skill = learned(kit) if learns else kit.skills.add(deploying("refunds", task=TASK), scope=SCOUT)
    for run_id in ("1", "2", "3"):
        kit.skills.record_outcome(skill.memory_id, True, scope=SCOUT, run_id=run_id)
    retrieved = tuple(hit.record_id for hit in kit.recall("refund of an order", scope=SCOUT).memories)
    extracted = kit.knowledge.share("refund of an order, invoice", scope=SCOUT)
    (own_id,) = MemoryService(kit, BEE).add(window("30 days"))
    (own,) = kit.context.parts().archive.memories([BEE.partition()], ids=[own_id])
    kit.skills.add(deploying("by hand", task=TASK), scope=BEE)
    before = kit.skills.choose(TASK, scope=BEE)
    absorbed = kit.knowledge.absorb(extracted.items, scope=BEE)
    return Flow(kit, built, consolidated, skill, retrieved, extracted, own, before, absorbed)


def concluded(episodes: Sequence[Memory]) -> Conclusion:
    """What a person concludes where no model does."""
    sources = [memory.memory_id for memory in episodes if "invoice" in memory.content]
    return Conclusion(sources=tuple(sources), conclusion=CONCLUSION, conditions=("when money is sent back",))


def window(length: str) -> MemoryItem:
    """What the protocol's keys say of the refund window: by them two agents' facts are compared."""
    content = SemanticContent(concept_name="refund window", properties={"length": length})
    return MemoryItem(memory_id="window", memory_type="semantic", timestamp=NOON, content=content)


def learned(kit: MemoryKit) -> Memory:
    """A skill that the agent learned from a run of its own."""
    kit.add_messages(refunding("run", "1234", "INV-9"), scope=SCOUT)
    memory = kit.skills.learn("run", scope=SCOUT, task=TASK).memory
    assert memory is not None
    return memory


def test_a1_memories_are_built_from_conversations_and_runs(flow: Flow) -> None:
    """记忆构建: experience is where everything starts."""
    assert {memory.layer for memory in flow.built} == {"episodic"}
    assert flow.consolidated.made
    assert flow.skill.layer == "procedural"


def test_a3_memories_are_retrieved(flow: Flow) -> None:
    """检索: first what bears on the task."""
    assert flow.skill.memory_id in flow.retrieved


def test_a4_knowledge_is_extracted_without_whom_it_was_learned_from(flow: Flow) -> None:
    """抽取: filtered, cleaned, in general words, in the standard form; single episodes stay at home."""
    kinds = {item.source_memory_type for item in flow.extracted.items}
    assert kinds == {"workflow", "semantic"}
    told = "".join(item.to_json() for item in flow.extracted.items)
    assert not [words for words in ("Henrietta", "henrietta", *EPISODES) if words in told]
    assert "14 days" in told
    assert "invoice" in told
    assert {item.source_agent for item in flow.extracted.items} == {"scout"}


def test_what_was_consolidated_goes_the_whole_way(flow: Flow) -> None:
    """What many episodes have in common is what is worth telling: bee knows it, and from whom."""
    made = {memory.memory_id for memory in flow.consolidated.made}
    assert made.isdisjoint(each.memory_id for each in flow.extracted.report.rejected)
    memory = flow.memory_of(flow.of("semantic"))
    assert memory.origin is not None
    assert (memory.origin.agents, memory.layer, "invoice" in memory.content) == (("scout",), "long_term", True)


def test_b1_it_is_absorbed_as_what_scout_truly_shared(flow: Flow) -> None:
    """知识吸收: the ledger proves the source, so it is believed as far as scout is."""
    assert [each.outcome for each in flow.absorbed.items] == ["created"] * len(flow.extracted.items)
    assert {each.source for each in flow.absorbed.items} == {"scout"}
    assert all(0.5 <= each.trust <= 0.9 for each in flow.absorbed.items)
    assert len(flow.absorbed.memory_ids) == len(flow.extracted.items)


def test_b2_conflicts_are_found_and_both_sides_kept(flow: Flow) -> None:
    """冲突检测与融合: scout's 14 days stand beside bee's 30, for somebody to decide."""
    (conflict,) = flow.kit.conflicts.list(scope=BEE)
    assert conflict.older.memory_id == flow.own.memory_id
    assert (conflict.older.content, conflict.newer.content) == (OWN_WINDOW, WINDOW)
    assert conflict.newer.origin is not None
    assert conflict.newer.origin.agents == ("scout",)


def test_b3_it_is_stored_as_bees_own_memories_and_scouts_stay_as_they_are(flow: Flow) -> None:
    """存储: part of what bee knows, traced and verified like all of it."""
    for memory_id in flow.absorbed.memory_ids:
        assert flow.kit.trace(memory_id, scope=BEE).missing == ()
    assert flow.kit.admin.verify().healthy
    assert all(memory.origin is None for memory in flow.kit.memories(scope=SCOUT))
    assert flow.kit.conflicts.list(scope=SCOUT) == ()


def test_b4_and_b5_the_task_is_done_with_it(flow: Flow) -> None:
    """任务执行: recall finds what scout knew, and scout's way of doing the task is tried and told how it went."""
    context = flow.kit.recall("How long is the refund window?", scope=BEE).context
    assert WINDOW in context
    assert OWN_WINDOW in context
    memory = flow.memory_of(flow.of("workflow"))
    assert flow.before.figures.memory_id != memory.memory_id
    flow.kit.skills.record_outcome(flow.before.figures.memory_id, False, scope=BEE, run_id="by hand")
    choice = flow.kit.skills.choose(TASK, scope=BEE)
    assert (choice.figures.memory_id, choice.figures.candidate) == (memory.memory_id, True)
    calls = flow.kit.skills.plan(memory.memory_id, scope=BEE, values={"number": "77", "target": "web"})
    assert len(calls) == 2
    for n in range(6):
        flow.kit.skills.record_outcome(memory.memory_id, True, scope=BEE, run_id=f"scout's {n}")
        flow.kit.skills.record_outcome(flow.before.figures.memory_id, False, scope=BEE, run_id=f"by hand {n}")
    better = flow.kit.skills.choose(TASK, scope=BEE)
    assert (better.figures.memory_id, better.how) == (memory.memory_id, "bound")


def test_what_bee_learned_from_scout_does_not_come_back_to_scout_as_news(flow: Flow) -> None:
    """An echo would bear out what nobody else has seen."""
    shared = flow.kit.knowledge.share("refund of an order, invoice", scope=BEE)
    ids = {item.knowledge_id for item in flow.extracted.items}
    assert not ids & {item.knowledge_id for item in shared.items}
    back = flow.kit.knowledge.absorb(flow.extracted.items, scope=SCOUT)
    assert {each.outcome for each in back.items} == {"refused"}
