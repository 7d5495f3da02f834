"""Changes are decided on what memory says at that moment; who was slower decides again."""

from __future__ import annotations

import pytest

from remegraph.engine.disputes import ATTEMPTS, repeated
from remegraph.errors import ConflictError


class _Others:
    """Others who come first a number of times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.attempts = 0

    def __call__(self) -> str:
        self.attempts += 1
        if self.attempts <= self.times:
            raise ConflictError([f"memory-{self.attempts}"])
        return "committed"


def test_who_was_slower_decides_again_until_the_last_attempt() -> None:
    """Two agents who write at once both get through."""
    others = _Others(ATTEMPTS - 1)
    assert repeated(others) == "committed"
    assert others.attempts == ATTEMPTS


def test_who_is_always_slower_hears_what_changed_or_what_to_do() -> None:
    """A change that never gets through ends, and its end says whose turn it is."""
    with pytest.raises(ConflictError) as raised:
        repeated(_Others(ATTEMPTS))
    assert raised.value.records == (f"memory-{ATTEMPTS}",)
    with pytest.raises(ConflictError, match="mine") as raised:
        repeated(_Others(ATTEMPTS), lost=ConflictError(["mine"], "Add it again."))
    assert raised.value.cure == "Add it again."


def test_what_another_look_cannot_put_right_is_not_tried_again() -> None:
    """A caller who names an old version hears so at once."""
    others = _Others(ATTEMPTS)
    with pytest.raises(ConflictError):
        repeated(others, again=lambda conflict: "memory-1" not in conflict.records)
    assert others.attempts == 1
