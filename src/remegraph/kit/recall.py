"""What a recall is asked with, checked at the door, and what it found as a record."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, get_args

from remegraph.deadlines import Patience
from remegraph.errors import InputError
from remegraph.kit.validation import check_numbers, check_text, check_times, required
from remegraph.models import Depth, Memory, Recall, RecallFilter, RecallMode, Scope
from remegraph.settings import Settings

if TYPE_CHECKING:
    from remegraph.engine.retrieval.hits import Found, RecallInput
    from remegraph.retention.working_memory import WorkingMemory

__all__ = ["recall_input", "recalled"]

_INSTANT = timedelta(microseconds=1)

_Times = tuple[datetime | None, datetime | None]


def recall_input(
    query: str,
    scope: Scope,
    *,
    k: int | None,
    depth: Depth,
    mode: RecallMode,
    time_range: _Times,
    asked_at: datetime,
    topics: Sequence[str] | None,
    only: RecallFilter | None,
    without: Collection[str],
    budget: int | None,
    brief: bool,
    previous: str,
    settings: Settings,
    redact: Callable[[str], str],
    task: str | None,
    working: WorkingMemory,
    active: Callable[[Scope], tuple[Memory, ...]],
) -> RecallInput:
    """Return what `kit.recall` was given, checked.

    Raises:
        InputError: Something is not what it should be.
        ScopeError: There is no scope.
    """
    from remegraph.text.questions import read_question
    from remegraph.text.times import parse_range

    time_start, time_end = time_range
    k = settings.recall.k if k is None else k
    budget = settings.recall.context_tokens if budget is None else budget
    _check_asked(query, previous)
    query, previous = redact(query), redact(previous)  # so it names what the ledger holds in its place
    check_numbers(least=1, whole=True, k=k, budget=budget)
    _check_choice(depth=depth, mode=mode)
    for name, value, wanted in (("topics", topics, "topic keys"), ("without", without, "message ids")):
        if isinstance(value, str):
            raise InputError(f"{name} is one text.", f"Give a list of {wanted}.")
    if only is not None and not isinstance(only, RecallFilter):
        raise InputError(f"only is of type {type(only).__name__}.", "Give a RecallFilter.")
    if task is not None:
        check_text(task=task)
    check_times(time_start=time_start, time_end=time_end, asked_at=asked_at)
    if mode == "temporal" and time_range == (None, None):
        mention = parse_range(query, asked_at)
        time_start, time_end = (mention.begins, mention.ends - _INSTANT) if mention else (None, None)
    scope = required(scope)
    ranking = settings.for_agent(scope.agent).retrieval
    whole = only is None and topics is None and (time_start, time_end) == (None, None)
    return {
        "scope": scope,
        "query": query,
        "question": read_question(query, asked_at, previous),
        "k": k,
        "depth": depth,
        "mode": mode,
        "topics": None if topics is None else tuple(topics),
        "time_start": time_start,
        "time_end": time_end,
        "only": only.evolve(tags=tuple(map(redact, only.tags))) if only else RecallFilter(),
        "without": frozenset(without),
        "budget": budget,
        "brief": brief,
        "asked_at": asked_at,
        "ranking": ranking,
        "working": () if task is None else working.recall((scope.partition(), task), query),
        "active": active(scope) if whole and ranking.active_first else (),
        "patience": Patience(settings.recall.index_timeout),
    }


def _check_asked(query: object, previous: object) -> None:
    for name, text in (("query", query), ("previous", previous)):
        if not isinstance(text, str):
            raise InputError(f"{name} is of type {type(text).__name__}.", "Ask with text.")
    if not str(query).strip():
        raise InputError("The query is empty.", "Ask something.")


def _check_choice(**chosen: object) -> None:
    for name, value in chosen.items():
        known = get_args({"depth": Depth, "mode": RecallMode}[name])
        if value not in known:
            raise InputError(f"There is no {name} {value!r}.", f"Give one of {', '.join(known)}.")


def recalled(asked: RecallInput, found: Found, began: float) -> Recall:
    """Return what was found, as a record."""
    return Recall(
        query=asked["query"],
        self_memories=found["self_memories"],
        active=asked["active"],
        topics=found["routed"],
        memories=found["memories"],
        blocks=found["blocks"],
        messages=found["messages"],
        beside=found["beside"],
        working=asked["working"],
        index=found["index"],
        degraded=found["degraded"],
        context=found["context"],
        left_out=dict(found["left_out"]),
        unlikely=found["unlikely"],
        seconds=time.perf_counter() - began,
    )
