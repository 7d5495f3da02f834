"""What is noted in this process and not in the ledger yet: written in the background, or along with the next write.

Reviews of recalled memories, records of what agents were shown, tool calls (docs/invariants.md, 8; R12); and which turns
could not be recorded.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Generic, TypeVar

from sqlalchemy.exc import DataError, IntegrityError

from remegraph.deadlines import Probe
from remegraph.errors import InputError, LimitError, SetupError
from remegraph.kit.health import Health
from remegraph.kit.validation import check_numbers, check_text
from remegraph.models import (
    REVIEWING,
    Access,
    ChangeSet,
    Hit,
    Memory,
    Partition,
    Review,
    ReviewKind,
    Shown,
    ToolRecord,
    Unrecorded,
)
from remegraph.models.tools import call_digest, error_kind, error_line, outcome

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive
    from remegraph.ledger.audit import AuditTrail
    from remegraph.ports import Clock, NewId

__all__ = ["CallBuffer", "Notes", "ReviewBuffer", "ShownBuffer", "UnrecordedTurns", "review_kinds"]

_MOST_IDS, _MOST_THREADS = 500, 10_000
"""Of how much that could not be recorded the ids are kept: the newest of each conversation, and the newest of these."""

_UNREAD = ""
"""Stands for messages that could not be read."""

_CLEAR = 0.8
"""Share of the best score from which a hit is what was asked for."""


def review_kinds(scores: Sequence[float]) -> list[ReviewKind]:
    """Return how the hits of one recall came back: as what was asked for, or beside it."""
    best = max(scores, default=0.0)
    return ["hit" if score >= min(best, _CLEAR * best) else "seen" for score in scores]


T = TypeVar("T")


class Notes(ABC, Generic[T]):
    """Notes that are not written yet. Safe to use from any thread; what a crash takes was never promised.

    Args:
        many: After each so many, they should be written down soon.
        health: Told of notes that cannot be written.
    """

    def __init__(self, many: int, health: Health) -> None:
        self._many = many
        self._health = health
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: list[T] = []

    def add(self, found: Sequence[T]) -> bool:
        """Note these; return whether it is time to write."""
        with self._lock:
            before = len(self._waiting)
            self._waiting.extend(found)
            return before // self._many < len(self._waiting) // self._many

    def noted(self) -> Sequence[T]:
        """Return what is noted, oldest first."""
        with self._lock:
            return list(self._waiting)

    def flush(self) -> None:
        """Write down what is noted, once another write of it is over. If that fails, it stays noted.

        What can never be written costs no other note: each is written by itself then, and that one is dropped.
        """
        with self._writing:
            with self._lock:
                taken, self._waiting = self._waiting, []
            parts = [taken] if taken else []
            try:
                while parts:
                    part = parts[0]
                    done = self._written(part) or len(part) == 1
                    parts[:1] = [] if done else [[each] for each in part]
            except BaseException:
                with self._lock:
                    self._waiting[:0] = [each for part in parts for each in part]
                raise

    def _written(self, part: Sequence[T]) -> bool:
        """Write these down; return false where one of them is at fault, which is reported once it is alone."""
        try:
            self._write(part)
        except (OverflowError, TypeError, ValueError, DataError, IntegrityError) as error:
            if len(part) == 1:
                self._health.note("background", error)
            return False
        return True

    @abstractmethod
    def _write(self, taken: Sequence[T]) -> None:
        """Write these down: all of them, or fail; what is written twice must count once, or nothing be written."""


class ReviewBuffer(Notes[Review]):
    """Reviews that are not written yet.

    Args:
        archive: Where they are written.
        health: Told of reviews that cannot be written.
    """

    def __init__(self, archive: Archive, health: Health) -> None:
        super().__init__(many=256, health=health)
        self._archive = archive

    def note(self, hits: Iterable[Hit], at: datetime) -> bool:
        """Note that these memories were returned; return whether it is time to write."""
        hits = list(hits)
        kinds = review_kinds([hit.score for hit in hits])
        return self.add(
            [
                Review(partition=hit.partition, memory_id=hit.record_id, kind=kind, at=at)
                for hit, kind in zip(hits, kinds, strict=True)
            ]
        )

    def note_used(self, memories: Iterable[Memory], at: datetime) -> bool:
        """Note that an answer drew on these memories; return whether it is time to write."""
        return self.add(
            [Review(partition=memory.partition, memory_id=memory.memory_id, kind="used", at=at) for memory in memories]
        )

    def waiting(self, memory_id: str) -> Sequence[Review]:
        """Return what is noted of a memory, oldest first."""
        return [review for review in self.noted() if review.memory_id == memory_id]

    def accesses(self) -> Mapping[tuple[Partition, str], Sequence[Access]]:
        """Return each review of the memories that are noted, what merely came along left out, by place and id."""
        found: defaultdict[tuple[Partition, str], list[Access]] = defaultdict(list)
        for review in self.noted():
            if review.kind in REVIEWING:
                found[review.partition, review.memory_id].append(Access(review.at, review.kind == "used"))
        return found

    def _write(self, taken: Sequence[Review]) -> None:
        self._archive.add_reviews(taken)


class ShownBuffer(Notes[Shown]):
    """Records of what was shown that are not written yet.

    Args:
        trail: Where they are written.
        health: Told of records that cannot be written.
    """

    def __init__(self, trail: AuditTrail, health: Health) -> None:
        super().__init__(many=256, health=health)
        self._trail = trail

    def _write(self, taken: Sequence[Shown]) -> None:
        self._trail.add_shown(taken)


class CallBuffer(Notes[ToolRecord]):
    """Tool calls that were heard, and are not written yet.

    Args:
        archive: Where they are written.
        clock: Gives the time.
        new_id: Names operations, and calls that have no id.
        health: Told of calls that cannot be written.
    """

    def __init__(self, archive: Archive, clock: Clock, new_id: NewId, health: Health) -> None:
        super().__init__(many=16, health=health)
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
        """Note a call that has just ended; return whether it is time to write. See `ToolMemory.record`."""
        _check_call(tool, ok, call_id=call_id, result=result)
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


def _check_call(tool: str, ok: object, **texts: object) -> None:
    check_text(tool=tool)
    if not tool:
        raise InputError("The tool has no name.", "Give its name, as the model calls it.")
    if ok is not None and not isinstance(ok, bool):
        raise InputError(f"ok is {ok!r}.", "Give True, False, or None if it is not known.")
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InputError(f"{name} is of type {type(text).__name__}.", "Give text.")


class UnrecordedTurns:
    """What captures of this process could not record, by conversation: the ids of messages, and none of their words.

    They are missing until a capture has recorded them, here or in another process, as the ledger shows. Safe to use from
    any thread.

    Args:
        recorded: Gives what the ledger has of some messages of a place.
    """

    def __init__(self, recorded: Callable[[Partition, Sequence[str]], Mapping[str, object]]) -> None:
        self._recorded = recorded
        self._lock = threading.Lock()
        self._missing: dict[tuple[Partition, str], dict[str, None]] = {}
        self._refused: set[tuple[Partition, str]] = set()

    def __len__(self) -> int:
        return len(self._missing)

    @property
    def failed(self) -> int:
        """Of how many conversations something is missing that no limit refused, as far as this process knows."""
        return len(self._missing.keys() - self._refused)

    @contextmanager
    def turn(self, place: Partition, thread: str) -> Iterator[list[str]]:
        """Give where to put the ids of the messages that are about to be recorded; they are missing if that fails."""
        said: list[str] = []
        try:
            yield said
        except Exception as error:
            with self._lock:
                (self._refused.add if isinstance(error, LimitError) else self._refused.discard)((place, thread))
                missing = self._missing.pop((place, thread), {}) | dict.fromkeys(said or [_UNREAD])
                self._missing[place, thread] = dict.fromkeys(list(missing)[-_MOST_IDS:])
                while len(self._missing) > _MOST_THREADS:
                    del self._missing[next(iter(self._missing))]
                self._refused &= self._missing.keys()
            raise
        if (place, thread) in self._missing:
            self._found(place, thread, {*said, _UNREAD})
            self._look(place, thread)

    def look(self) -> tuple[Unrecorded, ...]:
        """Return what is missing, as the ledger shows now; as it was known where the ledger does not answer."""
        with suppress(SetupError):
            self._refresh()
        return self._known()

    def by_state(self, probe: Probe) -> dict[str, int]:
        """Return of how many conversations something is missing: refused by a limit, or failed.

        Args:
            probe: Asks the ledger; where it does not answer in time, it is as it was known.
        """
        with suppress(SetupError, TimeoutError):
            probe.ask(self._refresh)
        missing = self._known()
        refused = sum(each.refused for each in missing)
        return {"failed": len(missing) - refused, "refused": refused}

    def _refresh(self) -> None:
        for place, thread in tuple(self._missing):
            self._look(place, thread)

    def _known(self) -> tuple[Unrecorded, ...]:
        with self._lock:
            return tuple(
                Unrecorded(partition=place, thread=thread, messages=len(ids), refused=(place, thread) in self._refused)
                for (place, thread), ids in self._missing.items()
            )

    def _look(self, place: Partition, thread: str) -> None:
        if ids := [each for each in self._missing.get((place, thread), ()) if each != _UNREAD]:
            self._found(place, thread, self._recorded(place, ids))

    def _found(self, place: Partition, thread: str, ids: Iterable[str]) -> None:
        with self._lock:
            missing = self._missing.get((place, thread), {})
            for each in ids:
                missing.pop(each, None)
            if not missing:
                self._missing.pop((place, thread), None)
