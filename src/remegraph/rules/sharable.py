"""Which memories have value for others (B11, K7): what is the agent's or the user's alone never leaves."""

from __future__ import annotations

from datetime import datetime

from remegraph.models import Memory, SkillFigures
from remegraph.rules.standing import QUARANTINE_BELOW

__all__ = ["unsharable"]


def unsharable(memory: Memory, now: datetime, *, figures: SkillFigures | None = None, episodes: bool = False) -> str:
    """Return why a memory is not for others; empty where it may go on.

    Args:
        memory: The memory.
        now: Now.
        figures: How it has gone so far, if it is a skill.
        episodes: Whether the pattern of single episodes is wanted.
    """
    return _standing(memory, now) or _subject(memory) or _layer(memory, episodes=episodes) or _record(figures)


def _standing(memory: Memory, now: datetime) -> str:
    if memory.status not in {"active", "low_priority"}:
        return f"It is {memory.status}."
    if memory.trust < QUARANTINE_BELOW:
        return "It is not trusted enough."
    if memory.valid_to is not None and memory.valid_to <= now:
        return "It no longer holds."
    return ""


def _subject(memory: Memory) -> str:
    if memory.topic.type == "self":
        return "It is about the agent itself."
    if memory.memory_class == "policy" or memory.is_core:
        return "It is a rule of its own agent."
    if memory.partition.user is None:
        return "It is not this user's alone."
    if memory.origin is not None:
        return "It came from another agent or a pack."
    if memory.category == "emotion":
        return "It is how somebody felt."
    return ""


def _layer(memory: Memory, *, episodes: bool) -> str:
    if memory.layer in {"sensory", "working"}:
        return f"What is {memory.layer} is never shared."
    if memory.layer == "episodic" and not episodes:
        return "Episodes are shared only where they are asked for."
    return ""


def _record(figures: SkillFigures | None) -> str:
    if figures is None:
        return ""
    if figures.candidate:
        return "Nobody has told yet how it goes: it is a candidate."
    return "" if figures.successes else "It has never worked."
