"""What two items have against each other by their keys, and what a dispute does to a memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.models import Link, LinkType, Memory, Partition, Topic
from remegraph.models.supersession import compare, disputed, opposing, pair_of, settled
from tests.talk import NOON


def memory(content: str, **fields: object) -> Memory:
    made = {
        "memory_id": content,
        "partition": Partition(tenant="default", user="ann"),
        "topic": Topic(type="personal", target_name="Ann"),
        "content": content,
        "said_at": NOON,
        "recorded_at": NOON,
    }
    return Memory.model_validate(made | fields)


def entity(content: str = "", name: str = "Ann", **attributes: Any) -> Memory:
    told = {"entity_name": name, "entity_type": "user", "attributes": attributes}
    return memory(content or str(attributes), kind="profile", payload=told)


def concept(content: str = "", name: str = "refund window", **properties: Any) -> Memory:
    return memory(content or str(properties), kind="semantic", payload={"concept_name": name, "properties": properties})


def workflow(*steps: str) -> Memory:
    told = {"task_description": "pay", "workflow_name": "pay", "steps": [{"name": step} for step in steps]}
    return memory(" ".join(steps), kind="workflow", payload=told)


def kind_of(new: Memory, old: Memory) -> str:
    finding = compare(new, old)
    return finding.kind if finding else ""


@pytest.mark.requirement("K4")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (entity(偏好=["红色"]), entity(讨厌=["红色"])),
        (entity(preferences=["red"]), entity(dislikes=["red", "blue"])),
        (entity(city="Turku"), entity(City="Vaasa")),
        (concept(length="14 days"), concept(length="30 days")),
    ],
    ids=["the document's own", "likes and dislikes", "another value", "another property"],
)
def test_a_contradiction_is_read_from_the_keys_whichever_came_first(one: Memory, other: Memory) -> None:
    """The protocol's own example must be seen."""
    assert kind_of(one, other) == kind_of(other, one) == "contradiction"


@pytest.mark.requirement("K4", "X11")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (entity(preferences=["red"]), entity(preferences=["blue"])),
        (entity(city="Turku"), entity(name="Ben", city="Vaasa")),
        (entity(city="Turku"), entity(job="baker")),
        (concept(length="14 days"), entity(length="30 days")),
        (memory("Ann likes red."), memory("Ann hates red.")),
        (memory("The hall seats 9."), memory("The hall seats 8.")),
    ],
)
def test_other_things_and_free_words_contradict_nothing(one: Memory, other: Memory) -> None:
    """No grammar reads them: a model or a person says what they are to each other."""
    assert kind_of(one, other) == kind_of(other, one) == ""


@pytest.mark.requirement("K4")
@pytest.mark.parametrize(
    ("more", "less"),
    [
        (entity(city="Turku", job="baker"), entity(city="Turku")),
        (entity(preferences=["red", "blue"]), entity(preferences=["red"])),
        (concept(length="14 days", fee="none"), concept(length="14 days")),
        (workflow("open", "scan", "pay", "print"), workflow("scan", "pay")),
    ],
)
def test_what_has_all_of_another_and_more_is_its_superset(more: Memory, less: Memory) -> None:
    """Paying by scanned code is paying: the two belong together, and neither is lost."""
    assert (kind_of(more, less), kind_of(less, more)) == ("superset", "subset")


@pytest.mark.requirement("K4")
def test_other_steps_or_another_order_make_no_superset() -> None:
    """Who pays before scanning does something else."""
    assert kind_of(workflow("scan", "pay"), workflow("pay", "scan")) == ""
    assert kind_of(workflow("scan", "pay"), workflow("book", "call")) == ""


@pytest.mark.requirement("K4")
def test_the_same_keys_with_the_same_values_are_redundant() -> None:
    """It is counted, and not kept twice."""
    assert kind_of(entity("a", city="Turku"), entity("b", City=" turku ")) == "redundancy"


@given(st.floats(0, 1))
def test_a_dispute_raises_importance_and_never_makes_a_core_rule(importance: float) -> None:
    """What somebody must look at counts more; only a person lays down a rule, and only a person shakes it."""
    before = memory("x", importance=importance)
    after = disputed(before)
    if importance >= 0.9:
        assert after == before
    else:
        assert after.status == "disputed"
        assert importance <= after.importance <= max(importance, 0.89)
    assert disputed(after) == after
    assert disputed(memory("x", status="deleted")).status == "deleted"


def test_a_settled_pair_opposes_no_more_unless_both_are_kept() -> None:
    """Whoever decided that both are worth knowing wants to see the one with the other."""

    def link(source: str, kind: LinkType, target: str, reason: str = "") -> Link:
        return Link(source_id=source, type=kind, target_id=target, reason=reason)

    links = [link("a", "contradicts", "b"), link("c", "may_contradict", "a"), link("a", "related", "d")]
    assert opposing(links) == {frozenset("ab"), frozenset("ac")}
    over = [*links, link("b", "settled", "a", "keep_both"), link("a", "settled", "c", "add")]
    assert opposing(over) == set()
    assert opposing(over, shown=True) == {frozenset("ab")}
    assert settled(over) == {frozenset("ab"): "keep_both", frozenset("ac"): "add"}
    assert pair_of(links[0]) == frozenset("ab")


@pytest.mark.requirement("G7", "K4")
@pytest.mark.parametrize(
    ("one", "other", "contrary"),
    [
        ("Never deploy on Fridays.", "Deploy on Fridays.", True),
        ("禁止在周五部署。", "周五可以部署。", True),
        ("必須使用 PostgreSQL。", "不要使用 PostgreSQL。", True),
        ("Immer vor dem Mittag testen.", "Nicht vor dem Mittag testen.", True),
        ("Siempre pide confirmación al cliente.", "Nunca pide confirmación al cliente.", True),
        ("Never deploy on Fridays.", "Deploy on Mondays.", False),
        ("Never deploy on Fridays.", "Don't deploy on Fridays.", False),
        ("每次提交都要写测试。", "不要在会议上吃东西。", False),
        ("周五部署。", "周六部署。", False),
    ],
)
def test_two_rules_are_held_against_each_other_where_one_forbids_what_the_other_does_not(
    one: str, other: str, contrary: bool
) -> None:
    """In any language: a rule that forbids and one that asks for the same cannot both be followed."""
    rules = [memory(content=text, memory_class="policy") for text in (one, other)]
    for new, old in (rules, reversed(rules)):
        finding = compare(new, old)
        assert (finding is not None and finding.kind == "contradiction") is contrary
    assert compare(memory(content=one), memory(content=other)) is None, "a sentence that is no rule is not read"
