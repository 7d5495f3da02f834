"""Workers that are told to stop more than once, microseconds apart.

Run as a program, this is their foreman: it has imported everything and opened nothing, so a worker costs only its work.
For each line of JSON, an `Order`, it forks a worker, sends it signals, and says how it ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass

import chromadb  # noqa: F401 - the workers need it

from remegraph.cli import main
from remegraph.kit import background, components  # noqa: F401 - likewise

PATIENCE = 20.0


@dataclass(frozen=True)
class Order:
    """How a worker is treated."""

    home: str
    after: float
    """Seconds from when it says that it works to the first signal."""
    gap: float
    """Seconds from one signal to the next."""
    signals: int

    def carry_out(self) -> tuple[int, float]:
        """Return how the worker ended, and the seconds that it took from the first signal on."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.dup2(writing, sys.stderr.fileno())
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.argv = ["remegraph", "worker", "--home", self.home]
            main()
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            assert told.readline().startswith("Working")
            _spin(self.after)
            began = time.perf_counter()
            for number in range(self.signals):
                _spin(self.gap if number else 0)
                os.kill(child, signal.SIGTERM)
            watch = threading.Timer(PATIENCE, os.kill, (child, signal.SIGKILL))
            watch.start()
            _, status = os.waitpid(child, 0)
            watch.cancel()
        return os.waitstatus_to_exitcode(status), time.perf_counter() - began


def _spin(seconds: float) -> None:
    """Let time pass to the microsecond, which a sleep cannot."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(Order(**json.loads(line)).carry_out()), flush=True)  # noqa: T201 - the answer
