"""Memories in a list, and the page of one: text, curve, sources, versions, links, journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from starlette.requests import Request
from starlette.responses import Response

from remegraph import Memory, NotFoundError, Partition
from remegraph.integrations.inspector.curve import Curve, curve
from remegraph.integrations.inspector.pages import PAGE, Desk, desk, number, page_of, render
from remegraph.models import LIVE, MOVES, Diff, Explanation, Find, Quote, StoredMessage, Trace

__all__ = ["browse", "cut", "show"]

_MOST = 50
"""Links, and versions with what they changed, that a page shows: some memories have thousands."""


@dataclass(frozen=True, slots=True)
class Source:
    """A raw message that bears a memory out, with the words of it that do."""

    message: StoredMessage
    parts: tuple[tuple[str, bool], ...]
    """The text, cut; true: these words bear it out."""
    block_id: str
    partition: Partition


def browse(request: Request) -> Response:
    """List memories, the newest first."""
    at = desk(request)
    topic, status = (request.query_params.get(name, "") for name in ("topic", "status"))
    statuses = [status] if status in MOVES else list(MOVES) if status == "any" else sorted(LIVE)
    end = number(request, "page", 1) * PAGE + 1
    found = at.kit.memories(scope=at.scope, topic=topic or None, statuses=statuses, limit=end)
    keys = sorted({shelf.topic.key for shelf in at.kit.topics(scope=at.scope)})
    return render(
        request, "memories.html", page=page_of(request, found), topic=topic, status=status, statuses=MOVES, topics=keys
    )


def show(request: Request) -> Response:
    """Show everything about one memory."""
    at = desk(request)
    memory_id = request.query_params.get("id", "")
    told = at.kit.explain(memory_id, scope=at.scope, at=at.clock())
    chain = at.kit.governance.archaeology(memory_id, scope=at.scope)
    return render(
        request,
        "memory.html",
        told=told,
        memory=told.memory,
        curve=_drawn(at, told),
        sources=tuple(_sources(told.trace)),
        finds=[(find, _changes(at, find)) for find in sorted(chain.finds, key=lambda each: each.head.recorded_at)],
        linked=_linked(at, told.trace),
    )


def _drawn(at: Desk, told: Explanation) -> Curve | None:
    """Return the forgetting curve; none where it does not fade."""
    if told.forget_at is None:
        return None
    name = told.memory.memory_id
    return curve(
        lambda times: [weight.value for weight in at.kit.curve(name, scope=at.scope, times=times)],
        begins=min((told.trace.versions[0].recorded_at, *told.reviews[:1])),
        ends=told.forget_at,
        now=at.clock(),
        reviews=told.reviews,
        threshold=at.kit.settings.for_agent(at.scope.agent).lifecycle.forget_threshold,
    )


def _sources(trace: Trace) -> Iterator[Source]:
    """Yield each message once, in the order of saying, with all its words that count."""
    quotes: defaultdict[tuple[int, str, str], list[Quote]] = defaultdict(list)
    for quote in trace.quotes:
        quotes[quote.message.seq, quote.message.message_id, quote.attachment].append(quote)
    for _, found in sorted(quotes.items()):
        message = found[0].message
        holders = (
            block.block_id
            for block in trace.blocks
            if block.thread == message.thread and block.first_seq <= message.seq <= block.last_seq
        )
        parts = tuple(cut(found[0].text, [(quote.start, quote.end) for quote in found]))
        yield Source(message, parts, next(holders, ""), message.partition)


def cut(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[str, bool]]:
    """Yield a text in parts, and of each whether it lies in a span; spans may overlap."""
    done = 0
    for start, end in sorted(spans):
        if start > done:
            yield text[done:start], False
        if end > done:
            yield text[max(start, done) : end], True
        done = max(done, end)
    if done < len(text):
        yield text[done:], False


def _changes(at: Desk, find: Find) -> dict[int, Diff]:
    """Return what each version changed of the one before it, by its number."""
    numbers = [note.memory.version for note in find.versions][-_MOST:]
    return {
        after: at.kit.governance.diff(find.memory_id, before, after, scope=at.scope)
        for before, after in pairwise(numbers)
    }


def _linked(at: Desk, trace: Trace) -> list[tuple[str, bool, Memory | None, str]]:
    """Return the links: type, whether it leads from this memory, the other one if it is seen, its id."""
    own = trace.memory.memory_id
    others = [(link, link.target_id if link.source_id == own else link.source_id) for link in trace.links[:_MOST]]
    known = {name: _head(at, name) for name in {other for _, other in others}}
    return [(link.type, link.source_id == own, known[other], other) for link, other in others]


def _head(at: Desk, memory_id: str) -> Memory | None:
    try:
        return at.kit.trace(memory_id, scope=at.scope).memory
    except NotFoundError:
        return None
