"""Tool calls that were heard: noted at once, written with the next write or read of tools (R12)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from remegraph.errors import InputError
from remegraph.kit.calling import check_numbers, check_text
from remegraph.kit.health import Health
from remegraph.kit.noting import Notes
from remegraph.models import ChangeSet, Partition, ToolRecord
from remegraph.rules.tool_outcomes import call_digest, error_kind, error_line, outcome

if TYPE_CHECKING:
    from remegraph.ports import Archive, Clock, NewId

__all__ = ["CallBuffer"]

_MANY = 16
"""After each so many calls, they should be written down soon."""


class CallBuffer(Notes[ToolRecord]):
    """Tool calls that were heard, and are not written yet.

    Args:
        archive: Where they are written.
        clock: Tells the time.
        new_id: Names operations, and calls that have no id.
        health: Told of calls that cannot be written.
    """

    def __init__(self, archive: Archive, clock: Clock, new_id: NewId, health: Health) -> None:
        super().__init__(_MANY, health)
        self._archive = archive
        self._clock = clock
        self._new_id = new_id

    def hear(
        self,
        partition: Partition,
        tool: str,
        *,
        args: object,
        call_id: str,
        ok: bool | None,
        result: str,
        redact: Callable[[str], str],
        seconds: float | None,
        input_tokens: int | None,
        output_tokens: int | None,
    ) -> bool:
        """Note a call that has just ended; tell whether it is time to write. See `ToolMemory.record`."""
        _check(tool, ok, call_id=call_id, result=result)
        check_numbers(least=0, whole=False, seconds=seconds)
        check_numbers(least=0, whole=True, input_tokens=input_tokens, output_tokens=output_tokens)
        went = outcome(result, told=ok)
        call = ToolRecord(
            partition=partition,
            call_id=call_id or self._new_id(),
            tool=tool,
            digest=call_digest(tool, args),
            ok=went,
            error=error_kind(error_line(result, redact)) if went is False else "",
            seconds=seconds,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            time=self._clock() - timedelta(seconds=seconds or 0),
        )
        return self.add([call])

    def _write(self, taken: Sequence[ToolRecord]) -> None:
        by_partition: defaultdict[Partition, list[ToolRecord]] = defaultdict(list)
        for call in taken:
            by_partition[call.partition].append(call)
        for calls in by_partition.values():
            self._archive.commit(
                ChangeSet(operation_id=self._new_id(), actor="tools", recorded_at=self._clock(), tools=tuple(calls))
            )


def _check(tool: str, ok: object, **texts: object) -> None:
    check_text(tool=tool)
    if not tool:
        raise InputError("The tool has no name.", "Give its name, as the model calls it.")
    if ok is not None and not isinstance(ok, bool):
        raise InputError(f"ok is {ok!r}.", "Give True, False, or None where nobody knows.")
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InputError(f"{name} is of type {type(text).__name__}.", "Give text.")
