"""What keeps an index that hangs from holding anyone up.

A circuit breaker guards a server; calls are given up in time; and what follows a write is not waited for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import cache
from threading import Condition, Lock, Thread
from typing import TypeVar
from weakref import WeakSet

from remegraph.deadlines import Patience
from remegraph.errors import IndexSilentError, LedgerUnavailableError, RemegraphError, VectorIndexError

__all__ = ["Background", "CircuitBreaker", "TimedCalls"]

R = TypeVar("R")

_LEAST = 0.05  # seconds: less time is not worth asking, and says nothing of who is asked
_WHAT = "The vector index did not answer in time."
_BEFORE_FORK = 5.0  # seconds that a fork leaves to what is under way
_CURE = "Recall goes on from SQL, and looks now and then whether it answers again."


class CircuitBreaker:
    """Stands before calls to a server. Safe to share between threads.

    Args:
        probe: Asks the server for a sign of life, and soon gives up; raises where there is none.
        rest: Seconds for which a server that hung is not asked again.
    """

    def __init__(self, probe: Callable[[], object], *, rest: float) -> None:
        self._probe = probe
        self._rest = rest
        self._until: float | None = None
        self._lock = Lock()

    def check(self) -> None:
        """Return where the server may be asked. After its rest, one caller looks whether it lives; the others go on.

        Raises:
            IndexSilentError: It hung a moment ago.
        """
        with self._lock:
            if self._until is None:
                return
            left = self._until - time.monotonic()
            if left > 0:
                raise IndexSilentError(
                    "The Chroma server did not answer in time.",
                    f"Look whether it runs, and what it is busy with; it is asked again in {left:.0f} seconds.",
                )
            self._until = time.monotonic() + self._rest
        self._probe()
        with self._lock:
            self._until = None

    def trip(self) -> None:
        """Note that the server hung."""
        with self._lock:
            self._until = time.monotonic() + self._rest


class TimedCalls:
    """Calls to what may be slow: each is given up in time. After one that was, none is waited for until one is in time.

    Whether it is again is looked at in the background, by the next call after a rest. Safe to share between threads.

    Args:
        limit: Seconds that are in time.
        rest: Seconds between two looks.
    """

    def __init__(self, limit: float, *, rest: float = 5.0) -> None:
        self._limit = limit
        self._rest = rest
        self._late = False
        self._looking = False
        self._look_at = 0.0
        self._lock = Lock()

    def ask(self, call: Callable[[], R], patience: Patience) -> R:
        """Return what a call returns, if it does so in time.

        Args:
            call: To the index; it runs in a thread of its own, and on to its end where it is given up.
            patience: How long it may take.

        Raises:
            VectorIndexError: It did not, or is not asked because another one did not.
        """
        if self._late:
            self._look(call)
            raise VectorIndexError(_WHAT, _CURE)
        if patience.left < _LEAST:
            raise VectorIndexError(_WHAT, _CURE)
        try:
            return patience.within(call)
        except TimeoutError as error:
            if patience.seconds >= self._limit:  # else the caller allowed less time
                with self._lock:
                    self._late, self._look_at = True, time.monotonic() + self._limit
            raise VectorIndexError(_WHAT, _CURE) from error

    def _look(self, call: Callable[[], object]) -> None:
        with self._lock:
            if self._looking or time.monotonic() < self._look_at:
                return
            self._looking = True
        Thread(target=self._time, args=(call,), name="remegraph-index-look", daemon=True).start()

    def _time(self, call: Callable[[], object]) -> None:
        """Let callers wait again after a call that ended in time, with or without an error."""
        began = time.monotonic()
        try:
            call()
        except RemegraphError:
            pass  # the next caller gets the error
        finally:
            with self._lock:
                self._looking = False
                self._late = time.monotonic() - began > self._limit
                self._look_at = time.monotonic() + self._rest


@cache
def _at_work() -> WeakSet[Background]:
    """Whatever a fork waits for: a child in which a thread was lost on the way waits for its locks for ever."""
    works: WeakSet[Background] = WeakSet()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lambda: [each.settle(_BEFORE_FORK) for each in list(works)])
    return works


class Background:
    """Does one thing in a thread, once more whenever it is asked to; who asks waits for a moment only.

    Once it took longer, no one waits until it is as quick again. The thread ends when there is nothing to do.

    Args:
        moment: Seconds that a caller waits.
    """

    def __init__(self, do: Callable[[], object], moment: float) -> None:
        self._do = do
        self._moment = moment
        self._turn = Condition()  # guards all that follows
        self._asked = 0
        self._done = 0
        self._working = False
        self._late = False
        self._failure: BaseException | None = None
        _at_work().add(self)

    def start(self) -> None:
        """Have it done, and wait for nothing."""
        with self._turn:
            self._asked += 1
            if not self._working:
                self._working = True
                # In the context of who asks, so that a trace shows what its write led to.
                Thread(target=copy_context().run, args=(self._work,), name="remegraph-index", daemon=True).start()

    def hurry(self) -> None:
        """Have no one look on until it is quick again: there are signs that it will not be."""
        self._late = True

    def ask(self) -> None:
        """Have it done, and return when it is, or when that takes longer than a moment.

        Raises:
            BaseException: How it failed; where it is not done yet, how it failed the last time, but not by the ledger.
        """
        with self._turn:
            self.start()
            mine = self._asked
            self._late = not self._turn.wait_for(lambda: self._done >= mine, 0 if self._late else self._moment)
            passed = self._late and isinstance(self._failure, LedgerUnavailableError)  # who asks has just written to it
            if self._failure is not None and not passed:
                raise self._failure.with_traceback(None)

    def settle(self, seconds: float) -> bool:
        """Wait until all that was asked for is done; return whether it is.

        Args:
            seconds: How long at most.
        """
        with self._turn:
            return self._turn.wait_for(lambda: not self._working, seconds)

    def _work(self) -> None:
        while True:
            with self._turn:
                if self._done == self._asked:
                    self._working = False
                    self._turn.notify_all()
                    return
                doing = self._asked
            began = time.monotonic()
            failure: BaseException | None = None
            try:
                self._do()
            except BaseException as error:  # noqa: BLE001 - raised again where someone asks
                failure = error
            with self._turn:
                self._done, self._failure = doing, failure
                self._late = self._late and time.monotonic() - began > self._moment
                self._turn.notify_all()
