"""The newest calls of a tool, looked at closely: rate, times, tokens, and the errors that are typical."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from remegraph.models import ToolRecord, ToolWindow, TypicalError
from remegraph.rules.reliability import interval
from remegraph.rules.tool_outcomes import error_kind

__all__ = ["window"]


def window(calls: Sequence[ToolRecord]) -> ToolWindow:
    """Return what some calls of one tool add up to.

    Args:
        calls: The newest first.
    """
    succeeded = sum(call.ok is True for call in calls)
    failed = sum(call.ok is False for call in calls)
    low, high = interval(succeeded, succeeded + failed)
    seconds = [call.seconds for call in calls if call.seconds is not None]
    return ToolWindow(
        calls=len(calls),
        succeeded=succeeded,
        failed=failed,
        low=low,
        high=high,
        median_seconds=float(np.median(seconds)) if seconds else None,
        p95_seconds=float(np.quantile(seconds, 0.95, method="inverted_cdf")) if seconds else None,
        mean_input_tokens=_mean(call.input_tokens for call in calls),
        mean_output_tokens=_mean(call.output_tokens for call in calls),
        errors=_errors(calls),
    )


def _mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _errors(calls: Sequence[ToolRecord]) -> tuple[TypicalError, ...]:
    """Return the errors by kind, the most frequent first, of these the newest; each with its newest call that can be read."""
    kinds: defaultdict[str, list[ToolRecord]] = defaultdict(list)
    for call in calls:
        if call.ok is False and call.error:
            kinds[error_kind(call.error)].append(call)
    return tuple(
        TypicalError(
            kind=kind,
            count=len(found),
            error=(cited := next((call for call in found if call.message_id), found[0])).error,
            call_id=cited.call_id,
            message_id=cited.message_id,
        )
        for kind, found in sorted(kinds.items(), key=lambda item: -len(item[1]))
    )
