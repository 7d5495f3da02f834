"""A call that fails: the n-th of all calls through the doors of some objects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

__all__ = ["FailingCall"]


class FailingCall:
    """Lets the n-th call through its doors fail, once, and counts them all.

    For n = 1, 2, ... until a run is clean, this shows that no single failure loses or doubles anything.

    Args:
        n: Which call fails, from 1; 0: none.
        late: Whether the call does its work before it fails, as when the answer of a server is lost.
    """

    def __init__(self, n: int, *, late: bool = False) -> None:
        self.n = n
        self.late = late
        self.calls: list[str] = []
        """The doors gone through so far, in order."""
        self._lock = threading.Lock()

    @property
    def failed(self) -> str:
        """The door whose call failed; empty where none did yet."""
        return self.calls[self.n - 1] if 0 < self.n <= len(self.calls) else ""

    def guard(self, thing: object, doors: Mapping[str, Callable[[], Exception]]) -> None:
        """Make methods of an object doors.

        Args:
            thing: The object; its methods are replaced in place.
            doors: The error that each method raises when it fails, by the method's name.
        """
        for name, error in doors.items():
            setattr(thing, name, self._door(getattr(thing, name), f"{type(thing).__name__}.{name}", error))

    def _door(self, method: Callable[..., Any], name: str, error: Callable[[], Exception]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self.calls.append(name)
                fails = len(self.calls) == self.n
            if fails and not self.late:
                raise error()
            result = method(*args, **kwargs)
            if fails:
                raise error()
            return result

        return call
