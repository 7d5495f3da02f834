"""Input and output of a retrieval: the interface of the retriever."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from remegraph.deadlines import Patience
from remegraph.engine.frame import disarmed, shown
from remegraph.engine.retrieval.blend import Ranked
from remegraph.engine.retrieval.context import called
from remegraph.models import (
    BlockSummary,
    Chunk,
    Depth,
    Hit,
    IndexState,
    LeftOut,
    Memory,
    RecallFilter,
    RecallMode,
    Scope,
    StoredMessage,
)
from remegraph.models.remnants import MARK
from remegraph.models.standing import BEARS, QUARANTINE_BELOW, confidence, dated
from remegraph.ports import Search
from remegraph.settings import RetrievalPolicy
from remegraph.text.questions import Question
from remegraph.text.sentences import summary_of

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive
    from remegraph.ledger.permissions import GrantBook

__all__ = [
    "OVERFETCH",
    "TRACED",
    "Found",
    "RecallInput",
    "Routed",
    "block_hit",
    "holds",
    "in_order",
    "known_by",
    "memory_hit",
    "message_hit",
    "most_relevant",
    "named",
    "passes",
    "picks",
    "reasons",
    "record_parts",
    "returnable",
    "still_shown",
    "timed",
    "unsearched",
    "vouched",
    "within",
]


OVERFETCH = 5
"""Vectors looked at for each hit wanted."""


@dataclass(frozen=True, slots=True)
class Routed:
    """The task of a Sub Agent, with what the Meta Agent's own search found on its topic, best first."""

    search: Search
    candidates: tuple[Ranked, ...]


class RecallInput(TypedDict):
    """A query and how far to expand."""

    scope: Scope
    query: str
    question: Question
    k: int
    depth: Depth
    topics: tuple[str, ...] | None
    time_start: datetime | None
    time_end: datetime | None
    only: RecallFilter
    mode: RecallMode
    without: frozenset[str]
    """Ids of messages that the caller already has."""
    budget: int
    """Tokens of the context."""
    brief: bool
    """Whether the context says nothing twice, and nothing that the question says."""
    asked_at: datetime
    ranking: RetrievalPolicy
    """Weights beside relevance in the ranking of memories."""
    working: tuple[Chunk, ...]
    """Working memory for the current task."""
    active: tuple[Memory, ...]
    """Memories that are active whatever is asked."""
    patience: Patience
    """How long all its searches together may wait for the index."""


class Found(TypedDict):
    """Everything that a recall returns, before it becomes a record."""

    self_memories: tuple[Memory, ...]
    routed: tuple[str, ...]
    memories: tuple[Hit, ...]
    blocks: tuple[Hit, ...]
    messages: tuple[Hit, ...]
    beside: tuple[Hit, ...]
    index: IndexState
    degraded: tuple[str, ...]
    context: str
    left_out: Mapping[str, LeftOut]
    unlikely: tuple[Hit, ...]
    """Hits under the threshold."""


TRACED = "evidence"
"""Filters for blocks and words that memories are traced to."""

_UNSURE = "Nothing that is remembered clearly bears on what is asked; this may be about something else."


def picks(state: RecallInput) -> bool:
    """Return whether only some of what is found may pass."""
    return state["only"] != RecallFilter() or state["mode"] in {"exact", "temporal"}


def passes(row: StoredMessage, state: RecallInput) -> bool:
    """Return whether a message may be returned."""
    only = state["only"]
    return (
        within(row.time, state["time_start"], state["time_end"])
        and vouched(row.trust, state)
        and within(row.recorded_at, None, only.known_at)
        and holds(row.text, state)
    )


def vouched(trust: float, state: RecallInput) -> bool:
    """Return whether a message or an index entry is trusted as far as the caller or the agent's policy requires.

    If neither says anything, it must be trusted enough not to need approval as a memory.
    """
    said = (state["only"].min_trust, state["ranking"].min_trust)
    return trust >= next((least for least in said if least is not None), QUARANTINE_BELOW)


def returnable(entry: BlockSummary, asked: Search | RecallInput) -> bool:
    """Return whether an index entry may be returned."""
    if isinstance(asked, Search):
        least = QUARANTINE_BELOW if asked.only.min_trust is None else asked.only.min_trust
        start, end, trusted = asked.time_start, asked.time_end, entry.trust >= least
    else:
        start, end, trusted = asked["time_start"], asked["time_end"], vouched(entry.trust, asked)
    told = entry.summary != MARK and within(entry.end_time, start, None) and within(entry.start_time, None, end)
    return trusted and told and holds(entry.summary, asked)


def unsearched(state: RecallInput, *, semantic: bool) -> tuple[str, ...]:
    """Return what a recall leaves unsearched, and why.

    Messages have vectors only where the embedder knows meaning.
    """
    no_vectors = state["mode"] == "semantic" and state["depth"] == "messages" and not semantic
    return ("messages: they have no vectors, and words were not asked for",) if no_vectors else ()


def most_relevant(found: Iterable[Hit]) -> float:
    """Return the highest relevance of what was found; 1 if something was found other than by words or meaning.

    The sources of memories are as relevant as the memories.
    """
    searched = (hit.relevance for hit in found if TRACED not in hit.contributions)
    return max((1.0 if each is None else each for each in searched), default=1.0)


def notices(done: tuple[int, datetime] | None, shown: Iterable[Hit]) -> str:
    """Return the notices of a context about memory itself: that a request was carried out, and that it is unsure.

    `done` says how many memories were forgotten at a person's request, and when.
    """
    told = []
    if done is not None:
        count, time = done
        what = "memory" if count == 1 else "memories"
        told.append(f"Forgotten on {time:%Y-%m-%d} at the person's request: {count} {what}.")
    if most_relevant(shown) < BEARS:
        told.append(_UNSURE)
    return " ".join(told)


def holds(text: str, asked: Search | RecallInput) -> bool:
    """Return whether a text contains the query verbatim, if the mode asks for that."""
    mode, query = (asked.mode, asked.query) if isinstance(asked, Search) else (asked["mode"], asked["query"])
    return mode != "exact" or query.strip().casefold() in text.casefold()


def timed(mode: RecallMode, start: datetime | None, end: datetime | None) -> bool:
    """Return whether only a time is asked for, whatever was said then."""
    return mode == "temporal" and (start, end) != (None, None)


def in_order(hits: Sequence[Hit], state: RecallInput) -> Sequence[Hit]:
    """Return hits in the order of their times, if the mode asks for that."""
    return sorted(hits, key=lambda hit: (hit.time, hit.record_id)) if state["mode"] == "temporal" else hits


def within(time: datetime, start: datetime | None, end: datetime | None) -> bool:
    """Return whether a time lies between two others, either of which may be None."""
    return (start is None or time >= start) and (end is None or time <= end)


def known_by(versions: Sequence[Memory], time: datetime | None) -> tuple[Memory, ...]:
    """Return the versions that were recorded by a time; all of them where none is given."""
    return tuple(versions) if time is None else tuple(each for each in versions if each.recorded_at <= time)


def memory_hit(memory: Memory, contributions: Mapping[str, float], relevance: float | None = None) -> Hit:
    """Return a memory as a hit.

    Its score is the sum of the contributions.
    """
    return Hit(
        kind="memory",
        record_id=memory.memory_id,
        partition=memory.partition,
        text=memory.content,
        summary=memory.summary or summary_of(memory.content),
        enforcement=memory.enforcement_level,
        score=sum(contributions.values()),
        contributions=dict(contributions),
        why=reasons(contributions),
        relevance=relevance,
        topic=memory.topic.key,
        time=memory.said_at,
        block_ids=memory.block_ids,
        evidence=memory.evidence,
        status=memory.status,
        version=memory.version,
        layer=memory.layer,
        trust=memory.trust,
        importance=memory.importance,
        confidence=confidence(memory.trust, memory.merges + 1, memory.status == "disputed"),
        said=memory.merges + 1,
        valid_to=memory.valid_to,
        perspective=memory.perspective,
        origin=memory.origin,
    )


def block_hit(entry: BlockSummary, contributions: Mapping[str, float], relevance: float | None = None) -> Hit:
    """Return an index entry as a hit; see `memory_hit`."""
    return Hit(
        kind="block",
        record_id=entry.block_id,
        partition=entry.partition,
        text=entry.summary,
        score=sum(contributions.values()),
        contributions=dict(contributions),
        why=reasons(contributions),
        relevance=relevance,
        time=entry.start_time,
        trust=entry.trust,
        confidence=entry.trust,
        block_ids=(entry.block_id,),
    )


def message_hit(message: StoredMessage, ranked: Ranked) -> Hit:
    """Return a message as a hit; see `memory_hit`."""
    return Hit(
        kind="message",
        record_id=message.message_id,
        partition=message.partition,
        text=_line(message),
        score=ranked.score,
        contributions=ranked.contributions,
        why=reasons(ranked.contributions),
        relevance=ranked.relevance,
        time=message.time,
        trust=message.trust,
        confidence=message.trust,
        thread=message.thread,
        seq=message.seq,
    )


def still_shown(
    archive: Archive, grants: GrantBook, scope: Scope, records: Iterable[Mapping[str, str]], now: datetime
) -> frozenset[tuple[str, str, str]]:
    """Return which of some records of a context a recall could still show today, unchanged; see `record_parts`.

    What was forgotten, withheld, edited, replaced or has ended since is left out, and so is what the scope may no
    longer read. `records` are as the context has them; see `shown_records`.
    """
    told = list(records)
    names = {kind: [said["id"] for said in told if _KINDS.get(said["about"], "memory") == kind] for kind in _ALL}
    partitions = archive.visible(scope)
    memories: Sequence[Memory] = ()
    if wanted := archive.full_ids(names["memory"]):
        own = archive.memories(partitions, ids=wanted)
        missing = sorted(set(wanted) - {memory.memory_id for memory in own})
        memories = (*own, *(grants.memories(scope, missing) if missing else ()))
    shown_once = (each for each in memories if each.live or each.status == "superseded")
    found = list(dated((memory_hit(memory, {}) for memory in shown_once), now))
    blocks = names["block"]
    found += [block_hit(each, {}) for each in (archive.summaries(partitions, ids=blocks) if blocks else ())]
    places = [int(name[1:]) for name in names["message"] if name[1:].isdecimal()]
    rows = archive.messages(partitions, seqs=places) if places else ()
    found += [message_hit(row, Ranked(row.partition, row.message_id, {})) for row in rows if not row.hidden]
    return frozenset((called(hit), words, hit.standing) for hit in found for words in _forms(hit))


def named(archive: Archive, grants: GrantBook, scope: Scope, name: str) -> str:
    """Return the id of the memory that has this name in a context of this scope; the name if there is none, or several."""
    ids = archive.full_ids([name])
    if ids in {(), (name,)}:
        return name
    seen = archive.memories(archive.visible(scope), ids=ids) or grants.memories(scope, ids)
    return seen[0].memory_id if len(seen) == 1 else name


def record_parts(record: Mapping[str, str]) -> tuple[str, str, str]:
    """Return the parts of a record of a context: its name, its words, and its standing."""
    return record["id"], record["text"], next((over for over in _OVER if over in record), "current")


_OVER = ("expired", "superseded")


_ALL = ("memory", "block", "message")
_KINDS = {"block": "block", "message": "message"}
"""Kinds of records by their subject in a context; for a memory, that is its topic."""


def _forms(hit: Hit) -> Iterator[str]:
    """Yield the texts that a context may show for a hit: in full or in short, disarmed or not."""
    for words in {hit.text, hit.summary} - {""}:
        yield words
        yield disarmed(words)


def _line(message: StoredMessage) -> str:
    """Return the speaker, words and tool calls of a message: many a request consists of calls only."""
    calls = (f"{call.name}({json.dumps(call.args, ensure_ascii=False)})" for call in message.tool_calls)
    words = shown(message)
    return f"{message.speaker}: {' '.join((*([words] if words else ()), *calls))}"


def reasons(contributions: Mapping[str, float]) -> str:
    """Return in words what a score is made of, the largest part first."""
    parts = sorted(contributions.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{name} {value:.2f}" for name, value in parts if value > 0)
