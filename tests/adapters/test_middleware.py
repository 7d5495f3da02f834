"""Memory in `create_agent`, beside LangChain's own middleware."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
    before_agent,
    before_model,
)
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, StreamMode
from sqlalchemy.exc import OperationalError

from remegraph import AgentMemorySettings, CapturePolicy, MemoryKit, Scope, ScopeError, Settings
from remegraph.adapters import MemoryMiddleware, ScopeSource
from remegraph.adapters.conversation_memory import HostGuard
from remegraph.engine.frame import RECALLED
from remegraph.errors import LedgerUnavailableError
from remegraph.settings import LimitPolicy, Limits
from remegraph.testing import FailingCall, FrozenClock, ModelCall, ScriptedChatModel
from tests.talk import ANN, NOON, open_kit

BOB = Scope(user="bob", agent="remy")
TOLD = "I own a scarlet bicycle."
ASKED = "What colour is my bicycle?"


def answer(call: ModelCall) -> AIMessage:
    """What a model would say to what it is shown."""
    return AIMessage("Scarlet." if "scarlet" in call.text and ASKED in call.text else "Noted.")


@tool
def paint(colour: str) -> str:
    """Paint the bicycle."""
    if colour == "invisible":
        raise ConnectionError("no such paint")
    return f"It is {colour} now."


def painting(colour: str) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name="paint", args={"colour": colour}, id="p")])


class Agent:
    """A `create_agent` agent with memory and a scripted model."""

    def __init__(
        self, kit: MemoryKit, *steps: Any, beside: Sequence[AgentMiddleware[Any, Any, Any]] = (), **options: Any
    ) -> None:
        self.model = ScriptedChatModel(script={"": list(steps) or [answer]})
        middleware = options.pop("middleware", None) or [MemoryMiddleware(kit), *beside]
        options.setdefault("checkpointer", InMemorySaver())
        self.graph: Any = create_agent(
            self.model, [paint], middleware=middleware, context_schema=Scope, system_prompt="Be kind.", **options
        )

    def __call__(self, text: str, name: str = "1", scope: Scope | None = ANN, **fields: Any) -> Any:
        return self.graph.invoke({"messages": [HumanMessage(text, **fields)]}, thread(name), context=scope)

    @property
    def shown(self) -> list[list[tuple[str, str]]]:
        """What the model saw, call by call."""
        return [[(message.type, message.text) for message in call.messages] for call in self.model.calls]


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def heard(kit: MemoryKit, name: str = "1", scope: Scope = ANN) -> list[str]:
    """What the ledger holds of a thread."""
    return [message.text for message in kit.messages(name, scope=scope)]


def remember(kit: MemoryKit) -> None:
    kit.save("bicycle", "Ann owns a scarlet bicycle.", scope=ANN)


@pytest.mark.requirement("C8", "X5")
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_told_in_one_thread_known_in_another_by_this_user_only(kit: MemoryKit, how: str) -> None:
    """The promise of the whole package, by one argument."""
    agent = Agent(kit)
    answers = []
    for name, text, scope in (("1", TOLD, ANN), ("2", ASKED, ANN), ("3", ASKED, BOB)):
        asked = {"messages": [HumanMessage(text)]}
        result = getattr(agent.graph, how)(asked, thread(name), context=scope)
        answers.append((await result if inspect.isawaitable(result) else result)["messages"][-1].text)
    assert answers == ["Noted.", "Scarlet.", "Noted."]
    assert heard(kit, "1") == [TOLD, "Noted."]
    assert heard(kit, "2") == [ASKED, "Scarlet."]
    assert heard(kit, "3", BOB) == [ASKED, "Noted."]


@pytest.mark.requirement("C8", "G10")
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_what_an_answer_drew_on_is_noted(kit: MemoryKit, how: str) -> None:
    """What helps is kept longer than what is merely found, and nobody has to say so."""
    remember(kit)
    kit.save("cat", "Ann has a grey cat.", scope=ANN)
    run = getattr(Agent(kit).graph, how)({"messages": [HumanMessage(ASKED)]}, thread("1"), context=ANN)
    await run if inspect.isawaitable(run) else run
    uses = {memory.content: kit.explain(memory.memory_id, scope=ANN).uses for memory in kit.memories(scope=ANN)}
    assert {content: len(times) for content, times in uses.items()} == {
        "Ann owns a scarlet bicycle.": 1,
        "Ann has a grey cat.": 0,
    }


@pytest.mark.requirement("C8", "X6")
def test_the_model_sees_memory_as_data_beside_the_question_and_the_state_never_does(kit: MemoryKit) -> None:
    """Recalled text has no more authority than a user, and stands where it stood on later turns."""
    remember(kit)
    agent = Agent(kit, painting("blue"), AIMessage("Done."), AIMessage("Again."))
    agent("Paint it blue.")
    result = agent(ASKED)

    first, second, third = agent.model.calls
    assert [message.type for message in first.messages] == ["system", "human", "human"]
    assert first.messages[0].text == "Be kind."
    assert first.messages[1].additional_kwargs[RECALLED]
    assert "never instructions" in first.messages[1].text
    assert [message.type for message in second.messages] == ["system", "human", "human", "ai", "tool"]
    assert second.messages[1].text == first.messages[1].text
    assert [message.type for message in third.messages][1:] == ["human", "human", "ai", "tool", "ai", "human"]
    assert third.messages[1].text == first.messages[1].text
    assert third.messages[-1].text == ASKED
    assert set(result) == {"messages"}
    assert not any(RECALLED in message.additional_kwargs for message in result["messages"])
    assert heard(kit) == ["Paint it blue.", "", "It is blue now.", "Done.", ASKED, "Again."]


@pytest.mark.requirement("C8")
def test_memory_is_refreshed_on_every_run(kit: MemoryKit) -> None:
    """What was learned elsewhere since must be known in a thread that is under way."""
    agent = Agent(kit)
    assert agent(ASKED)["messages"][-1].text == "Noted."
    remember(kit)
    assert agent(ASKED)["messages"][-1].text == "Scarlet."


def approving(kit: MemoryKit, step: AIMessage, saver: Any) -> Agent:
    """An agent that asks a person before it paints."""
    return Agent(kit, step, beside=[HumanInTheLoopMiddleware(interrupt_on={"paint": True})], checkpointer=saver)


@pytest.mark.requirement("B3", "C8", "X3")
def test_a_run_that_waited_for_approval_goes_on_with_memory_in_another_process(kit: MemoryKit, tmp_path: Path) -> None:
    """Before-hooks do not run again on resume, and the checkpoint must not hold what was recalled or is in mind."""
    remember(kit)
    kit.working.sense("A turquoise one is in the shop window.", scope=ANN, task="1", attention=1)
    with SqliteSaver.from_conn_string(str(tmp_path / "host.sqlite")) as saver:
        assert approving(kit, painting("blue"), saver)(ASKED)["__interrupt__"]
        assert heard(kit) == []
    written = b"".join(each.read_bytes() for each in tmp_path.glob("host.sqlite*"))
    assert b"What colour" in written
    assert b"scarlet" not in written
    assert b"turquoise" not in written
    assert RECALLED.encode() not in written
    with SqliteSaver.from_conn_string(str(tmp_path / "host.sqlite")) as saver:
        second = approving(kit, AIMessage("Done."), saver)
        second.graph.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread("1"), context=ANN)
    (shown,) = second.shown
    assert [kind for kind, _ in shown] == ["system", "human", "human", "ai", "tool"]
    assert "scarlet" in shown[1][1]
    assert "turquoise" in shown[1][1]
    assert heard(kit) == [ASKED, "", "It is blue now.", "Done."]


@pytest.mark.requirement("C8", "X3")
async def test_a_resumed_run_has_memory_in_async_too(kit: MemoryKit) -> None:
    """Both ways share one body, and each has its own hook."""
    remember(kit)
    saver = InMemorySaver()
    first = approving(kit, painting("blue"), saver)
    await first.graph.ainvoke({"messages": [HumanMessage(ASKED)]}, thread("1"), context=ANN)
    second = approving(kit, AIMessage("Done."), saver)
    resume: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})
    await second.graph.ainvoke(resume, thread("1"), context=ANN)
    assert "scarlet" in second.shown[0][1][1]
    assert heard(kit) == [ASKED, "", "It is blue now.", "Done."]


@pytest.mark.requirement("C8", "X3")
def test_after_a_crash_in_the_middle_of_a_run_the_next_turn_catches_up(kit: MemoryKit) -> None:
    """After-hooks do not run then; what was said before the crash was said all the same, and its checkpoint has it."""
    agent = Agent(kit, painting("invisible"), AIMessage("It failed."))
    with pytest.raises(ConnectionError):
        agent(TOLD)
    assert heard(kit) == []
    agent("Well?")
    assert heard(kit) == [TOLD, "", "Well?", "It failed."]


@pytest.mark.requirement("C8", "X3")
def test_a_host_that_redacts_nothing_may_have_words_captured_before_the_answer(tmp_path: Path) -> None:
    """Then a crash loses nothing that was said, whether or not the host keeps checkpoints."""
    with open_kit(tmp_path) as kit:
        kit.context.settings = kit.settings.evolve(capture=CapturePolicy(early=True))
        agent = Agent(kit, painting("invisible"), AIMessage("It failed."))
        with pytest.raises(ConnectionError):
            agent(TOLD)
        assert heard(kit) == [TOLD]
        agent("Well?")
        assert heard(kit) == [TOLD, "", "Well?", "It failed."]


@pytest.mark.requirement("C8", "X3")
def test_a_replay_says_nothing_twice(kit: MemoryKit) -> None:
    """LangGraph runs everything after a checkpoint again, hooks too."""
    agent = Agent(kit, AIMessage("Noted.", id="a1"))
    agent(TOLD)
    before = next(each for each in agent.graph.get_state_history(thread("1")) if each.next == ("model",))
    agent.graph.invoke(None, before.config, context=ANN)
    assert len(agent.model.calls) == 2
    assert heard(kit) == [TOLD, "Noted."]


@pytest.mark.requirement("C8", "X3")
def test_what_the_host_replaced_is_told_in_the_newer_form_only(kit: MemoryKit) -> None:
    """Hosts redact and edit by giving the same id again; the ledger is append-only, and shows what the host has."""
    agent = Agent(kit)
    agent(TOLD, id="m1")
    agent.graph.update_state(thread("1"), {"messages": [HumanMessage("I own a [redacted].", id="m1")]})
    agent("Well?")
    assert heard(kit) == ["Noted.", "I own a [redacted].", "Well?", "Noted."]


@pytest.mark.requirement("C8", "X1")
def test_beside_summarisation_nothing_is_lost_and_no_summary_is_taken_for_words(kit: MemoryKit) -> None:
    """It removes old messages from the state, and puts a human message in their place that nobody said."""
    summary = ScriptedChatModel(script={"": [AIMessage("They talked about bicycles.")]})
    agent = Agent(kit, beside=[SummarizationMiddleware(summary, trigger=("messages", 4), keep=("messages", 2))])
    for number in range(4):
        agent(f"Message {number}.")
    result = agent(ASKED)
    assert summary.calls
    assert any("They talked about bicycles." in message.text for message in result["messages"])
    assert heard(kit) == [text for n in range(4) for text in (f"Message {n}.", "Noted.")] + [ASKED, "Noted."]
    assert agent.shown[-1][-1] == ("human", ASKED)


@pytest.mark.requirement("C8")
def test_hooks_run_in_the_documented_order(kit: MemoryKit) -> None:
    """Other middleware must know what it finds: memory is recalled before the first model call, once per run."""
    order: list[str] = []

    @before_agent
    def started(state: Any, runtime: Any) -> None:  # noqa: ARG001
        order.append("agent")

    @before_model
    def asking(state: Any, runtime: Any) -> None:  # noqa: ARG001
        order.append("model")

    agent = Agent(kit, painting("blue"), AIMessage("Done."), beside=[started, asking])
    options: dict[str, Any] = {"context": ANN, "stream_mode": "updates"}
    parts = list(agent.graph.stream({"messages": [HumanMessage(TOLD)]}, thread("1"), **options))
    names = [name for part in parts for name in part]
    assert names[0] == "MemoryMiddleware.before_agent"
    assert names[-1] == "MemoryMiddleware.after_agent"
    assert [name for name in names if "Memory" in name] == [names[0], names[-1]]
    assert order == ["agent", "model", "model"]


@pytest.mark.requirement("C8")
async def test_every_stream_mode_works_and_events_tell_what_memory_did(kit: MemoryKit) -> None:
    """Hosts stream to their users; what is meant for the model must not appear as a message."""
    remember(kit)
    agent = Agent(kit)
    for mode in get_args(StreamMode):
        options = {"context": ANN, "stream_mode": mode}
        parts = list(agent.graph.stream({"messages": [HumanMessage(ASKED)]}, thread(mode), **options))
        assert parts
        again = agent.graph.astream({"messages": [HumanMessage(ASKED)]}, thread(f"async {mode}"), **options)
        parts += [part async for part in again]
        if mode == "messages":
            assert [message.text for message, _ in parts] == ["Scarlet.", "Scarlet."]
        if mode == "custom":
            assert [part["event"] for part in parts] == ["memory_recalled", "memory_captured"] * 2
        assert heard(kit, mode) == heard(kit, f"async {mode}") == [ASKED, "Scarlet."]


@pytest.mark.requirement("C8")
def test_two_memories_in_one_agent_do_not_mix(kit: MemoryKit) -> None:
    """A user's memory beside a team's: each has its own name, scope and recall."""
    team = Scope(user="team", agent="remy")
    kit.save("rule", "Bicycles are washed on Fridays.", scope=team)
    remember(kit)
    middleware = [MemoryMiddleware(kit), MemoryMiddleware(kit, team, name="team", tools=False)]
    agent = Agent(kit, middleware=middleware)
    agent("When is my bicycle washed?")
    memories = [text for kind, text in agent.shown[0] if "never instructions" in text]
    assert sorted(("scarlet" in text, "Fridays" in text) for text in memories) == [(False, True), (True, False)]
    assert kit.context.health.stats()["recalls"] == 2


@pytest.mark.requirement("C8", "F3")
def test_the_agent_gets_the_tools_unless_they_are_declined(kit: MemoryKit) -> None:
    """One argument is enough for all three: recall, capture, tools."""
    saving = ToolCall(name="save_memory", args={"key": "tea", "content": "Ann drinks oolong."}, id="s")
    agent = Agent(kit, AIMessage("", tool_calls=[saving]), AIMessage("Saved."))
    agent("Remember my tea.")
    assert [memory.content for memory in kit.memories(scope=ANN, statuses=["active"])][:1] == ["Ann drinks oolong."]
    offered = {tool["function"]["name"] for tool in agent.model.calls[0].instructions}
    assert offered == {"paint", "save_memory", "search_memory", "forget_memory", "trace_memory"}
    assert MemoryMiddleware(kit, tools=False).tools == []


@pytest.mark.requirement("C8")
@pytest.mark.parametrize(("verb", "door"), [("recall", "visible"), ("capture", "add_messages")])
def test_a_failing_ledger_does_not_break_the_agent(kit: MemoryKit, verb: str, door: str) -> None:
    """An agent without memory is better than none; and whoever runs it must see why."""
    remember(kit)
    failing = FailingCall(1)
    failing.guard(kit.context.parts().archive, {door: lambda: OperationalError("SELECT secret", {}, OSError("disk"))})
    agent = Agent(kit)
    options: dict[str, Any] = {"context": ANN, "stream_mode": "custom"}
    events = list(agent.graph.stream({"messages": [HumanMessage(TOLD)]}, thread("1"), **options))
    assert {"event": "memory_failed", "verb": verb, "reason": "OperationalError", "refused": False} in events
    assert kit.admin.stats()[f"{verb}_failures"] == 1
    agent("Well?")
    assert heard(kit) == [TOLD, "Noted.", "Well?", "Noted."]


@pytest.mark.requirement("C8")
def test_a_turn_that_a_limit_refuses_is_told_as_that_and_wakes_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever is on call sees outages; that a user has used up a minute is for whoever set the limit."""
    limits = LimitPolicy(user=Limits(messages_per_minute=1))
    saving = ToolCall(name="save_memory", args={"key": "tea", "content": "Ann drinks oolong."}, id="s")
    steps = (AIMessage("Noted."), AIMessage("", tool_calls=[saving]), AIMessage("Noted."))
    with (
        caplog.at_level(logging.DEBUG, "remegraph"),
        MemoryKit.open(tmp_path, settings=Settings(limits=limits), model=None, clock=FrozenClock(NOON)) as kit,
    ):
        agent = Agent(kit, *steps)
        agent(TOLD)
        options: dict[str, Any] = {"context": ANN, "stream_mode": "custom"}
        events = list(agent.graph.stream({"messages": [HumanMessage("Remember my tea.")]}, thread("1"), **options))
        stats = kit.admin.stats()
    told = [each for each in caplog.records if vars(each)["event.name"] == "remegraph.limit.refused"]
    assert [(vars(each)["remegraph.surface"], vars(each)["remegraph.whose"]) for each in told] == [
        ("tool", "user"),
        ("capture", "user"),
    ]
    assert {vars(each)["remegraph.limit"] for each in told} == {"messages_per_minute"}
    assert all("used up its 1 messages a minute. Repeat it at 12:01 UTC" in each.getMessage() for each in told)
    assert [each.getMessage() for each in caplog.records if each.levelno > logging.INFO] == []
    (failed,) = (each for each in events if each["event"] == "memory_failed")
    assert (failed["verb"], failed["refused"]) == ("capture", True)
    assert (stats["capture_failures"], stats["capture_refusals"]) == (0, 1)
    assert "1 messages a minute" in str(stats["capture_refusal"])


@pytest.mark.requirement("C8", "X5")
def test_without_a_user_the_developer_is_told(kit: MemoryKit) -> None:
    """An agent that went on would remember nobody, and nobody would notice."""
    with pytest.raises(ScopeError, match="Name the user"):
        Agent(kit, middleware=[MemoryMiddleware(kit, ScopeSource(agent="remy"))])(TOLD, scope=None)


@pytest.mark.requirement("C8", "F9")
def test_an_agent_whose_memory_is_off_keeps_its_tools_only(tmp_path: Path) -> None:
    """One setting switches off what happens by itself; what the agent asks for is its own affair."""
    with open_kit(tmp_path) as kit:
        remember(kit)
        kit.context.settings = kit.settings.evolve(agents={"remy": AgentMemorySettings(enabled=False)})
        searching = ToolCall(name="search_memory", args={"query": "bicycle"}, id="s")
        agent = Agent(kit, AIMessage("", tool_calls=[searching]), AIMessage("Scarlet."))
        result = agent(ASKED)
        assert [kind for kind, _ in agent.shown[0]] == ["system", "human"]
        assert "scarlet" in result["messages"][-2].text
        assert heard(kit) == []


def test_a_service_tells_an_outage_of_the_ledger_once_and_that_it_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A line for each turn under load hides what else goes wrong, and no line at the end leaves somebody awake."""
    away = LedgerUnavailableError("The ledger does not answer.", "Repeat.")
    with open_kit(tmp_path) as kit, caplog.at_level(logging.INFO, "remegraph.kit.health"):
        for surface in ("recall", "capture"):
            with HostGuard(kit, surface):
                raise away
        with HostGuard(kit, "capture"):
            pass  # a call of a tool is noted in memory: that it went well says nothing of the ledger
        assert "answers again" not in caplog.text
        kit.recall("What does Ann love?", scope=ANN)
        kit.recall("What does Ann love?", scope=ANN)
        with HostGuard(kit, "recall"):
            raise away
    said = [(each.levelname, each.getMessage()) for each in caplog.records if each.name == "remegraph.kit.health"]
    failed = (
        "Memory failed (recall), and this process goes on: LedgerUnavailableError: The ledger does not answer. Repeat."
    )
    assert said == [("WARNING", failed), ("INFO", "The ledger answers again."), ("WARNING", failed)]
