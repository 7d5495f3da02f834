"""Named places where a test may stop, delay or kill the process; free without a listener."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["FAILPOINTS", "failpoint", "listen"]

FAILPOINTS = (
    "add.kept",
    "add.begin",
    "add.before_commit",
    "add.after_commit",
    "blocks.begin",
    "blocks.before_commit",
    "blocks.after_commit",
    "commit.begin",
    "commit.half_written",
    "commit.before_commit",
    "commit.after_commit",
    "index.before_embed",
    "index.embedded",
    "index.announced",
    "index.applied",
    "index.recorded",
    "index.before_unmark",
    "index.unmarked",
    "rebuild.marked",
    "rebuild.emptied",
    "erase.asked",
    "erase.begin",
    "erase.before_commit",
    "erase.rows_gone",
    "erase.index_dropped",
    "erase.index_rebuilt",
    "erase.files_gone",
    "copy.marked",
    "heal.marked",
    "heal.dropped",
)
"""All names, so that tests can go through every one."""

_listener: Callable[[str], None] | None = None


def failpoint(name: str) -> None:
    """Tell the listener, if there is one, that this place is reached.

    Args:
        name: One of `FAILPOINTS`.
    """
    listener = _listener  # another thread may stop listening
    if listener is not None:
        listener(name)


def listen(listener: Callable[[str], None] | None) -> None:
    """Set the listener; for tests only.

    Args:
        listener: Called with the name of each place; none to stop.
    """
    global _listener  # noqa: PLW0603 - one per process, as there is one process to kill
    _listener = listener
