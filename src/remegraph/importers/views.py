"""Views: what a host's list of messages shows about recorded ones: an abandoned branch, a return, a removal.

A host that trims, summarises, or hands over only the newest messages retracts nothing, so absence alone proves nothing.
Only a list that a checkpointer keeps for the whole graph shows a rewind, and only by what follows the newest recorded
message. Where anything is uncertain, nothing follows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import Field

from remegraph.importers.turns import Course, Lookup, Received
from remegraph.models import FOLLOWS, Message, Partition, Role
from remegraph.models.base import Record, Text
from remegraph.models.messages import WithheldReason, revised

if TYPE_CHECKING:
    from remegraph.ports import Recorded

__all__ = ["Judge", "OffRecord", "Recent", "View", "placed"]

_MOST = 10_000
"""Messages that a process remembers having recorded."""

_SETTLED = timedelta(minutes=5)
"""Words of other processes younger than this may be missing from a list only because both talk at the same time."""

_START = ""
"""The place after which the first message of a list comes."""

_BACK: frozenset[WithheldReason] = frozenset({"rewound", "removed"})
"""Reasons for hiding messages that are shown again when their host has them again."""


class View(Record):
    """Kinds of lists that hosts hand over."""

    due: bool = Field(
        default=False,
        description="Whether an answer is still to come: nothing is recorded yet (unless `capture.early`), and what the "
        "host changed is followed.",
    )
    whole: bool = Field(
        default=False,
        description="Whether it is all that the host holds of the thread, as a checkpointer keeps it for a whole graph; "
        "else what is absent says nothing.",
    )
    stateless: bool = Field(
        default=False,
        description="Whether nothing keeps the host's state between runs, so that its messages may have other ids in each.",
    )
    channel: Text = Field(default="", description="Which of the host's lists it is; each takes a course of its own.")
    moment: Text = Field(default="", description="The host's checkpoint; the names of later ones sort after it.")
    began: Text = Field(default="", description="The checkpoint at the start of the run, where that is known.")
    addressed: Text = Field(default="", description="The checkpoint that the run was asked to go on from, if it was.")


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a message when it was recorded, in a complete list."""

    after: str
    """Id of the message before it; empty for the first."""
    channel: str
    moment: str


@dataclass(frozen=True, slots=True)
class _Row:
    """A recorded message."""

    name: str
    stands: str
    """The id that its host knows it by: for a revision, that of what it revises."""
    found: Recorded
    place: _Place | None

    @property
    def moment(self) -> str:
        """The host's checkpoint when it was recorded; empty where none is noted."""
        return self.place.moment if self.place else ""


def placed(messages: Iterable[Message], course: Course, view: View) -> tuple[Message, ...]:
    """Return new messages with their places, as far as a list shows them."""
    if not _absence_counts(course, view):
        return tuple(messages)
    names = [heard.message_id for heard in course.heard]
    before = dict(zip(names, [_START, *names], strict=False))
    found: list[Message] = []
    for message in messages:
        extra = message.extra if isinstance(message.extra, dict) else {"extra": message.extra}
        after = before.get(revised({"extra": extra}) or message.message_id, _START)
        place = {"after": after, "channel": view.channel, "moment": view.moment}
        found.append(message.evolve(extra={**extra, FOLLOWS: place}))
    return tuple(found)


class Recent:
    """The last messages that this process recorded."""

    def __init__(self) -> None:
        self._said: dict[tuple[Partition, Hashable], None] = {}

    def note(self, partition: Partition, said: Iterable[Hashable]) -> None:
        """Remember these messages."""
        self._said |= dict.fromkeys((partition, each) for each in said)
        if len(self._said) > _MOST:
            for each in [*self._said][:-_MOST]:
                self._said.pop(each, None)

    def holds(self, partition: Partition, said: Hashable) -> bool:
        """Return whether a message is one of them."""
        return (partition, said) in self._said


class OffRecord(Recent):
    """The last messages said off the record, by thread and id, until the ledger has them marked."""

    def among(self, partition: Partition, said: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return those of some messages that are remembered."""
        return [each for each in said if self.holds(partition, each)]

    def forget(self, partition: Partition, said: Iterable[tuple[str, str]]) -> None:
        """Forget these: the ledger remembers them now."""
        for each in said:
            self._said.pop((partition, each), None)


@dataclass(frozen=True)
class Judge:
    """Works out what follows from a list."""

    course: Course
    view: View
    thread: str
    known: Mapping[str, Recorded]
    recorded: Lookup
    now: datetime
    mine: Callable[[str], bool]

    @cached_property
    def back(self) -> tuple[str, ...]:
        """Ids of messages that were hidden because the host abandoned or removed them, and that it has again."""
        return tuple(row.name for row in self._back)

    @cached_property
    def left(self) -> tuple[str, ...]:
        """Ids of messages of a branch that the host abandoned: something else is where it began."""
        gone: list[str] = []
        for point, instead in self._forks():
            branch: set[str] = set()
            for row in self._later(point, known=instead is None):
                if row.place is None or row.stands in self._kept or not self._certain(row):
                    continue
                if row.place.after in branch or (row.place.after == point and self._replaced(row, instead)):
                    branch.add(row.stands)
                    if "rewound" not in row.found.dropped:
                        gone.append(row.name)
        return tuple(gone)

    @cached_property
    def gone(self) -> tuple[str, ...]:
        """Ids of messages that the host no longer has, whatever is in their place."""
        start = self.view.moment if self.view.due else self.view.began
        if not start or not self._absence_counts or not self.known:
            return ()
        return tuple(
            row.name
            for row in _rows(self.recorded(thread=self.thread, dropped=False))
            if row.stands not in self._kept and row.name not in self.left and self._certain(row, start)
        )

    @cached_property
    def _absence_counts(self) -> bool:
        return _absence_counts(self.course, self.view)

    @cached_property
    def _here(self) -> Mapping[str, Recorded]:
        """The recorded messages of the list; of ids that a host reuses in each thread, those of this thread."""
        others = [name for name, found in self.known.items() if found.body["thread"] != self.thread]
        forms = self.recorded(revising=others).values() if others else ()
        mine = (found for found in forms if found.body["thread"] == self.thread)
        return {**self.known, **{revised(found.body) or "": found for found in mine}}

    @cached_property
    def _present(self) -> frozenset[str]:
        return frozenset(heard.message_id for heard in self.course.heard)

    @cached_property
    def _kept(self) -> frozenset[str]:
        return self._present | {row.stands for row in self._back}

    @cached_property
    def _back(self) -> tuple[_Row, ...]:
        """Messages that are back, and those before them in their branch, which the host may have trimmed."""
        if not self._absence_counts or not any(found.dropped & _BACK for found in self.known.values()):
            return ()
        dropped = _rows(self.recorded(thread=self.thread, dropped=True))
        hidden = [row for row in dropped if row.found.dropped & _BACK]
        before = {row.stands: row.place.after for row in hidden if row.place}
        shown: set[str] = set()
        for name in self._present:
            earlier = name
            while earlier in before and earlier not in shown:
                shown.add(earlier)
                earlier = before[earlier]
        return tuple(row for row in hidden if row.stands in shown)

    def _forks(self) -> Iterator[tuple[str, Received | Role | None]]:
        """Yield each message after which a branch may have been abandoned, and what is there instead.

        That is the next speaker, if nothing is said yet; None if it is known that one of the two branches was
        abandoned.
        """
        back = {row.stands for row in self._back}
        yield from dict.fromkeys(
            (row.place.after, None) for row in self._back if row.place and row.place.after not in back
        )
        if not self._absence_counts or not (self.view.due or self.view.addressed):
            return  # within a run a host may trim what it had at the start
        places = [place for place, heard in enumerate(self.course.heard) if heard.message_id in self.known]
        if not places:
            if self.view.addressed and self.course.heard and self.course.gap < 0:
                yield _START, self.course.heard[0]
            return
        if self.course.gap > self.course.heard[places[-1]].index:
            return
        last, *new = self.course.heard[places[-1] :]
        if not self.view.addressed and sum(heard.role == "user" for heard in new) > 1:
            return  # another run is under way in this thread: the host took up its question, and may have lost others
        if new:
            yield last.message_id, new[0]
        elif self.view.due and last.role in {"user", "tool"}:
            yield last.message_id, "assistant"

    def _later(self, point: str, *, known: bool) -> Iterator[_Row]:
        """Yield what was recorded after a message; for a thread that begins again, what came after a checkpoint.

        If it is `known` that one of two such beginnings is back, that is the others on which the host went on after it.
        """
        if point == _START:
            rows = _rows(self.recorded(thread=self.thread))
            since = self.view.addressed
            yield from self._other_beginnings(rows) if known else (row for row in rows if row.moment > since)
            return
        found = self._here.get(point) or self.recorded([point]).get(point)
        if found is not None:
            yield from _rows(self.recorded(thread=self.thread, after=found.seq))

    def _other_beginnings(self, rows: Sequence[_Row]) -> Iterator[_Row]:
        since = max(row.moment for row in self._back)
        first: dict[str, str] = {}
        for row in rows:
            after = row.place.after if row.place else ""
            first[row.stands] = first.get(after, "") if after else row.stands
        others = {first[row.stands] for row in rows if row.moment > since}
        yield from (row for row in rows if first[row.stands] in others)

    def _certain(self, row: _Row, moment: str = "") -> bool:
        """Return whether a message was in this list before, and would still be in it if the host had not removed it."""
        place, before = row.place, moment or self.view.moment
        if place is None or place.channel != self.view.channel:
            return False
        if (place.moment or before) and not place.moment < before:
            return False  # another branch of the graph, or another run, that runs at the same time
        return bool(self.view.addressed) or self.mine(row.name) or self.now - row.found.recorded_at >= _SETTLED

    def _replaced(self, row: _Row, instead: Received | Role | None) -> bool:
        """Return whether something else is in the place of a message.

        An answer whose place the next question takes may only be missing, as with hosts that do not keep answers.
        """
        if instead is None:
            return True
        role = row.found.body["role"]
        if role == (instead.role if isinstance(instead, Received) else instead):
            return True
        return any(found.body["role"] == role for name, found in self._here.items() if name in self._present)


def _absence_counts(course: Course, view: View) -> bool:
    """Return whether absence from a list proves anything: derived ids shift with every change."""
    return view.whole and all(heard.own_id for heard in course.heard)


def _rows(recorded: Mapping[str, Recorded]) -> list[_Row]:
    return [_Row(name, revised(found.body) or name, found, _place(found.body)) for name, found in recorded.items()]


def _place(body: Mapping[str, object]) -> _Place | None:
    """Return the noted place of a message."""
    extra = body.get("extra")
    noted = extra.get(FOLLOWS) if isinstance(extra, Mapping) else None
    if not isinstance(noted, Mapping):
        return None
    after, channel, moment = (noted.get(key) for key in ("after", "channel", "moment"))
    if isinstance(after, str) and isinstance(channel, str) and isinstance(moment, str):
        return _Place(after, channel, moment)
    return None
