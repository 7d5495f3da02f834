"""Pictures in the messages of an agent: the model sees them, the ledger keeps them, the history gives them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from remegraph import MemoryKit, Scope, SetupError
from remegraph.adapters import MemoryMiddleware, MessageHistory, with_memory
from remegraph.testing import ScriptedChatModel
from tests.pictures import PNG, image, sha
from tests.talk import ANN

pytestmark = pytest.mark.requirement("K3")

PHOTO = image(extras={"filename": "bicycle.png"})
TURN: list[Any] = [{"type": "text", "text": "I own this scarlet bicycle."}, PHOTO]


def agent(kit: MemoryKit, model: ScriptedChatModel) -> Any:
    """LangChain's agent, with memory by middleware."""
    return create_agent(
        model, [], middleware=[MemoryMiddleware(kit)], context_schema=Scope, checkpointer=InMemorySaver()
    )


def graph(kit: MemoryKit, model: ScriptedChatModel) -> Any:
    """A graph built by hand, with memory around its model."""

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    built = StateGraph(MessagesState, context_schema=Scope)
    built.add_node("model", with_memory(kit, answer))
    built.add_edge(START, "model")
    return built.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("host", [agent, graph])
async def test_a_picture_in_a_turn_is_kept_once_however_often_the_thread_is_given(
    kit: MemoryKit, host: Callable[[MemoryKit, ScriptedChatModel], Any]
) -> None:
    """A host gives all messages after each turn, pictures included: the ledger must see that it knows them."""
    model = ScriptedChatModel(script={"": lambda _: AIMessage("Noted.")})
    run = host(kit, model)
    thread: Any = {"configurable": {"thread_id": "1"}}
    await run.ainvoke({"messages": [HumanMessage(TURN)]}, thread, context=ANN)
    await run.ainvoke({"messages": [HumanMessage("And it is fast.")]}, thread, context=ANN)

    kept = kit.messages("1", scope=ANN)
    assert [message.text for message in kept] == ["I own this scarlet bicycle.", "Noted.", "And it is fast.", "Noted."]
    assert [each.name for each in kept[0].attachments] == ["bicycle.png"]
    assert "base64" not in kept[0].content[1]
    assert kit.sources.attachment(sha(PNG), scope=ANN) == PNG
    asked = [message for call in model.calls for message in call.messages if message.type == "human"]
    assert any(PHOTO in message.content for message in asked)
    kit.end_session("1", scope=ANN)
    kit.drain()
    assert any("not read" in entry.summary for entry in kit.sources.blocks(scope=ANN))


async def test_a_history_gives_pictures_back_as_a_model_takes_them(kit: MemoryKit) -> None:
    """A reference of ours means nothing to a provider."""
    history = MessageHistory(kit, ANN, "t")
    talk = [HumanMessage(TURN), AIMessage("Nice!")]
    history.add_messages(talk)

    assert history.messages == talk
    assert await history.aget_messages() == talk


async def test_a_cleared_history_does_without_the_pictures_before(kit: MemoryKit) -> None:
    """A picture whose bytes are lost stops the chat; a fresh start must be one, and reads no old pictures."""
    history = MessageHistory(kit, ANN, "t")
    history.add_messages([HumanMessage(TURN)])
    for file in kit.settings.home.rglob(sha(PNG)):
        file.unlink()
    with pytest.raises(SetupError):
        _ = history.messages
    history.clear()
    history.add_messages([HumanMessage("Hello again.")])

    assert [message.text for message in history.messages] == ["Hello again."]
    assert [message.text for message in await history.aget_messages()] == ["Hello again."]
