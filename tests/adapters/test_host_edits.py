"""What a host does to words that are recorded already: it edits them, goes back behind them, trims them away."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deepagents.backends import FilesystemBackend
from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware
from deepagents.middleware.summarization import SummarizationMiddleware as DeepSummarizationMiddleware
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware, before_model
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Send

from remegraph import CapturePolicy, MemoryKit, Scope
from remegraph.adapters import MemoryMiddleware, memory_node, until_answered, with_memory
from remegraph.testing import ScriptedChatModel
from tests.adapters.hosts import WIRINGS, Host, State, echo, thread, words
from tests.talk import ANN, open_kit

pytestmark = pytest.mark.requirement("C7", "C8", "X1")


@pytest.fixture(params=WIRINGS)
def host(kit: MemoryKit, request: pytest.FixtureRequest) -> Host:
    return Host(kit, request.param)


# ---------------------------------------------------------------------------------------------------- edits


def test_an_edited_message_is_shown_in_its_newer_form_only(host: Host) -> None:
    """A person corrects what they said, or a host redacts it later: no thread and no depth shows what it was."""
    host.say("My daughter is called Emma and lives in Oslo.", id="m1")
    assert "Emma" in host.known("daughter")
    corrected = HumanMessage("My daughter is called Anna and lives in Rome.", id="m1")
    host.graph.update_state(thread("1"), {"messages": [corrected]})
    host.say("What is my daughter called?", name="1")
    host.say("What is my daughter called, please?", name="2")
    assert not any("Emma" in each and "You said" not in each for each in "\n".join(host.shown[1:]).splitlines())
    assert "Anna" in host.known("What is my daughter called?")
    assert "My daughter is called Emma" not in "\n".join(host.heard()[1:])


# ------------------------------------------------------------------------------------------------- rewinds

LIVED = "I live in Bergen and have a scarlet bicycle."
BOAT = "I bought a boat."
PLANE = "I bought a plane."
EITHER = "Was it a boat or a plane that I bought, and where is the scarlet bicycle?"


def both(*texts: str) -> list[str]:
    """What is heard of turns with these words."""
    return [each for text in texts for each in (text, f"You said: {text}")]


def test_a_fork_from_an_earlier_checkpoint_leaves_the_other_branch_out(host: Host) -> None:
    """The person went back and said something else: the boat was never bought."""
    host.say(LIVED)
    host.say(BOAT)
    assert "boat" in host.known(EITHER)
    host.say(PLANE, host.checkpoint(f"You said: {LIVED}"))
    assert "boat" not in host.shown[-1]
    assert host.heard() == both(LIVED, PLANE)
    known = host.known(EITHER)
    assert "boat" not in known
    assert "plane" in known
    assert "scarlet" in known


def test_what_was_learned_from_the_other_branch_alone_goes_with_it_and_comes_back_with_it(host: Host) -> None:
    """Memories, not only words; and the branch that is gone back to is as it was."""
    host.say(LIVED)
    host.say(BOAT)
    host.kit.drain()
    before = host.checkpoint(f"You said: {BOAT}")
    learned = {memory.content for memory in host.kit.memories(scope=ANN, statuses=["active"])}
    host.say(PLANE, host.checkpoint(f"You said: {LIVED}"))
    host.kit.drain()
    left = {memory.content for memory in host.kit.memories(scope=ANN, statuses=["active"])}
    host.say("Where is it?", before)
    host.kit.drain()
    back = {memory.content for memory in host.kit.memories(scope=ANN, statuses=["active"])}
    assert any("boat" in each for each in learned)
    assert not any("boat" in each for each in left)
    assert any("boat" in each for each in back)
    assert not any("plane" in each for each in back)
    assert host.heard() == both(LIVED, BOAT, "Where is it?")
    known = host.known(EITHER)
    assert "boat" in known
    assert "plane" not in known


def test_an_answer_that_is_made_again_replaces_the_first(kit: MemoryKit) -> None:
    """Nobody regenerates an answer that was right."""
    answers = iter(["It is in Oslo.", "It is in Bergen."])
    graph: Any = StateGraph(State, context_schema=Scope)
    graph.add_sequence(
        [("model", with_memory(kit, lambda _state: {"messages": [AIMessage(next(answers))]})), ("after", lambda _: {})]
    )
    graph.add_edge(START, "model")
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke({"messages": [HumanMessage("Where is my bicycle?")]}, thread("1"), context=ANN)
    before = next(each for each in compiled.get_state_history(thread("1")) if each.next == ("model",))
    compiled.invoke(None, before.config, context=ANN)
    assert [each.text for each in kit.messages("1", scope=ANN)] == ["Where is my bicycle?", "It is in Bergen."]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_an_answer_of_an_agent_that_is_made_again_replaces_the_first(kit: MemoryKit, how: str) -> None:
    """The hooks before the run do not run again then."""
    model = ScriptedChatModel(script={"": [AIMessage("It is in Oslo."), AIMessage("It is in Bergen.")]})
    agent: Any = create_agent(
        model, middleware=[MemoryMiddleware(kit)], context_schema=Scope, checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": [HumanMessage("Where is my bicycle?")]}, thread("1"), context=ANN)
    before = next(each for each in agent.get_state_history(thread("1")) if each.next == ("model",))
    run = getattr(agent, how)(None, before.config, context=ANN)
    await run if inspect.isawaitable(run) else run
    assert [each.text for each in kit.messages("1", scope=ANN)] == ["Where is my bicycle?", "It is in Bergen."]


def test_a_tail_that_is_removed_and_replaced_is_left_out(host: Host) -> None:
    """A button that says: take my last message back."""
    host.say(LIVED)
    host.say(BOAT)
    host.remove(BOAT, f"You said: {BOAT}")
    assert "boat" in host.known(EITHER), "to remove is not to replace"
    host.say(PLANE)
    assert "boat" not in host.shown[-1]
    assert host.heard() == both(LIVED, PLANE)
    assert "boat" not in host.known(EITHER)


def test_a_message_that_is_edited_in_the_past_takes_what_came_after_it_along(host: Host) -> None:
    """As in a chat where one's own message is edited, and the conversation goes on from there."""
    host.say(LIVED)
    host.say(BOAT, id="m2")
    host.say("It is in the harbour.")
    at = host.graph.update_state(host.checkpoint(BOAT), {"messages": [HumanMessage(PLANE, id="m2")]})
    host.graph.invoke(None, at, context=ANN)
    assert host.heard() in (both(LIVED, PLANE), [*both(LIVED), f"You said: {PLANE}", PLANE])
    known = host.known(f"{EITHER} It is in the harbour.")
    assert "boat" not in known
    assert "harbour" not in known
    assert "plane" in known


# -------------------------------------------------------------------------------------------- no rewinds


def facts(number: int) -> str:
    return f"My drawer number {number} holds the {chr(97 + number) * 4} key."


def known_facts(host: Host, count: int) -> int:
    """How many of so many facts a recall brings, each asked for by itself in another thread."""
    host.kit.drain()
    found = (host.kit.recall(facts(number), scope=ANN).context for number in range(count))
    return sum(f"{chr(97 + number) * 4} key" in context for number, context in enumerate(found))


def trimmer(first: int, last: int) -> AgentMiddleware[Any, Any, Any]:
    """Keeps the first messages and the last, as LangChain's own page on trimming does."""

    @before_model
    def trim(state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG001
        said = state["messages"]
        if len(said) <= first + last:
            return None
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *said[:first], *said[-last:]]}

    return trim


def summariser() -> AgentMiddleware[Any, Any, Any]:
    model = ScriptedChatModel(script={"": [AIMessage("They talked.")]})
    return SummarizationMiddleware(model, trigger=("messages", 6), keep=("messages", 2))


def deep_summariser(folder: Path) -> AgentMiddleware[Any, Any, Any]:
    """That of deepagents, which changes what the model sees and writes an event into the state."""
    model = ScriptedChatModel(script={"": [AIMessage("They talked.")]})
    made: AgentMiddleware[Any, Any, Any] = DeepSummarizationMiddleware(
        model, backend=FilesystemBackend(folder, virtual_mode=True), trigger=("messages", 6), keep=("messages", 2)
    )
    return made


@pytest.mark.parametrize(
    "compaction",
    [
        pytest.param(lambda _: summariser(), id="summarised"),
        pytest.param(deep_summariser, id="summarised by deepagents"),
        pytest.param(lambda _: PatchToolCallsMiddleware(), id="all replaced"),
        *(
            pytest.param(lambda _, first=first, last=last: trimmer(first, last), id=f"first {first} and last {last}")
            for first, last in ((0, 1), (0, 4), (1, 1), (1, 3), (2, 1))
        ),
    ],
)
def test_what_a_host_compacts_is_remembered(
    kit: MemoryKit, tmp_path: Path, compaction: Callable[[Path], AgentMiddleware[Any, Any, Any]]
) -> None:
    """To remember what the window lost is what memory is for: 20 facts are told, and 20 are known."""
    host = Host(kit, "middleware", compaction(tmp_path))
    for number in range(20):
        host.say(facts(number))
    assert isinstance(host.middleware[0], PatchToolCallsMiddleware) or len(host.model.calls[-1].messages) < 10
    assert host.heard() == both(*(facts(number) for number in range(20)))
    assert known_facts(host, 20) == 20


def test_what_is_taken_out_between_turns_is_remembered(host: Host) -> None:
    """A night job that keeps threads short; or one that takes a message out of the middle."""
    for number in range(4):
        host.say(facts(number))
    host.remove(facts(0), f"You said: {facts(0)}", facts(2))
    host.say(facts(4))
    host.graph.update_state(thread("1"), {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})
    host.say(facts(5))
    assert host.heard() == both(*(facts(number) for number in range(6)))
    assert known_facts(host, 6) == 6


def test_a_turn_that_is_trimmed_while_it_is_under_way_is_remembered(kit: MemoryKit) -> None:
    """An agent with many tool calls may lose the question that they are for."""

    @tool
    def look(at: str) -> str:
        """Look at something."""
        return f"The {at} is green."

    calls = [AIMessage("", tool_calls=[ToolCall(name="look", args={"at": at}, id=at)]) for at in ("door", "roof")]
    agent: Any = create_agent(
        ScriptedChatModel(script={"": [*calls, AIMessage("All green.")]}),
        [look],
        middleware=[MemoryMiddleware(kit, tools=False), trimmer(0, 2)],
        context_schema=Scope,
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [HumanMessage(LIVED)]}, thread("1"), context=ANN)
    assert LIVED not in [message.text for message in agent.get_state(thread("1")).values["messages"]]
    said = [message.text for message in kit.messages("1", scope=ANN)]
    assert said == [LIVED, "", "The door is green.", "", "The roof is green.", "All green."]


def test_branches_that_answer_at_the_same_time_are_no_rewind(kit: MemoryKit) -> None:
    """A graph asks two models at once; each node has memory around it."""
    graph: Any = StateGraph(State, context_schema=Scope)
    for name in ("left", "right"):
        graph.add_node(name, with_memory(kit, lambda _state, name=name: {"messages": [AIMessage(f"From the {name}.")]}))
        graph.add_edge(START, name)
    compiled = graph.compile(checkpointer=InMemorySaver())
    for text in (LIVED, BOAT):
        compiled.invoke({"messages": [HumanMessage(text)]}, thread("1"), context=ANN)
    said = [message.text for message in kit.messages("1", scope=ANN)]
    assert sorted(said) == sorted([LIVED, BOAT, *("From the left.", "From the right.") * 2])


def test_workers_that_are_sent_a_part_of_the_conversation_tell_no_rewind(kit: MemoryKit) -> None:
    """What a worker does not see is not gone."""
    graph: Any = StateGraph(State, context_schema=Scope)
    graph.add_node("model", with_memory(kit, lambda state: {"messages": [AIMessage(words(state["messages"]))]}))
    graph.add_node("worker", with_memory(kit, lambda _state: {"messages": [AIMessage("Looked into it.")]}))
    graph.add_edge(START, "model")
    graph.add_conditional_edges(
        "model", lambda state: [Send("worker", {"messages": state["messages"][:1]})], ["worker"]
    )
    compiled = graph.compile(checkpointer=InMemorySaver())
    for text in (LIVED, BOAT):
        compiled.invoke({"messages": [HumanMessage(text)]}, thread("1"), context=ANN)
    said = [message.text for message in kit.messages("1", scope=ANN)]
    assert sorted(said) == sorted([*both(LIVED, BOAT), "Looked into it.", "Looked into it."])


def test_an_agent_within_a_graph_tells_no_rewind(kit: MemoryKit) -> None:
    """Its middleware sees what the graph around it hands over: here, the newest question and the first."""
    model = ScriptedChatModel(script={"": [echo]})
    worker: Any = create_agent(model, middleware=[MemoryMiddleware(kit, tools=False)], context_schema=Scope)

    def ask(state: Any) -> dict[str, Any]:
        asked = [state["messages"][0], *state["messages"][-1:]]
        return {"messages": worker.invoke({"messages": asked}, context=ANN)["messages"][-1:]}

    graph: Any = StateGraph(State, context_schema=Scope)
    graph.add_node("memory", memory_node(kit))
    graph.add_node("worker", ask)
    graph.add_edge(START, "memory")
    graph.add_conditional_edges("memory", until_answered("worker"))
    graph.add_edge("worker", "memory")
    compiled = graph.compile(checkpointer=InMemorySaver())
    for text in (LIVED, BOAT, PLANE):
        compiled.invoke({"messages": [HumanMessage(text)]}, thread("1"), context=ANN)
    assert [message.text for message in kit.messages("1", scope=ANN)] == both(LIVED, BOAT, PLANE)


def test_without_a_checkpointer_a_list_tells_no_rewind(kit: MemoryKit) -> None:
    """Each call hands over what it likes: here, the first words and the newest, time and again."""
    graph: Any = StateGraph(State, context_schema=Scope)
    graph.add_node("model", with_memory(kit, lambda state: {"messages": [AIMessage(words(state["messages"]))]}))
    graph.add_edge(START, "model")
    compiled = graph.compile()
    first = HumanMessage(LIVED, id="m1")
    for text in (BOAT, PLANE):
        compiled.invoke({"messages": [first, HumanMessage(text)]}, thread("1"), context=ANN)
    said = [message.text for message in kit.messages("1", scope=ANN)]
    assert said == [LIVED, BOAT, f"You said: {BOAT}", PLANE, f"You said: {PLANE}"]


# ------------------------------------------------------------------------------------- where removing counts


@pytest.mark.parametrize("removed", ["hide", "erase"])
@pytest.mark.parametrize("wiring", WIRINGS)
def test_what_a_host_removes_is_hidden_or_erased_where_its_settings_say_so(
    tmp_path: Path, wiring: str, removed: Any
) -> None:
    """A host whose state is the truth: what it takes out shall not come back through memory."""
    with open_kit(tmp_path) as kit:
        kit.context.settings = kit.settings.evolve(capture=CapturePolicy(removed=removed))
        host = Host(kit, wiring)
        host.say(LIVED)
        host.say("My PIN is Quagmire.")
        assert "Quagmire" in host.known("PIN")
        host.remove("My PIN is Quagmire.", "You said: My PIN is Quagmire.")
        host.say("What was the PIN?")
        assert "Quagmire" not in host.shown[-1]
        assert host.heard() == both(LIVED, "What was the PIN?")
        assert "Quagmire" not in host.known("PIN is Quagmire")
        assert "Bergen" in host.known(EITHER)
    held = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    assert (b"Quagmire" in held) is (removed == "hide")


@pytest.mark.parametrize("removed", ["hide", "erase"])
def test_what_a_run_trims_goes_with_that_run_where_the_settings_say_so(tmp_path: Path, removed: Any) -> None:
    """And what comes after is as it was."""
    with open_kit(tmp_path) as kit:
        kit.context.settings = kit.settings.evolve(capture=CapturePolicy(removed=removed))
        host = Host(kit, "middleware", trimmer(0, 3))
        for number in range(4):
            host.say(facts(number))
        assert host.heard() == both(facts(2), facts(3))


def test_what_was_hidden_is_shown_again_once_the_host_has_it_again(tmp_path: Path) -> None:
    """Somebody removed a message, and put it back."""
    with open_kit(tmp_path) as kit:
        kit.context.settings = kit.settings.evolve(capture=CapturePolicy(removed="hide"))
        host = Host(kit, "middleware")
        host.say(LIVED, id="m1")
        host.say(BOAT)
        host.remove(LIVED)
        host.say(PLANE)
        assert LIVED not in host.heard()
        host.graph.update_state(thread("1"), {"messages": [HumanMessage(LIVED, id="m1")]})
        host.say("Well?")
        assert LIVED in host.heard()
        assert "scarlet" in host.known(EITHER)
