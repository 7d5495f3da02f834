"""The form of the cases that the reviser's rules are measured on."""

from __future__ import annotations

from typing import TypedDict

from remegraph.models import Role

__all__ = ["Case", "Turn"]


class Turn(TypedDict):
    """One message of a case."""

    name: str
    role: Role
    content: str
    time: str


class Case(TypedDict):
    """A block, the memories before and after a proposed change, and what is wrong with it."""

    id: str
    language: str
    label: str
    plain: bool
    messages: list[Turn]
    before: list[str]
    after: list[str]
    missing: str
