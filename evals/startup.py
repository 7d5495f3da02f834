"""How soon memory answers: `import remegraph`, and from opening an existing home to the first recall.

    python -m evals startup [--runs 5] [--messages 3000]

Every run is a fresh process. The time of `open` holds whatever it imports; the start of Python itself is left out.
The processor's time stands beside the wall time: on a busy machine it says more.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypedDict

from evals._figures import Figure, finish
from remegraph import MemoryKit, Message, Scope, Settings

__all__ = ["Start", "furnish", "heaviest", "main", "start"]

_SCOPE = Scope(user="ann", agent="remy")
_QUESTION = "What does Ann collect?"

_CHILD = """
import json, sys, time
wall, cpu = time.perf_counter, time.process_time
began, began_cpu = wall(), cpu()
import remegraph
imported, imported_cpu = wall(), cpu()
scope = remegraph.Scope(user="ann", agent="remy")
kit = remegraph.MemoryKit.open(settings=remegraph.Settings(home=sys.argv[1]), model=None, embedder=None)
opened = wall()
recall = kit.recall(sys.argv[2], scope=scope, depth="messages")
answered, answered_cpu = wall(), cpu()
assert recall.messages and recall.memories
kit.close()
print(json.dumps({
    "imported": imported - began, "imported_cpu": imported_cpu - began_cpu,
    "opened": opened - imported, "answered": answered - imported, "answered_cpu": answered_cpu - imported_cpu,
}))
"""

_THINGS = "stamps coins shells maps clocks spoons kites postcards teapots fossils".split()
_PLACES = "Cardiff Lisbon Oslo Kyoto Quito Perth Tunis Turin Split Bergen".split()


class Start(TypedDict):
    """Seconds of one fresh process, by wall clock and (`_cpu`) by processor."""

    imported: float
    imported_cpu: float
    opened: float
    answered: float
    answered_cpu: float


def furnish(home: Path, messages: int) -> None:
    """Make a home with so many messages, summarised without a model.

    Args:
        home: An empty folder.
        messages: How many.
    """
    began = datetime(2025, 1, 1, 9, tzinfo=UTC)
    with MemoryKit.open(settings=Settings(home=home), model=None, embedder=None) as kit:
        for first in range(0, messages, 500):
            part = [
                Message(
                    role="user",
                    name="Ann",
                    content=f"I collect {_THINGS[number % 10]} number {number} from {_PLACES[number // 10 % 10]}.",
                    time=began + timedelta(minutes=20 * number),
                )
                for number in range(first, min(first + 500, messages))
            ]
            kit.add_messages(part, scope=_SCOPE)
        kit.summarize(scope=_SCOPE, close=True)


def start(home: Path) -> Start:
    """Import, open and recall in a fresh process.

    Args:
        home: A furnished home.
    """
    command = [sys.executable, "-c", _CHILD, str(home), _QUESTION]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    taken: Start = json.loads(run.stdout)
    return taken


def heaviest(home: Path, count: int) -> list[tuple[str, float]]:
    """Return the packages whose own code takes longest to import on the way to the first recall, and the seconds.

    Args:
        home: A furnished home.
        count: How many packages.
    """
    command = [sys.executable, "-X", "importtime", "-c", _CHILD, str(home), _QUESTION]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    own: dict[str, float] = defaultdict(float)
    for line in run.stderr.splitlines():
        own_time, _, rest = line.removeprefix("import time:").partition("|")
        if own_time.strip().isdigit():
            module = rest.rpartition("|")[2].strip()
            own[module.partition(".")[0]] += int(own_time) / 1e6
    return sorted(own.items(), key=lambda pair: -pair[1])[:count]


def _figures(name: str, starts: Sequence[Start]) -> list[Figure]:
    def middle(values: Sequence[float]) -> float:
        return statistics.median(values)

    opened = middle([each["opened"] for each in starts])
    cpu = middle([each["answered_cpu"] for each in starts])
    imported_cpu = middle([each["imported_cpu"] for each in starts])
    return [
        Figure(
            f"{name}: import remegraph",
            middle([each["imported"] for each in starts]),
            0.3,
            "under",
            "s",
            f"processor {imported_cpu:.3f} s",
        ),
        Figure(
            f"{name}: open to first recall",
            middle([each["answered"] for each in starts]),
            1.2,
            unit="s",
            note=f"of it open {opened:.3f} s; processor {cpu:.3f} s",
        ),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print all figures, and where the time of imports goes."""
    parser = argparse.ArgumentParser(prog="python -m evals startup", description="How soon memory answers.")
    parser.add_argument("--runs", type=int, default=5, help="Fresh processes; figures are their median.")
    parser.add_argument("--messages", type=int, default=3000, help="Messages in the larger home.")
    options = parser.parse_args(argv)
    figures: list[Figure] = []
    packages: list[tuple[str, float]] = []
    for messages in (20, options.messages):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            furnish(home, messages)
            start(home)  # bytecode and files are in the cache from here on
            figures += _figures(f"{messages:,} messages", [start(home) for _ in range(options.runs)])
            packages = heaviest(home, 12)
    print("Import, by package, own code only: " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in packages))
    finish(figures)


if __name__ == "__main__":
    main()
