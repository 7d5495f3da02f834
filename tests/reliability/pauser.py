"""A process that is killed while turns are gathered or cut: `python -m tests.reliability.pauser HOME NUMBER ACT PLACE`."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from remegraph import CapturePolicy, MemoryKit, Scope, Settings, failpoints
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.testing import FrozenClock, InMemoryVectorIndex
from tests.talk import NOON

SCOPE = Scope(user="ann", agent="remy")


def opened(home: Path, number: int) -> MemoryKit:
    """The home, so many hours after noon: what an earlier process gathered is idle."""
    return MemoryKit.open(
        settings=Settings(home=home, capture=CapturePolicy(background=False)),
        model=None,
        embedder=HashedEmbedder(64),
        index=InMemoryVectorIndex(),
        clock=FrozenClock(NOON + timedelta(hours=number)),
    )


def kills_itself(place: str) -> None:
    """Have the process killed where it comes to a place."""

    def reached(name: str) -> None:
        if name == place:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.listen(reached)


def says(home: Path, number: int, act: str, place: str) -> None:
    """Say a turn, and die: while the home is opened, the turn is captured, a wish is, or the session ends."""
    if act == "open":
        kills_itself(place)
    kit = opened(home, number)
    wish = " Please don't remember that." if act == "wish" else ""
    turn = [
        {"id": f"h{number}", "role": "user", "content": f"I like number {number}.{wish}"},
        {"id": f"a{number}", "role": "assistant", "content": f"Noted: {number}."},
    ]
    if act != "end":
        kills_itself(place)
    kit.capture(turn, scope=SCOPE, thread=f"of {number % 3}")
    kills_itself(place)
    kit.end_session(f"of {number % 3}", scope=SCOPE)


if __name__ == "__main__":
    says(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
