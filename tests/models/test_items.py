"""Items as others write them: the type says the form, Chinese names count, and what is wrong is named."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from remegraph.models import (
    CHINESE_NAMES,
    EpisodeContent,
    KnowledgeItem,
    MemoryItem,
    ProfileContent,
    SemanticKnowledge,
    WorkflowContent,
    in_english,
)

ITEM: dict[str, Any] = {
    "memory_id": "m1",
    "memory_type": "profile",
    "timestamp": "2025-09-01T08:00:00+08:00",
    "content": {"entity_name": "小林", "entity_type": "user", "attributes": {"preferences": ["红色"]}},
    "importance": "high",
    "related_memory_ids": ["m2"],
}
KNOWLEDGE: dict[str, Any] = {
    "knowledge_id": "k1",
    "title": "苹果",
    "content": {"concept_name": "苹果", "generalized_properties": {"形状": "圆形"}, "domain": "植物"},
    "source_memory_type": "语义",
    "source_agent": "remy",
    "created_at": "2025-09-01T08:00:00+08:00",
    "metadata": {"trust": 0.8},
}


@pytest.mark.requirement("K1")
def test_an_item_in_chinese_is_the_same_item() -> None:
    """The protocol writes its items in Chinese: who follows it to the letter must be understood."""
    chinese = {
        "记忆标识": "m1",
        "记忆类型": "画像",
        "时间戳": "2025-09-01T08:00:00+08:00",
        "内容主体": ITEM["content"],
        "重要性等级": "高",
        "关联记忆": ["m2"],
    }
    assert MemoryItem.model_validate(chinese) == MemoryItem.model_validate(ITEM)
    assert isinstance(MemoryItem.model_validate(chinese).content, ProfileContent)
    assert isinstance(KnowledgeItem.model_validate(KNOWLEDGE).content, SemanticKnowledge)


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    ("chinese", "english"),
    [
        (("画像", "工作流", "语义", "情景"), ("profile", "workflow", "semantic", "episode")),
        (("高", "中", "低"), ("high", "mid", "low")),
    ],
)
def test_the_values_of_the_protocol_are_read_in_chinese(chinese: tuple[str, ...], english: tuple[str, ...]) -> None:
    """Types and levels: nothing else that is written in Chinese is touched."""
    field = "memory_type" if "画像" in chinese else "importance"
    assert [in_english({field: value})[field] for value in chinese] == list(english)
    assert in_english({"title": chinese[0], "content": {"entity_name": "高"}}) == {
        "title": chinese[0],
        "content": {"entity_name": "高"},
    }


def test_a_pack_in_chinese_has_english_fields() -> None:
    """Section 3.1.1 of the protocol names them so."""
    assert in_english({"包标识": "p", "领域标签": "购物", "内容列表": []}) == {
        "pack_id": "p",
        "domain": "购物",
        "items": [],
    }
    assert len(set(CHINESE_NAMES.values())) == len(CHINESE_NAMES)
    assert in_english(["no mapping"]) == ["no mapping"]


@pytest.mark.parametrize(
    ("changed", "field", "problem"),
    [
        ({"memory_type": "episode"}, "content.event_summary", "Field required"),
        ({"memory_type": "dream"}, "memory_type", "Input should be"),
        ({"content": EpisodeContent(event_summary="x")}, "content", "instance of ProfileContent"),
        ({"content": {"entity_name": 7, "entity_type": "user"}}, "content.entity_name", "must be text"),
        ({"content": ITEM["content"] | {"further": {1, 2}}}, "content.further", "must be JSON"),
        ({"content": ITEM["content"] | {"further": float("inf")}}, "content.further", "must be JSON"),
        ({"content": ITEM["content"] | {"odd\ud800": 1}}, "content", "unicode"),
        ({"timestamp": "2025-09-01T08:00:00"}, "timestamp", "must say its time zone"),
        ({"importance": "urgent"}, "importance", "Input should be"),
        ({"related_memory_ids": ["a\x00"]}, "related_memory_ids.0", "NUL"),
        ({"memory_id": ""}, "memory_id", "at least 1"),
        ({"记忆类型": "画像"}, "", "given twice"),
        ({"colour": "red"}, "colour", "Extra inputs"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_item_is_named(changed: dict[str, Any], field: str, problem: str) -> None:
    """A form is never guessed: a profile that is called an episode is a mistake of whoever wrote it."""
    with pytest.raises(ValidationError, match=problem) as refused:
        MemoryItem.model_validate(ITEM | changed)
    assert ".".join(map(str, refused.value.errors()[0]["loc"])) == field


def test_a_value_that_is_nested_without_end_is_refused() -> None:
    """A few kilobytes of brackets must not bring the process down."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValidationError, match="must be JSON"):
        MemoryItem.model_validate(ITEM | {"content": ITEM["content"] | {"deep": deep}})
    while deep:
        deep = deep.pop()


@pytest.mark.requirement("K1")
def test_an_item_survives_json_to_the_letter() -> None:
    """NUL, lone surrogates, fields that we do not know, and times with their zone."""
    content = {
        "task_description": "\x00\ud800",
        "workflow_name": "w",
        "steps": [{"name": "s", "details": {"\udfff": [None, 1.5, {"x": "é"}]}, "retries": 3}],
        "source_info": {"source_type": "trajectory", "session_id": "s", "channel": "chat"},
        "更多": {"deep": [[]]},
    }
    item = MemoryItem.model_validate(ITEM | {"memory_type": "workflow", "content": content})
    text = item.to_json()
    assert text.isascii()
    assert MemoryItem.from_json(text) == item
    assert isinstance(item.content, WorkflowContent)
    assert (item.content.steps[0].model_extra, item.content.model_extra) == ({"retries": 3}, {"更多": {"deep": [[]]}})
    assert str(item.timestamp) == "2025-09-01 08:00:00+08:00"
