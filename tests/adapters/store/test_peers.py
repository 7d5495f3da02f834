"""Packages that bring their own memory run on `MemoryStore` unchanged."""

from __future__ import annotations

import json
import warnings
from importlib import import_module
from types import ModuleType

import pytest
from deepagents import create_deep_agent
from deepagents.backends import StoreBackend
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from remegraph import MemoryKit, Scope
from remegraph.adapters import MemoryStore
from remegraph.adapters.store import encode_label
from remegraph.testing import ScriptedChatModel


@pytest.fixture(scope="module")
def langmem() -> ModuleType:
    """LangMem; a package below it imports what LangGraph has deprecated."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Importing Send from langgraph.constants is deprecated")
        module: ModuleType = import_module("langmem")
    return module


def calling(name: str, **args: object) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": name, "type": "tool_call"}])


def replies(messages: list[BaseMessage]) -> list[str]:
    """Return what tools answered."""
    return [message.text for message in messages if message.type == "tool"]


@pytest.mark.requirement("C5")
async def test_langmem_keeps_its_memories_in_it(langmem: ModuleType, kit: MemoryKit, ann: Scope) -> None:
    """Its tools for creating, searching, changing and deleting, for users whose ids are e-mail addresses."""
    store = MemoryStore(kit, scope=ann, index=["content"])
    namespace = ("memories", "{user}")
    tools = [langmem.create_manage_memory_tool(namespace), langmem.create_search_memory_tool(namespace)]

    async def run(user: str, *steps: AIMessage) -> list[str]:
        model = ScriptedChatModel(script={"": [*steps, AIMessage("Done.")]})
        agent = create_agent(model, tools, store=store)
        config: RunnableConfig = {"configurable": {"user": encode_label(user)}}
        state = await agent.ainvoke({"messages": [HumanMessage("Hello")]}, config)
        return replies(state["messages"])

    (created,) = await run("ann@example.org", calling("manage_memory", content="Ann likes green tea.", action="create"))
    name = created.removeprefix("created memory ")
    await run("ben@example.org", calling("manage_memory", content="Ben likes coffee.", action="create"))

    changed = calling("manage_memory", id=name, content="Ann likes black tea.", action="update")
    search = calling("search_memory", query="tea")
    assert await run("ann@example.org", changed) == [f"updated memory {name}"]
    (found,) = await run("ann@example.org", search)
    assert [item["value"] for item in json.loads(found)] == [{"content": "Ann likes black tea."}]
    (found,) = await run("ben@example.org", search)
    assert [item["value"] for item in json.loads(found)] == [{"content": "Ben likes coffee."}]

    assert await run("ann@example.org", calling("manage_memory", id=name, action="delete")) == [
        f"Deleted memory {name}"
    ]
    assert [item.namespace for item in store.search(("memories",))] == [("memories", "ben@example~2Eorg")]


@pytest.mark.requirement("C5")
async def test_deepagents_keeps_its_files_in_it(kit: MemoryKit, ann: Scope) -> None:
    """A file written in one thread is read, edited and found in another, and by its user only."""

    async def run(scope: Scope, *steps: AIMessage) -> list[str]:
        model = ScriptedChatModel(script={"": [*steps, AIMessage("Done.")]})
        agent = create_deep_agent(
            model,
            backend=StoreBackend(namespace=lambda _runtime: ("files", encode_label("ann@example.org"))),
            store=MemoryStore(kit, scope=scope, index=False),
        )
        state = await agent.ainvoke({"messages": [HumanMessage("Hello")]})
        return replies(state["messages"])

    path = "/notes/tea.md"
    await run(ann, calling("write_file", file_path=path, content="Ann likes green tea.\n"))
    edited, seen, listed = await run(
        ann,
        calling("edit_file", file_path=path, old_string="green", new_string="black"),
        calling("read_file", file_path=path),
        calling("grep", pattern="black"),
    )
    assert "Successfully" in edited
    assert "Ann likes black tea." in seen
    assert path in listed
    (stranger,) = await run(ann.evolve(user="ben"), calling("read_file", file_path=path))
    assert "not found" in stranger
