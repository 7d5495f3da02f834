"""Every door through which a word of a conversation or of a memory may come out, for one scope."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from mcp import Client

from remegraph import MemoryKit, NotFoundError, RecallFilter, Scope
from remegraph.adapters import MemoryMiddleware, MemoryRetriever, MessageHistory, memory_tools
from remegraph.errors import ModelUnavailableError
from remegraph.models import Depth, RecallMode, Status
from remegraph.models.base import Record
from remegraph.servers.mcp import memory_server
from remegraph.testing import ScriptedChatModel

Told = Iterator[tuple[str, str]]
"""The name of a door, and all that comes out of it."""


def told(kit: MemoryKit, scope: Scope, question: str, word: str, folder: Path) -> Told:
    """Yield what each door says when it is asked about something.

    Args:
        kit: The memory.
        scope: Who asks.
        question: What they ask.
        word: The very word that they look for.
        folder: For files that are written.
    """
    yield from _recalled(kit, scope, question, word)
    yield from _listed(kit, scope, word)
    yield from _single(kit, scope)
    yield from _agents(kit, scope, question)
    yield from _files(kit, scope, question, folder)
    yield "mcp", asyncio.run(_mcp(kit, scope, question))


def _recalled(kit: MemoryKit, scope: Scope, question: str, word: str) -> Told:
    for depth in get_args(Depth):
        for mode in get_args(RecallMode):
            for asked in (question, word):
                found = kit.recall(asked, scope=scope, depth=depth, mode=mode, k=50)
                yield f"recall {depth} {mode}", _text(found.evolve(query="?", seconds=0))
        yield f"inject {depth}", _text(kit.inject(question, scope=scope, depth=depth, always=True).evolve(seconds=0))
    statuses = RecallFilter(statuses=get_args(Status))
    yield (
        "recall any status",
        _text(kit.recall(question, scope=scope, only=statuses, k=50).evolve(query="?", seconds=0)),
    )
    long_ago = RecallFilter(known_at=kit.context.clock() - timedelta(seconds=1))
    yield (
        "recall as of before",
        _text(kit.recall(question, scope=scope, only=long_ago, k=50).evolve(query="?", seconds=0)),
    )
    other = scope.evolve(agent="another")
    yield (
        "recall by another agent",
        _text(kit.recall(question, scope=other, depth="messages").evolve(query="?", seconds=0)),
    )


def _listed(kit: MemoryKit, scope: Scope, word: str) -> Told:
    now = kit.context.clock()
    yield "memories", _text(kit.memories(scope=scope, statuses=get_args(Status)))
    yield "blocks", _text(kit.sources.blocks(scope=scope))
    yield "messages by word", _text(kit.sources.retrieve_message(word, scope=scope))
    yield "messages", _text(kit.sources.retrieve_message(scope=scope, limit=10_000))
    yield "messages by time", _text(kit.sources.time_match_memories((now - timedelta(days=9999), now), scope=scope))
    for entry in kit.sources.blocks(scope=scope):
        yield "block", _text(kit.sources.retrieve_block(entry.block_id, scope=scope))
    for message in kit.sources.retrieve_message(scope=scope, limit=10_000):
        yield "thread", _text(kit.messages(message.thread, scope=scope))
        history = MessageHistory(kit, scope, thread=message.thread)
        yield "history", "\n".join(str(each.model_dump()) for each in history.messages)
    yield "work", _text(kit.work.list(scope=scope, states=("pending", "done", "failed", "review")))
    yield "rules", _text(kit.rules.list(scope=scope))
    yield "active", _text(kit.retention.active(scope=scope))
    yield "working", _text(kit.working.chunks(scope=scope))
    yield "tools", _text(kit.tools.stats(scope=scope))
    yield "conflicts", _text(kit.conflicts.list(scope=scope))
    yield "topics", _text(kit.topics.list(scope=scope)) + _text([kit.topics.graph(scope=scope)])
    yield "audit", _text(list(kit.governance.audit(scope=scope)))


def _single(kit: MemoryKit, scope: Scope) -> Told:
    every = kit.memories(scope=scope, statuses=get_args(Status))
    for memory in every:
        yield "trace", _text(kit.trace(memory.memory_id, scope=scope))
        yield "explain", _text(kit.explain(memory.memory_id, scope=scope))
        yield "archaeology", _text(kit.governance.archaeology(memory.memory_id, scope=scope))
        yield "metadata", _text(kit.retention.metadata(memory.memory_id, scope=scope))
        if memory.version > 1:
            yield "diff", _text(kit.governance.diff(memory.memory_id, 1, memory.version, scope=scope))
    with suppress(NotFoundError):
        yield "forms", _text(kit.forms.view([memory.memory_id for memory in every if memory.live], scope=scope))


def _agents(kit: MemoryKit, scope: Scope, question: str) -> Told:
    for shelf in kit.topics.list(scope=scope):
        keeper = kit.topics.agent(shelf.topic.key, scope=scope)
        yield "topic agent", _text(keeper.retrieve_by_query(question, threshold=0))
    for mode in get_args(Depth):
        documents = MemoryRetriever(kit, scope=scope, mode=mode).invoke(question)
        yield f"retriever {mode}", "\n".join(str(each) for each in documents)
    tools = {tool.name: tool for tool in memory_tools(kit, scope)}
    yield "search tool", str(tools["search_memory"].invoke({"query": question, "k": 20}))
    seen = ScriptedChatModel(script={"": [AIMessage("I see.")]})
    agent: Any = create_agent(seen, middleware=[MemoryMiddleware(kit, scope, tools=False)])
    agent.invoke({"messages": [("user", "Hello?")]}, {"configurable": {"thread_id": "a new one"}})
    agent.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "a new one"}})
    yield "middleware", "\n".join(call.text.replace(question, "") for call in seen.calls)


def _files(kit: MemoryKit, scope: Scope, question: str, folder: Path) -> Told:
    for kind in ("export", "preset"):
        built = kit.packs.build(folder / f"{kind}.pack", scope=scope, kind=kind)
        with kit.packs._opened(folder / f"{kind}.pack") as pack:
            inside = [record for name in pack.info.counts for _, record in pack.records(name)]
        yield f"pack {kind}", json.dumps(inside, ensure_ascii=False) + built.to_json()
        (folder / f"{kind}.pack").unlink()
    with suppress(ModelUnavailableError):  # a scripted model that has nothing to say of it
        yield "knowledge", _text(kit.knowledge.share(question, scope=scope))


async def _mcp(kit: MemoryKit, scope: Scope, question: str) -> str:
    async with Client(memory_server(kit, scope, rights="write"), mode="auto") as client:
        found = await client.call_tool("search_memory", {"query": question})
        traces = [
            await client.call_tool("trace_memory", {"memory_id": memory.memory_id})
            for memory in kit.memories(scope=scope)
        ]
        resources = [await client.read_resource(each.uri) for each in (await client.list_resources()).resources]
    return "\n".join(str(each) for each in (found, *traces, *resources))


def _text(found: Any) -> str:
    """Return JSON as a person would read it, so that Chinese words are found in it."""
    records = [found] if isinstance(found, Record) else list(found)
    return "\n".join(json.dumps(json.loads(each.to_json()), ensure_ascii=False) for each in records)


_DIGEST = re.compile(r"\b[0-9a-f]{16,}\b")


def leaks(said: Told, planted: Collection[str]) -> list[str]:
    """Return which doors say what must not be said, with what they say around it."""
    found: dict[str, None] = {}
    for door, whole in said:
        text = _DIGEST.sub("", whole)  # in which four digits stand by chance
        for word in planted:
            at = text.casefold().find(word.casefold())
            if at >= 0:
                found[f"{door}: {word}: {text[max(0, at - 60) : at + 60]}"] = None
    return list(found)
