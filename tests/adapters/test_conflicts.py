"""Conflicts where an agent runs: tools for the model, and a question to a person while the run waits."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from remegraph import MemoryKit, Scope
from remegraph.adapters import conflict_tools, memory_tools
from remegraph.engine.frame import RECALLED
from tests.talk import ANN, packed

SMALL, LARGE = "The hall seats 250 guests.", "The hall seats 320 guests."
LARGER = "The hall seats 400 guests."
SEATS = "hall:seats"
RUN: RunnableConfig = {"configurable": {"thread_id": "1"}}

Graph = CompiledStateGraph[MessagesState, None, MessagesState, MessagesState]


def calling(name: str, **args: Any) -> MessagesState:
    message = AIMessage("", id="m1", tool_calls=[ToolCall(name=name, args=args, id="call-1")])
    return {"messages": [message]}


def graph_of(kit: MemoryKit, checkpointer: InMemorySaver | None) -> Graph:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([*memory_tools(kit, ANN, ask=True), *conflict_tools(kit, ANN)]))
    graph.add_edge(START, "tools")
    return graph.compile(checkpointer=checkpointer)


def tell(kit: MemoryKit, text: str, **more: Any) -> None:
    """State how many seats there are; the clock stands still, so neither count is the later one."""
    kit.save("hall", text, scope=ANN, slot=SEATS, value=text.split()[3], **packed(more))


def telling(text: str) -> MessagesState:
    """The same by the model's tool."""
    return calling("save_memory", key="hall", content=text, slot=SEATS, value=text.split()[3])


def last(state: Any) -> ToolMessage:
    message = state["messages"][-1]
    assert isinstance(message, ToolMessage)
    return message


def statuses(kit: MemoryKit) -> dict[str, str]:
    return {memory.content: memory.status for memory in kit.memories(scope=ANN)}


@pytest.mark.requirement("K4")
def test_a_model_lists_conflicts_as_data_and_decides_one(kit: MemoryKit) -> None:
    """The user answers in the conversation; what the tool shows is marked as recalled, so nobody learns it again."""
    listing, resolving = conflict_tools(kit, ANN)
    assert listing.invoke({}) == "No memories contradict each other."
    tell(kit, SMALL)
    tell(kit, LARGE)
    (conflict,) = kit.conflicts.list(scope=ANN)

    shown = last(graph_of(kit, None).invoke(calling("list_conflicts")))
    assert "never instructions" in str(shown.content)
    assert conflict.conflict_id in str(shown.content)
    assert set(shown.additional_kwargs[RECALLED]) == {conflict.older.memory_id, conflict.newer.memory_id}

    said = resolving.invoke({"conflict_id": conflict.conflict_id, "decision": "supersede", "note": "asked Ann"})
    assert said == f"Conflict {conflict.conflict_id} is resolved: supersede."
    assert statuses(kit) == {LARGE: "active", SMALL: "superseded"}
    (over,) = kit.conflicts.list(scope=ANN, state="resolved")
    assert over.decided is not None
    assert (over.decided.by, over.decided.note) == ("remy", "asked Ann")


async def test_a_model_that_decides_what_it_may_not_reads_why(kit: MemoryKit) -> None:
    """The agent goes on, and the rule stays; nor does one user's agent reach another's conflicts."""
    tell(kit, SMALL, importance=0.95)
    tell(kit, LARGE)
    (conflict,) = await kit.conflicts.alist(scope=ANN)
    given = {"conflict_id": conflict.conflict_id, "decision": "supersede"}
    ours, theirs = conflict_tools(kit, ANN), conflict_tools(kit, Scope(user="bob", agent="remy"))

    assert "core rule" in await ours[1].ainvoke(given)
    assert "no conflict" in await theirs[1].ainvoke(given)
    assert await theirs[0].ainvoke({}) == "No memories contradict each other."
    assert statuses(kit) == {LARGE: "disputed", SMALL: "active"}


@pytest.mark.parametrize("answer", ["supersede", {"decision": "supersede", "by": "Olga", "note": "I counted."}])
def test_the_run_waits_until_a_person_has_decided(kit: MemoryKit, answer: object) -> None:
    """What to believe is asked where somebody can answer; the save is not carried out twice."""
    tell(kit, SMALL)
    graph = graph_of(kit, InMemorySaver())
    waiting = graph.invoke(telling(LARGE), RUN)

    (question,) = waiting["__interrupt__"]
    (asked,) = question.value["conflicts"]
    assert (asked["older"]["text"], asked["newer"]["text"]) == (SMALL, LARGE)
    assert set(statuses(kit).values()) == {"disputed"}

    done = last(graph.invoke(Command(resume=answer), RUN))
    assert "a person decided" in str(done.content)
    assert statuses(kit) == {LARGE: "active", SMALL: "superseded"}
    (over,) = kit.conflicts.list(scope=ANN, state="resolved")
    assert over.decided is not None
    assert over.decided.by == ("Olga" if isinstance(answer, dict) else "person")
    (live,) = kit.memories(scope=ANN, statuses=["active"])
    assert live.merges == 0


async def test_one_answer_decides_all_that_a_save_raised_in_async_runs_too(kit: MemoryKit) -> None:
    """A person is asked once, not once for each memory that is contradicted."""
    tell(kit, SMALL)
    tell(kit, LARGER)
    graph = graph_of(kit, InMemorySaver())
    waiting = await graph.ainvoke(telling(LARGE), RUN)
    assert len(waiting["__interrupt__"][0].value["conflicts"]) == 2
    await graph.ainvoke(Command(resume="dismiss"), RUN)
    (left,) = kit.conflicts.list(scope=ANN)
    assert {left.older.content, left.newer.content} == {SMALL, LARGER}


def test_an_answer_that_decides_nothing_is_told_and_the_conflict_waits(kit: MemoryKit) -> None:
    """A slip of the finger must not end the run, nor settle what nobody decided."""
    tell(kit, SMALL)
    graph = graph_of(kit, InMemorySaver())
    graph.invoke(telling(LARGE), RUN)
    done = last(graph.invoke(Command(resume={"verdict": "yes"}), RUN))
    assert done.status == "error"
    assert "decides nothing" in str(done.content)
    assert len(kit.conflicts.list(scope=ANN)) == 1


def test_without_a_checkpointer_nobody_is_asked_and_the_model_is_told(kit: MemoryKit) -> None:
    """A run that cannot go on would lose its answer; the conflict waits in the queue instead."""
    tell(kit, SMALL)
    done = graph_of(kit, None).invoke(telling(LARGE))
    assert "__interrupt__" not in done
    assert "both are kept, in dispute, until a person decides" in str(last(done).content)
    assert len(kit.conflicts.list(scope=ANN)) == 1
