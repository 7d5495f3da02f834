"""The services of the MEK protocol: its interfaces to the letter, over a kit and a scope."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Optional, Union, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remegraph import InputError, MemoryKit, NotFoundError, Scope, Settings
from remegraph.adapters.services import (
    BaseMemoryService,
    KnowledgeExchange,
    KnowledgeService,
    MemoryService,
    RetrievalOptions,
    RetrievalType,
    RetrievedItem,
)
from remegraph.demo import ANN, XIAOLIN, play
from remegraph.errors import SkillError
from remegraph.models import (
    Condition,
    KnowledgeItem,
    MemoryItem,
    Skill,
    SkillStep,
    StepPattern,
)
from remegraph.models.forms import item_of, revised
from remegraph.testing import InMemoryVectorIndex
from tests.talk import NOON, SHARED_KEY, open_kit, said

DOCUMENT = """
class KnowledgeService(ABC):
    @abstractmethod
    def share(self, query: str, context: Optional[Dict[str, object]] = None) -> List[KnowledgeItem]:
        pass

    @abstractmethod
    def absorb(self, knowledge_items: List[KnowledgeItem]) -> List[str]:
        pass


class BaseMemoryService(ABC):
    @abstractmethod
    def add(self, input_data: Union[str, Dict[str, Any]], **kwargs) -> List[str]:
        pass

    @abstractmethod
    def retrieve(self, query: str, retrieval_type: RetrievalType, options: RetrievalOptions) -> List[MemoryItem]:
        pass

    @abstractmethod
    def delete(self, memory_id: str) -> bool:
        pass

    @abstractmethod
    def update(self, memory_item: MemoryItem) -> str:
        pass
"""
"""The interfaces as the protocol writes them, sections 2.1.5 and 2.3."""
NAMES = {
    "ABC": ABC,
    "abstractmethod": abstractmethod,
    "Any": Any,
    "Dict": dict,
    "List": list,
    "Optional": Optional,
    "Union": Union,
    "KnowledgeItem": KnowledgeItem,
    "MemoryItem": MemoryItem,
    "RetrievalOptions": RetrievalOptions,
    "RetrievalType": RetrievalType,
}
ALL = RetrievalOptions()
EXACT, SEMANTIC = RetrievalType.EXACT, RetrievalType.SEMANTIC


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryKit]:
    """One kit; each test remembers for a user of its own."""
    with open_kit(tmp_path_factory.mktemp("services")) as opened:
        yield opened


@pytest.fixture
def user(request: pytest.FixtureRequest) -> Scope:
    """A user whom no other test knows."""
    return Scope(user=request.node.name, agent=f"agent of {request.node.name}")


@pytest.fixture
def service(kit: MemoryKit, user: Scope) -> MemoryService:
    """The memory of this test's user."""
    return MemoryService(kit, user)


def verbs(interface: type) -> frozenset[str]:
    """What an interface asks for."""
    asked: frozenset[str] = vars(interface)["__abstractmethods__"]
    return asked


def fact(name: str, definition: str, **fields: Any) -> dict[str, Any]:
    """An item about a concept, as JSON."""
    return {"memory_type": "semantic", "content": {"concept_name": name, "definition": definition}, **fields}


def words(service: MemoryService, query: str, kind: RetrievalType = SEMANTIC) -> list[MemoryItem]:
    """What is found, without what is known about it."""
    return [found.item for found in service.retrieve(query, kind, ALL) if isinstance(found, RetrievedItem)]


@pytest.mark.requirement("K6")
@pytest.mark.parametrize("ours", [BaseMemoryService, KnowledgeService])
def test_the_interfaces_are_those_of_the_protocol_to_the_letter(ours: type) -> None:
    """Code that was written for the protocol runs on this memory, keyword arguments included."""
    written: dict[str, Any] = dict(NAMES)
    exec(DOCUMENT, written)  # the text above
    theirs = written[ours.__name__]
    assert verbs(ours) == verbs(theirs)
    for name in verbs(theirs):
        mine, protocol = getattr(ours, name), getattr(theirs, name)
        shape = [(each.name, each.kind, each.default) for each in inspect.signature(mine).parameters.values()]
        assert shape == [
            (each.name, each.kind, each.default) for each in inspect.signature(protocol).parameters.values()
        ]
        hints = get_type_hints(mine, dict(NAMES))
        assert {key: hints[key] for key in hints if key != "kwargs"} == get_type_hints(protocol)


@pytest.mark.requirement("K6")
@pytest.mark.parametrize("service", [MemoryService, KnowledgeExchange])
def test_the_services_take_what_their_interfaces_take(service: type) -> None:
    """An argument under another name would break callers who name their arguments."""
    (interface,) = service.__bases__
    for name in verbs(interface):
        assert list(inspect.signature(getattr(service, name)).parameters) == list(
            inspect.signature(getattr(interface, name)).parameters
        )
        assert inspect.iscoroutinefunction(getattr(service, f"a{name}"))


@pytest.mark.requirement("K6")
@pytest.mark.parametrize("kind", RetrievalType)
def test_each_retrieval_type_finds_what_was_added(service: MemoryService, kind: RetrievalType) -> None:
    """The four types of the protocol, each over the same memories."""
    (memory_id,) = service.add(fact("apple", "An apple is a fruit that grows on trees."))
    found = service.retrieve("apple", kind, ALL)
    assert [item.memory_id for item in found] == [memory_id]
    (item,) = found
    assert isinstance(item, RetrievedItem)
    assert (item.standing, item.summary) == ("current", "An apple is a fruit that grows on trees.")
    assert 0 < (item.confidence or 0) <= 1


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    "content",
    [
        ("profile", {"entity_name": "Ann", "entity_type": "user", "attributes": {"habits": ["early runs"]}}),
        ("画像", {"entity_name": "小林", "entity_type": "user", "attributes": {"偏好": ["红色"]}, "备注": {"x": [1]}}),
        ("语义", {"concept_name": "苹果", "definition": "一种水果", "properties": {"颜色": "红色"}}),
        ("情景", {"event_summary": "周一构建失败。", "timestamp": "2025-03-03T09:00:00+08:00", "learnings": "锁定版本"}),
        ("工作流", {"task_description": "扫码支付", "workflow_name": "支付", "steps": [{"name": "扫码"}]}),
        ("episode", {"event_summary": "The lift stood still.", "location": "Porto", "participants": ["Ann", "Bo\x00"]}),
        ("workflow", {"task_description": "deploy", "workflow_name": "ship", "steps": [{"name": "build", "details": {"n": 1}}]}),
    ],
    ids=lambda content: content[0],
)  # fmt: skip
def test_an_item_that_was_added_is_retrieved_as_it_was(service: MemoryService, content: tuple[str, Any]) -> None:
    """Form, time, importance, fields of their own: what goes in comes out, in English and Chinese."""
    given = {"记忆类型": content[0], "时间戳": "2025-03-01T10:00:00+01:00", "内容主体": content[1], "重要性等级": "高"}
    (memory_id,) = service.add(given)
    (found,) = words(service, memory_id, EXACT)
    assert found == MemoryItem.model_validate({**given, "memory_id": memory_id})
    assert service.update(found) == memory_id
    assert words(service, memory_id, EXACT) == [found]


@pytest.mark.requirement("K6")
def test_what_is_said_twice_is_one_memory_that_knows_both(service: MemoryService) -> None:
    """Redundancy: the protocol wants a richer memory instead of a second one."""
    (first,) = service.add(fact("apple", "An apple is a fruit."))
    again = fact("apple", "An apple is a fruit.")
    again["content"] |= {"source": {"book": "pomology"}}
    assert service.add(again) == [first]
    (item,) = words(service, first, EXACT)
    assert item.content.model_extra == {"source": {"book": "pomology"}}


@pytest.mark.requirement("K6")
def test_an_added_contradiction_names_both_memories(kit: MemoryKit, service: MemoryService, user: Scope) -> None:
    """The protocol's own example: who prefers red and hates red. Both ids come back, and both wait until somebody decides."""
    red = {"entity_name": "Ann", "entity_type": "user", "attributes": {"preferences": ["red"]}}
    hated = {"entity_name": "Ann", "entity_type": "user", "attributes": {"dislikes": ["red"]}}
    (old,) = service.add({"memory_type": "profile", "content": red})
    new, other = service.add({"memory_type": "profile", "content": hated})
    assert other == old
    assert new != old
    assert {kit.explain(each, scope=user).status for each in (old, new)} == {"disputed"}
    (conflict,) = kit.conflicts.list(scope=user)
    kit.conflicts.resolve(conflict.conflict_id, "supersede", scope=user, by="Ann")
    with pytest.raises(InputError, match="is superseded"):
        service.update(MemoryItem.model_validate(fact("x", "x", memory_id=old, timestamp=NOON)))


def test_what_an_item_says_of_the_past_replaces_nothing_said_since(
    kit: MemoryKit, service: MemoryService, user: Scope
) -> None:
    """An old item that arrives late must not undo what is known better today."""
    red = {"entity_name": "Ann", "entity_type": "user", "attributes": {"preferences": ["red"]}}
    hated = {"entity_name": "Ann", "entity_type": "user", "attributes": {"dislikes": ["red"]}}
    (new,) = service.add({"memory_type": "profile", "content": red, "timestamp": NOON.isoformat()})
    late, other = service.add({"memory_type": "profile", "content": hated, "timestamp": "2024-01-01T00:00:00Z"})
    assert other == new
    assert {kit.explain(each, scope=user).status for each in (late, new)} == {"disputed"}
    assert len(kit.conflicts.list(scope=user)) == 1


@pytest.mark.requirement("K6")
def test_an_update_is_a_new_version_with_the_item_as_its_evidence(
    kit: MemoryKit, service: MemoryService, user: Scope
) -> None:
    """Nothing is overwritten: the old words can be read back, and who changed them."""
    (memory_id,) = service.add(fact("apple", "An apple is a fruit.", importance="低"))
    (item,) = words(service, memory_id, EXACT)
    content = item.content.evolve(definition="An apple is a red fruit.")
    changed = item.evolve(content=content, importance="high", timestamp=NOON - timedelta(days=3))
    assert service.update(changed) == memory_id
    assert words(service, "red fruit") == [changed]

    trace = kit.trace(memory_id, scope=user)
    assert [each.content for each in trace.versions] == ["An apple is a fruit.", "An apple is a red fruit."]
    assert [quote.words for quote in trace.quotes] == [each.content for each in trace.versions]
    assert [event.action for event in trace.events if event.version == 2] == ["update"]
    assert trace.missing == ()
    evidence = trace.quotes[-1].message
    assert (evidence.time, evidence.recorded_at, trace.memory.recorded_at) == (changed.timestamp, NOON, NOON)
    assert service.update(changed) == memory_id
    assert len(kit.trace(memory_id, scope=user).versions) == 2


@pytest.mark.requirement("K6")
def test_an_update_that_contradicts_another_memory_is_marked(
    kit: MemoryKit, service: MemoryService, user: Scope
) -> None:
    """A correction by id must not bring two truths that nobody is told of."""
    ids = []
    for told in ({"lives_in": "Porto"}, {"works_as": "nurse"}):
        profile = {"entity_name": "Ann", "entity_type": "user", "attributes": told}
        ids += service.add({"memory_type": "profile", "content": profile})
    ann, other = ids
    (item,) = words(service, other, EXACT)
    service.update(item.evolve(content=item.content.evolve(attributes={"lives_in": "Lisbon"})))
    assert {kit.explain(each, scope=user).status for each in (ann, other)} == {"disputed"}


@pytest.mark.requirement("K6")
def test_an_id_that_is_not_here_is_not_taken_over(kit: MemoryKit, service: MemoryService) -> None:
    """Who could choose ids could plant a memory under one that somebody else relies on."""
    stranger = MemoryService(kit, Scope(user="stranger"))
    (theirs,) = stranger.add("The stranger likes tea.")
    item = MemoryItem.model_validate(fact("pear", "A pear is a fruit.", memory_id=theirs, timestamp=NOON))
    ours = service.update(item)
    assert ours != theirs
    assert words(stranger, theirs, EXACT)[0].memory_id == theirs
    assert [found.memory_id for found in words(service, "pear")] == [ours]


@pytest.mark.requirement("K6")
def test_delete_takes_back_what_is_ours_and_says_of_all_else_that_it_is_not_there(
    kit: MemoryKit, service: MemoryService, user: Scope
) -> None:
    """Whether a memory of somebody else exists must not be learned from the answer."""
    stranger = MemoryService(kit, Scope(user="another stranger"))
    (theirs,) = stranger.add("The stranger likes tea.")
    (ours,) = service.add("Ann likes tea.")
    assert (service.delete("nowhere"), service.delete(theirs), service.delete(ours)) == (False, False, True)
    assert words(service, ours, EXACT) == []
    assert kit.explain(ours, scope=user).status == "deleted"
    assert len(words(stranger, theirs, EXACT)) == 1
    assert (
        service.update(MemoryItem.model_validate(fact("Ann", "Ann likes tea.", memory_id=ours, timestamp=NOON))) != ours
    )


def test_links_are_seen_and_stated_by_items(kit: MemoryKit, service: MemoryService, user: Scope) -> None:
    """related_memory_ids and causal_chain are the protocol's associative network: both ways."""
    (cause,) = service.add({"memory_type": "episode", "content": {"event_summary": "The power went out."}})
    assert kit.explain(cause, scope=user).layer == "episodic"
    (gone,) = service.add("Ann took the stairs.")
    service.delete(gone)
    effect = {"event_summary": "The lift stood still.", "causal_chain": {"precedent": cause, "consequence": gone}}
    result = kit.forms.add({"memory_type": "episode", "content": effect, "related_memory_ids": [cause]}, scope=user)
    assert result.memory is not None
    assert result.warnings == (f"It is linked with memories that are not here: {gone}.",)
    first, second = kit.forms.view([cause, result.memory.memory_id], scope=user)
    assert first.related_memory_ids == (second.memory_id,)
    assert second.related_memory_ids == (cause,)
    assert [(link.source_id, link.type) for link in kit.trace(cause, scope=user).links if link.type == "causes"] == [
        (cause, "causes")
    ]
    with pytest.raises(NotFoundError, match="no memory 'elsewhere'"):
        service.update(first.evolve(related_memory_ids=(*first.related_memory_ids, "elsewhere")))


def test_a_workflow_that_can_be_executed_is_a_skill(kit: MemoryKit, service: MemoryService, user: Scope) -> None:
    """Steps with tools and a postcondition: the next agent chooses and executes it, instead of reading prose."""
    step = SkillStep(name="scan", step_pattern=StepPattern(tool="scan", args={"order": "{order}"}))
    skill = Skill(name="pay", task="pay an order", steps=(step,), postconditions=(Condition(field="paid"),))
    taught = kit.skills.add(skill, scope=user)
    (item,) = kit.forms.view([taught.memory_id], scope=user)

    other = Scope(user="other", agent="remy")
    (memory_id,) = MemoryService(kit, other).add(item)
    assert kit.skills.get(memory_id, scope=other) == skill
    assert words(MemoryService(kit, other), memory_id, EXACT) == [item.evolve(memory_id=memory_id)]

    assert service.update(item) == taught.memory_id
    renamed = item.evolve(content=item.content.evolve(workflow_name="charge"))
    with pytest.raises(SkillError, match="holds the skill 'pay'"):
        service.update(renamed)
    longer = item.content.evolve(task_description="pay an order by code")
    assert service.update(item.evolve(content=longer, importance="high")) == taught.memory_id
    assert kit.skills.get(taught.memory_id, scope=user).task == "pay an order by code"
    (now,) = kit.forms.view([taught.memory_id], scope=user)
    assert (now.importance, service.update(now.evolve(importance="low"))) == ("high", taught.memory_id)
    assert kit.forms.view([taught.memory_id], scope=user) == (now.evolve(importance="low"),)
    assert kit.skills.get(taught.memory_id, scope=user).task == "pay an order by code"


def test_a_conversation_and_a_statement_are_taken_up_too(service: MemoryService, kit: MemoryKit, user: Scope) -> None:
    """`add` is the one entrance: raw business data, not items alone."""
    (first,) = service.add({"content": "Ann likes tea.", "importance": "高"}, key="drinks", tags=["drinks"])
    assert kit.explain(first, scope=user).memory.importance == 0.8
    learned = service.add({"messages": [said("I live in Porto.")]})
    assert [kit.explain(each, scope=user).memory.content for each in learned] == ["Ann: I live in Porto."]
    assert service.add("Ann likes tea.") == [first]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "nothing to remember"),
        ({"text": "x"}, "nothing to remember"),
        (7, "of type int"),
        ("  ", "statement is empty"),
        ({"content": "x", "colour": "red"}, "A statement has no colour"),
        ({"messages": [], "colour": "red"}, "A conversation has no colour"),
        ({"memory_type": "profile", "记忆类型": "画像"}, "given twice"),
        ({"memory_type": "profile", "content": {"entity_name": "x"}}, r"item\.content\.entity_type cannot be used"),
        ({"memory_type": "dream", "content": {}}, r"item\.memory_type cannot be used"),
        ({"memory_type": "episode", "content": {"event_summary": " "}}, "statement is empty"),
        ({"memory_type": "episode", "content": {"event_summary": "x", "session": "s"}}, "name that remegraph uses itself"),
        ({"memory_type": "episode", "content": {"event_summary": "x", "timestamp": "2025-01-01T00:00:00"}}, "time zone"),
        ({"memory_type": "semantic", "content": {"concept_name": "x", "definition": "x" * 60_000}}, "too large"),
        ({"knowledge_id": "k", "memory_type": "semantic"}, r"item\.title cannot be used"),
    ],
)  # fmt: skip
def test_input_that_is_nothing_is_refused_and_changes_nothing(
    service: MemoryService, kit: MemoryKit, user: Scope, given: Any, problem: str
) -> None:
    """A typed error that names the field, at the door."""
    with pytest.raises(InputError, match=problem):
        service.add(given)
    assert kit.memories(scope=user) == ()


@pytest.mark.parametrize(
    ("kind", "options", "problem"),
    [("psychic", ALL, "no retrieval type"), (EXACT, {"limit": 3}, "options is of type dict")],
)
def test_retrieval_says_what_it_cannot_do(service: MemoryService, kind: Any, options: Any, problem: str) -> None:
    """A mistyped way of searching must not fall back to another in silence."""
    with pytest.raises(InputError, match=problem):
        service.retrieve("tea", kind, options)


@pytest.mark.requirement("K6")
async def test_what_one_agent_shares_another_absorbs(kit: MemoryKit, user: Scope) -> None:
    """The two calls of the protocol, between two agents of one person; async like sync."""
    scout = user.evolve(agent="scout")
    MemoryService(kit, scout).add(fact("release", "A release is tagged before it is announced.", importance="high"))
    shared = KnowledgeExchange(kit, scout).share("release", {"k": 5})
    assert [item.source_agent for item in shared] == ["scout"]
    assert await KnowledgeExchange(kit, scout).ashare("release") == shared

    service = MemoryService(kit, user)
    absorbed = KnowledgeExchange(kit, user).absorb(shared)
    assert len(absorbed) == 1
    memory = kit.explain(absorbed[0], scope=user).memory
    assert memory.origin is not None
    assert memory.origin.agents == ("scout",)
    assert await KnowledgeExchange(kit, user).aabsorb(shared) == []
    assert (service.add(shared[0]), await service.aadd(json.loads(shared[0].to_json()))) == ([], [])


@pytest.mark.requirement("K1", "K6")
def test_items_survive_both_databases(ledger_url: str, tmp_path: Path) -> None:
    """NUL and lone surrogates, which PostgreSQL takes in no text: an item comes back as it was, and can be changed."""
    content = {"task_description": "ship\x00\ud800", "workflow_name": "部署", "steps": [{"name": "s", "n": "\x00"}]}
    settings = Settings(home=tmp_path, ledger_url=ledger_url, journal_key=SHARED_KEY)
    with MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit:
        service = MemoryService(kit, Scope(user="ann"))
        (memory_id,) = service.add({"memory_type": "workflow", "content": content, "timestamp": NOON.isoformat()})
        (item,) = words(service, memory_id, EXACT)
        assert item == MemoryItem.model_validate(
            {"memory_id": memory_id, "memory_type": "workflow", "timestamp": NOON, "content": content}
        )
        changed = item.evolve(content=item.content.evolve(domain="\ud800"), importance="low")
        assert service.update(changed) == memory_id
        assert words(service, "ship", EXACT) == [changed]
        assert service.delete(memory_id)


HOSTILE = st.sampled_from(
    ["ann", "Ann", "ann ", "an", "ann%", "ann' OR 1=1 --", "../ann", "*", "ann:remy", "{user}", "安"]
)


@pytest.mark.requirement("K6")
@given(mine=HOSTILE, theirs=HOSTILE, agents=st.tuples(HOSTILE, HOSTILE), tenants=st.tuples(HOSTILE, HOSTILE))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_call_leads_out_of_its_scope(
    kit: MemoryKit, mine: str, theirs: str, agents: tuple[str, str], tenants: tuple[str, str]
) -> None:
    """Whatever users, agents and tenants are called: what one has, no other finds, changes or deletes."""
    one = Scope(user=mine, agent=agents[0], tenant=tenants[0])
    other = Scope(user=theirs, agent=agents[1], tenant=tenants[1])
    here, there = MemoryService(kit, one), MemoryService(kit, other)
    (memory_id, *_) = here.add(fact("secret", f"The secret of {one.user!r} is kept."))
    (item,) = words(here, memory_id, EXACT)
    if one == other:
        return
    for kind in RetrievalType:
        assert memory_id not in {found.memory_id for found in there.retrieve("secret", kind, ALL)}
    assert words(there, memory_id, EXACT) == []
    assert not there.delete(memory_id)
    assert there.update(item.evolve(importance="low")) != memory_id
    assert words(here, memory_id, EXACT) == [item]


@pytest.mark.requirement("K1")
def test_every_memory_of_the_demo_is_seen_as_an_item_and_comes_back(kit: MemoryKit) -> None:
    """Real conversations, English and Chinese: each memory goes through JSON and back onto itself unchanged."""
    play(kit)
    kinds = set()
    for scope in (ANN.scope, XIAOLIN.scope):
        memories = kit.memories(scope=scope)
        assert memories
        archive = kit.context.parts().archive
        links = archive.links(archive.visible(scope), [memory.memory_id for memory in memories])
        for memory in memories:
            item = item_of(memory, links)
            assert revised(memory, MemoryItem.from_json(item.to_json()), links) == memory
            kinds.add(item.memory_type)
    assert len(kinds) > 1
