"""Retraction of a memory with the words it cites, and of messages that their host edited or abandoned; and restoring them.

The raw rows stay in the ledger. What is withheld of them is not shown anywhere until it is restored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from remegraph.engine.disputes import ATTEMPTS, Disputes
from remegraph.engine.forget_phrases import FORGET_TOOL, revealing_sentences
from remegraph.engine.removal import Removal, Removals, Words, left_of, phrases_of, telltales_of, unquoted, whole
from remegraph.engine.retrieval.search import Searcher
from remegraph.engine.routes import at_home, own
from remegraph.errors import ConflictError, NotFoundError
from remegraph.models import (
    FORGOTTEN,
    BlockSummary,
    ChangeSet,
    Forgotten,
    Memory,
    MemoryChange,
    Message,
    Partition,
    Scope,
    Status,
    StoredMessage,
    WithheldReason,
    Withholding,
    Work,
)
from remegraph.models.base import operation_id
from remegraph.models.messages import revised
from remegraph.models.remnants import MARK, silenced, unsaid, without
from remegraph.models.standing import TOMBSTONES
from remegraph.models.supersession import revision
from remegraph.ports import Clock, NewId
from remegraph.settings import Settings
from remegraph.text.telltales import Telltales

if TYPE_CHECKING:
    from remegraph.ledger.archive import Archive

__all__ = ["Forgetting", "Retraction"]

_WAITED: frozenset[Status] = frozenset({"proposed", "quarantined"})
"""The statuses of refused memories, which are not forgotten: approving them is another matter."""

_ANY: tuple[WithheldReason, ...] = get_args(WithheldReason)
"""All reasons for which words are withheld."""

Discard = Callable[[Collection[Partition], Callable[[str], bool]], None]
"""Drops what working memory and buffers of these partitions hold, if it matches."""


@dataclass(frozen=True)
class Forgetting:
    """The changes by which memories are forgotten, and what must no longer be said."""

    changes: tuple[MemoryChange, ...]
    summaries: tuple[BlockSummary, ...]
    withheld: tuple[Withholding, ...]
    words: Words
    telltales: tuple[Telltales, ...]

    def repeated_by(self, memory: Memory) -> bool:
        """Return whether a memory that is just being made says it, or rests on its words alone."""
        hidden = self.words.hides(memory)
        return (bool(hidden) and all(hidden)) or bool(revealing_sentences(memory.content, self.telltales, near=False))

    def without(self, memory: Memory) -> Memory:
        """Return a memory that is just being made, without the words of it that it quotes."""
        hidden = self.words.hides(memory)
        return unquoted(memory, hidden) if any(hidden) else memory

    def rest(self, rows: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
        """Return what is left of some messages."""
        return left_of(rows, self.words)


class Retraction:
    """Forgets memories and hides messages, and restores them."""

    def __init__(self, archive: Archive, searcher: Searcher, clock: Clock, new_id: NewId, settings: Settings) -> None:
        self._archive = archive
        self._disputes = Disputes(archive, searcher)
        self._removals = Removals(archive, settings)
        self._clock = clock
        self._new_id = new_id
        self._settings = settings

    # ------------------------------------------------------------------------------------------ memories

    def forget(
        self,
        memory_id: str,
        scope: Scope,
        *,
        leave: Collection[str] = (),
        dry_run: bool = False,
        discard: Discard | None = None,
    ) -> Forgotten:
        """Forget a memory, what says the same elsewhere, and the words that they cite.

        `leave` are ids of other memories, and of messages, that stay as they are; `discard` drops what is kept in mind
        and says the same.

        Raises:
            NotFoundError: There is no such memory, or it is not this user's.
            ConflictError: Other changes kept coming first.
        """
        mine = own(self._archive.visible(scope), scope, self._settings.trust_boundary)
        for _ in range(ATTEMPTS):
            shown = self._head(mine, memory_id)
            root = self._unforgotten(mine, shown)
            if root is None:
                return Forgotten(memory=shown, done=not dry_run)
            plan = self._removals.of_memory(root, mine, scope, frozenset(leave))
            told = Forgotten(
                memory=shown,
                along=plan.along,
                passages=plan.passages,
                blocks=tuple(entry.block_id for entry in plan.summaries),
                done=not dry_run,
            )
            if dry_run:
                return told
            try:
                self._commit(plan, operation_id("forget", memory_id, root.version), scope)
            except ConflictError:
                continue
            if discard is not None:
                discard(mine, plan.stated_in)
            return told.evolve(
                memory=self._head(mine, memory_id),
                along=tuple(silenced(memory.evolve(status=FORGOTTEN)) for memory in plan.along),
                passages=tuple(passage.evolve(words=()) for passage in plan.passages),
            )
        raise ConflictError([memory_id])

    def restore(self, memory_id: str, scope: Scope) -> Memory | None:
        """Bring a forgotten memory back, with all that went with it; None where it is not forgotten.

        Raises:
            ConflictError: It was learned again meanwhile, or it changed just now.
        """
        mine = own(self._archive.visible(scope), scope, self._settings.trust_boundary)
        found = self._archive.forgotten(mine, memory_id) if mine else ()
        if not found:
            return None
        cause = found[0][1]
        before = next(old for head, old in self._archive.operation(mine, cause) if head.memory_id == memory_id)
        if before.status in _WAITED:
            return None
        self.put_back(
            mine, self._archive.withheld_by(mine, cause), [cause], actor=scope.agent or "operator", scope=scope
        )
        return self._head(mine, memory_id)

    def forgetting(
        self,
        roots: Sequence[Memory],
        scope: Scope,
        beside: Sequence[StoredMessage],
        asking: Iterable[tuple[StoredMessage, Sequence[str]]] = (),
    ) -> Forgetting:
        """Return what goes with some memories, for a caller that commits it together with other changes.

        In messages `beside`, those that ask for it and their answers, less reveals them. Words `asking` for it,
        by message, go, too.
        """
        mine = own(self._archive.visible(scope), scope, self._settings.trust_boundary)
        plans = [self._removals.of_memory(root, mine, scope, frozenset(), beside) for root in roots]
        gone = {memory.memory_id: memory for plan in plans for memory in plan.along}
        gone |= {root.memory_id: root for root in roots}
        kept: dict[str, Memory] = {}
        for memory in (memory for plan in plans for memory in plan.kept if memory.memory_id not in gone):
            kept[memory.memory_id] = _less(kept.get(memory.memory_id, memory), memory)
        words = Words()
        for plan in plans:
            for place, message in plan.words.messages.items():
                words.add(message, plan.words.phrases[place])
        for message, phrases in asking:
            words.add(message, phrases)
        return Forgetting(
            changes=(*self._gone(gone.values()), *self._kept(kept.values())),
            summaries=self._removals.again(words, self._removals.blocks(words)),
            withheld=words.withheld("forgotten"),
            words=words,
            telltales=tuple(each for plan in plans for each in plan.telltales),
        )

    # ------------------------------------------------------------------------------------------ messages

    def hold(self, partition: Partition, withheld: Sequence[Withholding], *, cause: str, actor: str) -> None:
        """Hide what was learned only from these words, until it is decided whether they are meant.

        They are withheld already.
        """
        parts, words = {each.message_id: each.phrases for each in withheld}, Words()
        for row in self._archive.messages([partition], ids=list(parts), shown=["asked"]):
            words.add(row, parts[row.message_id] or (row.text,))
        plan = replace(self._removals.of_messages(partition, words, "asked"), words=Words(), kept=())
        if plan.along or plan.summaries:
            with suppress(ConflictError):  # the decision reads what changes in the meantime
                self._commit(plan, cause, None, actor=actor)

    def held(self, mine: Sequence[Partition], cause: str) -> Mapping[str, tuple[Memory, Memory]]:
        """Return what a request hid, by id: as it is now, and as it was."""
        return {head.memory_id: (head, before) for head, before in self._archive.operation(mine, cause)}

    def hide(self, partition: Partition, message_ids: Sequence[str], *, reason: WithheldReason, actor: str) -> None:
        """Withhold whole messages that their host no longer has, and what was learned only from them.

        Hiding them again changes nothing. Messages that do not exist are ignored.

        Raises:
            ConflictError: Other changes kept coming first.
        """
        for _ in range(ATTEMPTS):
            held = self._archive.messages([partition], ids=list(message_ids))
            shown = [row for row in held if all(note.reason != reason for note in row.withheld)]
            plan = replace(self._removals.of_messages(partition, whole(held), reason), words=whole(shown))
            if not (plan.withheld or plan.along or plan.kept or plan.summaries):
                return  # including what others made of the words during the first pass
            with suppress(ConflictError):
                self._commit(plan, operation_id("hide", self._new_id()), None, actor=actor)
        raise ConflictError(list(message_ids))

    def candidates(self, partition: Partition, sought: Sequence[str]) -> Iterator[StoredMessage]:
        """Yield the messages that may say something, by tokens of our index; see `Removals.candidates`."""
        return self._removals.candidates([partition], sought)

    def silence(self, partition: Partition, words: Words, scope: Scope) -> None:
        """Withhold words of messages as forgotten, and what was learned only from them.

        Raises:
            ConflictError: Other changes came first.
        """
        plan = replace(self._removals.of_messages(partition, words, "forgotten"), words=words)
        self._commit(plan, operation_id("silence", self._new_id()), scope)

    def show(
        self, partition: Partition, message_ids: Sequence[str], *, reasons: Collection[WithheldReason], actor: str
    ) -> None:
        """Show messages again that were hidden for these reasons, and what had been learned from them.

        Messages that are not hidden are ignored.

        Raises:
            ConflictError: Other changes came first.
        """
        held = self._archive.messages([partition], ids=list(message_ids))
        shown = tuple(
            Withholding(partition=partition, message_id=row.message_id, reason=note.reason, cause=note.cause)
            for row in held
            for note in row.withheld
            if note.whole and note.reason in reasons
        )
        if shown:
            self.put_back(
                [partition], shown, list(dict.fromkeys(each.cause for each in shown)), actor=actor, scope=None
            )

    def screen(
        self, partition: Partition, messages: Sequence[Message], held: Sequence[Withholding] = ()
    ) -> tuple[Withholding, ...]:
        """Return what is withheld of new messages immediately: where an agent repeats what is forgotten.

        What a person says again is new, and an agent may repeat it; a message of which they edit something else is not
        new. In the turn in which the agent forgot it with its tool, their words ask for that, and are withheld, too.
        `held` is withheld of the messages already.
        """
        causes = self._archive.causes(partition)
        if not causes:
            return ()
        forgotten = [each for each in self._archive.forgotten([partition]) if each[1] in causes]
        asked = _asked(messages)
        new = _said_anew(messages, {each.message_id for each in held}, frozenset().union(*asked.values()))
        found: list[Withholding] = []
        for memory, cause in forgotten:
            telltales = telltales_of(memory, [partition.user or "", partition.agent or ""], [memory])
            for at, message in enumerate(messages):
                beside = at in asked.get(memory.memory_id, ())
                if beside or message.role in {"assistant", "tool"} or self._edited(partition, message, telltales):
                    phrases = phrases_of(message, telltales, beside=beside, near=beside)
                    if phrases and not beside:
                        phrases = self._not_said_again(partition, phrases, telltales, new[:at])
                    found += [_withholding(partition, message, phrases, cause)] if phrases else []
        return tuple(found)

    def _edited(self, partition: Partition, message: Message, telltales: Sequence[Telltales]) -> bool:
        """Return whether a message is a newer form of one that said it."""
        first = revised({"extra": message.extra})
        rows = self._archive.messages([partition], ids=[first], shown=_ANY) if first else ()
        return any(phrases_of(row, telltales) for row in rows)

    def _not_said_again(
        self, partition: Partition, phrases: Sequence[str], telltales: Sequence[Telltales], new: Sequence[str]
    ) -> list[str]:
        """Return the phrases that hold more of a forgotten statement than any message of a person, new or recorded.

        When it was forgotten, all messages that said it were withheld, so those that say it now are of later.
        """

        def told(text: str) -> frozenset[str]:
            return frozenset(each for one in telltales for each in one.shared_with(text))

        sought = sorted({token for each in telltales for token in each.sought})
        texts = list(new)
        for matches in self._archive.match([partition], "message", sought) if sought else ():
            rows = self._archive.messages([partition], seqs=[int(seq) for seq in matches.seqs])
            texts += [row.text for row in rows if row.role == "user"]
        again = [told(text) for text in texts]
        return [phrase for phrase in phrases if not any(told(phrase) <= each for each in again)]

    # ------------------------------------------------------------------------------------------- planning

    def _head(self, mine: Sequence[Partition], memory_id: str) -> Memory:
        found = self._archive.memories(mine, ids=[memory_id]) if mine else ()
        if not found or found[0].status in TOMBSTONES:
            raise NotFoundError(f"There is no memory {memory_id!r} here.")
        return found[0]

    def _unforgotten(self, mine: Sequence[Partition], head: Memory) -> Memory | None:
        """Return a memory with its words, unless it is forgotten: out of sight with what its host edited, it is not."""
        if head.status != FORGOTTEN:
            return head
        found = self._archive.forgotten(mine, head.memory_id)
        if not found:
            return None
        memory, cause = found[0]
        rows = self._archive.messages(mine, ids=[item.message_id for item in memory.evidence])
        notes = [note for row in rows for note in row.withheld]
        if not notes or any(note.reason == "forgotten" and note.cause == cause for note in notes):
            return None
        return memory

    # ------------------------------------------------------------------------------------------- writing

    def _commit(self, plan: Removal, operation: str, scope: Scope | None, *, actor: str = "") -> None:
        now = self._clock()
        why = plan.reason if plan.root is None else f"with {plan.root.memory_id}"
        changes = [*self._gone((plan.root,) if plan.root is not None else ()), *self._gone(plan.along, why)]
        changes += self._kept(plan.kept)
        self._disputes.commit(
            ChangeSet(
                operation_id=operation,
                actor=actor or (scope.agent if scope and scope.agent else "operator"),
                recorded_at=now,
                at_home=True if scope is None else at_home(scope, self._settings),
                changes=tuple(changes),
                summaries=plan.summaries,
                withheld=plan.withheld,
            )
        )

    def _gone(self, memories: Iterable[Memory], why: str = "") -> list[MemoryChange]:
        return [revision(memory, self._clock(), "delete", why, status=FORGOTTEN) for memory in memories]

    def _kept(self, memories: Iterable[Memory]) -> list[MemoryChange]:
        return [
            MemoryChange(
                memory=memory.evolve(recorded_at=self._clock()),
                expected_version=memory.version - 1,
                action="withhold",
            )
            for memory in memories
        ]

    def put_back(
        self,
        mine: Sequence[Partition],
        shown: Sequence[Withholding],
        causes: Sequence[str],
        *,
        actor: str,
        scope: Scope | None,
        withheld: Sequence[Withholding] = (),
        work: Sequence[Work] = (),
    ) -> None:
        """Show words again, and restore what these operations removed, as far as its words are visible again.

        `causes` are the operations; without a scope, the upkeep asks. `withheld` are words that are withheld for
        another reason from now on.
        """
        now = self._clock()
        released = {(each.partition, each.message_id, each.cause) for each in shown}
        changes: dict[str, MemoryChange] = {}
        for cause in causes:
            for head, before in self._archive.operation(mine, cause):
                memory = self._revived(mine, head, before, released)
                if memory is not None:
                    changes[head.memory_id] = MemoryChange(
                        memory=memory.evolve(version=head.version + 1, recorded_at=now),
                        expected_version=head.version,
                        action="restore",
                    )
        if scope is None:
            twins = self._removals.twins([change.memory for change in changes.values()])
            changes = {name: change for name, change in changes.items() if name not in twins}
        self._archive.commit(
            ChangeSet(
                operation_id=operation_id("show", self._new_id()),
                actor=actor,
                recorded_at=now,
                at_home=True if scope is None else at_home(scope, self._settings),
                changes=tuple(changes.values()),
                shown=tuple(shown),
                withheld=tuple(withheld),
                work=tuple(work),
            )
        )

    def _revived(
        self, mine: Sequence[Partition], head: Memory, before: Memory, released: Collection[tuple[Partition, str, str]]
    ) -> Memory | None:
        """Return the next version of a memory once words are shown again; None if it does not change."""
        rows = self._archive.messages(mine, ids=[item.message_id for item in before.evidence])
        still = {
            row.message_id: any(note.whole for note in left)
            for row in rows
            if (left := [each for each in row.withheld if (row.partition, row.message_id, each.cause) not in released])
        }
        if head.status == FORGOTTEN:
            if before.evidence and all(item.message_id in still for item in before.evidence):
                return None
            return _requoted(before, before, still)
        again = _requoted(head, before, still)
        return None if again == head else again


def _less(one: Memory, other: Memory) -> Memory:
    """Return a memory without the quotes that either of two versions goes without."""
    pairs = zip(one.evidence, other.evidence, strict=True)
    return one.evolve(evidence=tuple(other if other.quote == MARK else one for one, other in pairs))


def _requoted(memory: Memory, before: Memory, still: Mapping[str, bool]) -> Memory:
    """Return a memory with its former quotes from messages of which nothing is withheld any more, and with their lines.

    `still` are the messages of which something is, and whether that is the whole message.
    """
    had = {
        (item.message_id, item.block_id, place): item
        for place, item in enumerate(before.evidence)
        if item.message_id not in still
    }
    quotes = tuple(
        had.get((item.message_id, item.block_id, place), item)
        if item.quote == MARK
        else item.evolve(quote=MARK)
        if item.message_id in still and memory is before
        else item
        for place, item in enumerate(memory.evidence)
    )
    again = memory.evolve(evidence=quotes)
    if len(before.evidence) != len(memory.evidence):
        return again
    was = unsaid(
        before, [item.quote == MARK for item in memory.evidence] if memory is not before else [False] * len(quotes)
    )
    if was.content != memory.content:
        return again
    now = unsaid(before, [still.get(item.message_id, False) for item in before.evidence])
    return again.evolve(content=now.content, summary=now.summary)


def _asked(messages: Sequence[Message]) -> Mapping[str, frozenset[int]]:
    """Return, by memory, the places of the messages of turns in which an agent forgot it by its tool."""
    found: dict[str, frozenset[int]] = {}
    for at, message in enumerate(messages):
        for call in message.tool_calls:
            if call.name == FORGET_TOOL and isinstance(call.args, dict):
                start = next((before for before in range(at, -1, -1) if messages[before].role == "user"), 0)
                while start and messages[start - 1].role == "user":
                    start -= 1
                later = range(at + 1, len(messages))
                end = next((after for after in later if messages[after].role == "user"), len(messages))
                memory_id = str(call.args.get("memory_id", ""))
                found[memory_id] = found.get(memory_id, frozenset()) | frozenset(range(start, end))
    return found


def _said_anew(messages: Sequence[Message], held: Collection[str], beside: Collection[int]) -> list[str]:
    """Return, by place, what a person says in new messages; nothing where it asks to forget something."""
    return [
        each.text
        if each.role == "user"
        and each.message_id not in held
        and at not in beside
        and not revised({"extra": each.extra})
        else ""
        for at, each in enumerate(messages)
    ]


def _withholding(partition: Partition, message: Message, phrases: Sequence[str], cause: str) -> Withholding:
    left = without(message.text, phrases, mark="")
    whole = not message.tool_calls and not any(character.isalnum() for character in left)
    return Withholding(
        partition=partition, message_id=message.message_id, phrases=() if whole else tuple(phrases), cause=cause
    )
