"""What of the things found a recall asks for: by time, by letter, by filter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from remegraph.engine.retrieval import RecallInput, Search
from remegraph.models import Hit, RecallFilter, RecallMode, StoredMessage
from remegraph.rules.standing import QUARANTINE_BELOW

__all__ = ["holds", "in_order", "passes", "picks", "timed", "unsearched", "vouched", "within"]


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
    """Return whether a message or an index entry is trusted as far as is asked for, or as the agent's policy says.

    Where neither says anything, it must be what would need no approval as a memory.
    """
    said = (state["only"].min_trust, state["ranking"].min_trust)
    return trust >= next((least for least in said if least is not None), QUARANTINE_BELOW)


def unsearched(state: RecallInput) -> tuple[str, ...]:
    """Return what a recall leaves unsearched, and why."""
    no_vectors = state["mode"] == "semantic" and state["depth"] == "messages"
    return ("messages: they have no vectors, and words were not asked for",) if no_vectors else ()


def holds(text: str, asked: Search | RecallInput) -> bool:
    """Return whether a text holds the query to the letter, where that is asked for."""
    mode, query = (asked.mode, asked.query) if isinstance(asked, Search) else (asked["mode"], asked["query"])
    return mode != "exact" or query.strip().casefold() in text.casefold()


def timed(mode: RecallMode, start: datetime | None, end: datetime | None) -> bool:
    """Return whether a time alone is asked for, whatever was said then."""
    return mode == "temporal" and (start, end) != (None, None)


def in_order(hits: Sequence[Hit], state: RecallInput) -> Sequence[Hit]:
    """Return hits in the order of their times, where that is asked for."""
    return sorted(hits, key=lambda hit: (hit.time, hit.record_id)) if state["mode"] == "temporal" else hits


def within(time: datetime, start: datetime | None, end: datetime | None) -> bool:
    """Return whether a time lies between two others, of which each may be none."""
    return (start is None or time >= start) and (end is None or time <= end)
