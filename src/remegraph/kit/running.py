"""The background runner: one daemon thread per kit, which does what captures leave.

The queue is the truth, the thread only works it off. So nothing is lost where the thread dies with its process, and
a process never waits for it.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from remegraph.errors import CancelledError, SetupError
from remegraph.kit.draining import Worker
from remegraph.kit.health import Health
from remegraph.ports import Clock
from remegraph.storage.owner import give_up_at_fork

__all__ = ["Runner"]

_GRACE = 0.5
"""Seconds that a process which ends without `close` gives the block at hand."""


class Runner:
    """Works off the queue as it fills. Starts with the first `wake`.

    Args:
        worker: Does one job, and knows when the next is due.
        clock: Tells how long a job must wait yet.
        poll: Least seconds between two looks at the queue.
        health: Told what fails.
        alert: Whether to look that often for what other processes enqueue.
    """

    def __init__(
        self,
        worker: Worker,
        clock: Clock,
        *,
        poll: float,
        health: Health,
        alert: bool = False,
    ) -> None:
        self._worker = worker
        self._clock = clock
        self._poll = poll
        self._health = health
        self._alert = alert
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._working = threading.Lock()
        self._bell = threading.Event()
        self._closed = False
        self._asides = 0

    def wake(self) -> None:
        """Have it look at the queue. Costs nothing, and waits for nothing."""
        self._bell.set()
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="remegraph-runner", daemon=True)
                self._thread.start()
                atexit.register(self._leave)
                give_up_at_fork(self)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Have it stand aside after the block at hand; it goes on afterwards."""
        with self._starting:
            self._asides += 1
        try:
            with self._working:
                yield
        finally:
            with self._starting:
                self._asides -= 1
            self._bell.set()

    def stop(self) -> None:
        """Have it end after the block at hand, and wait for nothing."""
        with self._starting:
            self._closed = True
        self._bell.set()

    def close(self) -> None:
        """Stop after the block at hand. What is not done waits in the queue. Stopping twice is fine."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
            atexit.unregister(self._leave)

    def give_up(self) -> None:
        """Have nothing to end in a forked child, where there is no such thread."""
        atexit.unregister(self._leave)

    # ------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        while True:
            self._bell.clear()  # before looking: what is queued from here on rings again
            if self._closed:
                with suppress(SetupError):
                    self._worker.settle()
                return
            try:
                self._work_off()
                seconds = self._until_due()
            except Exception as error:  # noqa: BLE001 - the boundary: nobody is above, and the thread must live on
                if _ending(error):
                    return
                self._health.note("background", error)
                seconds = self._poll
            self._bell.wait(seconds)

    def _work_off(self) -> None:
        """Do what is due; a failure ends it, so that failures are never nearer to each other than `poll`."""
        with self._working, suppress(CancelledError):
            while not self._stopped():
                if self._worker.next(self._stopped, asleep=False) is None:
                    return

    def _until_due(self) -> float | None:
        if self._alert:
            return self._poll
        due = self._worker.next_due()
        return None if due is None else max(self._poll, (due - self._clock()).total_seconds())

    def _stopped(self) -> bool:
        return self._closed or self._asides > 0

    def _leave(self) -> None:
        """Let the process end: what cannot be finished at once is left to the next one."""
        self._closed = True
        self._bell.set()
        assert self._thread is not None
        self._thread.join(_GRACE)
        if self._thread.is_alive():
            self._worker.give_back()


def _ending(error: Exception) -> bool:
    """Whether it only says that the interpreter ends: from then on no thread can be started."""
    return isinstance(error, RuntimeError) and "interpreter shutdown" in str(error)
