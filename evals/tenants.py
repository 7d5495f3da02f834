"""What a tenant that is over its limit costs the others: their turns with it and without it, in the same run.

    python -m evals tenants [--seconds 180] [--page docs/tenants.md]

One service on a real PostgreSQL, as `docs/service.md` has it: users of other tenants take turns (a recall, then a capture of two
messages), one each second each. Rounds of three seconds follow each other, so that what else the machine does bears on all
alike: quiet; with a tenant that calls fifty times a second and may record sixty messages a minute; and with one that calls as
often and has no limit, which shows what a limit is for. The bar is the ratio of the first two.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count, cycle, islice
from pathlib import Path
from uuid import uuid4

import numpy as np
from sqlalchemy import event

from evals._figures import Figure, block, finish
from evals._pages import place
from evals._servers import postgres
from remegraph import CapturePolicy, MemoryKit, Scope, Settings
from remegraph.errors import RateLimitError
from remegraph.settings import LimitPolicy, Limits
from remegraph.testing import InMemoryVectorIndex

__all__ = ["Round", "main", "rounds"]

_OTHERS = [Scope(tenant=f"tenant{number}", user="ann", agent="remy") for number in range(8)]
_ROUND = 3.0
_CALLS = 50.0
_BAR = 1.1
_LIMIT = Limits(messages_per_minute=60)
_NOISY: Mapping[str, Scope | None] = {
    "quiet": None,
    "limited": Scope(tenant="limited", user="loud", agent="remy"),
    "unlimited": Scope(tenant="unlimited", user="loud", agent="remy"),
}


@dataclass
class Round:
    """What the rounds of one kind came to."""

    turns: list[float] = field(default_factory=list)
    """Seconds that each turn of the others took."""
    refused: int = 0
    admitted: int = 0

    @property
    def p95(self) -> float:
        """Milliseconds under which nineteen of twenty turns stayed."""
        return 1000 * float(np.percentile(self.turns, 95))


def _turn(kit: MemoryKit, scope: Scope, told: Round) -> None:
    """Take a turn, and note what it took."""
    began = time.perf_counter()
    kit.recall("Where do I live?", scope=scope, depth="messages")
    said = [{"id": uuid4().hex, "role": role, "content": "I live in Lisbon."} for role in ("user", "assistant")]
    kit.capture(said, scope=scope, thread=uuid4().hex)
    told.turns.append(time.perf_counter() - began)


def _call(kit: MemoryKit, scope: Scope, told: Round) -> None:
    """Call as a tenant that may be over its limit, and count what becomes of it."""
    try:
        kit.add_messages(["I am loud."], scope=scope, thread=uuid4().hex)
    except RateLimitError:
        told.refused += 1
    else:
        told.admitted += 1


def _paced(first: float, every: float, act: Callable[[], object]) -> None:
    """Act again and again until the round is over, at times that do not depend on how long it takes."""
    began = time.monotonic()
    for at in np.arange(first, _ROUND, every):
        time.sleep(max(0.0, began + at - time.monotonic()))
        act()


def rounds(url: str, home: str, seconds: float) -> tuple[Mapping[str, Round], int]:
    """Return what the rounds of each kind came to, and how many statements a hundred refused calls sent to the ledger.

    Args:
        url: Of the ledger.
        home: Of the kit.
        seconds: How long all of it takes.
    """
    found = {kind: Round() for kind in _NOISY}
    settings = Settings(
        home=Path(home),
        ledger_url=url,
        queue="ledger",
        journal_key="of one service only",
        capture=CapturePolicy(background=False),
        limits=LimitPolicy(tenants={"limited": _LIMIT}),
    )
    with (
        MemoryKit.open(settings=settings, model=None, embedder=None, index=InMemoryVectorIndex()) as kit,
        ThreadPoolExecutor(len(_OTHERS) + 1) as pool,
    ):
        for scope in _OTHERS:
            _turn(kit, scope, Round())
        for kind in islice(cycle(_NOISY), 3 * max(1, round(seconds / _ROUND / 3))):
            noisy, told = _NOISY[kind], found[kind]
            under_way = [
                pool.submit(_paced, number / len(_OTHERS), 1.0, partial(_turn, kit, scope, told))
                for number, scope in enumerate(_OTHERS)
            ]
            if noisy is not None:
                under_way.append(pool.submit(_paced, 0.0, 1 / _CALLS, partial(_call, kit, noisy, told)))
            for each in under_way:
                each.result()
        return found, _statements(kit)


def _statements(kit: MemoryKit) -> int:
    """Return how many statements the ledger is sent by a hundred calls that are refused."""
    statements, told, limited = count(), Round(), _NOISY["limited"]
    assert limited is not None
    while not told.refused:
        _call(kit, limited, told)
    engine = kit.context.parts().archive.database.engine

    def sent(*_: object) -> None:
        next(statements)

    event.listen(engine, "before_cursor_execute", sent)
    for _ in range(100):
        _call(kit, limited, told)
    event.remove(engine, "before_cursor_execute", sent)
    return next(statements)


def main(argv: Sequence[str] | None = None) -> None:
    """Print all figures, and write them into a page."""
    parser = argparse.ArgumentParser(prog="python -m evals tenants", description="What a noisy tenant costs others.")
    parser.add_argument("--seconds", type=float, default=180, help="How long all rounds take together.")
    parser.add_argument("--page", type=Path, help="Page that the table is written into.")
    options = parser.parse_args(argv)
    with postgres() as url, tempfile.TemporaryDirectory() as home:
        found, statements = rounds(url, home, options.seconds)
    quiet, limited, unlimited = (found[kind] for kind in _NOISY)

    def noted(told: Round) -> str:
        return f"{len(told.turns):,} turns beside {told.admitted:,} calls admitted, {told.refused:,} refused"

    figures = [
        Figure("turns of others, p95", quiet.p95, unit="ms", note=f"{len(quiet.turns):,} turns"),
        Figure("beside a tenant over its limit", limited.p95, unit="ms", note=noted(limited)),
        Figure("of that without it", limited.p95 / quiet.p95, _BAR),
        Figure("beside one that has no limit", unlimited.p95, unit="ms", note=noted(unlimited)),
        Figure("statements of a hundred refused calls", statements, 0, "exactly"),
    ]
    place(options.page, {"tenants": block(figures)})
    finish(figures)


if __name__ == "__main__":
    main()
