"""The call and token ledger of an operation, with its hard budget (X8)."""

from __future__ import annotations

import threading

from remegraph.errors import BudgetExceededError
from remegraph.models import Budget, CallRecord, Usage

__all__ = ["Meter"]


class Meter:
    """Counts the calls of one operation and refuses what would go over its budget.

    Branches run in parallel, so a call is reserved before it is made.

    Args:
        budget: Hard limits.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self._calls: list[CallRecord] = []
        self._reserved = 0
        self._reserved_tokens = 0
        self._lock = threading.Lock()

    def reserve(self, tokens: int) -> None:
        """Take leave for one call.

        Args:
            tokens: Tokens it will send, estimated.

        Raises:
            BudgetExceededError: The call would go over the budget. Nothing is reserved.
        """
        with self._lock:
            calls = len(self._calls) + self._reserved + 1
            spent = sum(call.input_tokens + call.output_tokens for call in self._calls)
            limit = self._budget.max_calls
            if limit is not None and calls > limit:
                raise BudgetExceededError(f"The operation has used its {limit} model calls.")
            limit = self._budget.max_tokens
            if limit is not None and spent + self._reserved_tokens + tokens > limit:
                raise BudgetExceededError(f"The operation has used {spent} of its {limit} tokens; the next call needs {tokens}.")
            self._reserved += 1
            self._reserved_tokens += tokens

    def record(self, call: CallRecord, reserved_tokens: int) -> None:
        """Book a call that was made, whatever came of it.

        Args:
            call: The call.
            reserved_tokens: What was reserved for it.
        """
        with self._lock:
            self._reserved -= 1
            self._reserved_tokens -= reserved_tokens
            self._calls.append(call)

    def usage(self) -> Usage:
        """Return all calls booked so far."""
        with self._lock:
            return Usage(calls=tuple(self._calls))
