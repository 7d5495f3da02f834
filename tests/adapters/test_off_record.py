"""Off the record: what is said where memory is off, or only read, is in no file, no log, no trace and no later recall."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from sqlalchemy.exc import OperationalError

from remegraph import AgentMemorySettings, CapturePolicy, InputError, MemoryKit, Message, Scope, Settings
from remegraph.adapters import (
    MemoryMiddleware,
    MemoryRetriever,
    MessageHistory,
    ToolMemoryHandler,
    capture_node,
    memory_tools,
    recall_node,
    with_memory,
)
from remegraph.testing import ModelCall, ScriptedChatModel
from tests.adapters.hosts import WIRINGS, Host
from tests.talk import ANN, EACH_TURN, digest, open_kit, proposal, said

pytestmark = pytest.mark.requirement("X18")

SECRET = "My sister's biopsy came back, zebrafinch is the code word."
SECRETS = ("biopsy", "zebrafinch")
TOLD = "I own a scarlet bicycle."


def off(mode: str = "off", name: str = "1") -> RunnableConfig:
    return {"configurable": {"thread_id": name, "memory": mode}}


def noted(_: ModelCall) -> AIMessage:
    """A new message each time: it gets an id of its own."""
    return AIMessage("Noted.")


def written(home: Path) -> bytes:
    """All that is in the files of a home."""
    return b"\n".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


def leaks(home: Path, words: Sequence[str]) -> list[tuple[str, str]]:
    """Which of the words stand in which file of a home."""
    files = [path for path in sorted(home.rglob("*")) if path.is_file()]
    return [
        (str(path.relative_to(home)), word) for path in files for word in words if word.encode() in path.read_bytes()
    ]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def kit(home: Path) -> Iterator[MemoryKit]:
    """A kit on SQLite, which makes memories of each turn."""
    with open_kit(home) as opened:
        yield opened


@pytest.mark.parametrize(
    ("wiring", "mode"),
    [("middleware", "off"), ("nodes", "off"), ("one node", "off"), ("around", "off"), ("middleware", "read")],
)
def test_what_is_said_off_the_record_is_never_recorded_also_by_later_runs(
    home: Path, wiring: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The words stand in the host's checkpoint, and every later run of the thread hands them over again."""
    kit = MemoryKit.open(settings=Settings(home=home, agent=EACH_TURN), model=None, embedder=None)  # with Chroma
    caplog.set_level(logging.DEBUG)
    host = Host(kit, wiring)
    host.say(TOLD)
    host.say(SECRET, off(mode))
    host.say("And what do you think of that?", off(mode))
    host.say("I live in Porto.")

    assert host.heard() == [TOLD, f"You said: {TOLD}", "I live in Porto.", "You said: I live in Porto."]
    assert "scarlet" in host.known("bicycle")
    assert not [word for word in SECRETS if word in host.known("biopsy zebrafinch sister")]
    kit.close()
    assert b"scarlet" in written(home)
    assert leaks(home, (*SECRETS, "think of that")) == []
    assert not [word for word in (*SECRETS, "think of that") if word in caplog.text]


@pytest.mark.parametrize(("mode", "recalls"), [("on", True), ("read", True), ("off", False)])
@pytest.mark.parametrize("wiring", WIRINGS)
def test_memory_is_recalled_unless_it_is_off(kit: MemoryKit, wiring: str, mode: str, recalls: bool) -> None:
    """To read and not to record is for what shall leave no trace, and is answered with what is known all the same."""
    kit.save("bicycle", "Ann owns a scarlet bicycle.", scope=ANN)
    host = Host(kit, wiring)
    host.say("What colour is my bicycle?", off(mode))
    assert ("scarlet" in host.shown[-1]) is recalls


@pytest.mark.parametrize(("mode", "noted"), [("on", 1), ("read", 0)])
def test_a_run_that_only_reads_leaves_no_note_of_what_it_was_shown(kit: MemoryKit, mode: str, noted: int) -> None:
    """Who asked for what, and when, is a record of the conversation, too."""
    kit.save("bicycle", "Ann owns a scarlet bicycle.", scope=ANN)

    def steps(call: ModelCall) -> AIMessage:
        search = ToolCall(name="search_memory", args={"query": "bicycle"}, id="1")
        return AIMessage(
            "" if call.messages[-1].type == "human" else "Scarlet.",
            tool_calls=[search] * (call.messages[-1].type == "human"),
        )

    model = ScriptedChatModel(script={"": [steps]})
    graph: Any = create_agent(model, [look], middleware=[MemoryMiddleware(kit)], context_schema=Scope)
    graph.invoke({"messages": [HumanMessage("What colour is my bicycle?")]}, off(mode), context=ANN)
    assert len(kit.governance.known_to(scope=ANN, thread="1")) == 2 * noted
    assert len(kit.tools.stats(scope=ANN)) == noted


async def test_async_runs_are_off_the_record_too(kit: MemoryKit, home: Path) -> None:
    """Hosts that serve many people run nothing else."""
    model = ScriptedChatModel(script={"": [noted]})
    graph: Any = create_agent(
        model, middleware=[MemoryMiddleware(kit)], context_schema=Scope, checkpointer=InMemorySaver()
    )

    async def call_model(state: Any) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    flow: Any = StateGraph(MessagesState, context_schema=Scope)
    flow.add_node("recall", recall_node(kit))
    flow.add_node("model", with_memory(kit, call_model))
    flow.add_node("capture", capture_node(kit))
    flow.add_edge(START, "recall")
    flow.add_edge("recall", "model")
    flow.add_edge("model", "capture")
    for host, name in ((graph, "a"), (flow.compile(checkpointer=InMemorySaver()), "b")):
        await host.ainvoke({"messages": [HumanMessage(SECRET)]}, off(name=name), context=ANN)
        await host.ainvoke({"messages": [HumanMessage(f"I live in {name}.")]}, off("on", name), context=ANN)
        assert [message.text for message in kit.messages(name, scope=ANN)] == [f"I live in {name}.", "Noted."]
    await kit.adrain()
    await kit.aclose()
    assert not [word for word in SECRETS if word.encode() in written(home)]


def test_no_event_is_told_of_it(kit: MemoryKit) -> None:
    """A host may show events, and log them."""
    asked = {"messages": [HumanMessage(SECRET)]}
    assert list(Host(kit, "middleware").graph.stream(asked, off(), context=ANN, stream_mode="custom")) == []


@pytest.mark.parametrize("mode", ["off", "read"])
def test_the_binding_may_be_off_the_record_unless_a_run_says_otherwise(kit: MemoryKit, mode: Any) -> None:
    """An agent for delicate matters is private by default, whoever calls it."""
    model = ScriptedChatModel(script={"": [noted]})
    graph: Any = create_agent(
        model, middleware=[MemoryMiddleware(kit, memory=mode)], context_schema=Scope, checkpointer=InMemorySaver()
    )
    graph.invoke({"messages": [HumanMessage(SECRET)]}, {"configurable": {"thread_id": "1"}}, context=ANN)
    assert kit.messages("1", scope=ANN) == ()
    graph.invoke({"messages": [HumanMessage(TOLD)]}, off("on"), context=ANN)
    assert [message.text for message in kit.messages("1", scope=ANN)] == [TOLD, "Noted."]


@dataclass
class Context:
    """A host's context."""

    user_id: str
    agent_id: str
    memory: Any


def contextual(kit: MemoryKit) -> Any:
    model = ScriptedChatModel(script={"": [noted]})
    return create_agent(model, middleware=[MemoryMiddleware(kit)], context_schema=Context, checkpointer=InMemorySaver())


def test_the_context_says_it_and_the_stricter_word_counts(kit: MemoryKit) -> None:
    """A host that sets one of the two, and forgets the other, has said that something shall not be recorded."""
    graph = contextual(kit)
    for memory, config in (("off", off("on")), ("on", off("off")), ("read", off("on"))):
        graph.invoke({"messages": [HumanMessage(SECRET)]}, config, context=Context("ann", "remy", memory))
    assert kit.messages("1", scope=ANN) == ()
    graph.invoke({"messages": [HumanMessage(TOLD)]}, off("on"), context=Context("ann", "remy", object()))
    assert [message.text for message in kit.messages("1", scope=ANN)] == [TOLD, "Noted."]


@pytest.mark.parametrize("word", ["Off", "none", "", False, True])
def test_another_word_is_refused_and_never_taken_for_on(kit: MemoryKit, word: object) -> None:
    """YAML reads off as false: to go on recording then is what nobody asked for."""
    graph = contextual(kit)
    with pytest.raises(InputError, match="Give on, read or off"):
        graph.invoke({"messages": [HumanMessage(SECRET)]}, off("on"), context=Context("ann", "remy", word))
    with pytest.raises(InputError, match="Give on, read or off"):
        MemoryMiddleware(kit, memory=word)  # type: ignore[arg-type]


@tool
def look(what: str) -> str:
    """Look something up."""
    raise ConnectionError(what)


@pytest.mark.parametrize("mode", ["off", "read"])
def test_tools_learn_and_save_nothing_off_the_record(kit: MemoryKit, home: Path, mode: Any) -> None:
    """The model is not told to keep quiet: it is kept from saving."""

    def steps(call: ModelCall) -> AIMessage:
        asked = sum(message.type == "ai" for message in call.messages)
        calls = [
            ToolCall(name="save_memory", args={"key": "biopsy", "content": SECRET}, id="1"),
            ToolCall(name="search_memory", args={"query": "biopsy"}, id="2"),
        ]
        return AIMessage("", tool_calls=[calls[asked]]) if asked < 2 else AIMessage("Done.")

    model = ScriptedChatModel(script={"": [steps]})
    graph: Any = create_agent(model, [look], middleware=[MemoryMiddleware(kit)], context_schema=Scope)
    done = graph.invoke({"messages": [HumanMessage(SECRET)]}, off(mode), context=ANN)
    results = [message.text for message in done["messages"] if message.type == "tool"]
    assert "off the record" in results[0]
    assert ("off the record" in results[1]) is (mode == "off")
    assert kit.memories(scope=ANN) == ()

    kit.close()
    assert not [word for word in SECRETS if word.encode() in written(home)]


@pytest.mark.parametrize("mode", ["on", "read", "off"])
@pytest.mark.parametrize("by", ["run", "binding"])
def test_tool_calls_are_heard_on_the_record_only(kit: MemoryKit, mode: Any, by: str) -> None:
    """Their errors say what was looked for."""
    handler = ToolMemoryHandler(kit, ANN, memory=mode if by == "binding" else "on")

    def call(what: str) -> str:
        found: str = look.invoke({"what": what}, {"callbacks": [handler]})
        return found

    with pytest.raises(ConnectionError):
        RunnableLambda(call).invoke("zebrafinch", off(mode) if by == "run" else None)
    assert len(kit.tools.stats(scope=ANN)) == (mode == "on")


def test_a_person_may_still_have_something_forgotten_off_the_record(kit: MemoryKit) -> None:
    """That is a wish for less memory, not for more."""
    memory = kit.save("bicycle", "Ann owns a scarlet bicycle.", scope=ANN).memory
    assert memory is not None
    (forget,) = [each for each in memory_tools(kit, ANN, memory="off") if each.name == "forget_memory"]
    assert "Forgot memory" in forget.invoke({"memory_id": memory.memory_id})


def test_retriever_and_history_keep_to_it(kit: MemoryKit) -> None:
    """Chains without an agent are told by their config."""
    kit.save("bicycle", "Ann owns a scarlet bicycle.", scope=ANN)
    retriever = MemoryRetriever(kit, scope=ANN)
    assert retriever.invoke("bicycle", off("off")) == []
    assert retriever.invoke("bicycle", off("read"))

    history = MessageHistory(kit, ANN)
    record: Any = RunnableLambda(lambda text: history.add_messages([HumanMessage(text)]))
    record.invoke(SECRET, off("read"))
    assert history.messages == []
    record.invoke(TOLD, off("on"))
    assert [message.text for message in history.messages] == [TOLD]


@pytest.mark.usefixtures("setup")
def test_an_answer_that_a_crash_left_behind_is_off_the_record_too(kit: MemoryKit) -> None:
    """It may repeat what it answers, and no hook of ours ran after it."""
    said: list[AnyMessage] = [
        HumanMessage(TOLD, id="1"),
        AIMessage("Noted.", id="2"),
        HumanMessage(SECRET, id="3"),
    ]
    kit.capture(said[:2], scope=ANN)
    assert kit.capture(said, scope=ANN, record=False).off_record == 1
    kit.capture([*said, AIMessage("The biopsy!", id="4"), HumanMessage("I live in Porto.", id="5")], scope=ANN)
    assert [message.text for message in kit.messages(scope=ANN)] == [TOLD, "Noted.", "I live in Porto."]


def test_messages_without_ids_are_known_again_by_their_place(kit: MemoryKit) -> None:
    """Plain lists of mappings have none."""
    said = [{"role": "user", "content": SECRET}, {"role": "assistant", "content": "A biopsy, then."}]
    kit.capture(said, scope=ANN, record=False)
    kit.capture([*said, {"role": "user", "content": TOLD}], scope=ANN)
    assert [message.text for message in kit.messages(scope=ANN)] == [TOLD]


def test_no_import_brings_it_back_either(kit: MemoryKit) -> None:
    """The host's own record of the thread, handed over whole."""
    said = [Message(message_id="1", role="user", content=SECRET, time=kit.context.clock(), thread="t")]
    kit.capture(said, scope=ANN, thread="t", record=False)
    assert kit.add_messages(said, scope=ANN).added == 0
    assert kit.add_messages([said[0].evolve(thread="other")], scope=ANN).added == 1  # an id of another thread


def test_what_was_said_off_the_record_while_memory_was_disabled_stays_so(home: Path) -> None:
    """Switched on later, an agent catches up on its threads."""
    said = [HumanMessage(SECRET, id="1"), AIMessage("Noted.", id="2")]
    with open_kit(home, agent=AgentMemorySettings(enabled=False)) as kit:
        kit.capture(said, scope=ANN, record=False)
    with open_kit(home) as kit:
        kit.capture([*said, HumanMessage(TOLD, id="3")], scope=ANN)
        assert [message.text for message in kit.messages(scope=ANN)] == [TOLD]


def test_an_outage_of_the_ledger_does_not_put_it_on_the_record(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark cannot be written then, and the next run finds the words in the list."""
    with open_kit(home) as kit:
        host = Host(kit, "middleware")
        archive = kit.context.parts().archive
        with monkeypatch.context() as patched:
            patched.setattr(archive, "recorded", down)
            host.say(SECRET, off())
        host.say(TOLD)
        assert host.heard() == [TOLD, f"You said: {TOLD}"]


def down(*_: object, **__: object) -> None:
    raise OperationalError("SELECT", {}, Exception("down"))


def test_early_capture_waits_for_no_answer_and_still_records_nothing(home: Path) -> None:
    """Words of a person are recorded before the answer then: that way, too, is closed."""
    settings = Settings(home=home, agent=EACH_TURN, capture=CapturePolicy(early=True))
    with MemoryKit.open(settings=settings, model=None, embedder=None) as kit:
        host = Host(kit, "middleware")
        host.say(SECRET, off())
        assert host.heard() == []


def test_an_edit_made_off_the_record_hides_what_it_replaces_and_is_not_recorded(kit: MemoryKit) -> None:
    """A host that redacts is obeyed; the newer form was said off the record."""
    kit.capture([HumanMessage("I weigh 90 kilos.", id="1"), AIMessage("Noted.", id="2")], scope=ANN)
    edited = [HumanMessage(SECRET, id="1"), AIMessage("Noted.", id="2")]
    kit.capture(edited, scope=ANN, record=False)
    kit.capture([*edited, HumanMessage(TOLD, id="3")], scope=ANN)
    shown = [message.text for message in kit.messages(scope=ANN) if not message.hidden]
    assert shown == ["Noted.", TOLD]


@pytest.mark.parametrize(
    "request_",
    [
        "My sister has a biopsy on Monday. Please don't remember that.",
        "Please do not remember this: my sister has a biopsy on Monday.",
        "我妹妹星期一做活检 biopsy，别记住这个。",
    ],
)
@pytest.mark.parametrize("wiring", WIRINGS)
def test_what_a_person_asks_not_to_remember_is_withheld_from_then_on(
    kit: MemoryKit, wiring: str, request_: str
) -> None:
    """Said in talk, without any setting: it is recorded, and shown by no recall, until somebody decides."""
    host = Host(kit, wiring)
    host.say(TOLD)
    host.say("What a day.")  # "that" may point back to the turn before: it waits, too
    host.say(request_)
    host.say("I live in Porto.")
    assert "biopsy" not in host.known("biopsy sister Monday")
    assert "scarlet" in host.known("bicycle")
    assert not [memory for memory in kit.memories(scope=ANN) if memory.live and "biopsy" in memory.content]


def test_a_model_that_reads_the_request_leaves_nothing_of_it(home: Path) -> None:
    """Then it is decided: the words are withheld for good, and no memory says them."""
    steps = {
        "DigestAnswer": digest("personal:Ann", summary="Ann asks for something private."),
        "ProposalAnswer": proposal(),
    }
    with open_kit(home, steps) as kit:
        kit.add_messages(
            [said("My sister has a biopsy on Monday."), said("Don't remember that.", minutes=1)], scope=ANN
        )
        kit.summarize(scope=ANN, close=True)
        assert "biopsy" not in kit.recall("biopsy sister", scope=ANN, depth="messages").context
        assert {note.reason for row in kit.messages(scope=ANN) for note in row.withheld} == {"forgotten"}
