"""The tasks of a summary: what its steps pass on, the rules of the owner, and its budget of calls and tokens (X8)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Protocol, Self, get_args

from remegraph.engine.trajectories import Run
from remegraph.errors import BudgetExceededError
from remegraph.models import (
    Attachment,
    Block,
    BlockSummary,
    Budget,
    CallRecord,
    Category,
    Evidence,
    Link,
    Memory,
    MemoryChange,
    Reading,
    Scope,
    Shelf,
    Skill,
    StoredMessage,
    Topic,
    Usage,
)
from remegraph.prompts import Language
from remegraph.settings import ExtractionPolicy, Mode, Perspective, PrivateKind, RuleKind
from remegraph.text.desensitization import LONGEST, findings

__all__ = [
    "ONLY",
    "Account",
    "Action",
    "DescribeTask",
    "Digest",
    "DigestTask",
    "DistilTask",
    "Meter",
    "Objection",
    "Operation",
    "OwnerRules",
    "Pictured",
    "Proposal",
    "ProposeTask",
    "ReviewTask",
    "ScreenTask",
    "Screened",
    "Thinker",
    "ThinkerOf",
    "Verb",
    "Voice",
]

ONLY = "remember"
"""Name of the rule broken by everything that the owner did not ask for."""

_BY_FORM: dict[str, frozenset[PrivateKind]] = {
    "credentials": frozenset({"key", "password"}),
    "money": frozenset({"card", "iban"}),
}
"""Kinds that code recognises, in part, by their form."""

_TOLD_BY_CODE = frozenset({"credentials"})
"""Kinds that may be forbidden without a model."""

_AT_ONCE = LONGEST // 4


@dataclass(frozen=True, slots=True)
class OwnerRules:
    """The rules of one agent, numbered from 1: each kind never to be remembered, then the only ones to be remembered."""

    never: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    @classmethod
    def of(cls, policy: ExtractionPolicy) -> OwnerRules:
        """Return the rules that settings name; names of kinds may be in any case."""
        return cls(*(tuple(map(_kind_or_words, each)) for each in (policy.never_remember, policy.remember)))

    def __bool__(self) -> bool:
        return bool(self.never or self.only)

    @property
    def need_a_model(self) -> tuple[str, ...]:
        """The rules that code cannot keep by itself."""
        return (*(rule for rule in self.never if rule not in _TOLD_BY_CODE), *self.only)

    @property
    def numbers(self) -> range:
        """The numbers of the rules."""
        return range(1, len(self.never) + bool(self.only) + 1)

    def name(self, number: int) -> str:
        """Return what a rule is called in reports: its kind, or its words, which are the owner's."""
        return self.never[number - 1] if number <= len(self.never) else ONLY

    def broken_by(self, text: str) -> int:
        """Return the number of a rule that a text breaks by its form alone; 0: none."""
        return next((number for number, kinds in self._by_form() if next(_places(text, kinds), None)), 0)

    def phrases(self, text: str) -> Iterator[str]:
        """Yield the words of a text that break a rule by their form alone."""
        for _, kinds in self._by_form():
            yield from (text[start:end] for start, end in _places(text, kinds))

    def _by_form(self) -> Sequence[tuple[int, frozenset[PrivateKind]]]:
        return [(number, _BY_FORM[rule]) for number, rule in enumerate(self.never, start=1) if rule in _BY_FORM]


def _kind_or_words(rule: str) -> str:
    return kind if (kind := rule.casefold()) in get_args(RuleKind) else rule


def _places(text: str, kinds: frozenset[PrivateKind]) -> Iterator[tuple[int, int]]:
    for start in range(0, len(text), _AT_ONCE):
        part = text[start : start + _AT_ONCE]
        yield from ((start + each.start, start + each.end) for each in findings(part, kinds=kinds))


@dataclass(frozen=True, slots=True)
class Voice:
    """The voice that memories are written in; each of them records it."""

    mode: Mode = "factual"
    perspective: Perspective = "third-person"
    language: str = ""
    """The language they are written in; empty: that of the words that they cite."""


@dataclass(frozen=True, slots=True)
class DigestTask:
    """Summarise a block and route it."""

    scope: Scope
    block: Block
    messages: tuple[StoredMessage, ...]
    shelves: tuple[Shelf, ...]
    """The topic index: shelves that exist, and those that may always be made for this block."""
    language: Language
    held: Mapping[Shelf, Sequence[str]] = field(default_factory=dict)
    """The slots that memories of these topics hold."""
    itself: tuple[Memory, ...] = ()
    """What the agent knows of itself."""
    invents: bool = False
    """Whether unlisted task topics may be named."""


@dataclass(frozen=True, slots=True)
class Digest:
    """The index entry of a block and the keys of the topics that it belongs to."""

    summary: BlockSummary
    topics: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What was read differently from how it was written, or left out, and why."""
    forget: tuple[str, ...] = ()
    """Ids of messages that ask for something to be forgotten, or say what is meant."""
    correct: tuple[str, ...] = ()
    """Ids of messages that say that something remembered is wrong."""

    def read_by(self, reader: str) -> Digest:
        """Return only the index entry, as that of a block that was read."""
        return replace(self, topics=(), summary=self.summary.evolve(extractor=reader))


@dataclass(frozen=True, slots=True)
class Pictured:
    """An attachment to be read."""

    number: int
    """The number of its message in the block, from 1."""
    message_id: str
    attachment: Attachment
    data: bytes


@dataclass(frozen=True, slots=True)
class DescribeTask:
    """Say what is in the attachments of a block."""

    messages: tuple[StoredMessage, ...]
    pictured: tuple[Pictured, ...]
    language: Language


@dataclass(frozen=True, slots=True)
class ProposeTask:
    """Compare a block with the memories of one topic."""

    scope: Scope
    shelf: Shelf
    attempt: int
    block: Block
    messages: tuple[StoredMessage, ...]
    reasons: tuple[str, ...]
    """Objections of the reviser to the last attempt."""
    language: Language
    now: datetime
    recipe: str
    similar: tuple[Memory, ...] = ()
    """The topic's memories: all of them, or if there are too many, those that the block may be about."""
    settle: tuple[tuple[str, ...], ...] = ()
    """Ids of those among them that hold one slot together, which holds one value: what is decided of them needs no words
    of this block."""
    beside: tuple[Memory, ...] = ()
    """Memories of other topics of the same person: to be known, not to be changed."""
    before: tuple[StoredMessage, ...] = ()
    """Messages of the thread right before the block, already dealt with."""
    itself: tuple[Memory, ...] = ()
    """Self-knowledge of the agent, for a thinker that looks back as the agent."""
    wishes: tuple[StoredMessage, ...] = ()
    """Messages of the block that ask for something to be forgotten or put right."""
    meant: tuple[Memory, ...] = ()
    """Memories that they may mean, of all topics of the person: to be changed only for them."""
    last: tuple[Operation, ...] = ()
    """Operations kept from the last attempt: this one amends them."""
    former: frozenset[str] = frozenset()
    """Ids of memories that give way, as the block is read again: they are not shown as known."""


Action = Literal["CREATE", "CORROBORATE", "REFINE", "SUPERSEDE", "CORRECT", "END", "CONTRADICT", "DELETE"]
"""Operations on memories: see the prompt `propose`."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One change that a model asks for, checked: each id was shown to it, each quote is in its message."""

    action: Action
    evidence: tuple[Evidence, ...]
    targets: tuple[str, ...] = ()
    """Ids of the memories that it changes."""
    content: str = ""
    when_to_use: str = ""
    category: Category = "fact"
    canonical_topic: str = ""
    slot_value: str = ""
    slot_many: bool = False
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """The operations that a Sub Agent asks for, or why there are none."""

    shelf: Shelf
    attempt: int
    similar: tuple[Memory, ...] = ()
    """The memories that it was compared with."""
    changes: tuple[MemoryChange, ...] = ()
    links: tuple[Link, ...] = ()
    failure: str = ""
    """Why it, or the rest of it, never became valid."""
    operations: tuple[Operation, ...] = ()
    """The operations that the changes follow from, where a model decided."""
    notes: tuple[str, ...] = ()
    """What was read differently from how it was written, or left out, and why."""


@dataclass(frozen=True, slots=True)
class ReviewTask:
    """Judge what the memories would be after the proposals."""

    messages: tuple[StoredMessage, ...]
    topics: tuple[Topic, ...]
    before: tuple[Memory, ...]
    after: tuple[Memory, ...]
    flags: tuple[Objection, ...]
    language: Language


@dataclass(frozen=True, slots=True)
class ScreenTask:
    """Check statements, and the words of a block, against the owner's rules."""

    rules: OwnerRules
    texts: tuple[str, ...]
    """The statements."""
    messages: tuple[StoredMessage, ...]
    """The block; None for a single statement."""
    language: Language


@dataclass(frozen=True, slots=True)
class Screened:
    """Statements that break the owner's rules."""

    rules: tuple[int, ...]
    """For each statement, the number of the rule that it breaks; 0: none."""
    words: tuple[tuple[str, str], ...] = ()
    """Words of messages, by message id."""


@dataclass(frozen=True, slots=True)
class DistilTask:
    """Make a skill of a run that succeeded."""

    task: str
    """The name of its subject."""
    run: Run
    language: Language


Verb = Literal["describe", "digest", "propose", "review", "screen", "distil"]


class Thinker(Protocol):
    """Who thinks: a chat model, or the rules alone."""

    @property
    def name(self) -> str:
        """Recorded as the extractor of every memory."""
        ...

    @property
    def learns(self) -> bool:
        """Whether a second attempt, given the objections, can have another result."""
        ...

    @property
    def looks_back(self) -> bool:
        """Whether it thinks as the agent, and so must know who that is."""
        ...

    @property
    def similar_tokens(self) -> int:
        """Tokens that the memories of a topic may take in a task."""
        ...

    def describe(self, task: DescribeTask, meter: Meter) -> Mapping[tuple[str, str], Reading]:
        """Say what is in attachments, by message id and SHA-256; what cannot be read is left out."""
        ...

    def digest(self, task: DigestTask, meter: Meter) -> Digest:
        """Summarise and route a block."""
        ...

    def propose(self, task: ProposeTask, meter: Meter) -> Proposal:
        """Compare a block with one topic's memories."""
        ...

    def review(self, task: ReviewTask, meter: Meter) -> tuple[Objection, ...]:
        """Confirm, drop or add objections to what the rules flagged."""
        ...

    def screen(self, task: ScreenTask, meter: Meter) -> Screened:
        """Say what breaks the owner's rules."""
        ...

    def distil(self, task: DistilTask, meter: Meter) -> Skill:
        """Make a skill of a run that succeeded."""
        ...

    async def athink(self, verb: Verb, task: Any, meter: Meter) -> Any:
        """Call the method of this name without blocking the event loop."""
        ...


ThinkerOf = Callable[[str | None], Thinker]
"""Who thinks for an agent, by its name."""


@dataclass(frozen=True, slots=True)
class Objection:
    """One thing that is wrong with a change, and why."""

    kind: Literal["evidence", "omission", "duplicate", "conflict"]
    topic: str
    """Key of the topic that it concerns: the memory's, or `personal:<speaker>` for a statement."""
    reason: str
    memory_ids: tuple[str, ...] = ()
    message_id: str = ""
    statement: str = ""


class Account(Protocol):
    """Is charged for calls of models."""

    def admit(self) -> None:
        """Check that a call may be made.

        Raises:
            RateLimitError: No more calls may be made today.
        """

    def book(self, calls: Sequence[CallRecord]) -> None:
        """Add calls to what was used."""


class Meter:
    """Counts the calls of one operation and refuses those that would exceed its budget.

    Branches run in parallel, so a call is reserved before it is made.

    Args:
        budget: Hard limits of the operation.
        account: What its calls are charged to, if anything.
    """

    def __init__(self, budget: Budget | None = None, account: Account | None = None) -> None:
        self._budget = budget or Budget()
        self._account = account
        self._calls: list[CallRecord] = []
        self._booked = 0
        self._reserved = 0
        self._reserved_tokens = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.settle()

    def admit(self) -> None:
        """Ask the account before the first call since the last booking: an operation that has begun may finish.

        Raises:
            RateLimitError: It allows none today.
        """
        if self._account is not None and len(self._calls) + self._reserved == self._booked:
            self._account.admit()

    def settle(self) -> None:
        """Book what was called since the last time."""
        with self._lock:
            calls, self._booked = self._calls[self._booked :], len(self._calls)
        if self._account is not None:
            self._account.book(calls)

    def reserve(self, tokens: int) -> None:
        """Reserve one call.

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
                raise BudgetExceededError(
                    f"The operation has used {spent} of its {limit} tokens; the next call needs {tokens}."
                )
            self._reserved += 1
            self._reserved_tokens += tokens

    def affords(self, expected: Iterable[CallRecord]) -> bool:
        """Return whether the budget is likely to suffice for more calls."""
        calls, spent = list(expected), self.usage()
        calls += spent.calls
        most_calls, most_tokens = self._budget.max_calls, self._budget.max_tokens
        tokens = sum(call.input_tokens + call.output_tokens for call in calls)
        return (most_calls is None or len(calls) <= most_calls) and (most_tokens is None or tokens <= most_tokens)

    def record(self, call: CallRecord, reserved_tokens: int) -> None:
        """Book a call that was made, whatever its outcome."""
        with self._lock:
            self._reserved -= 1
            self._reserved_tokens -= reserved_tokens
            self._calls.append(call)

    def usage(self) -> Usage:
        """Return all calls booked so far."""
        with self._lock:
            return Usage(calls=tuple(self._calls))
