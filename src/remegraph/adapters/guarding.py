"""Memory must never break its host: the one place where a surface goes on without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from remegraph.adapters.events import emit
from remegraph.errors import RemegraphError, ScopeError
from remegraph.kit import MemoryKit

__all__ = ["unbroken"]


@contextmanager
def unbroken(kit: MemoryKit, verb: Literal["recall", "capture"]) -> Iterator[None]:
    """Let the run go on, whatever fails inside: it is logged, counted in the kit's statistics, and told as an event.

    Args:
        kit: The memory.
        verb: What is tried.

    Raises:
        ScopeError: Nobody says who the user is: the developer's to cure, and to go on would hide it.
    """
    try:
        yield
    except ScopeError:
        raise
    except Exception as error:  # noqa: BLE001 - any failure of ours: an agent without memory is better than none
        kit.health.note(verb, error)
        emit({"event": "memory_failed", "verb": verb, "reason": _reason(error)})


def _reason(error: Exception) -> str:
    """Return what a caller may read: our own words; others' may quote rows of the ledger."""
    return str(error) if isinstance(error, RemegraphError) else type(error).__name__
