"""Memories as items, and items as memories: nothing is lost on the way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remegraph.models import (
    CORE,
    CausalChain,
    EpisodeContent,
    Kind,
    Link,
    Memory,
    MemoryContent,
    MemoryItem,
    Origin,
    Partition,
    ProfileContent,
    SemanticContent,
    Skill,
    SkillStep,
    StepPattern,
    Topic,
    WorkflowContent,
)
from remegraph.models.forms import (
    content_of,
    fields_of,
    fused,
    importance_of,
    item_of,
    level_of,
    links_of,
    payload_of,
    revised,
)
from remegraph.models.item_text import sentence
from remegraph.models.skills import workflow
from tests.models.records import instances
from tests.talk import NOON

MEMORY = Memory(
    memory_id="m",
    partition=Partition(tenant="t", user="ann", agent="remy"),
    topic=Topic(type="personal", target_name="Ann"),
    content="Ann likes green tea.",
    canonical_topic="ann:likes",
    slot_value="green tea",
    slot_many=True,
    said_at=NOON,
    recorded_at=NOON,
)
KINDS = get_args(Kind)


def whole(item: Any) -> bool:
    """Whether an item says something, and names no memory twice, nor itself."""
    chain = item.content.causal_chain if isinstance(item.content, EpisodeContent) else CausalChain()
    ends = [end for end in (chain.precedent, chain.consequence, item.memory_id) if end]
    related = item.related_memory_ids
    return (
        bool(sentence(item.content)) and len(set(ends)) == len(ends) and len({*related, ends[-1]}) == len(related) + 1
    )


ITEMS = instances(MemoryItem).filter(whole)


def remembered(item: MemoryItem) -> Memory:
    """A new memory of what an item says."""
    return MEMORY.evolve(memory_id=item.memory_id, canonical_topic="", slot_value="", **fields_of(item))


@pytest.mark.requirement("K1")
@given(item=ITEMS)
@settings(max_examples=60)
def test_an_item_that_becomes_a_memory_comes_back_as_it_was(item: Any) -> None:
    """Who hands a memory over and asks for it again must get what they gave, fields that we do not know included."""
    assert item_of(remembered(item), links_of(item)) == item


@pytest.mark.requirement("K1")
@given(memory=instances(Memory), links=st.lists(instances(Link), max_size=3), kind=st.sampled_from(KINDS))
@settings(max_examples=60)
def test_a_memory_that_was_seen_as_an_item_and_put_back_is_unchanged(memory: Any, links: Any, kind: Any) -> None:
    """Looking at a memory in another form must not change a word of it, whatever it was made from."""
    memory = memory.evolve(kind=kind)
    ends = [link.evolve(source_id=memory.memory_id) for link in links]
    seen = item_of(memory, ends)
    assert MemoryItem.from_json(seen.to_json()) == seen
    assert revised(memory, seen, ends) == memory


@pytest.mark.parametrize("importance", [0, 0.1, 0.339, 0.34, 0.5, 0.669, 0.67, 0.89, CORE, 1])
def test_every_importance_has_a_level_and_every_level_an_importance_of_its_own(importance: float) -> None:
    """A round trip must not raise a memory by itself; and no level is a core rule, which only a person sets."""
    level = level_of(importance)
    assert level == ("low" if importance < 0.34 else "mid" if importance < 0.67 else "high")
    assert level_of(importance_of(level)) == level
    assert importance_of(level) < CORE


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (
            "profile",
            ProfileContent(
                entity_name="Ann",
                entity_type="user",
                attributes={"likes": ["green tea"], "statements": ["Ann likes green tea."]},
            ),
        ),
        ("semantic", SemanticContent(concept_name="ann:likes", definition="Ann likes green tea.")),
        (
            "episode",
            EpisodeContent(
                event_summary="Ann likes green tea.",
                timestamp=NOON,
                participants=("Ann",),
                causal_chain=CausalChain(precedent="why", consequence="then"),
            ),
        ),
        (
            "workflow",
            WorkflowContent.model_validate(
                {
                    "task_description": "Ann likes green tea.",
                    "workflow_name": "Ann",
                    "source_info": {"source_type": "factual", "session_id": "s", "source_agent": "remy"},
                }
            ),
        ),
    ],
)
def test_a_memory_without_a_form_is_told_in_that_of_its_kind(kind: Kind, content: MemoryContent) -> None:
    """Most memories come from conversations: others must be able to read these, too."""
    links = (
        Link(source_id="why", type="causes", target_id="m"),
        Link(source_id="m", type="causes", target_id="then"),
        Link(source_id="other", type="contradicts", target_id="m"),
        Link(source_id="far", type="related", target_id="away"),
    )
    item = item_of(MEMORY.evolve(kind=kind, payload={"key": "tea", "session": "s"}), links)
    assert item.content == content
    assert item.related_memory_ids == (("other",) if kind == "episode" else ("why", "then", "other"))
    assert sentence(content) == MEMORY.content


def test_our_own_notes_are_part_of_no_content() -> None:
    """How a memory was made is ours to know: shown as what it says, it would come back as somebody's words."""
    content = SemanticContent(concept_name="tea", definition="Ann likes green tea.")
    noted = {"key": "tea", "session": "s", "abstraction": {"said": 3}}
    old = MEMORY.evolve(payload=payload_of(content) | noted)
    assert content_of(old) == content
    new = revised(old, item_of(old).evolve(content=content.evolve(definition="Ann likes black tea.")))
    assert new.payload == payload_of(item_of(new).content) | {"key": "tea", "session": "s"}


def test_what_came_from_another_agent_says_so() -> None:
    """Knowledge that goes on from agent to agent must name whom it came from."""
    origin = Origin(via="absorbed", agents=("scout",), at=NOON)
    content = content_of(MEMORY.evolve(kind="workflow", origin=origin))
    assert isinstance(content, WorkflowContent)
    assert content.source_info is not None
    assert (content.source_info.source_type, content.source_info.source_agent) == ("absorbed_knowledge", "scout")


def test_a_skill_is_seen_as_its_workflow() -> None:
    """The steps, what they call and by what success is known: without these nobody could execute it again."""
    skill = Skill(
        name="pay", task="pay an order", steps=(SkillStep(name="scan", step_pattern=StepPattern(tool="scan")),)
    )
    content = content_of(MEMORY.evolve(kind="workflow", payload=workflow(skill)))
    assert isinstance(content, WorkflowContent)
    assert (content.workflow_name, content.task_description) == ("pay", "pay an order")
    assert content.steps[0].details["step_pattern"] == {"tool": "scan", "skill": "", "args": {}}
    assert set(content.model_extra or {}) == {"preconditions", "postconditions", "avoid", "when_to_use", "version"}


def test_only_what_an_item_says_otherwise_changes_in_its_memory() -> None:
    """An edit of one field must not reset importance, evidence or the words."""
    old = MEMORY.evolve(kind="semantic", importance=0.95, when_to_use="tea: Ann likes green tea.")
    item = item_of(old)
    assert revised(old, item.evolve(timestamp=NOON + timedelta(days=1))) == old.evolve(said_at=NOON + timedelta(days=1))
    assert revised(old, item.evolve(importance="low")) == old.evolve(importance=importance_of("low"))

    new = revised(old, item.evolve(content=SemanticContent(concept_name="Ann", definition="Ann likes black tea.")))
    assert (new.content, new.summary, new.when_to_use) == ("Ann likes black tea.",) * 2 + ("tea: Ann likes black tea.",)
    assert (new.importance, new.memory_id, new.topic) == (0.95, "m", old.topic)
    assert item_of(new).content == SemanticContent(concept_name="Ann", definition="Ann likes black tea.")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            ProfileContent.model_validate(
                {
                    "entity_name": "Ann",
                    "entity_type": "user",
                    "attributes": {"preferences": ["red", "blue"], "habits": {"run": "early", "eat": "late"}, "age": 30},
                    "relations": [{"target_entity": "the Chess Club", "relation_type": "member_of"}],
                }
            ),
            "Ann: age: 30. Ann: habits: eat late, run early. Ann likes red. Ann likes blue. Ann: member of: the Chess Club.",
        ),
        (
            ProfileContent.model_validate(
                {"entity_name": "小林", "entity_type": "user", "attributes": {"偏好": ["红色"], "习惯": ["早起"]}}
            ),
            "小林：习惯：早起。小林喜欢红色。",
        ),
        (ProfileContent(entity_name="Ann", entity_type="user"), "Ann is of type user."),
        (
            SemanticContent.model_validate(
                {
                    "concept_name": "apple",
                    "definition": "A fruit.",
                    "properties": {"shape": "round", "color": "red"},
                    "relations": [{"target_concept": "fruit", "relation_type": "is_a"}],
                }
            ),
            "apple: A fruit; color: red; shape: round; is a: fruit.",
        ),
        (SemanticContent(concept_name="苹果", properties={"颜色": "红色"}), "苹果：颜色：红色。"),
        (SemanticContent(concept_name="apple"), "apple"),
        (
            EpisodeContent(
                event_summary="The build failed.", location="Porto", participants=("Ann", "Bo"), learnings="Pin versions."
            ),
            "The build failed. Learned: Pin versions. Where: Porto. With: Ann, Bo.",
        ),
        (EpisodeContent(event_summary="小林的构建失败。", participants=("小林",)), "小林的构建失败。"),
        (
            WorkflowContent.model_validate(
                {
                    "task_description": "pay by code",
                    "workflow_name": "pay",
                    "steps": [{"name": "open", "description": "open the app"}, {"name": "scan"}],
                }
            ),
            "pay by code: 1. open: open the app 2. scan",
        ),
        (WorkflowContent(task_description="", workflow_name="pay\ud800"), "pay\ufffd"),
        (EpisodeContent(event_summary=" "), ""),
    ],
)  # fmt: skip
def test_what_a_content_says_in_words_follows_from_it_alone(content: MemoryContent, words: str) -> None:
    """The words are what is searched, shown and compared: two equal items must say the same, in English and Chinese."""
    assert sentence(content) == words
    assert sentence(type(content).model_validate(dict(reversed(list(content))))) == words
    if isinstance(content, ProfileContent):
        turned = content.evolve(attributes=dict(reversed(content.attributes.items())))
        assert (turned, sentence(turned)) == (content, words)


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        ({"a": 1}, {"a": 2, "b": 3}, {"a": 1, "b": 3}),
        ({"a": ""}, {"a": "x"}, {"a": "x"}),
        ({"a": ["x"]}, {"a": ["x", "y"]}, {"a": ["x", "y"]}),
        (
            {"steps": [{"name": "scan", "details": {}}, {"name": "pay"}]},
            {"steps": [{"name": "scan", "details": {"n": 1}}, {"name": "print"}]},
            {"steps": [{"name": "scan", "details": {"n": 1}}, {"name": "pay"}, {"name": "print"}]},
        ),
    ],
)
def test_what_is_said_again_adds_to_a_content_and_overwrites_nothing(old: Any, new: Any, both: Any) -> None:
    """The protocol's strategy for redundancy: merge, so that the memory knows more than either item."""
    assert fused(old, new) == both
    assert fused(both, new) == both
