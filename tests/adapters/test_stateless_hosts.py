"""Hosts that keep no state: the whole conversation comes with each request, without ids, and LangGraph gives it new ones."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from remegraph import MemoryKit, Scope
from remegraph.adapters import MemoryMiddleware
from remegraph.testing import ScriptedChatModel
from tests.adapters.hosts import WIRINGS, Host, thread
from tests.talk import ANN

pytestmark = pytest.mark.requirement("C7", "C8", "X18")

Line = dict[str, Any]

TOLD = ["I like tea.", "I like cake.", "I have a dog."]


def both(*texts: str) -> list[str]:
    return [each for text in texts for each in (text, f"You said: {text}")]


@pytest.fixture(params=WIRINGS)
def host(kit: MemoryKit, request: pytest.FixtureRequest) -> Host:
    return Host(kit, request.param, stateless=True)


def talk(host: Host, text: str, before: list[Line], *, last: int | None = None, **config: Any) -> None:
    """Send a conversation as a browser does, or its last messages, and note the answer."""
    before.append({"role": "user", "content": text})
    run: RunnableConfig = {"configurable": {"thread_id": "1", **config}}
    state = host.graph.invoke({"messages": before[-last:] if last else before}, run, context=ANN)
    before.append({"role": "assistant", "content": state["messages"][-1].text})


@pytest.mark.parametrize("last", [None, 3])
def test_what_is_sent_again_with_each_request_is_recorded_once(host: Host, last: int | None) -> None:
    """As a chat in a browser does: all of it, or its last messages."""
    said: list[Line] = []
    for text in TOLD:
        talk(host, text, said, last=last)
    assert host.heard() == both(*TOLD)


def test_what_is_said_again_is_new(host: Host) -> None:
    said: list[Line] = []
    for text in ("Yes.", "Yes.", "No.", "Yes."):
        talk(host, text, said)
    assert host.heard() == both("Yes.", "Yes.", "No.", "Yes.")


def test_a_host_that_sends_the_newest_words_only_is_heard_each_time(host: Host) -> None:
    for _ in range(3):
        host.graph.invoke({"messages": [{"role": "user", "content": "Water the plants."}]}, thread("1"), context=ANN)
    assert host.heard() == both(*["Water the plants."] * 3)


def test_a_conversation_that_begins_alike_and_goes_on_otherwise_is_recorded_from_there_on(host: Host) -> None:
    """Another request edits the second question: what LangGraph knows by new ids is no edit."""
    said: list[Line] = []
    for text in TOLD[:2]:
        talk(host, text, said)
    talk(host, TOLD[2], said[:2])
    assert host.heard() == both(*TOLD)


def test_what_was_said_off_the_record_stays_off_it(host: Host) -> None:
    said: list[Line] = []
    talk(host, "I own a boat.", said)
    talk(host, "Between us: I am looking for another job.", said, memory="off")
    talk(host, "I like rye bread.", said)
    assert host.heard() == both("I own a boat.", "I like rye bread.")


def test_what_is_forgotten_does_not_come_back_with_the_next_request(host: Host) -> None:
    said: list[Line] = []
    talk(host, "The hint of my PIN is zebra.", said)
    host.kit.drain()
    for memory in host.kit.memories(scope=ANN):
        host.kit.forget(memory.memory_id, scope=ANN)
    talk(host, "I like rye bread.", said)
    assert "zebra" not in host.known("What is the hint of my PIN?")


def test_what_the_conversation_says_is_not_recalled_into_it(host: Host) -> None:
    """It would be paid for twice."""
    said: list[Line] = []
    for text in ("I keep a scarlet bicycle in Bergen.", "Where do I keep my bicycle?"):
        talk(host, text, said)
    assert "scarlet" not in host.shown[-1]


def test_calls_of_tools_that_a_browser_never_saw_are_recorded_once(kit: MemoryKit) -> None:
    """It is shown what was said, and sends that back."""

    @tool
    def look(at: str) -> str:
        """Look at something."""
        return f"The {at} is green."

    calls = [ToolCall(name="look", args={"at": at}, id=at) for at in ("door", "roof")]
    answers = [step for call in calls for step in (AIMessage("", tool_calls=[call]), AIMessage(f"See {call['id']}."))]
    model = ScriptedChatModel(script={"": answers})
    agent: Any = create_agent(model, [look], middleware=[MemoryMiddleware(kit, tools=False)], context_schema=Scope)
    said: list[Line] = []
    for text in ("Look at the door.", "And the roof?"):
        said.append({"role": "user", "content": text})
        state = agent.invoke({"messages": said}, thread("1"), context=ANN)
        said.append({"role": "assistant", "content": state["messages"][-1].text})
    texts = [message.text for message in kit.messages("1", scope=ANN)]
    door = ["Look at the door.", "", "The door is green.", "See door."]
    assert texts == [*door, "And the roof?", "", "The roof is green.", "See roof."]
