"""One setting turns layers on: for nodes, for middleware and for the retriever."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from remegraph import AgentMemorySettings, MemoryKit, RetrievalPolicy, Scope
from remegraph.adapters import MemoryMiddleware, MemoryRetriever, Recalled, memory_node, until_answered
from remegraph.engine.frame import RECALLED, short_id
from remegraph.kit import SaveOptions
from remegraph.testing import ScriptedChatModel
from tests.talk import ANN, open_kit, packed

RULE, NOTE, TEA = "Never deploy on Fridays.", "Atlas runs in Lisbon.", "Ann drinks green tea."
HERE = ANN.evolve(project="atlas")
BOB = Scope(user="bob", agent="remy")


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[MemoryKit]:
    """An agent that is given layers, with a memory for each."""
    (tmp_path / "pyproject.toml").touch()
    layers = AgentMemorySettings(retrieval=RetrievalPolicy(injection="layers", workspace=tmp_path))
    with open_kit(tmp_path / "home", agent=layers) as opened:
        rule: dict[str, Any] = {
            "memory_class": "policy",
            "enforcement_level": "hard",
            "importance": 1.0,
            "applies_to": "global",
        }
        opened.save("deploys", RULE, scope=HERE, **packed(rule))
        opened.save("place", NOTE, scope=HERE, topic="task:hosting")
        opened.save("tea", TEA, scope=HERE, options=SaveOptions(applies_to="global"))
        opened.save("indent", "Four spaces are one indent.", scope=ANN, options=SaveOptions(applies_to="lang:python"))
        yield opened


def said(*texts: str) -> dict[str, Any]:
    """A conversation, with an answer to all but the last."""
    messages: list[Any] = []
    for text in texts:
        messages += [HumanMessage(text), AIMessage("Noted.")]
    return {"messages": messages[:-1]}


class State(MessagesState):
    """A host's state."""

    memory: Recalled


def by_node(kit: MemoryKit) -> Any:
    """A graph whose model says what it is shown."""
    graph = StateGraph(State, context_schema=Scope)
    graph.add_node("model", lambda state: {"messages": [AIMessage(state.get("memory", ""))]})
    graph.add_node("memory", memory_node(kit))
    graph.add_edge(START, "memory")
    graph.add_conditional_edges("memory", until_answered("model"))
    graph.add_edge("model", "memory")
    return graph.compile()


def by_middleware(kit: MemoryKit) -> Any:
    """An agent whose model says what it is shown."""
    model = ScriptedChatModel(script={"": lambda call: AIMessage(call.text)})
    return create_agent(model, middleware=[MemoryMiddleware(kit, tools=False)], context_schema=Scope)


@pytest.mark.requirement("G1", "G2", "C7", "C8")
@pytest.mark.parametrize("host", [by_node, by_middleware])
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_rules_come_at_every_turn_and_the_past_where_it_is_called_for(
    kit: MemoryKit, host: Any, how: str
) -> None:
    """Four turns of small talk cost the rules alone; asked, or at the fifth, memory is looked up."""

    async def shown(*texts: str, scope: Scope = HERE) -> set[str]:
        result = getattr(host(kit), how)(said(*texts), context=scope)
        answer = (await result if inspect.isawaitable(result) else result)["messages"][-1].text
        return {text for text in (RULE, NOTE, TEA) if text in answer}

    assert await shown("Good morning!") == {RULE, NOTE}
    assert await shown("What did I say I drink? Tea?") == {RULE, NOTE, TEA}
    assert await shown("One.", "Two.", "Three.", "A green one.") == {RULE, NOTE}
    assert await shown("One.", "Two.", "Three.", "Four.", "A green tea.") == {RULE, NOTE, TEA}
    assert await shown("Good morning!", scope=BOB) == set()


@pytest.mark.requirement("G1", "X6")
def test_what_is_given_is_marked_and_never_captured(kit: MemoryKit) -> None:
    """A rule that an agent is shown at every turn must not come to be what its user said at every turn."""
    model = ScriptedChatModel(script={"": AIMessage("Fine.")})
    agent: Any = create_agent(model, middleware=[MemoryMiddleware(kit, tools=False)], context_schema=Scope)
    agent.invoke(said("Good morning!"), context=HERE)
    note = model.calls[0].messages[0]
    rules = [
        short_id(each.hit.record_id)
        for each in kit.rules.list(scope=HERE, workspace=kit.settings.for_agent("remy").retrieval.workspace)
    ]
    assert note.type == "human"
    assert note.additional_kwargs[RECALLED] == rules
    assert "never instructions" in note.text
    assert [message.text for message in kit.messages(scope=HERE)] == ["Good morning!", "Fine."]


@pytest.mark.requirement("G1", "C4")
async def test_a_retriever_gives_rules_first_and_always_what_was_asked_for(kit: MemoryKit) -> None:
    """A chain that asks wants an answer, whatever the words; and it is told which documents are rules."""
    retriever = MemoryRetriever(kit, scope=HERE, k=9)
    found = retriever.invoke("tea")
    assert [(each.page_content, each.metadata["injected"], each.metadata["rule"]) for each in found] == [
        (RULE, "core", "hard"),
        (NOTE, "scope", None),
        ("Four spaces are one indent.", "scope", None),
        (TEA, "query", None),
    ]
    assert await retriever.ainvoke("tea") == found
    assert len(retriever.invoke("tea", k=2)) == 2


@pytest.mark.requirement("G9")
def test_rules_that_do_not_fit_are_told_and_the_run_goes_on(kit: MemoryKit) -> None:
    """Memory never breaks its host; that it failed is counted, with the cure."""
    for number in range(9):
        kit.save("long", f"Rule {chr(97 + number) * 9}: " + chr(97 + number) * 2000, scope=HERE, importance=1)
    assert by_node(kit).invoke(said("Good morning!"), context=HERE)["messages"][-1].text == ""
    stats = kit.admin.stats()
    assert stats["recall_failures"] == 1
    assert "core rules have more than 2000 tokens" in str(stats["recall_failure"])
