"""Calls to code of others that must answer in time, with or without timeouts of its own, and not too many at once.

An async call is cancelled at its deadline. A sync one cannot be ended from outside: it runs in a thread of its own,
which is left behind. That thread lives until the call gives up, and does not keep the process from ending; so give
models a timeout of their own, too.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import copy_context
from typing import TypeVar

__all__ = ["Gate", "Patience", "Probe", "awithin", "within"]

R = TypeVar("R")


class Patience:
    """How long an operation may wait, in all, for slow calls.

    Args:
        seconds: The longest.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.left = seconds

    def within(self, call: Callable[[], R]) -> R:
        """Return what a call returns, if it does so in the time that is left; see `within`."""
        began = time.monotonic()
        try:
            return within(self.left, call)
        finally:
            self.left = max(0.0, self.left - (time.monotonic() - began))


def within(seconds: float, call: Callable[[], R]) -> R:
    """Return what a call returns, if it does so in time; it runs in a thread with the caller's context variables.

    Raises:
        TimeoutError: It did not.
    """
    outcome: Future[R] = Future()
    context = copy_context()  # LangChain's callbacks and LangGraph's writers are context variables

    def run() -> None:
        try:
            outcome.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="remegraph-call", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome.done():
        raise TimeoutError(f"no answer in {seconds:g} seconds")
    return outcome.result()


class Probe:
    """Asks what may hang. Where it does, it is asked nothing more until it has answered: only one thread waits for it.

    Args:
        seconds: How long a call may take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._asking = threading.Lock()

    def ask(self, call: Callable[[], R]) -> R:
        """Return what a call returns.

        Raises:
            TimeoutError: It did not return in time, or an earlier one has not returned yet.
        """

        def run() -> R:
            if not self._asking.acquire(blocking=False):
                raise TimeoutError("an earlier question is not answered yet")
            try:
                return call()
            finally:
                self._asking.release()

        return within(self._seconds, run)


async def awithin(seconds: float, call: Awaitable[R]) -> R:
    """Return what a call returns, if it does so in time; else it is cancelled.

    Raises:
        TimeoutError: It did not.
    """
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await call
    except TimeoutError as error:
        if deadline.expired():
            raise TimeoutError(f"no answer in {seconds:g} seconds") from error
        raise


class Gate:
    """Admits a number of callers at once, from any thread and any event loop; the others wait, first come, first served.

    Args:
        most: How many.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: deque[Future[None]] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def inside(self, patience: float | None = None) -> Iterator[None]:
        """Wait until there is room, at most `patience` seconds, then enter anyway; leave at the end of the block."""
        with self._turn() as turn:
            with suppress(TimeoutError):
                turn.result(patience)
            yield

    @asynccontextmanager
    async def ainside(self) -> AsyncIterator[None]:
        """Wait until there is room; leave at the end of the block."""
        with self._turn() as turn:
            await asyncio.wrap_future(turn)
            yield

    @contextmanager
    def _turn(self) -> Iterator[Future[None]]:
        """Yield a future that is done when there is room."""
        turn: Future[None] = Future()
        with self._lock:
            if self._free:
                self._free -= 1
                turn.set_result(None)
            else:
                self._waiting.append(turn)
        try:
            yield turn
        finally:
            if not turn.cancel():  # else the wait was cancelled before
                self._leave()

    def _leave(self) -> None:
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._free += 1
