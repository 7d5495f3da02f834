"""The first page: topics as bubbles around the agent, with what ties them."""

from __future__ import annotations

from itertools import combinations

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
    return JSONResponse({
        "memories": [_dot(memory) for memory in found],
        "links": [{"source": source, "target": target, "type": kind} for source, target, kind in sorted(links)],
        "blocks": [
            {"source": one.memory_id, "target": other.memory_id, "block": sorted(common)[0]}
            for one, other in combinations(found, 2)
            if (common := set(one.block_ids) & set(other.block_ids))
        ],
    })


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
