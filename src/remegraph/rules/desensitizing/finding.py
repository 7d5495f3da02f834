"""What is found in a text: where it stands, and of which kind it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from remegraph.settings import PrivateKind

__all__ = ["KINDS", "Finding", "Kind", "united"]

Kind = Literal[PrivateKind, "name"]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""The most certain first; names last, of which only those are found that somebody knows."""

_RANK = {kind: rank for rank, kind in enumerate(KINDS)}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something private: `text[start:end]`."""

    start: int
    end: int
    kind: Kind


def united(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in order and without overlaps: what overlaps becomes one, so that no part of any of them is left.

    Args:
        findings: What the recognisers found. The longest names the kind of a union; among equals, the most certain.
    """
    kept: list[Finding] = []
    names: list[tuple[int, int]] = []  # of each that is kept, how long and how certain the one is that names it
    for each in sorted(findings, key=lambda found: found.start):
        weight = (each.end - each.start, -_RANK[each.kind])
        if kept and each.start < kept[-1].end:
            last, end = kept[-1], max(kept[-1].end, each.end)
            kept[-1] = Finding(last.start, end, each.kind if weight > names[-1] else last.kind)
            names[-1] = max(names[-1], weight)
        elif each.start < each.end:
            kept.append(each)
            names.append(weight)
    return tuple(kept)
