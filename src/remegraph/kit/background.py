"""Threads and processes that work in the background: the runner of a kit, the worker process, and reindexing.

The queue is the truth, the threads only work it off. So nothing is lost where they die with their process, and a
process never waits for them.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING

from remegraph.errors import CancelledError, RemegraphError, SchemaTooNewError, SchemaTooOldError, SetupError
from remegraph.files import give_up_at_fork
from remegraph.kit.health import Health, LifeSign
from remegraph.kit.worker import FOREIGN, Duty, Worker, readmit
from remegraph.ports import Clock, Job
from remegraph.settings import Settings

if TYPE_CHECKING:
    from remegraph.kit.components import Parts
    from remegraph.ledger.index.projection import VectorProjection
    from remegraph.ports import Courier, Embedder

__all__ = ["Reindexing", "Runner", "at_once", "serve", "until_signalled"]

_GRACE = 0.5
"""Seconds that a process which ends without `close` gives its current blocks."""


def at_once(settings: Settings) -> int:
    """Return how many jobs a process does at once, unless it is given another number.

    Where users are a team, all write into one memory, and each writer must see what the others wrote: one after the other.
    """
    return 1 if settings.trust_boundary == "agent" else settings.capture.concurrency


class Runner:
    """Works off the queue as it fills, several jobs at once. Starts with the first `wake`.

    One thread at a time looks for work. A thread that finds a job leaves the looking to the next one, which is started if
    all others are busy: so an idle kit asks the queue once, however many jobs it may do at once.

    Args:
        worker: Makes what does the jobs of one thread, and knows when the next is due.
        clock: Used to know how long a job must still wait.
        concurrency: How many jobs at once.
        poll: Least seconds between two looks at the queue, and after a failure until its thread takes another job.
        health: Told what fails.
        alert: Whether to look that often for what other processes enqueue.
        alive: Called at each look, and between the steps of each job.
        stop: Set, it has all end as `stop` does, even before the thread that waits for it wakes.
    """

    def __init__(
        self,
        worker: Callable[[], Worker],
        clock: Clock,
        *,
        concurrency: int,
        poll: float,
        health: Health,
        alert: bool = False,
        alive: Callable[[], object] = lambda: None,
        stop: Event | None = None,
    ) -> None:
        self._worker = worker
        self._clock = clock
        self._concurrency = concurrency
        self._poll = poll
        self._health = health
        self._alert = alert
        self._alive = alive
        self._stop = stop or Event()
        self._lookout = threading.Lock()
        self._bell = threading.Event()
        self._alone = threading.Lock()  # held by the one for whom all others pause
        self._change = threading.Condition()  # guards all that follows
        self._closed = False
        self._asides = 0
        self._at_work = 0  # threads that have a job, or are about to take one
        self._free = 0  # threads that would take one
        self._threads: list[tuple[threading.Thread, Worker]] = []

    def wake(self) -> None:
        """Have it look at the queue. Costs nothing, and waits for nothing."""
        self._bell.set()
        if not self._threads:
            with self._change:
                if not self._threads and not self._closed:
                    self._start()
                    atexit.register(self._leave)
                    give_up_at_fork(self)

    def _start(self) -> None:
        worker = self._worker()
        thread = threading.Thread(target=self._run, args=(worker,), name="remegraph-runner", daemon=True)
        thread.start()
        self._threads.append((thread, worker))
        self._free += 1

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Pause it after the current blocks; it continues afterwards."""
        with self._change:
            self._asides += 1
        try:
            with self._alone:
                with self._change:
                    self._change.wait_for(lambda: not self._at_work)
                yield
        finally:
            with self._change:
                self._asides -= 1
            self._bell.set()

    def stop(self) -> None:
        """End it after the current blocks, without waiting."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        self._bell.set()

    def close(self) -> None:
        """Stop after the current blocks. What is not done waits in the queue. Stopping twice is fine."""
        self.stop()
        for thread, _ in self._threads:
            thread.join()
        atexit.unregister(self._leave)

    def give_up(self) -> None:
        """Have nothing to end in a forked child, where there are no such threads."""
        atexit.unregister(self._leave)

    # ------------------------------------------------------------------------------------------- the threads

    def _run(self, worker: Worker) -> None:
        while True:
            with self._lookout:
                job = self._found(worker)
            if job is None:
                break
            self._do(worker, job)
        with suppress(SetupError):
            worker.settle()

    def _found(self, worker: Worker) -> Job | None:
        """Look for a job until there is one, which is taken then; none once this is closed."""
        while True:
            self._bell.clear()  # before looking: what is queued from here on rings again
            if self._closed:
                return None
            job, seconds = None, None
            if self._begin():
                try:
                    job = worker.claim(asleep=False)
                    self._health.over()
                    seconds = None if job else self._until_due(worker)
                except Exception as error:  # noqa: BLE001 - the boundary: no caller is above, and the thread must live on
                    self._spare(error)
                    seconds = self._poll
                finally:
                    if job is None:
                        self._end()
            if job is not None:
                return job
            self._bell.wait(seconds)

    def _do(self, worker: Worker, job: Job) -> None:
        """Do a job while another thread looks for the next one."""
        failed = False
        try:
            self._relieve()
            worker.do(job, self._stopped)
        except CancelledError:
            pass  # it is given back
        except Exception as error:  # noqa: BLE001 - the boundary: no caller is above, and the thread must live on
            self._spare(error)
            failed = True
        finally:
            self._end()
            self._bell.set()  # it may be due again
        if failed:
            self._pause(worker)
        with self._change:
            self._free += 1

    def _relieve(self) -> None:
        """Have another thread look for the next job."""
        with self._change:
            self._free -= 1
            if not self._free and len(self._threads) < self._concurrency and not self._closed:
                try:
                    self._start()
                except RuntimeError as error:  # there are too many threads: the next job waits for this one
                    self._spare(error)

    def _pause(self, worker: Worker) -> None:
        """Spare what failed another try, for now; have the ledger hear what this worker gives back, as soon as it does."""
        while not self._wait(self._poll):
            with suppress(SetupError):
                worker.settle()
                return

    def _spare(self, error: Exception) -> None:
        """Note a failure, unless it only says that the interpreter ends: from then on no thread can be started."""
        if isinstance(error, RuntimeError) and "interpreter shutdown" in str(error):
            self.stop()
        else:
            self._health.note("background", error)

    def _wait(self, seconds: float) -> bool:
        """Return whether this is closed, in so many seconds at the latest."""
        with self._change:
            return self._change.wait_for(lambda: self._closed, seconds)

    def _begin(self) -> bool:
        """Return whether a job may be taken; if so, say that one is."""
        with self._change:
            free = not self._stopped()
            self._at_work += free
            return free

    def _end(self) -> None:
        with self._change:
            self._at_work -= 1
            self._change.notify_all()

    def _until_due(self, worker: Worker) -> float | None:
        if self._alert:
            return self._poll
        due = worker.next_due()
        return None if due is None else max(self._poll, (due - self._clock()).total_seconds())

    def _stopped(self) -> bool:
        self._alive()
        return self._closed or self._stop.is_set() or self._asides > 0

    def _leave(self) -> None:
        """Let the process end: what cannot be finished immediately is left to the next one."""
        self.stop()
        end = time.monotonic() + _GRACE
        for thread, _ in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        for thread, worker in self._threads:
            if thread.is_alive():
                with suppress(SetupError):  # its lease runs out
                    worker.give_back()


_KEEP = 10.0
"""Seconds between looks at what waits for the index."""
_BREATH = timedelta(seconds=1)
"""Before a job is brought again that was given back, or that another process holds."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_ENOUGH = 3
"""Signals that end the process immediately."""


def serve(parts: Parts, duties: Mapping[str, Duty], health: Health, *, concurrency: int, stop: Event) -> None:
    """Work until `stop` is set; then finish the current blocks, and give the jobs back.

    Args:
        parts: The parts of the kit.
        duties: What to do, by kind of job.
        health: Told what fails.
        concurrency: How many jobs at once.
        stop: Set it to end the work.

    Raises:
        SchemaTooNewError: A newer release has changed the schema meanwhile: this one can do nothing more.
        SchemaTooOldError: An earlier ledger was brought back meanwhile.
    """
    parts.archive.database.check_writable()
    misfit: list[SetupError] = []
    keeper = Thread(target=_keep_index, args=(parts, health, stop, misfit), name="remegraph-index", daemon=True)
    home, lease = parts.settings.home.expanduser(), parts.settings.capture.lease
    sign = LifeSign(home, lease, lambda error: health.note("background", error))
    keeper.start()
    try:
        if parts.courier is None:
            _look(parts, duties, health, concurrency=concurrency, stop=stop, alive=sign.give)
        else:
            _listen(parts, parts.courier, duties, health, concurrency=concurrency, stop=stop, alive=sign.give)
    finally:
        stop.set()
        keeper.join()
        sign.close()
    if misfit:
        raise misfit[0]


@contextmanager
def until_signalled() -> Iterator[Event]:
    """Give an event that SIGTERM or Ctrl-C sets; the third one ends the process immediately. For the main thread.

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
        for number, handler in before.items():  # it is ending already: a late signal must not make that a failure
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


def _keep_index(parts: Parts, health: Health, stop: Event, misfit: list[SetupError]) -> None:
    """Index what the index did not take when it was learned, as it may have been down; report what is left to others.

    Where this release does not fit the schema any more, it says so in `misfit`, and has all end.
    """
    while True:
        try:
            parts.archive.database.ping()
            if parts.courier is not None:  # else who looks for work knows, once a second
                health.over()
            if (calls := parts.jobs.reclaim()) and parts.courier is not None:
                parts.courier.again(calls)
            health.figure("jobs_foreign", parts.jobs.depth().foreign, FOREIGN)
            if stop.wait(_KEEP):
                return
            parts.projection.sync()
        except (SchemaTooNewError, SchemaTooOldError) as error:
            misfit.append(error)
            stop.set()
            return
        except Exception as error:  # noqa: BLE001 - the boundary: no caller is above, and it must go on
            health.note("background", error)
            if stop.wait(_KEEP):
                return


def _look(
    parts: Parts,
    duties: Mapping[str, Duty],
    health: Health,
    *,
    concurrency: int,
    stop: Event,
    alive: Callable[[], object],
) -> None:
    """Look for work again and again."""
    poll = parts.settings.capture.poll
    worker = partial(Worker, parts, duties)
    runner = Runner(
        worker,
        parts.clock,
        concurrency=concurrency,
        poll=poll,
        health=health,
        alert=True,
        alive=alive,
        stop=stop,
    )
    try:
        runner.wake()
        stop.wait()
    finally:
        runner.close()


def _listen(
    parts: Parts,
    courier: Courier,
    duties: Mapping[str, Duty],
    health: Health,
    *,
    concurrency: int,
    stop: Event,
    alive: Callable[[], object],
) -> None:
    """Let a courier bring the work; where it cannot, try again."""
    policy, again, noted = parts.settings.capture, False, False

    def stopped() -> bool:
        alive()
        return stop.is_set()

    def listening() -> None:
        nonlocal again, noted
        again = noted = False
        alive()

    def deliver(kind: str, job_id: int) -> datetime | None:
        worker, report = Worker(parts, duties), None
        try:
            with suppress(CancelledError):
                job = worker.claim_one(kind, job_id)
                report = job and worker.do(job, stopped)
        except Exception as error:  # noqa: BLE001 - the boundary: no caller is above, and the job keeps the reason
            health.note("background", error)
            _settle(worker, stop, policy.poll)
        due = parts.jobs.next_due(kind, job_id)
        return due if due is None or report is not None else max(due, parts.clock() + _BREATH)

    while not stop.is_set():
        try:
            readmit(parts, duties)  # what is due and has no delivery, the courier finds by itself
            courier.work(deliver, concurrency=concurrency, policy=policy, stop=stop, alive=listening)
        except RemegraphError as error:
            if again and not noted:  # the first failure may be what the current jobs have waited out
                noted = health.note("background", error)
            again = True
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


class Reindexing:
    """One run of `VectorProjection.reindex` in a thread; the next one continues where it stopped."""

    def __init__(self, projection: VectorProjection, embedder: Embedder, health: Health) -> None:
        self._projection = projection
        self._embedder = embedder
        self._health = health
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="remegraph-reindexing", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until it is done, or has failed."""
        self._thread.join()

    def close(self) -> None:
        """Stop after the current batch. Stopping twice is fine."""
        self._closed = True
        self.wait()

    def _run(self) -> None:
        try:
            self._projection.reindex(self._embedder, progress=self._go_on)
        except CancelledError:
            return
        except Exception as error:  # noqa: BLE001 - the boundary: no caller is above, and the embedder may be a host's own
            self._health.note("background", error)

    def _go_on(self, _done: int, _total: int) -> None:
        if self._closed:
            raise CancelledError("The kit is closed.")
