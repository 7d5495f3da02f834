"""What a process does that only works: whatever waits, in every scope, as it comes, until it is told to stop."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from threading import Event, Thread
from typing import TYPE_CHECKING

from remegraph.errors import CancelledError, RemegraphError, SetupError
from remegraph.kit.draining import FOREIGN, Duty, Worker
from remegraph.kit.running import Runner

if TYPE_CHECKING:
    from remegraph.kit.health import Health
    from remegraph.kit.parts import Parts
    from remegraph.ports import Courier

__all__ = ["serve", "until_signalled"]

_KEEP = 10.0
"""Seconds between looks at what waits for the index."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_ENOUGH = 3
"""Signals that end the process at once."""


def serve(parts: Parts, duties: Mapping[str, Duty], health: Health, *, concurrency: int, stop: Event) -> None:
    """Work until `stop` is set; then finish the blocks at hand, and give the jobs back.

    Args:
        parts: The parts of the kit.
        duties: What to do, by kind of job.
        health: Told what fails.
        concurrency: How many jobs at once.
        stop: Set by whoever wants it to end.
    """
    parts.archive.database.check_writable()
    keeper = Thread(target=_keep_index, args=(parts, health, stop), name="remegraph-index", daemon=True)
    keeper.start()
    try:
        if parts.courier is None:
            _look(parts, duties, health, concurrency=concurrency, stop=stop)
        else:
            _listen(parts, parts.courier, duties, health, concurrency=concurrency, stop=stop)
    finally:
        stop.set()
        keeper.join()


@contextmanager
def until_signalled() -> Iterator[Event]:
    """Give an event that SIGTERM or Ctrl-C sets; the third one ends the process at once. For the main thread.

    A handler runs in the middle of whatever the main thread does, `Event.set` included, which cannot be entered twice. So
    ours does nothing: the interpreter writes the number of a signal into a pipe, and a thread reads it there.
    """
    stop, heard = Event(), Event()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    pipe_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    Thread(target=_hear, args=(reading, stop, heard), name="remegraph-signals", daemon=True).start()
    try:
        yield stop
    finally:
        for number, handler in before.items():  # who was told is ending: a late signal must not make a failure of that
            signal.signal(number, signal.SIG_IGN if heard.is_set() else handler)
        signal.set_wakeup_fd(pipe_before)
        os.close(writing)


def _hear(pipe: int, stop: Event, heard: Event) -> None:
    """Set the events at the first signal that comes through a pipe."""
    signals = 0
    while told := os.read(pipe, 1):
        signals += told[0] in _SIGNALS
        if signals == _ENOUGH:
            os._exit(128 + told[0])
        if signals:
            heard.set()
            stop.set()
    os.close(pipe)


def _keep_index(parts: Parts, health: Health, stop: Event) -> None:
    """Bring in what the index did not take when it was learned, as it may have been down; tell what is left to others."""
    while True:
        try:
            health.figure("jobs_foreign", parts.jobs.depth().foreign, FOREIGN)
            if stop.wait(_KEEP):
                return
            parts.projection.sync()
        except Exception as error:  # noqa: BLE001 - the boundary: nobody is above, and it must go on
            health.note("background", error)
            if stop.wait(_KEEP):
                return


def _look(parts: Parts, duties: Mapping[str, Duty], health: Health, *, concurrency: int, stop: Event) -> None:
    """Look for work again and again."""
    poll = parts.settings.capture.poll
    crew = [
        Runner(Worker(parts, duties), parts.clock, poll=poll, health=health, alert=True) for _ in range(concurrency)
    ]
    try:
        for runner in crew:
            runner.wake()
        stop.wait()
    finally:
        for runner in crew:
            runner.stop()
        for runner in crew:
            runner.close()


def _listen(
    parts: Parts, courier: Courier, duties: Mapping[str, Duty], health: Health, *, concurrency: int, stop: Event
) -> None:
    """Let a courier bring the work; where it cannot, try again."""
    policy = parts.settings.capture

    def deliver(kind: str, job_id: int) -> datetime | None:
        worker = Worker(parts, duties)
        try:
            with suppress(CancelledError):
                worker.take(kind, job_id, stop.is_set)
        except Exception as error:  # noqa: BLE001 - the boundary: nobody is above, and the job keeps the reason
            health.note("background", error)
            _settle(worker, stop, policy.poll)
        return parts.jobs.next_due(kind, job_id)

    while not stop.is_set():
        try:
            courier.work(deliver, concurrency=concurrency, policy=policy, stop=stop)
        except RemegraphError as error:
            health.note("background", error)
            stop.wait(policy.poll)


def _settle(worker: Worker, stop: Event, poll: float) -> None:
    """Give back what a worker holds, as soon as the ledger hears it: the delivery is its only one."""
    while True:
        try:
            worker.settle()
        except SetupError:
            if stop.wait(poll):
                return
        else:
            return
