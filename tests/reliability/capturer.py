"""A process that captures a thread in which others talk, too: `python -m tests.reliability.capturer HOME COUNT`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from remegraph import MemoryKit, Scope
from remegraph.ledger.index.embedders import HashedEmbedder
from tests.reliability.labourer import say


def captures(home: Path, count: int) -> None:
    """Say so many messages, one after the other; give all of them each time."""
    with MemoryKit.open(home, model=None, embedder=HashedEmbedder(64)) as kit:
        mine: list[dict[str, str]] = []
        for number in range(count):
            role = "assistant" if number % 2 else "user"
            mine.append({"id": f"{os.getpid()}-{number}", "role": role, "content": f"I like number {number}."})
            kit.capture(mine, scope=Scope(user="ann", agent="remy"), thread="shared")
            say(mine[-1]["id"])


if __name__ == "__main__":
    captures(Path(sys.argv[1]), int(sys.argv[2]))
