"""The one status machine."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.models import LIVE, MOVES, Status, may_move

STATUSES: tuple[Status, ...] = get_args(Status)
ANY_STATUS = st.sampled_from(STATUSES)

# Rows: from. Columns, in the same order: to. "x" may, "." may not, "=" stays.
TABLE = """
             proposed active disputed low_priority archived quarantined superseded deleted purged erased
proposed     =        x      x        .            .        x           .          x       .      x
active       .        =      x        x            x        x           x          x       .      x
disputed     .        x      =        x            x        x           x          x       .      x
low_priority .        x      x        =            x        x           x          x       .      x
archived     .        x      .        .            =        .           x          x       x      x
quarantined  .        x      x        .            .        =           x          x       .      x
superseded   .        x      .        .            x        .           =          x       x      x
deleted      .        x      .        .            .        .           .          =       x      x
purged       .        .      .        .            .        .           .          .       =      x
erased       .        .      .        .            .        .           .          .       .      =
"""


def cells() -> dict[tuple[str, str], str]:
    head, *rows = (line.split() for line in TABLE.strip().splitlines())
    return {(row[0], new): cell for row in rows for new, cell in zip(head, row[1:], strict=True)}


def test_the_status_machine_is_the_documented_table() -> None:
    """Every move is a decision that somebody made; a new status must take its place in the table."""
    assert {(old, new): may_move(old, new) for old in STATUSES for new in STATUSES} == {
        pair: cell in {"x", "="} for pair, cell in cells().items()
    }
    assert set(MOVES) == set(STATUSES)


@given(st.lists(ANY_STATUS))
def test_nothing_comes_back_from_an_erasure(wishes: list[Status]) -> None:
    """Whatever is asked for after an erasure: what a person had removed stays removed."""
    status: Status = "erased"
    for wish in wishes:
        status = wish if may_move(status, wish) else status
    assert status == "erased"


@given(ANY_STATUS)
def test_everything_can_be_erased_and_nothing_goes_back_to_being_proposed(status: Status) -> None:
    """The right to erasure knows no status; a decision once made is not undecided."""
    assert may_move(status, "erased")
    assert not may_move(status, "proposed") or status == "proposed"


@pytest.mark.parametrize("status", ["purged", "erased"])
def test_what_has_lost_its_content_is_never_live_again(status: Status) -> None:
    """A memory without words in a recall would be an empty promise."""
    assert MOVES[status].isdisjoint(LIVE)
