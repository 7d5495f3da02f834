"""Offers as they are understood: what each would be as a memory, and the ids that follow from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from remegraph.errors import SkillError
from remegraph.exchange.offers import Offer
from remegraph.exchange.weighing import Candidate
from remegraph.language.plain import folded, texts
from remegraph.models import Partition, Skill, Topic
from remegraph.rules.commanding import commands
from remegraph.rules.naming import operation_id
from remegraph.rules.procedures import check_skill, told
from remegraph.rules.understanding import understood

__all__ = ["read"]

_COMMANDS = "It speaks to the agent as if it were to be obeyed."


def read(
    offers: Sequence[Offer],
    known: Mapping[str, Skill],
    topics: Mapping[str, Topic],
    said_in: Partition,
    lives_in: Partition,
) -> list[Candidate]:
    """Return what each offer would be.

    Args:
        offers: What is given.
        known: The skills that there are, by name: a skill may call them, and none takes their names.
        topics: The shelves that there are, by their keys without case.
        said_in: Where raw records go.
        lives_in: Where memories live.
    """
    skills = dict(known)
    candidates: list[Candidate] = []
    for offer in offers:
        each = _candidate(offer, skills, topics, said_in, lives_in)
        if each.skill is not None and each.offer.believed:
            skills[each.skill.name] = each.skill
        candidates.append(each)
    return candidates


def _candidate(
    offer: Offer, skills: Mapping[str, Skill], topics: Mapping[str, Topic], said_in: Partition, lives_in: Partition
) -> Candidate:
    says = understood(offer.content, offer.title)
    says = replace(says, topic=topics.get(says.topic.key.casefold(), says.topic))
    memory_id = operation_id("absorbed", lives_in.to_json(), says.kind, offer.content.to_json())
    skill = _skill(says.skill, skills, memory_id)
    content = told(skill) if skill else says.content
    if not offer.doubt and commands((offer.title, *offer.tags, *texts(json.loads(offer.content.to_json())))):
        offer = replace(offer, doubt=_COMMANDS)
    return Candidate(
        offer=offer,
        says=says,
        content=content,
        skill=skill,
        memory_id=memory_id,
        message_id=operation_id("absorbed", said_in.to_json(), memory_id, offer.source),
    )


def _skill(skill: Skill | None, known: Mapping[str, Skill], memory_id: str) -> Skill | None:
    """Return a skill that can be executed and checked, under a name that no other one has: both stand side by side."""
    if skill is None:
        return None
    taken = {folded(name) for name in known}
    skill = skill if folded(skill.name) not in taken else skill.evolve(name=f"{skill.name} {memory_id[:8]}")
    try:
        check_skill(skill, known)
    except SkillError:  # then it is told how it is done, and nothing executes it
        return None
    return skill
