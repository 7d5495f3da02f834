"""Explicit statements: their governance fields (G3), and how each is recorded as a message and a block of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from remegraph.errors import InputError
from remegraph.models import (
    Block,
    BlockSummary,
    ChangeSet,
    Cut,
    EnforcementLevel,
    Evidence,
    Memory,
    MemoryChange,
    MemoryClass,
    Message,
    Partition,
    Scope,
    Shelf,
    StoredMessage,
    Work,
)
from remegraph.models.base import operation_id
from remegraph.models.supersession import canonical
from remegraph.ports import Clock, NewId
from remegraph.text.scripts import language_of
from remegraph.text.sentences import SUMMARY_LIMIT, length, summary_of

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["UNGOVERNED", "Governed", "Stated", "check_statement", "closing", "remember", "state"]


@dataclass(frozen=True, slots=True)
class Governed:
    """The optional fields of the governance protocol's schema, as they were given."""

    summary: str = ""
    memory_class: MemoryClass = "episodic"
    enforcement_level: EnforcementLevel | None = None
    applies_to: str = ""
    canonical_topic: str = ""
    supersedes: tuple[str, ...] = ()
    slot_value: str = ""
    slot_many: bool = False

    def check(self, scope: Scope, *, by_model: bool = False) -> None:
        """Refuse what cannot be used.

        A model may not name what it replaces, or speak for other projects.

        Raises:
            InputError: A value is unknown, or values do not go together.
        """
        for name, value, kind in (
            ("memory_class", self.memory_class, MemoryClass),
            ("enforcement_level", self.enforcement_level, EnforcementLevel),
        ):
            if value is not None and value not in get_args(kind):
                raise InputError(f"There is no {name} {value!r}.", f"Give one of {', '.join(get_args(kind))}.")
        if self.enforcement_level is not None and self.memory_class != "policy":
            raise InputError(
                f"enforcement_level is for policies, and this is {self.memory_class}.",
                'Give memory_class="policy", or leave it out.',
            )
        if length(self.summary) > SUMMARY_LIMIT:
            raise InputError(
                f"The summary has {length(self.summary)} words.", f"Give {SUMMARY_LIMIT} at most, or leave it out."
            )
        if not self.slot() and (self.slot_value or self.slot_many):
            raise InputError(
                "A value is given, and no slot.", "Name the slot: whose and which attribute, as ann:lives_in."
            )
        if by_model and self.supersedes:
            raise InputError("A model names what it replaces.", "Only a person does: leave supersedes out.")
        self._check_place(scope, by_model=by_model)

    def _check_place(self, scope: Scope, *, by_model: bool) -> None:
        kind, _, name = self.applies_to.partition(":")
        if kind not in {"", "global", "project", "lang"} or bool(name.strip()) != (kind in {"project", "lang"}):
            raise InputError(
                f"applies_to is {self.applies_to!r}.", "Write it as global, project:<name> or lang:<name>."
            )
        if kind == "project" and name != scope.project:
            raise InputError(
                f"applies_to is {self.applies_to!r}, and the scope is not of that project.",
                f"Save it with Scope(..., project={name!r}).",
            )
        if kind == "global" and by_model and scope.project is not None:
            raise InputError("A model speaks for all projects.", "Only a person does: leave applies_to out.")

    def place(self, home: Partition) -> Partition:
        """Return its partition: in no project, if it applies everywhere."""
        return home.evolve(project=None) if self.applies_to == "global" else home

    def slot(self) -> str:
        """Return the canonical topic as it is compared; empty where none was given."""
        return canonical(self.canonical_topic)

    def fields(self, content: str, partition: Partition) -> dict[str, Any]:
        """Return the fields of a new memory, what was not given filled in."""
        binding = self.enforcement_level or ("soft" if self.memory_class == "policy" else None)
        return {
            "summary": self.summary.strip() or summary_of(content),
            "memory_class": self.memory_class,
            "enforcement_level": binding,
            "applies_to": self._language() or partition.applies_to,
            "canonical_topic": self.slot(),
            "slot_value": self.slot_value.strip(),
            "slot_many": self.slot_many,
        }

    def confirmed(self, old: Memory) -> dict[str, Any]:
        """Return the fields of a memory that is stated again: its slot if it had none; as a policy, it becomes one."""
        fields: dict[str, Any] = {}
        if self.slot() and not old.canonical_topic:
            fields = {
                "canonical_topic": self.slot(),
                "slot_value": self.slot_value.strip(),
                "slot_many": self.slot_many,
            }
        if self.memory_class != "policy":
            return fields
        level = self.enforcement_level or old.enforcement_level or "soft"
        return fields | {"memory_class": "policy", "enforcement_level": level}

    def _language(self) -> str:
        """Return `lang:<name>` as it is compared; empty where it applies to any."""
        kind, _, name = self.applies_to.partition(":")
        return f"lang:{name.strip().casefold()}" if kind == "lang" else ""


UNGOVERNED = Governed()
"""Nothing was given."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement as it was recorded: one message, in a block of its own."""

    message: StoredMessage
    block: Block

    @property
    def evidence(self) -> Evidence:
        """The whole statement, as evidence."""
        return Evidence(message_id=self.message.message_id, quote=self.message.text, block_id=self.block.block_id)

    @property
    def summary(self) -> BlockSummary:
        """The index entry of its block: the statement itself."""
        return BlockSummary(
            block_id=self.block.block_id,
            partition=self.block.partition,
            start_time=self.message.time,
            end_time=self.message.time,
            summary=self.message.text,
            language=language_of(self.message.text),
            trust=self.message.trust,
        )

    def work(self, recipe: str) -> Work:
        """Its block is done: there is nothing left to summarise."""
        return Work(
            partition=self.block.partition, block_id=self.block.block_id, recipe=recipe, state="done", attempts=1
        )


def check_statement(content: str, importance: float) -> None:
    """Refuse what cannot be remembered.

    Raises:
        InputError: The statement is empty, or the importance is not between 0 and 1.
    """
    if not content.strip():
        raise InputError("The statement is empty.", "Say what to remember.")
    if not 0 <= importance <= 1:
        raise InputError(f"The importance is {importance}.", "Give a number from 0 to 1.")


def state(
    archive: Archive,
    clock: Clock,
    partition: Partition,
    content: str,
    *,
    statement_id: str,
    role: Literal["assistant", "system"],
    actor: str,
    recipe: str,
    extra: Mapping[str, object] | None = None,
    said_at: datetime | None = None,
) -> Stated:
    """Record a statement as a message and a block of its own; one that is recorded already is used again.

    `role` is system for a person or an application, assistant for a model; `recipe` names the method of summarising,
    for the work row.
    """
    now = clock()
    message = Message(
        message_id=statement_id,
        thread=f"stated:{statement_id}",
        role=role,
        name=actor,
        content=content,
        time=said_at or now,
        extra=dict(extra or {}),
    )
    if (made := archive.add_statement(partition, message, now, recipe)) is not None:
        return Stated(*made)
    (stored,) = archive.messages([partition], ids=[statement_id])
    cut = Cut(thread=stored.thread, after_seq=0, first_seq=stored.seq, last_seq=stored.seq)
    archive.add_blocks(partition, [cut], recipe)  # left out if it is cut already
    (block,) = archive.blocks([partition], thread=stored.thread)
    return Stated(stored, block)


def closing(
    archive: Archive, stated: Stated, recipe: str, *, new: bool = False
) -> tuple[tuple[BlockSummary, ...], tuple[Work, ...]]:
    """Return index entry and work that close the block of a statement; None if the background was faster.

    If it is `new`, that is left to the commit, which refuses work that is done.
    """
    if not new and archive.summaries([stated.block.partition], ids=[stated.block.block_id]):
        return (), ()
    return (stated.summary,), (stated.work(recipe),)


def remember(
    archive: Archive,
    clock: Clock,
    new_id: NewId,
    shelf: Shelf,
    content: str,
    *,
    actor: str,
    recipe: str,
    importance: float,
    governed: Governed = UNGOVERNED,
) -> Memory:
    """Record a statement as a message and a block of its own, and make it a memory.

    Stating the same words again changes nothing and returns the memory that holds them. An importance of .9 or more
    makes it a core rule.

    Raises:
        InputError: The statement is empty, or the importance is not between 0 and 1.
    """
    check_statement(content, importance)
    partition = shelf.partition
    twins = [
        m for m in archive.memories([partition], topics=[shelf.topic], statuses=["active"]) if m.content == content
    ]
    if twins:
        return twins[0]
    stated = state(archive, clock, partition, content, statement_id=new_id(), role="system", actor=actor, recipe=recipe)
    memory = Memory(
        memory_id=operation_id(shelf.to_json(), stated.message.message_id),
        partition=partition,
        topic=shelf.topic,
        content=content,
        **governed.fields(content, partition),
        kind="profile",
        evidence=(stated.evidence,),
        block_ids=(stated.block.block_id,),
        layer="long_term",
        importance=importance,
        language=language_of(content),
        source="tool-call",
        extractor=actor,
        said_at=stated.message.time,
        recorded_at=stated.message.time,
    )
    archive.commit(
        ChangeSet(
            operation_id=operation_id("state", memory.memory_id),
            actor=actor,
            recorded_at=stated.message.time,
            shelves=(shelf,),
            changes=(MemoryChange(memory=memory, expected_version=0, action="create"),),
            summaries=(stated.summary,),
            work=(stated.work(recipe),),
        )
    )
    return memory
