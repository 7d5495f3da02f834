"""Odd things that hosts do every day: words of before are known in no form but the newest, and nothing else is lost."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    PIIMiddleware,
    after_agent,
    after_model,
    before_model,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt

from remegraph import CapturePolicy, MemoryKit, Scope
from remegraph.adapters import MemoryMiddleware, capture_node, memory_node, until_answered, with_memory
from remegraph.testing import ScriptedChatModel
from tests.adapters.hosts import WIRINGS, Host, State, echo, thread, words
from tests.pictures import image
from tests.talk import ANN, open_kit

pytestmark = pytest.mark.requirement("C7", "C8", "X1")

LIVED = "I live in Bergen and have a scarlet bicycle."
BOAT = "I bought a boat."
PLANE = "I bought a plane."
EITHER = "Was it a boat or a plane that I bought, and where is the scarlet bicycle?"


def both(*texts: str) -> list[str]:
    """What is heard of turns with these words."""
    return [each for text in texts for each in (text, f"You said: {text}")]


def fact(number: int) -> str:
    return f"My drawer number {number} holds the {chr(97 + number) * 4} key."


def heard(kit: MemoryKit, name: str = "1") -> list[str]:
    return [message.text for message in kit.messages(name, scope=ANN)]


def known(kit: MemoryKit, query: str) -> str:
    """All that recall shows anywhere, at any depth."""
    kit.drain()
    found = [kit.recall(query, scope=ANN, depth=depth, k=50) for depth in ("memories", "messages")]
    return "\n".join(each.context for each in found)


def state_of(graph: Any, name: str = "1") -> list[AnyMessage]:
    found: list[AnyMessage] = graph.get_state(thread(name)).values["messages"]
    return found


@pytest.fixture(params=WIRINGS)
def host(kit: MemoryKit, request: pytest.FixtureRequest) -> Host:
    return Host(kit, request.param)


# ------------------------------------------------------------------------------------------------ going back


def test_the_last_answer_is_removed_and_made_again(kit: MemoryKit) -> None:
    """A button that says: try again. Nothing is said anew."""
    answers = iter(["It is in Oslo.", "It is in Bergen."])
    graph: Any = StateGraph(State, context_schema=Scope)
    graph.add_node("memory", memory_node(kit))
    graph.add_node("model", lambda _state: {"messages": [AIMessage(next(answers))]})
    graph.add_edge(START, "memory")
    graph.add_conditional_edges("memory", until_answered("model"))
    graph.add_edge("model", "memory")
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke({"messages": [HumanMessage("Where is my bicycle?")]}, thread("1"), context=ANN)
    compiled.update_state(thread("1"), {"messages": [RemoveMessage(str(state_of(compiled)[-1].id))]})
    compiled.invoke({"messages": []}, thread("1"), context=ANN)
    assert heard(kit) == ["Where is my bicycle?", "It is in Bergen."]
    assert "Oslo" not in known(kit, "Where is my bicycle, in Oslo or Bergen?")


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_the_last_answer_of_an_agent_is_removed_and_made_again(kit: MemoryKit, how: str) -> None:
    model = ScriptedChatModel(script={"": [AIMessage("It is in Oslo."), AIMessage("It is in Bergen.")]})
    agent: Any = create_agent(
        model, middleware=[MemoryMiddleware(kit, tools=False)], context_schema=Scope, checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": [HumanMessage("Where is my bicycle?")]}, thread("1"), context=ANN)
    agent.update_state(thread("1"), {"messages": [RemoveMessage(str(state_of(agent)[-1].id))]}, as_node="__start__")
    if how == "invoke":
        agent.invoke({"messages": []}, thread("1"), context=ANN)
    else:
        asyncio.run(agent.ainvoke({"messages": []}, thread("1"), context=ANN))
    assert heard(kit) == ["Where is my bicycle?", "It is in Bergen."]


def test_the_third_of_eight_messages_is_edited_where_it_stands(host: Host) -> None:
    """A correction, not a rewind: what came after stays."""
    for number in range(4):
        host.say(fact(number) if number != 1 else BOAT)
    said = state_of(host.graph)
    host.graph.update_state(thread("1"), {"messages": [said[2].model_copy(update={"content": PLANE})]})
    host.say("Well?")
    found = host.heard()
    assert BOAT not in found
    assert sorted(found) == sorted([*both(fact(0)), PLANE, f"You said: {BOAT}", *both(fact(2), fact(3), "Well?")])
    assert "I bought a plane" in host.known(EITHER)
    assert all(f"{key * 4} key" in host.known(f"My drawer holds the {key * 4} key") for key in "acd")


def test_the_third_of_eight_messages_is_edited_and_the_talk_goes_on_from_there(host: Host) -> None:
    """As most chat windows do it: what came after is taken out, the new words have an id of their own."""
    for number in range(4):
        host.say(fact(number) if number != 1 else BOAT)
    gone = [RemoveMessage(str(message.id)) for message in state_of(host.graph)[2:]]
    host.graph.update_state(thread("1"), {"messages": gone})
    host.say(PLANE)
    assert host.heard() == both(fact(0), PLANE)
    shown = host.known(f"{EITHER} {fact(2)} {fact(3)}")
    assert "boat" not in shown
    assert "cccc" not in shown
    assert "dddd" not in shown
    assert "aaaa" in host.known(fact(0))


def test_the_first_message_is_edited_and_the_talk_begins_anew_from_its_checkpoint(host: Host) -> None:
    """A chat window names the checkpoint before the message; before the first one there is nothing said."""
    host.say(BOAT)
    host.say("It is in the harbour.")
    first = next(each for each in host.graph.get_state_history(thread("1")) if not each.values.get("messages"))
    host.say(PLANE, first.config)
    assert [message.text for message in state_of(host.graph)] == both(PLANE)
    assert host.heard() == both(PLANE)
    shown = host.known(f"{EITHER} Is it in the harbour?")
    assert "boat" not in shown
    assert "harbour" not in shown
    host.say("Well?")
    assert host.heard() == both(PLANE, "Well?")


CODE = "My locker code is 4471."


def branches(host: Host) -> tuple[Any, Any]:
    """Have a person say a code; return the checkpoints before and after that."""
    host.say("Hello there.")
    base = host.checkpoint("You said: Hello there.")
    host.say(CODE)
    return base, host.checkpoint(f"You said: {CODE}")


def test_what_is_forgotten_on_another_branch_stays_forgotten_where_its_words_are_back(host: Host) -> None:
    """A person forgets a memory by its id while its words are on an abandoned branch, and goes back."""
    base, code = branches(host)
    host.kit.drain()
    (memory,) = [each for each in host.kit.memories(scope=ANN) if CODE in each.content]
    host.say(PLANE, base)
    assert "4471" not in host.kit.forget(memory.memory_id, scope=ANN, dry_run=True).memory.content
    assert host.kit.forget(memory.memory_id, scope=ANN).done
    host.say("Back.", code)
    assert "4471" not in "".join([*host.heard(), host.known(f"{CODE} Back.")])
    host.kit.restore(memory.memory_id, scope=ANN)
    assert host.heard() == both("Hello there.", CODE, "Back.")
    assert "4471" in host.known(CODE)


def test_what_is_forgotten_while_it_was_edited_away_stays_forgotten_where_it_is_edited_back(host: Host) -> None:
    host.say(CODE)
    host.kit.drain()
    (memory,) = [each for each in host.kit.memories(scope=ANN) if CODE in each.content]
    first = state_of(host.graph)[0]
    for text in ("Nothing.", CODE):
        host.graph.update_state(thread("1"), {"messages": [first.model_copy(update={"content": text})]})
        host.say("Well?")
        assert host.kit.forget(memory.memory_id, scope=ANN).done
    assert "4471" not in "".join([*host.heard(), host.known(CODE)])


def test_what_is_forgotten_goes_from_the_branches_that_are_abandoned_too(host: Host) -> None:
    base, code = branches(host)
    saved = host.kit.save("locker", f"Ann says: {CODE}", scope=ANN).memory
    assert saved is not None
    host.kit.drain()
    host.say(PLANE, base)
    host.kit.forget(saved.memory_id, scope=ANN)
    host.say("Back.", code)
    assert "4471" not in "".join([*host.heard(), host.known(f"{CODE} Back.")])
    host.kit.restore(saved.memory_id, scope=ANN)
    assert host.heard() == both("Hello there.", CODE, "Back.")


def test_a_request_to_forget_that_is_granted_goes_for_the_branches_that_are_abandoned_too(host: Host) -> None:
    """With the answers there, although they do not name what it means."""
    base, _ = branches(host)
    answer = state_of(host.graph)[-1]
    host.graph.update_state(thread("1"), {"messages": [answer.model_copy(update={"content": "4471, noted."})]})
    host.say("Well?")
    code = host.graph.get_state(thread("1")).config
    assert "4471, noted." in host.heard()
    host.kit.drain()
    host.say("Please forget my locker code.", base)
    (request,) = host.kit.governance.requests(scope=ANN)
    assert host.kit.governance.decide(request.message.message_id, forget=True, scope=ANN).found
    host.say("Back.", code)
    assert "4471" not in "".join([*host.heard(), host.known(f"{CODE} Back.")])


def test_what_is_forgotten_stays_so_where_another_sentence_of_its_message_is_edited(host: Host) -> None:
    """Nobody says it anew: the form before had it."""
    host.say(f"{CODE} I love tea.")
    host.kit.drain()
    (memory,) = host.kit.memories(scope=ANN)
    host.kit.forget(memory.memory_id, scope=ANN)
    first = state_of(host.graph)[0]
    for drink in ("green tea", "milk"):
        edited = first.model_copy(update={"content": f"{CODE} I love {drink}."})
        host.graph.update_state(thread("1"), {"messages": [edited]})
        host.say("Well?")
    assert "4471" not in "".join([*host.heard(), host.known(CODE)])
    host.graph.update_state(thread("1"), {"messages": [first.model_copy(update={"content": "I love milk."})]})
    host.say(CODE)
    assert host.heard()[-2:] == both(CODE)


def test_a_branch_is_back_where_its_words_were_said_elsewhere_meanwhile(host: Host) -> None:
    """The memory of the other conversation has the words already; the turn is recorded all the same."""
    host.say("Hello there.")
    base = host.checkpoint("You said: Hello there.")
    host.say(BOAT)
    boat = host.checkpoint(f"You said: {BOAT}")
    host.kit.drain()
    host.say(PLANE, base)
    host.say(BOAT, name="2")
    host.kit.drain()
    host.say("Back.", boat)
    assert host.heard() == both("Hello there.", BOAT, "Back.")
    assert [BOAT in each.content for each in host.kit.memories(scope=ANN) if each.live].count(True) == 1
    assert host.kit.context.health.stats()["capture_failures"] == 0


@pytest.mark.parametrize("line", [0, 1, 2])
def test_a_memory_of_several_lines_does_without_the_one_that_is_edited_away(host: Host, line: int) -> None:
    """What a person says in several messages before the answer is one memory, without a model."""
    lines = [LIVED, BOAT, "I keep a tortoise."]
    host.graph.invoke({"messages": [HumanMessage(each) for each in lines]}, thread("1"), context=ANN)
    host.kit.drain()
    before = [each.content for each in host.kit.memories(scope=ANN)]
    assert len(before) == 1
    edited = state_of(host.graph)[line]
    for text in ("Never mind.", lines[line]):
        host.graph.update_state(thread("1"), {"messages": [edited.model_copy(update={"content": text})]})
        host.say("Well?")
        host.kit.drain()
        shown = "".join(each.content for each in host.kit.memories(scope=ANN))
        assert [each in shown for each in lines] == [each != lines[line] or each == text for each in lines]
        assert shown.startswith("ann: ")
    assert before[0] in [each.content for each in host.kit.memories(scope=ANN)]
    assert host.kit.admin.verify().healthy


def test_two_first_messages_and_back_to_either(host: Host) -> None:
    """The branches have nothing in common but the empty conversation."""
    host.say(BOAT)
    boat = host.checkpoint(f"You said: {BOAT}")
    first = next(each for each in host.graph.get_state_history(thread("1")) if not each.values.get("messages"))
    host.say(PLANE, first.config)
    plane = host.checkpoint(f"You said: {PLANE}")
    host.say("It swims.", boat)
    assert host.heard() == both(BOAT, "It swims.")
    host.say("It flies.", plane)
    assert host.heard() == both(PLANE, "It flies.")
    host.graph.update_state(boat, {"messages": [HumanMessage("It sank.")]})  # not named by the run that follows
    host.say("Well?")
    assert host.heard() == [BOAT, f"You said: {BOAT}", "It sank.", *both("Well?")]


def test_a_fork_of_a_fork_and_back_again(host: Host) -> None:
    """Time travel, three branches deep."""
    host.say(LIVED)
    base = host.checkpoint(f"You said: {LIVED}")
    host.say(BOAT)
    boat = host.checkpoint(f"You said: {BOAT}")
    host.say(PLANE, base)
    plane = host.checkpoint(f"You said: {PLANE}")
    host.say("It flies.", plane)
    host.say("It swims.", boat)
    assert host.heard() == both(LIVED, BOAT, "It swims.")
    host.say("It flies high.", plane)
    assert host.heard() == both(LIVED, PLANE, "It flies high.")
    host.say("I sold it.")
    assert host.heard() == both(LIVED, PLANE, "It flies high.", "I sold it.")
    assert "boat" not in host.known(EITHER)
    assert "scarlet" in host.known(EITHER)


def test_an_agent_may_repeat_what_was_taken_back_and_is_said_again(host: Host) -> None:
    """Nobody asked to forget it: a person took another course, and comes to the same words."""
    host.say(LIVED)
    base = host.checkpoint(f"You said: {LIVED}")
    host.say("It flies.")
    host.kit.drain()  # so that a memory goes with the words
    host.say(PLANE, base)
    host.say("It flies high.")
    assert host.heard() == both(LIVED, PLANE, "It flies high.")


def test_an_agent_may_repeat_the_newer_form_of_what_was_edited(host: Host) -> None:
    host.say(BOAT)
    host.kit.drain()
    first = state_of(host.graph)[0]
    host.graph.update_state(thread("1"), {"messages": [first.model_copy(update={"content": PLANE})]})
    host.say("I bought a boat, too.")
    assert host.heard()[-2:] == both("I bought a boat, too.")


def test_two_messages_at_once_take_the_place_of_one(host: Host) -> None:
    """A person sends two lines where one was taken back."""
    host.say(LIVED)
    base = host.checkpoint(f"You said: {LIVED}")
    host.say(BOAT)
    two = {"messages": [HumanMessage(PLANE), HumanMessage("It is small.")]}
    host.graph.invoke(two, base, context=ANN)
    assert host.heard() == [*both(LIVED), PLANE, "It is small.", "You said: It is small."]


def test_a_thread_that_counts_its_messages_anew_is_followed_like_any_other(host: Host) -> None:
    """Message 1 of another thread is another message; edits and rewinds are those of the thread at hand."""
    for name in ("1", "2"):
        host.say(f"{LIVED} That is thread {name}.", name=name, id="m1")
        host.say(f"{BOAT} That is thread {name}.", name=name, id="m2")
    said = [f"{LIVED} That is thread 1.", f"{BOAT} That is thread 1."]
    assert host.heard() == both(*said)
    assert host.heard("2") == both(*(text.replace("1", "2") for text in said))
    host.graph.update_state(thread("2"), {"messages": [HumanMessage(PLANE, id="m2")]})
    host.say("Well?", name="2", id="m3")
    assert host.heard() == both(*said)
    assert f"{BOAT} That is thread 2." not in host.heard("2")
    assert PLANE in host.heard("2")


def test_a_rewind_in_a_thread_that_counts_its_messages_anew(host: Host) -> None:
    """Where the ids are those of another thread, too."""
    for name in ("1", "2"):
        host.say(f"{LIVED} That is thread {name}.", name=name, id="m1")
        host.say(f"{BOAT} That is thread {name}.", name=name, id="m2")
    kept = f"{LIVED} That is thread 2."
    host.say(PLANE, host.checkpoint(f"You said: {kept}", "2"), id="m2")
    assert host.heard("2") == both(kept, PLANE)
    assert f"{BOAT} That is thread 1." in host.heard()


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_hosts_are_followed_and_recalled_for_however_they_write_their_checkpoints(host: Host, durability: str) -> None:
    """Some wait for each, some write one only, when the run is over."""

    def say(text: str) -> None:
        host.graph.invoke({"messages": [HumanMessage(text)]}, thread("1"), context=ANN, durability=durability)

    say(LIVED)
    say(BOAT)
    host.graph.update_state(thread("1"), {"messages": [RemoveMessage(str(m.id)) for m in state_of(host.graph)[2:]]})
    say(PLANE)
    assert host.heard() == both(LIVED, PLANE)
    host.graph.invoke({"messages": [HumanMessage(EITHER)]}, thread("2"), context=ANN, durability=durability)
    assert "scarlet" in host.shown[-1]
    assert host.kit.admin.stats()["recall_failures"] == 0


def test_words_before_the_answer_are_followed_likewise(tmp_path: Path) -> None:
    """Hosts that want them early edit, compact and go back, too."""
    with open_kit(tmp_path) as kit:
        kit.context.settings = kit.settings.evolve(capture=CapturePolicy(early=True))
        host = Host(kit, "middleware")
        host.say(LIVED, id="m1")
        host.say(BOAT)
        host.say(PLANE, host.checkpoint(f"You said: {LIVED}"))
        assert host.heard() == both(LIVED, PLANE)
        host.graph.update_state(thread("1"), {"messages": [HumanMessage("I live in Rome.", id="m1")]})
        host.say("Well?")
        assert "Bergen" not in "\n".join(each for each in host.heard() if "You said" not in each)
        assert "boat" not in host.known(EITHER)


# ------------------------------------------------------------------------------------------------ within a turn


def copies(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The same messages with a word blackened, under new ids."""
    return [
        message.model_copy(update={"content": message.text.replace("Quagmire", "[...]"), "id": None})
        for message in messages
    ]


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"The {at} opens with Quagmire."


def calls(*names: str) -> list[AIMessage]:
    return [AIMessage("", tool_calls=[ToolCall(name="look", args={"at": each}, id=each)]) for each in names]


@pytest.mark.parametrize(
    ("hook", "last"),
    [(after_agent, False), (after_model, False), (after_model, True), (before_model, False), (before_model, True)],
)
def test_words_that_are_blackened_by_writing_the_list_anew_are_never_recorded(
    kit: MemoryKit, hook: Any, last: bool
) -> None:
    """All is removed, and comes back under other ids."""

    def anew(state: Any, runtime: Any) -> dict[str, Any]:  # noqa: ARG001
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *copies(state["messages"])]}

    blacken: AgentMiddleware[Any, Any, Any] = hook(anew)
    memory: AgentMiddleware[Any, Any, Any] = MemoryMiddleware(kit, tools=False)
    model = ScriptedChatModel(script={"": [*calls("door"), AIMessage("I noted Quagmire.")]})
    agent: Any = create_agent(
        model,
        [look],
        middleware=[blacken, memory] if last else [memory, blacken],
        context_schema=Scope,
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [HumanMessage("My PIN is Quagmire.")]}, thread("1"), context=ANN)
    expected = ["My PIN is [...].", "", "The door opens with [...].", "I noted [...]."]
    if hook is before_model:
        expected[-1] = "I noted Quagmire."
    assert heard(kit) == expected


def test_a_trimmer_of_langchains_own_page_loses_nothing(kit: MemoryKit) -> None:
    """After each answer of the model the two oldest messages go, whatever they are."""

    @after_model
    def delete_old(state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG001
        said = state["messages"]
        return {"messages": [RemoveMessage(each.id) for each in said[:2]]} if len(said) > 2 else None

    answers = [*calls("door"), AIMessage("Green."), *calls("roof"), AIMessage("Red.")]
    agent: Any = create_agent(
        ScriptedChatModel(script={"": answers}),
        [look],
        middleware=[MemoryMiddleware(kit, tools=False), delete_old],
        context_schema=Scope,
        checkpointer=InMemorySaver(),
    )
    for text in (LIVED, BOAT):
        agent.invoke({"messages": [HumanMessage(text)]}, thread("1"), context=ANN)
    told = [f"The {each} opens with Quagmire." for each in ("door", "roof")]
    assert heard(kit) == [LIVED, "", told[0], "Green.", BOAT, "", told[1], "Red."]


def test_an_edited_message_that_the_next_run_trims_is_remembered_as_edited(kit: MemoryKit) -> None:
    """The older form is hidden before the answer; the newer must not be lost meanwhile."""
    host = Host(kit, "middleware", trim_to(2))
    host.say(LIVED, id="m1")
    host.graph.update_state(thread("1"), {"messages": [HumanMessage("I live in Rome.", id="m1")]})
    host.say(BOAT)
    assert "I live in Rome." not in [message.text for message in state_of(host.graph)]
    assert host.heard() == [f"You said: {LIVED}", "I live in Rome.", *both(BOAT)]


def test_words_of_a_run_that_died_are_remembered_though_the_next_run_trims_them(kit: MemoryKit) -> None:
    """The model failed after the tool was called; then the person went on."""

    def fail(_: Any) -> AIMessage:
        raise ConnectionError("The provider is down.")

    agent: Any = create_agent(
        ScriptedChatModel(script={"": [*calls("door"), fail, AIMessage("Done.")]}),
        [look],
        middleware=[MemoryMiddleware(kit, tools=False), trim_to(3)],
        context_schema=Scope,
        checkpointer=InMemorySaver(),
    )
    with pytest.raises(ConnectionError):
        agent.invoke({"messages": [HumanMessage(LIVED)]}, thread("1"), context=ANN)
    agent.invoke({"messages": [HumanMessage(BOAT)]}, thread("1"), context=ANN)
    assert heard(kit) == [LIVED, "", "The door opens with Quagmire.", BOAT, "Done."]


# ----------------------------------------------------------------------------------------- waiting for a person


def approved(kit: MemoryKit, *beside: AgentMiddleware[Any, Any, Any], saver: Any = None) -> Any:
    ask = HumanInTheLoopMiddleware({"look": {"allowed_decisions": ["approve", "edit", "reject"]}})
    model = ScriptedChatModel(script={"": [*calls("Quagmire"), AIMessage("Done.")]})
    return create_agent(
        model,
        [look],
        middleware=[MemoryMiddleware(kit, tools=False), *beside, ask],
        context_schema=Scope,
        checkpointer=saver or InMemorySaver(),
    )


def test_a_call_that_a_person_rejects_is_heard_as_rejected_once(kit: MemoryKit) -> None:
    agent = approved(kit)
    agent.invoke({"messages": [HumanMessage(LIVED)]}, thread("1"), context=ANN)
    assert heard(kit) == []
    reject = {"decisions": [{"type": "reject", "message": "Leave it."}]}
    agent.invoke(Command(resume=reject), thread("1"), context=ANN)
    assert heard(kit) == [LIVED, "", "User rejected the tool call for `look` with reason: Leave it.", "Done."]
    assert "scarlet" in known(kit, EITHER)


def test_a_call_that_a_person_edits_is_heard_as_the_host_keeps_it(kit: MemoryKit) -> None:
    """LangChain keeps the call that the model made, and the result of the edited one."""
    agent = approved(kit)
    agent.invoke({"messages": [HumanMessage(LIVED)]}, thread("1"), context=ANN)
    edit = {"type": "edit", "edited_action": {"name": "look", "args": {"at": "roof"}}}
    agent.invoke(Command(resume={"decisions": [edit]}), thread("1"), context=ANN)
    assert heard(kit) == [message.text for message in state_of(agent)]
    assert "The roof opens with Quagmire." in heard(kit)[2]


def test_a_question_that_nobody_decided_is_remembered_with_the_next_turn(kit: MemoryKit) -> None:
    """The person types on instead of pressing a button."""
    agent = approved(kit)
    agent.invoke({"messages": [HumanMessage(LIVED)]}, thread("1"), context=ANN)
    agent.invoke({"messages": [HumanMessage(BOAT)]}, thread("1"), context=ANN)
    found = heard(kit)
    assert LIVED in found
    assert BOAT in found


def trim_to(count: int) -> AgentMiddleware[Any, Any, Any]:
    @before_model
    def trim(state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG001
        said = state["messages"]
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *said[-count:]]} if len(said) > count else None

    return trim


@pytest.mark.parametrize(("decision", "restarted"), [("approve", False), ("approve", True), ("reject", False)])
def test_a_question_that_is_trimmed_after_a_person_decided_is_remembered(
    kit: MemoryKit, decision: str, restarted: bool
) -> None:
    """The second half of the turn may run in another process, and sees less of the turn."""
    saver = InMemorySaver()
    agent = approved(kit, trim_to(2), saver=saver)
    agent.invoke({"messages": [HumanMessage(LIVED)]}, thread("1"), context=ANN)
    if restarted:
        model = ScriptedChatModel(script={"": [AIMessage("Done.")]})
        ask = HumanInTheLoopMiddleware({"look": {"allowed_decisions": ["approve", "edit", "reject"]}})
        agent = create_agent(
            model,
            [look],
            middleware=[MemoryMiddleware(kit, tools=False), trim_to(2), ask],
            context_schema=Scope,
            checkpointer=saver,
        )
    agent.invoke(Command(resume={"decisions": [{"type": decision}]}), thread("1"), context=ANN)
    assert LIVED not in [message.text for message in state_of(agent)]
    assert heard(kit)[0] == LIVED


def test_what_is_edited_while_the_run_waits_is_heard_as_edited(kit: MemoryKit) -> None:
    """A moderator looks at the question before the answer."""
    graph: Any = StateGraph(State, context_schema=Scope)
    graph.add_node("wait", lambda _state: {"memory": str(interrupt("May I?"))[:0]})
    graph.add_node("model", with_memory(kit, lambda state: {"messages": [AIMessage(words(state["messages"]))]}))
    graph.add_edge(START, "wait")
    graph.add_edge("wait", "model")
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke({"messages": [HumanMessage("My PIN is Quagmire.", id="m1")]}, thread("1"), context=ANN)
    compiled.update_state(thread("1"), {"messages": [HumanMessage("My PIN is [...].", id="m1")]})
    compiled.invoke(Command(resume="yes"), thread("1"), context=ANN)
    assert all("Quagmire" not in text for text in heard(kit))
    assert heard(kit) == both("My PIN is [...].")


# --------------------------------------------------------------------------------------------------- streaming


@pytest.mark.parametrize("mode", ["values", "updates", "messages", ["updates", "messages"]])
def test_a_stream_is_heard_once_and_follows_edits(kit: MemoryKit, mode: Any) -> None:
    host = Host(kit, "middleware")
    for text, name in ((LIVED, "m1"), (BOAT, "m2")):
        asked = {"messages": [HumanMessage(text, id=name)]}
        for _ in host.graph.stream(asked, thread("1"), context=ANN, stream_mode=mode):
            pass
    host.graph.update_state(thread("1"), {"messages": [HumanMessage(PLANE, id="m2")]})
    for _ in host.graph.stream({"messages": [HumanMessage("Well?")]}, thread("1"), context=ANN, stream_mode=mode):
        pass
    assert sorted(host.heard()) == sorted([*both(LIVED), PLANE, f"You said: {BOAT}", *both("Well?")])


def test_a_stream_that_nobody_reads_to_its_end_is_remembered_with_the_next_turn(kit: MemoryKit) -> None:
    """A browser tab is closed."""
    host = Host(kit, "middleware")
    stream: Iterator[Any] = host.graph.stream(
        {"messages": [HumanMessage(LIVED)]}, thread("1"), context=ANN, stream_mode="updates", durability="sync"
    )
    for update in stream:
        if "model" in update:
            break
    stream.close()  # type: ignore[attr-defined]
    host.say(BOAT)
    assert [text for text in host.heard() if "You said" not in text] == [LIVED, BOAT]


# ----------------------------------------------------------------------------------------- tools, and many agents


def test_an_edited_result_and_an_edited_call_are_shown_in_their_newest_form_only(kit: MemoryKit) -> None:
    agent: Any = create_agent(
        ScriptedChatModel(script={"": [*calls("Marigold"), AIMessage("Done."), AIMessage("Well.")]}),
        [look],
        middleware=[MemoryMiddleware(kit, tools=False)],
        context_schema=Scope,
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [HumanMessage(LIVED)]}, thread("1"), context=ANN)
    _, call, result, _ = state_of(agent)
    other = [ToolCall(name="look", args={"at": "door"}, id="Marigold")]
    edited = [call.model_copy(update={"tool_calls": other}), result.model_copy(update={"content": "It is open."})]
    agent.update_state(thread("1"), {"messages": edited})
    agent.invoke({"messages": [HumanMessage("Well?")]}, thread("1"), context=ANN)
    found = kit.messages("1", scope=ANN)
    assert [each.args for message in found for each in message.tool_calls] == [{"at": "door"}]
    assert "Quagmire" not in "".join(message.text for message in found)
    assert "Quagmire" not in known(kit, "What opens with Quagmire, and what is open?")


def test_a_picture_that_is_taken_back_goes_with_its_message(host: Host) -> None:
    """Hosts edit what a picture shows by sending another one; the words may stay as they were."""
    words_with: list[Any] = [{"type": "text", "text": "I own this bicycle."}, image()]
    host.graph.invoke({"messages": [HumanMessage(words_with, id="m1")]}, thread("1"), context=ANN)
    host.graph.update_state(thread("1"), {"messages": [HumanMessage("I own no bicycle.", id="m1")]})
    host.say("Well?")
    assert [each for message in host.kit.messages("1", scope=ANN) for each in message.attachments] == []
    assert "I own this bicycle." not in host.heard()
    assert "I own no bicycle." in host.heard()


def test_two_memories_in_one_agent_hear_a_turn_once(kit: MemoryKit) -> None:
    """By mistake, or with settings of their own."""
    host = Host(kit, "middleware", MemoryMiddleware(kit, name="again", tools=False))
    host.say(LIVED)
    host.say(BOAT)
    host.say(PLANE, host.checkpoint(f"You said: {LIVED}"))
    assert host.heard() == both(LIVED, PLANE)
    assert "boat" not in host.known(EITHER)


def test_two_agents_take_turns_on_one_thread(kit: MemoryKit) -> None:
    """Two graphs with one checkpointer: a router chooses who answers."""
    saver = InMemorySaver()
    pii: AgentMiddleware[Any, Any, Any] = PIIMiddleware("email", apply_to_output=True)
    agents: list[Any] = [
        create_agent(
            ScriptedChatModel(script={"": [echo]}),
            middleware=[MemoryMiddleware(kit, tools=False), pii],
            context_schema=Scope,
            checkpointer=saver,
            name=name,
        )
        for name in ("left", "right")
    ]
    for number in range(8):
        text = {"messages": [HumanMessage(f"{fact(number)} Write to a{number}@example.org.")]}
        agents[number % 2].invoke(text, thread("1"), context=ANN)
    assert heard(kit) == both(*(f"{fact(number)} Write to [REDACTED_EMAIL]." for number in range(8)))


def test_an_agent_that_is_a_node_of_a_graph_hears_redacted_words_and_edits(kit: MemoryKit) -> None:
    """Its own middleware, the state of the graph around it."""
    pii: AgentMiddleware[Any, Any, Any] = PIIMiddleware("email")
    agent: Any = create_agent(
        ScriptedChatModel(script={"": [echo]}),
        middleware=[MemoryMiddleware(kit, tools=False), pii, trim_to(3)],
        context_schema=Scope,
    )
    graph: Any = StateGraph(MessagesState, context_schema=Scope)
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    compiled = graph.compile(checkpointer=InMemorySaver())
    for number in range(5):
        compiled.invoke({"messages": [HumanMessage(fact(number), id=f"m{number}")]}, thread("1"), context=ANN)
    compiled.invoke({"messages": [HumanMessage("Write to a@example.org.", id="m5")]}, thread("1"), context=ANN)
    compiled.update_state(thread("1"), {"messages": [HumanMessage(PLANE, id="m4")]})
    compiled.invoke({"messages": [HumanMessage("Well?")]}, thread("1"), context=ANN)
    found = heard(kit)
    assert [text for text in found if text.startswith("My drawer")] == [fact(number) for number in range(4)]
    assert PLANE in found
    assert not any("a@example" in text for text in found)


def test_a_deep_agent_remembers_what_it_was_told(kit: MemoryKit) -> None:
    """With its own summaries, files and to-do lists around."""
    agent: Any = create_deep_agent(
        model=ScriptedChatModel(script={"": [echo]}),
        middleware=[MemoryMiddleware(kit, tools=False)],
        context_schema=Scope,
        checkpointer=InMemorySaver(),
    )
    for number in range(6):
        agent.invoke({"messages": [HumanMessage(fact(number))]}, thread("1"), context=ANN)
    assert heard(kit) == both(*(fact(number) for number in range(6)))


# ------------------------------------------------------------------------------------------- ids, and their lack


class Plain(TypedDict):
    """A state whose messages are added up: none gets an id."""

    messages: Annotated[list[AnyMessage], operator.add]


def test_messages_without_ids_are_heard_once_each_turn(kit: MemoryKit) -> None:
    graph: Any = StateGraph(Plain, context_schema=Scope)
    graph.add_sequence(
        [("model", lambda state: {"messages": [AIMessage(words(state["messages"]))]}), ("capture", capture_node(kit))]
    )
    graph.add_edge(START, "model")
    compiled = graph.compile(checkpointer=InMemorySaver())
    for text in (LIVED, BOAT, BOAT):
        compiled.invoke({"messages": [HumanMessage(text)]}, thread("1"), context=ANN)
    assert heard(kit) == both(LIVED, BOAT, BOAT)


def test_an_edit_to_nothing_hides_what_was_said(host: Host) -> None:
    """Some hosts empty a message rather than remove it."""
    host.say(LIVED)
    host.say(BOAT, id="m2")
    host.graph.update_state(thread("1"), {"messages": [HumanMessage("", id="m2")]})
    host.say("Well?")
    assert BOAT not in host.heard()
    assert "bicycle" in host.known(EITHER)


def test_an_edit_of_what_is_not_said_changes_nothing(host: Host) -> None:
    """Marks, names of models, token counts."""
    host.say(LIVED, id="m1")
    marked = [
        each.model_copy(update={"additional_kwargs": {"liked": True}, "response_metadata": {"model": "x"}})
        for each in state_of(host.graph)
    ]
    host.graph.update_state(thread("1"), {"messages": marked})
    host.say(BOAT)
    assert host.heard() == both(LIVED, BOAT)
    assert len(host.kit.context.parts().archive.recorded(host.kit.context.library(ANN).partition())) == 4


def test_a_message_that_is_taken_out_and_put_back_is_heard_once(host: Host) -> None:
    """It stands at the end then."""
    host.say(LIVED, id="m1")
    host.say(BOAT)
    host.remove(LIVED)
    host.graph.update_state(thread("1"), {"messages": [HumanMessage(LIVED, id="m1")]})
    host.say(PLANE)
    assert sorted(host.heard()) == sorted(both(LIVED, BOAT, PLANE))


def test_a_talk_that_two_threads_hold_is_edited_in_each_by_itself(host: Host) -> None:
    """A thread is copied with its ids; the copy is edited."""
    host.say(LIVED, id="m1")
    host.graph.update_state(thread("2"), {"messages": state_of(host.graph)})
    host.graph.update_state(thread("2"), {"messages": [HumanMessage("I live in Rome.", id="m1")]})
    host.say(BOAT, name="2")
    host.say(PLANE, name="1")
    assert host.heard() == both(LIVED, PLANE)
    assert "I live in Rome." in host.heard("2")


def test_two_runs_at_once_on_one_thread_of_one_process_lose_nothing(kit: MemoryKit) -> None:
    """A person sends a second message before the first is answered; the checkpoint of the one overwrites the other's."""
    slow, quick = threading.Event(), threading.Event()

    class Moderator(AgentMiddleware[Any, Any, Any]):
        def before_agent(self, state: Any, runtime: Any) -> None:  # noqa: ARG002
            if state["messages"][-1].text == PLANE:
                quick.set()
                assert slow.wait(10)

    agent: Any = create_agent(
        ScriptedChatModel(script={"": [echo]}),
        middleware=[MemoryMiddleware(kit, tools=False), Moderator()],
        context_schema=Scope,
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [HumanMessage(LIVED)]}, thread("1"), context=ANN)
    other = threading.Thread(
        target=agent.invoke, args=({"messages": [HumanMessage(PLANE)]}, thread("1")), kwargs={"context": ANN}
    )
    other.start()
    assert quick.wait(10)
    agent.invoke({"messages": [HumanMessage(BOAT)]}, thread("1"), context=ANN)
    slow.set()
    other.join()
    assert sorted(heard(kit)) == sorted(both(LIVED, BOAT, PLANE))
