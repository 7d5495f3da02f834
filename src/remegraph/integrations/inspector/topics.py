"""The first page: topics as bubbles around the agent, with what ties them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from remegraph import Memory
from remegraph.integrations.inspector.pages import PAGE, desk, number, render
from remegraph.models import LIVE, TopicNode

__all__ = ["around", "graph", "show"]

_NEWEST = 8
_LABEL = 80


def show(request: Request) -> Response:
    """Show the topics and what was learned last. The graph comes after, as large ones take their time."""
    at = desk(request)
    shelves = {shelf.topic.key: shelf.topic for shelf in at.kit.topics(scope=at.scope)}
    newest = at.kit.memories(scope=at.scope, statuses=sorted(LIVE), limit=_NEWEST)
    return render(request, "topics.html", topics=sorted(shelves.values(), key=lambda topic: topic.key), newest=newest)


def graph(request: Request) -> Response:
    """Return the topics and what ties them."""
    at = desk(request)
    found = at.kit.topic_graph(scope=at.scope)
    nodes = [_bubble(node, centre=node is found.centre) for node in (found.centre, *found.topics)]
    ties = [
        {"source": edge.source, "target": edge.target, "blocks": len(edge.block_ids), "links": edge.links}
        for edge in found.edges
    ]
    return JSONResponse({"nodes": nodes, "ties": ties})


def around(request: Request) -> Response:
    """Return the newest memories of a topic, their links, and which of them came from the same block."""
    at = desk(request)
    limit = number(request, "limit", PAGE, most=100)
    key = request.query_params.get("topic", "")
    found = at.kit.memories(scope=at.scope, topic=key, statuses=sorted(LIVE), limit=limit)
    shown = {memory.memory_id for memory in found}
    links = {
        (link.source_id, link.target_id, link.type)
        for memory in found
        for link in at.kit.trace(memory.memory_id, scope=at.scope).links
        if {link.source_id, link.target_id} <= shown
    }
    return JSONResponse(
        {
            "memories": [_dot(memory) for memory in found],
            "links": [{"source": source, "target": target, "type": kind} for source, target, kind in sorted(links)],
            "blocks": list(_strings(found)),
        }
    )


def _strings(memories: Sequence[Memory]) -> Iterator[dict[str, str]]:
    """Yield ties that string the memories of each block together: all pairs would be a ball of wool."""
    of_block: defaultdict[str, list[str]] = defaultdict(list)
    for memory in memories:
        for block_id in memory.block_ids:
            of_block[block_id].append(memory.memory_id)
    for block_id, names in of_block.items():
        for one, other in pairwise(names):
            yield {"source": one, "target": other, "block": block_id}


def _bubble(node: TopicNode, *, centre: bool) -> dict[str, object]:
    return {
        "key": node.topic.key,
        "type": node.topic.type,
        "name": node.topic.target_name,
        "memories": node.memories,
        "blocks": len(node.block_ids),
        "centre": centre,
    }


def _dot(memory: Memory) -> dict[str, object]:
    text = memory.content if len(memory.content) <= _LABEL else f"{memory.content[:_LABEL]}…"
    return {"id": memory.memory_id, "text": text, "status": memory.status, "layer": memory.layer}
