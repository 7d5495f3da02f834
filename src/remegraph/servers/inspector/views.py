"""The pages that only show: topics, memories, recall, forgetting, the conversation, the journal, the home."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import groupby, pairwise
from typing import cast, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from remegraph import Memory, NotFoundError, Partition, models
from remegraph.servers.inspector.pages import PAGE, Desk, desk, number, page_of, partition_of, render

__all__ = ["HEIGHT", "ROUTES", "WIDTH", "Curve", "Source", "curve", "cut"]

# ----------------------------------------------------------------------------------------------------- topics

_NEWEST = 8
_LABEL = 80


def _topics(request: Request) -> Response:
    """Show the topics and what was learned last. The graph comes after, as large ones take their time."""
    at = desk(request)
    shelves = {shelf.topic.key: shelf.topic for shelf in at.kit.topics.list(scope=at.scope)}
    newest = at.kit.memories(scope=at.scope, statuses=sorted(models.LIVE), limit=_NEWEST)
    return render(request, "topics.html", topics=sorted(shelves.values(), key=lambda topic: topic.key), newest=newest)


def _graph(request: Request) -> Response:
    """Return the topics and what ties them."""
    at = desk(request)
    found = at.kit.topics.graph(scope=at.scope)

    def bubble(node: models.TopicNode) -> dict[str, object]:
        return {
            "key": node.topic.key,
            "type": node.topic.type,
            "name": node.topic.target_name,
            "memories": node.memories,
            "blocks": len(node.block_ids),
            "centre": node is found.centre,
        }

    ties = [
        {"source": edge.source, "target": edge.target, "blocks": len(edge.block_ids), "links": edge.links}
        for edge in found.edges
    ]
    return JSONResponse({"nodes": [bubble(node) for node in (found.centre, *found.topics)], "ties": ties})


def _around(request: Request) -> Response:
    """Return the newest memories of a topic, their links, and which of them came from the same block."""
    at = desk(request)
    limit = number(request, "limit", PAGE, most=100)
    key = request.query_params.get("topic", "")
    found = at.kit.memories(scope=at.scope, topic=key, statuses=sorted(models.LIVE), limit=limit)
    shown = {each.memory_id for each in found}
    links = {
        (link.source_id, link.target_id, link.type)
        for each in found
        for link in at.kit.trace(each.memory_id, scope=at.scope).links
        if {link.source_id, link.target_id} <= shown
    }
    return JSONResponse(
        {
            "memories": [_dot(each) for each in found],
            "links": [{"source": source, "target": target, "type": kind} for source, target, kind in sorted(links)],
            "blocks": list(_strings(found)),
        }
    )


def _dot(each: Memory) -> dict[str, object]:
    text = each.content if len(each.content) <= _LABEL else f"{each.content[:_LABEL]}…"
    return {"id": each.memory_id, "text": text, "status": each.status, "layer": each.layer}


def _strings(found: Sequence[Memory]) -> Iterator[dict[str, str]]:
    """Yield ties that string the memories of each block together: all pairs would be a ball of wool."""
    of_block: defaultdict[str, list[str]] = defaultdict(list)
    for each in found:
        for block_id in each.block_ids:
            of_block[block_id].append(each.memory_id)
    for block_id, names in of_block.items():
        for one, other in pairwise(names):
            yield {"source": one, "target": other, "block": block_id}


# --------------------------------------------------------------------------------------------------- memories

_MOST = 50
"""Links, and versions with what they changed, that a page shows: some memories have thousands."""


@dataclass(frozen=True, slots=True)
class Source:
    """A raw message that a memory came from, with the exact words."""

    message: models.StoredMessage
    parts: tuple[tuple[str, bool], ...]
    """The text, cut; true: the memory came from these words."""
    block_id: str
    partition: Partition


def _memories(request: Request) -> Response:
    """List memories, the newest first."""
    at = desk(request)
    topic, status = (request.query_params.get(name, "") for name in ("topic", "status"))
    statuses = [status] if status in models.MOVES else list(models.MOVES) if status == "any" else sorted(models.LIVE)
    end = number(request, "page", 1) * PAGE + 1
    found = at.kit.memories(scope=at.scope, topic=topic or None, statuses=statuses, limit=end)
    keys = sorted({shelf.topic.key for shelf in at.kit.topics.list(scope=at.scope)})
    return render(
        request,
        "memories.html",
        page=page_of(request, found),
        topic=topic,
        status=status,
        statuses=models.MOVES,
        topics=keys,
    )


def _memory(request: Request) -> Response:
    """Show everything about one memory."""
    at = desk(request)
    memory_id = request.query_params.get("id", "")
    found = at.kit.explain(memory_id, scope=at.scope, at=at.clock())
    chain = at.kit.governance.archaeology(memory_id, scope=at.scope)
    return render(
        request,
        "memory.html",
        told=found,
        memory=found.memory,
        curve=_curve_of(at, found),
        sources=tuple(_sources(found.trace)),
        finds=[(find, _changes(at, find)) for find in sorted(chain.finds, key=lambda each: each.head.recorded_at)],
        linked=_linked(at, found.trace),
    )


def _sources(trace: models.Trace) -> Iterator[Source]:
    """Yield each message once, in the order of saying, with all its words that count."""
    quotes: defaultdict[tuple[int, str, str], list[models.Quote]] = defaultdict(list)
    for quote in trace.quotes:
        quotes[quote.message.seq, quote.message.message_id, quote.attachment].append(quote)
    for _, found in sorted(quotes.items()):
        message = found[0].message
        holders = (
            each.block_id
            for each in trace.blocks
            if each.thread == message.thread and each.first_seq <= message.seq <= each.last_seq
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


def _changes(at: Desk, find: models.Find) -> dict[int, models.Diff]:
    """Return what each version changed of the one before it, by its number."""
    numbers = [note.memory.version for note in find.versions][-_MOST:]
    return {
        after: at.kit.governance.diff(find.memory_id, before, after, scope=at.scope)
        for before, after in pairwise(numbers)
    }


def _linked(at: Desk, trace: models.Trace) -> list[tuple[str, bool, Memory | None, str]]:
    """Return the links: type, whether it leads from this memory, the other one if it is visible, its id."""
    own = trace.memory.memory_id
    others = [(link, link.target_id if link.source_id == own else link.source_id) for link in trace.links[:_MOST]]
    known: dict[str, Memory | None] = {}
    for name in {other for _, other in others}:
        try:
            known[name] = at.kit.trace(name, scope=at.scope).memory
        except NotFoundError:
            known[name] = None
    return [(link.type, link.source_id == own, known[other], other) for link, other in others]


# ------------------------------------------------------------------------------------------------- forgetting

WIDTH, HEIGHT = 640, 180
_SAMPLES = 64
_MOMENT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Curve:
    """The forgetting curve of a memory in a drawing of `WIDTH` by `HEIGHT`, the origin at the top left."""

    points: str
    """The line, as SVG writes it."""
    reviews: tuple[tuple[float, datetime], ...]
    """Where each review is, and when."""
    threshold: float
    """The height at which it is forgotten."""
    now: float | None
    begins: datetime
    ends: datetime


def curve(
    weigh: Callable[[Sequence[datetime]], Sequence[float]],
    *,
    begins: datetime,
    ends: datetime,
    reviews: Sequence[datetime],
    threshold: float,
    now: datetime | None = None,
) -> Curve:
    """Return the drawing of a memory's weight, from its first day to the day when it is forgotten.

    The line jumps at each review, so it is drawn just before each, too.
    """
    last = max(ends, now or ends, begins + timedelta(hours=1))
    last += (last - begins) * 0.06
    span = last - begins
    even = (begins + span * (at / _SAMPLES) for at in range(_SAMPLES + 1))
    jumps = (moment for review in reviews for moment in (review - _MOMENT, review) if begins <= moment <= last)
    times = sorted({*even, *jumps})

    def place(moment: datetime) -> float:
        return round((moment - begins) / span * WIDTH, 2)

    def height(weight: float) -> float:
        return round((1 - weight) * HEIGHT, 2)

    return Curve(
        points=" ".join(
            f"{place(moment)},{height(weight)}" for moment, weight in zip(times, weigh(times), strict=True)
        ),
        reviews=tuple((place(review), review) for review in reviews if begins <= review <= last),
        threshold=height(threshold),
        now=None if now is None or now < begins else place(now),
        begins=begins,
        ends=last,
    )


def _curve_of(at: Desk, found: models.Explanation) -> Curve | None:
    """Return the forgetting curve of a memory; `None` where it does not fade."""
    if found.forget_at is None:
        return None
    name = found.memory.memory_id
    return curve(
        lambda times: [weight.value for weight in at.kit.retention.curve(name, scope=at.scope, times=times)],
        begins=min((found.trace.versions[0].recorded_at, *found.reviews[:1])),
        ends=found.forget_at,
        now=at.clock(),
        reviews=found.reviews,
        threshold=at.kit.settings.for_agent(at.scope.agent).lifecycle.forget_threshold,
    )


def _forecast(request: Request) -> Response:
    """Show what will be forgotten, the next first; try a clean-up where that is asked for, as it looks at everything."""
    at = desk(request)
    days = number(request, "days", 30, most=3650)
    found = at.kit.retention.forecast(days, scope=at.scope)
    now = at.clock()
    return render(
        request,
        "forecast.html",
        page=page_of(request, found),
        total=len(found),
        due=sum(each.forget_at <= now for each in found),
        days=days,
        now=now,
        cleanup=at.kit.retention.maintain(scope=at.scope, dry_run=True)
        if request.query_params.get("cleanup")
        else None,
        most=PAGE,
    )


# ----------------------------------------------------------------------------------------------------- recall

_DEPTHS, _MODES = get_args(models.Depth), get_args(models.RecallMode)


def _recall(request: Request) -> Response:
    """Try out a question. Recall and inject, and strengthen nothing: to look is not to remember."""
    at, given = desk(request), request.query_params
    query = given.get("q", "").strip()
    depth = cast("models.Depth", given.get("depth") if given.get("depth") in _DEPTHS else "memories")
    mode = cast("models.RecallMode", given.get("mode") if given.get("mode") in _MODES else "hybrid")
    k = number(request, "k", 10, most=100)
    found = injected = None
    hits: tuple[models.Hit, ...] = ()
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


# -------------------------------------------------------------------------------------- history and the home

_WINDOW = timedelta(days=30)


def _timeline(request: Request) -> Response:
    """Show the block index, the newest day first."""
    at = desk(request)
    page = page_of(request, reversed(at.kit.sources.blocks(scope=at.scope)))
    days = [(day, tuple(entries)) for day, entries in groupby(page.entries, lambda entry: entry.start_time.date())]
    return render(request, "timeline.html", page=page, days=days)


def _block(request: Request) -> Response:
    """Show the raw messages of a block."""
    at, given = desk(request), request.query_params
    name = given.get("id", "")
    found = at.kit.sources.retrieve_block(name, scope=at.scope, partition=partition_of(at.scope, given.get("of")))
    return render(request, "block.html", name=name, messages=found, marked=given.get("message", ""))


def _audit(request: Request) -> Response:
    """Search the journal, the newest first."""
    at, given = desk(request), request.query_params
    since, until, query = _day(given.get("since", "")), _day(given.get("until", "")), given.get("q", "")
    found = at.kit.governance.audit(
        scope=at.scope,
        since=since or at.clock() - _WINDOW,
        until=None if until is None else datetime.combine(until, time.max, UTC),
    )

    def wanted(entry: models.AuditEntry) -> bool:
        event = entry.event
        fields = (event.actor, event.action, event.record_id, event.operation_id, event.reason)
        return all(any(word in field.casefold() for field in fields) for word in query.casefold().split())

    entries = [each for each in found if isinstance(each, models.AuditEntry) and wanted(each)]
    page = page_of(request, reversed(entries))
    return render(request, "audit.html", page=page, total=len(entries), q=query, since=since, until=until)


def _day(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None


def _health(request: Request) -> Response:
    """Show counts and the work left undone; look for whatever is wrong where that is asked for, as it takes a while."""
    at = desk(request)
    examined = at.kit.admin.examine() if request.query_params.get("examine") else None
    return render(
        request, "health.html", stats=at.kit.admin.stats(), work=at.kit.work.list(scope=at.scope), examined=examined
    )


ROUTES = [
    Route("/", _topics),
    Route("/graph", _graph),
    Route("/graph/topic", _around),
    Route("/memories", _memories),
    Route("/memory", _memory),
    Route("/timeline", _timeline),
    Route("/block", _block),
    Route("/recall", _recall),
    Route("/forecast", _forecast),
    Route("/health", _health),
    Route("/audit", _audit),
]
