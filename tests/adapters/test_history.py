"""The ledger as a chat message history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from remegraph import MemoryKit, Scope
from remegraph.adapters import MessageHistory
from remegraph.errors import MessageChangedError
from tests.talk import ANN, open_kit

BOB = Scope(user="bob@example.org")

TALK: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("Which tea?", id="m1", additional_kwargs={"lang": "en"}),
    AIMessage("", tool_calls=[{"name": "look", "args": {"q": "tea"}, "id": "c1", "type": "tool_call"}]),
    ToolMessage([{"type": "text", "text": "oolong"}], tool_call_id="c1", artifact={"rows": 1}),
    AIMessage("乌龙茶。", usage_metadata={"input_tokens": 3, "output_tokens": 1, "total_tokens": 4}),
]


@pytest.mark.requirement("C5")
async def test_messages_come_back_equal_after_a_restart(tmp_path: Path) -> None:
    """A history that drops tool calls or metadata breaks the next model call."""
    with open_kit(tmp_path) as kit:
        MessageHistory(kit, ANN, "t").add_messages(TALK)
    with open_kit(tmp_path) as kit:
        history = MessageHistory(kit, ANN, "t")
        assert history.messages == TALK
        assert await history.aget_messages() == TALK
        assert "Human: Which tea?" in str(history)


@pytest.mark.requirement("C5", "X5")
async def test_threads_and_users_are_kept_apart(kit: MemoryKit) -> None:
    """Two people may call their threads the same."""
    one, other, third = (
        MessageHistory(kit, ANN, "1"),
        MessageHistory(kit, BOB, "1"),
        MessageHistory(kit, ANN, "2"),
    )
    one.add_user_message("from Ann")
    await other.aadd_messages([AIMessage("for Bob")])

    assert [message.text for message in one.messages] == ["from Ann"]
    assert [message.text for message in await other.aget_messages()] == ["for Bob"]
    assert third.messages == []


@pytest.mark.requirement("C5", "X3")
async def test_clearing_hides_and_the_ledger_keeps(kit: MemoryKit) -> None:
    """A fresh start for the chat; what was learned stays traceable to its words."""
    history = MessageHistory(kit, ANN, "t")
    history.add_user_message("I hate mushrooms.")
    kit.summarize(scope=ANN, close=True)
    history.clear()
    assert history.messages == []
    history.add_messages([HumanMessage("Hello again.")])
    await history.aclear()
    await history.aclear()
    history.add_messages([])
    history.add_messages([HumanMessage("And again.")])

    assert [message.text for message in history.messages] == ["And again."]
    kit.summarize(scope=ANN, close=True)
    (memory,) = kit.recall("mushrooms", scope=ANN).memories
    assert kit.trace(memory.record_id, scope=ANN).quotes[0].words == "I hate mushrooms."
    assert kit.admin.verify().healthy


@pytest.mark.requirement("C5", "X3")
def test_a_known_id_is_not_added_twice_and_never_changed(kit: MemoryKit) -> None:
    """Hosts add the same message again when they retry."""
    history = MessageHistory(kit, ANN, "t")
    for _ in range(2):
        history.add_messages([HumanMessage("hi", id="m1")])
    assert len(history.messages) == 1
    with pytest.raises(MessageChangedError):
        history.add_messages([HumanMessage("other", id="m1")])


@pytest.mark.requirement("C5")
@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
async def test_chains_with_history_run_on_it(kit: MemoryKit) -> None:
    """Code that was written for LangChain's histories moves over by one line."""
    model: Any = RunnableLambda(lambda messages: AIMessage(f"{len(messages)} so far"))
    chain: Any = RunnableWithMessageHistory(model, lambda session_id: MessageHistory(kit, ANN, session_id))
    config: Any = {"configurable": {"session_id": "s"}}
    assert chain.invoke([HumanMessage("a")], config).text == "1 so far"
    assert (await chain.ainvoke([HumanMessage("b")], config)).text == "3 so far"
    assert [message.text for message in MessageHistory(kit, ANN, "s").messages] == ["a", "1 so far", "b", "3 so far"]
