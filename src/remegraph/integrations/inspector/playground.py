"""Try out a question: what is found, what the scores are made of, what an agent would be shown, what was left out."""

from __future__ import annotations

from typing import cast, get_args

from starlette.requests import Request
from starlette.responses import Response

from remegraph.integrations.inspector.pages import desk, number, render
from remegraph.models import Depth, Hit, RecallMode

__all__ = ["show"]

_DEPTHS, _MODES = get_args(Depth), get_args(RecallMode)


def show(request: Request) -> Response:
    """Recall and inject, and strengthen nothing: to look is not to remember."""
    at, given = desk(request), request.query_params
    query = given.get("q", "").strip()
    depth = cast("Depth", given.get("depth") if given.get("depth") in _DEPTHS else "memories")
    mode = cast("RecallMode", given.get("mode") if given.get("mode") in _MODES else "hybrid")
    k = number(request, "k", 10, most=100)
    found = injected = None
    hits: tuple[Hit, ...] = ()
    if query:
        found = at.kit.recall(query, scope=at.scope, k=k, depth=depth, mode=mode, review=False)
        hits = (*found.memories, *found.blocks, *found.messages)
        injected = at.kit.inject(query, scope=at.scope, always=True, review=False)
    return render(
        request,
        "recall.html",
        query=query,
        k=k,
        depth=depth,
        mode=mode,
        depths=_DEPTHS,
        modes=_MODES,
        found=found,
        hits=hits,
        texts={hit.record_id: hit.text for hit in hits},
        injected=injected,
    )
